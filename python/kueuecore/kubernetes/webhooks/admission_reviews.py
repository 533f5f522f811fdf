"""Answers AdmissionReviews as Kueue's webhooks do, at Kueue's paths."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore._json_patches import json_patch
from kueuecore._patches import merge_patch, patched
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.controller.in_use_finalizers import with_finalizer
from kueuecore.errors import KueuecoreError
from kueuecore.jobs import INTEGRATIONS, Integration
from kueuecore.jobs.owners import OwnerError
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.webhooks import mutation
from kueuecore.kubernetes.https.messages import Request, Response
from kueuecore.kubernetes.webhooks.objects import WebhookObjects
from kueuecore.webhooks import admit

__all__ = ["AdmissionReviews"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_REVIEW: JsonObject = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
_OWN = "kueue.x-k8s.io/v1beta2"
_MUTATED = ("ClusterQueue", "ResourceFlavor", "Workload")
_VALIDATED = ("ClusterQueue", "Cohort", "ResourceFlavor", "Workload")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")


class _BadReviewError(Exception):
    """A review cannot be answered."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a review asks about.

    Args:
        new: The object.
        old: The stored object; None: it is created.
    """

    new: JsonObject
    old: JsonObject | None


_Response: TypeAlias = "dict[str, JsonValue]"
_Webhook: TypeAlias = Callable[[_Asked], _Response]


class AdmissionReviews:
    """The webhooks of all kinds, by path.

    Args:
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        objects: What the webhooks look up.
    """

    def __init__(self, configuration: Configuration | None, objects: WebhookObjects) -> None:
        self._configuration = configuration or Configuration()
        self._objects = objects
        self._webhooks: Mapping[str, tuple[str, str, _Webhook]] = {
            path: (api_version, kind, webhook) for path, api_version, kind, webhook in self._paths()
        }

    @property
    def paths(self) -> frozenset[str]:
        """The paths that are served."""
        return frozenset(self._webhooks)

    def answer(self, request: Request) -> Response:
        """Answer a review; what cannot be read is refused in a review, as by Kueue."""
        found = self._webhooks.get(request.path)
        if found is None:
            return Response.text(404, "404 page not found\n")
        uid = ""
        try:
            review = _read(request)
            uid = text_at(review, "request", "uid")
            response = self._response(object_at(review, "request"), *found)
        except _BadReviewError as error:
            response = _refused(400, str(error))
        except Exception as error:
            # Whatever an object has in it, its client gets an answer.
            _LOGGER.exception("a review cannot be answered", extra={"path": request.path})
            response = _refused(500, f"internal error: {logged(error) or type(error).__name__}")
        return Response.json(200, {**_REVIEW, "response": {"uid": uid, **response}})

    def _response(self, asked: JsonObject, api_version: str, kind: str, webhook: _Webhook) -> _Response:
        operation = text_at(asked, "operation")
        if operation not in _OPERATIONS:
            raise _BadReviewError(f'unknown operation "{operation}"')
        if operation not in ("CREATE", "UPDATE"):
            # Kueue's webhooks have nothing against a deletion.
            return {"allowed": True}
        new = asked.get("object")
        old = asked.get("oldObject") if operation == "UPDATE" else None
        if not isinstance(new, dict):
            raise _BadReviewError("there is no content to decode")
        if operation == "UPDATE" and not isinstance(old, dict):
            raise _BadReviewError("there is no content to decode in oldObject")
        if (text_at(new, "apiVersion"), text_at(new, "kind")) != (api_version, kind):
            is_of = f"{text_at(new, 'kind')!r} of {text_at(new, 'apiVersion')!r}"
            raise _BadReviewError(f"unable to decode {is_of} into {kind} of {api_version}")
        try:
            return webhook(_Asked(new, old if isinstance(old, dict) else None))
        except RefusedError as refused:
            # The server adds who refuses.
            _, _, why = refused.message.partition(" denied the request: ")
            return _refused(refused.code, why or refused.message, refused.reason)
        except KueuecoreError as error:
            return _refused(403, str(error), "Forbidden")
        except ValueError as error:
            # The two are not one object.
            raise _BadReviewError(str(error)) from None

    # The webhooks.

    def _paths(self) -> Iterator[tuple[str, str, str, _Webhook]]:
        for kind in _MUTATED:
            yield _path("mutate", _OWN, kind), _OWN, kind, self._mutate_own
        for kind in _VALIDATED:
            yield _path("validate", _OWN, kind), _OWN, kind, self._validate_own
        for integration in INTEGRATIONS.values():
            if integration is POD_GROUP:
                continue
            place = integration.api_version, integration.kind
            yield _path("mutate", *place), *place, self._mutating(integration)
            yield _path("validate", *place), *place, self._validate_job

    def _mutate_own(self, asked: _Asked) -> _Response:
        if asked.old is not None:
            return {"allowed": True}
        new = with_finalizer(asked.new)
        if text_at(new, "kind") == "Workload" and not self._configuration.is_enabled("PartialAdmission"):
            new = _without_min_counts(new)
        return _changed(asked.new, new)

    def _validate_own(self, asked: _Asked) -> _Response:
        admit(asked.new, old=asked.old, configuration=self._configuration)
        return {"allowed": True}

    def _mutating(self, integration: Integration) -> _Webhook:
        def mutate(asked: _Asked) -> _Response:
            self._require_listed()
            around = self._objects.around(asked.new)
            try:
                before, after = mutation(asked.new, integration, around, is_new=asked.old is None)
            except OwnerError as error:
                return _refused(403, error.denial, "Forbidden")
            # The difference alone: defaults are the server's, and fields that are not known here stay.
            return _changed(asked.new, patched(asked.new, merge_patch(before, after)))

        return mutate

    def _validate_job(self, asked: _Asked) -> _Response:
        self._require_listed()
        around = self._objects.around(asked.new)
        stored = admit(asked.new, old=asked.old, around=around, configuration=self._configuration)
        # The server itself warns of unknown fields.
        warnings = [warning for warning in stored.warnings if not warning.startswith("unknown field ")]
        return {"allowed": True, "warnings": [*warnings]} if warnings else {"allowed": True}

    def _require_listed(self) -> None:
        if unlisted := self._objects.unlisted:
            message = f"the webhooks are starting: not listed yet: {', '.join(sorted(unlisted))}"
            raise RefusedError(503, message, reason="ServiceUnavailable")


def _path(what: str, api_version: str, kind: str) -> str:
    """Return the path of a webhook, as Kueue's library makes it."""
    group, _, version = api_version.rpartition("/")
    return f"/{what}-{group.replace('.', '-')}-{version}-{kind.lower()}"


