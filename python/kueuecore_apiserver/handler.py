"""Routes a request to the part of the server that answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kueuecore.api_server import RefusedError
from kueuecore_apiserver.access import AccessRules
from kueuecore_apiserver.admission.chain import Admission
from kueuecore_apiserver.deletes import Deletes
from kueuecore_apiserver.discovery import discovered, openapi_v2_protobuf
from kueuecore_apiserver.reads import Reads
from kueuecore_apiserver.refusals import (
    NoSuchPathError,
    bad_request,
    method_not_allowed,
    no_such_resource,
    unsupported_media_type,
)
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.reviews import REVIEWS, review
from kueuecore_apiserver.store import Store, encoded
from kueuecore_apiserver.writes import Writes

__all__ = ["Answer", "Handler", "answer_of_refusal"]

_JSON = "application/json"
_OPENAPI_PROTOBUF = "application/com.github.proto-openapi.spec.v2"
_YAMLS = ("application/yaml", "application/apply-patch+yaml")
_BODIES = (_JSON, "application/yaml")
_HEALTH = ("/healthz", "/livez", "/readyz")
# The verbs of each subresource.
_SUBRESOURCE_VERBS: Mapping[str, tuple[str, ...]] = {
    "status": ("get", "update", "patch"),
    "finalize": ("update",),
}


@dataclass(slots=True)
class Answer:
    """An answer to send.

    Args:
        code: The status code.
        body: The body.
        content_type: The media type of the body.
        headers: Additional headers.
    """

    code: int
    body: bytes
    content_type: str = _JSON
    headers: dict[str, str] = field(default_factory=dict)


def answer_of_refusal(refusal: RefusedError, *, retry_after_seconds: int | None = None) -> Answer:
    """Turn a refusal into an answer."""
    if isinstance(refusal, NoSuchPathError):
        return Answer(404, f"{refusal}\n".encode(), "text/plain; charset=utf-8")
    headers = {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)}
    return Answer(refusal.code, encoded(refusal.status), headers=headers)


class Handler:
    """Answers all requests but watches.

    Args:
        store: The objects.
        admission: What policies and webhooks say.
        waits_for_kubelets: Whether deleted pods stay until their containers are killed.
        access: The access rules that reviews ask about; without them, everybody may do anything.
    """

    def __init__(
        self, store: Store, admission: Admission, *, waits_for_kubelets: bool, access: AccessRules | None = None
    ) -> None:
        self.store, self._access = store, access
        self.reads, self._writes = Reads(store), Writes(store, admission)
        self.deletes = Deletes(store, waits_for_kubelets=waits_for_kubelets)

    def resource(self, request: Request) -> Resource:
        """Return the kind that a request is about.

        Raises:
            RefusedError: There is no such kind (404), it does not support this verb (405), or a webhook would have to
                convert it (500).
        """
        found = self.store.registry.find(request.group, request.version, request.resource)
        if found is None:
            raise no_such_resource(request.group)
        if request.subresource and request.subresource not in found.subresources:
            raise no_such_resource()
        wanted = _SUBRESOURCE_VERBS.get(request.subresource)
        if wanted is not None and request.verb not in wanted:
            raise method_not_allowed()
        if request.method == "POST" and request.name and not request.subresource:
            raise method_not_allowed()
        if request.method in ("PUT", "PATCH") and not request.name:
            raise method_not_allowed()
        if request.namespace and not found.namespaced:
            raise no_such_resource()
        # A namespaced object has no path without its namespace.
        if found.namespaced and not request.namespace and request.verb not in ("list", "watch", "deletecollection"):
            raise method_not_allowed() if not request.name else no_such_resource()
        if found.is_behind_webhook:
            raise _not_converted(found)
        return found

    def answer(self, request: Request, body: bytes) -> Answer:
        """Answer a request.

        Raises:
            RefusedError: The request is refused.
        """
        if not request.resource:
            return self._document(request)
        if (request.group, request.resource) in REVIEWS:
            asked = _object(_read(request, body, _BODIES)) if body else {}
            return Answer(201, encoded(review(request, asked, self._access)))
        resource = self.resource(request)
        match request.verb:
            case "get":
                return self._get(request, resource)
            case "list":
                return Answer(200, self.reads.page(request, resource))
            case "create":
                return self._create(request, resource, _read(request, body, _BODIES))
            case "update":
                plain = _object(_read(request, body, _BODIES))
                return self._written(request, resource, self._writes.update(request, resource, plain))
            case "patch":
                return self._patch(request, resource, body)
            case "delete":
                return self._delete(request, resource, body)
            case "deletecollection":
                options = _object(_read(request, body, _BODIES)) if body else {}
                gone = self.deletes.delete_many(request, resource, options)
                listed = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "items": gone}
                version = {"resourceVersion": str(self.store.api.version)}
                return Answer(200, encoded({**listed, "metadata": version}))
            case _:
                raise method_not_allowed()

    def _document(self, request: Request) -> Answer:
        if request.path in _HEALTH:
            return Answer(200, b"ok", "text/plain")
        if request.path == "/openapi/v2" and _OPENAPI_PROTOBUF in request.accept:
            return Answer(200, openapi_v2_protobuf(), f"{_OPENAPI_PROTOBUF}.v1.0+protobuf")
        found = discovered(self.store.registry, request.path)
        if found is None:
            raise no_such_resource()
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return Answer(200, encoded(found))

    def _get(self, request: Request, resource: Resource) -> Answer:
        return Answer(200, self.reads.get(request, resource))

    def _create(self, request: Request, resource: Resource, body: Any) -> Answer:
        return self._written(request, resource, self._writes.create(request, resource, _object(body)), code=201)

    def _patch(self, request: Request, resource: Resource, body: bytes) -> Answer:
        is_new = self.store.find(resource, request.namespace, request.name) is None
        plain = _parsed(request.content_type, body)
        new = self._writes.patch(request, resource, plain)
        return self._written(request, resource, new, code=201 if is_new else 200)

    def _delete(self, request: Request, resource: Resource, body: bytes) -> Answer:
        options = _object(_read(request, body, _BODIES)) if body else {}
        result, has_gone = self.deletes.delete(request, resource, options)
        if not has_gone:
            return self._written(request, resource, result)
        details: Object = {"name": request.name, "group": resource.group, "kind": resource.plural}
        details = {name: detail for name, detail in details.items() if detail} | {"uid": result["metadata"]["uid"]}
        # A pod is returned as it was; of other kinds, only a status says that the object is gone.
        if resource.kind == "Pod":
            return self._written(request, resource, result)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Answer(200, encoded(status))

    def _written(self, request: Request, resource: Resource, new: Object, *, code: int = 200) -> Answer:
        if request.is_dry_run or "resourceVersion" not in new["metadata"]:
            return Answer(code, encoded({**new, "apiVersion": resource.api_version}))
        if self.store.find(resource, request.namespace, request.name or new["metadata"]["name"]) is not new:
            return Answer(code, encoded({**new, "apiVersion": resource.api_version}))
        return Answer(code, self.reads.rendered(request, resource, new))


def _not_converted(resource: Resource) -> RefusedError:
    """Return the refusal of a real server whose conversion webhook does not answer, as this one has none."""
    return RefusedError(
        500,
        f"conversion webhook for {resource.stored_api_version}, Kind={resource.kind} failed: this server converts "
        f"nothing; use {resource.stored_api_version}",
        reason="InternalError",
    )


def _object(plain: Any) -> Object:
    if not isinstance(plain, dict):
        raise bad_request("the body of the request must be an object")
    return plain


def _read(request: Request, body: bytes, accepted: tuple[str, ...]) -> Any:
    if request.content_type and request.content_type not in accepted:
        raise unsupported_media_type(accepted)
    return _parsed(request.content_type, body)


def _parsed(content_type: str, body: bytes) -> Any:
    try:
        if content_type in _YAMLS and not body.lstrip().startswith(b"{"):
            return yaml.safe_load(body)
        return json.loads(body)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"error decoding the body of the request: {error}") from None