def _read(request: Request) -> JsonObject:
    if not request.body:
        raise _BadReviewError("request body is empty")
    content_type = request.headers.get("Content-Type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise _BadReviewError(f"contentType={content_type}, expected application/json")
    try:
        review = json.loads(request.body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _BadReviewError(f"couldn't decode the review: {logged(error)}") from None
    if not isinstance(review, dict) or {name: review.get(name) for name in _REVIEW} != _REVIEW:
        raise _BadReviewError("couldn't decode the review: send an AdmissionReview of admission.k8s.io/v1")
    if not isinstance(review.get("request"), dict):
        raise _BadReviewError("the review has no request")
    if not text_at(review, "request", "uid"):
        raise _BadReviewError("request.uid: Required value")
    return review


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _refused(code: int, message: str, reason: str = "") -> _Response:
    status: JsonObject = {"metadata": {}, "status": "Failure", "message": message, "code": code}
    return {"allowed": False, "status": {**status, "reason": reason} if reason else status}


def _changed(before: JsonObject, after: JsonObject) -> _Response:
    operations = json_patch(before, after)
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(json.dumps(operations, separators=(",", ":"), allow_nan=False).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _without_min_counts(workload: JsonObject) -> JsonObject:
    spec = object_at(workload, "spec")
    pod_sets = spec.get("podSets")
    if not isinstance(pod_sets, list):
        return workload
    kept: list[JsonValue] = [
        {name: part for name, part in row.items() if name != "minCount"} if isinstance(row, dict) else row
        for row in pod_sets
    ]
    return {**workload, "spec": {**spec, "podSets": kept}}
