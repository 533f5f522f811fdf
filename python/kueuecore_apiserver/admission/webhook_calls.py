"""Calls the webhooks of Mutating- and ValidatingWebhookConfigurations, over HTTPS; each `caBundle` alone is trusted.

While a webhook is asked, the server answers others, and the webhook itself: the write that needs it ends with a
[`PendingCall`][kueuecore_apiserver.admission.webhook_calls.PendingCall], and is begun anew once there is an answer.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import json
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import jsonpatch

from kueuecore._json import int_at, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.admission.expressions import ExpressionError, Variables
from kueuecore_apiserver.admission.matching import Attributes, is_about
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.store import Store, encoded

__all__ = ["Outcomes", "PendingCall", "WebhookCalls"]

_Connection: TypeAlias = http.client.HTTPSConnection
_REVIEW = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


class _UnansweredError(Exception):
    """A webhook cannot be asked, or gives no answer that can be used."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What asking a webhook has come to.

    Args:
        uid: The UID of the review.
        text: The answer.
        fault: Why there is none; empty if there is one.
    """

    uid: str
    text: bytes = b""
    fault: str = ""


Outcomes: TypeAlias = dict[bytes, _Outcome]
"""What the webhooks have answered while one write was carried out."""


class PendingCall(Exception):  # noqa: N818  # nothing is wrong
    """A webhook has to be asked before a write can be carried out.

    Args:
        key: What it is to be asked.
        ask: Asks it.
    """

    def __init__(self, key: bytes, ask: Callable[[], _Outcome]) -> None:
        super().__init__("a webhook has to be asked")
        self.key, self._ask = key, ask

    def resolve(self, outcomes: Outcomes) -> None:
        """Ask the webhook, in this thread."""
        outcomes[self.key] = self._ask()


class WebhookCalls:
    """The webhooks of a server.

    Args:
        store: Its objects.
        services: Where services are, by `namespace/name`: host and port. A webhook of any other service is not reached.
    """

    def __init__(self, store: Store, services: Mapping[str, tuple[str, int]]) -> None:
        self._store, self._services = store, services
        # Connections that wait for their next request.
        self._open: dict[tuple[str, int, str, str], list[_Connection]] = {}
        self.outcomes: Outcomes = {}
        """What they have answered so far, for the write that is being carried out."""

    def mutated(
        self, attributes: Attributes, warnings: list[str], *, again: set[str] | None = None
    ) -> tuple[Attributes, set[str]]:
        """Return a write after the webhooks that mutate, and the names of those to call again if it is changed.

        Args:
            attributes: The write.
            warnings: Where their warnings go.
            again: The webhooks to call once more; None: this is the first time, and each is called.

        Raises:
            RefusedError: A webhook refuses the write, or cannot be asked.
        """
        repeated = set()
        for webhook in self._about("Mutating", attributes):
            name = text_at(webhook, "name")
            if again is not None and name not in again:
                continue
            response = self._ask(webhook, attributes, warnings)
            if response and response.get("patch"):
                attributes = attributes.of(_patched(webhook, attributes.new, response))
            if text_at(webhook, "reinvocationPolicy") == "IfNeeded":
                repeated.add(name)
        return attributes, repeated

    def check(self, attributes: Attributes, warnings: list[str]) -> None:
        """Ask the webhooks that validate.

        Raises:
            RefusedError: One of them refuses the write, or cannot be asked.
        """
        for webhook in self._about("Validating", attributes):
            self._ask(webhook, attributes, warnings)

    def close(self) -> None:
        """Close the connections."""
        for connection in [each for waiting in self._open.values() for each in waiting]:
            connection.close()
        self._open.clear()

    def _about(self, family: str, attributes: Attributes) -> Iterator[Object]:
        for configuration in self._store.api.list(f"{family}WebhookConfiguration")[0]:
            for webhook in map(object_at, list_at(configuration, "webhooks")):
                if is_about(webhook, "rules", attributes) and _meets(webhook, attributes):
                    yield webhook

    def _ask(self, webhook: Object, attributes: Attributes, warnings: list[str]) -> Object:
        """Return the response of a webhook that allows a write; empty if it failed and may."""
        name = text_at(webhook, "name")
        request = {**attributes.request(), "object": attributes.new, "oldObject": attributes.old}
        key = hashlib.sha256(encoded([name, text_at(webhook, "clientConfig", "caBundle"), request])).digest()
        outcome = self.outcomes.get(key)
        if outcome is None:
            raise PendingCall(key, partial(self._outcome, webhook, request))
        try:
            if outcome.fault:
                raise _UnansweredError(outcome.fault)
            response = _response(outcome.text, outcome.uid)
        except _UnansweredError as error:
            if text_at(webhook, "failurePolicy") == "Ignore":
                return {}
            message = f'failed calling webhook "{name}": failed to call webhook: {error}'
            raise RefusedError(500, f"Internal error occurred: {message}", reason="InternalError") from None
        warnings += map(str, list_at(response, "warnings"))
        if response.get("allowed") is not True:
            status = object_at(response, "status")
            why = text_at(status, "message") or text_at(status, "reason")
            about = f": {why}" if why else " without explanation"
            message = f'admission webhook "{name}" denied the request{about}'
            raise RefusedError(
                int_at(status, "code", default=403), message, reason=text_at(status, "reason") or "Forbidden"
            )
        return response

    def _outcome(self, webhook: Object, request: Object) -> _Outcome:
        uid = str(uuid.uuid4())
        try:
            return _Outcome(uid, self._answer(webhook, encoded({**_REVIEW, "request": {"uid": uid, **request}})))
        except _UnansweredError as error:
            return _Outcome(uid, fault=str(error))

    def _answer(self, webhook: Object, body: bytes) -> bytes:
        host, port, path, server = self._place(object_at(webhook, "clientConfig"))
        bundle = text_at(webhook, "clientConfig", "caBundle")
        key = host, port, server, bundle
        waiting = self._open.setdefault(key, [])
        timeout = int_at(webhook, "timeoutSeconds", default=10)
        try:
            connection, is_reused = waiting.pop(), True
        except IndexError:
            connection, is_reused = _Tls(host, port, server, bundle, timeout), False
        try:
            connection.request("POST", f"{path}?timeout={timeout}s", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            if is_reused:
                # It may have been closed while nothing was asked.
                return self._answer(webhook, body)
            raise _UnansweredError(f'Post "https://{server}{path}?timeout={timeout}s": {error}') from None
        if answer.will_close:
            connection.close()
        else:
            waiting.append(connection)
        if answer.status != 200:
            raise _UnansweredError(f"the server answered {answer.status}: {text[:200].decode(errors='replace')}")
        return text

    def _place(self, config: Object) -> tuple[str, int, str, str]:
        """Return host, port and path of a webhook, and the name that its certificate must have."""
        if url := text_at(config, "url"):
            split = urlsplit(url)
            host = split.hostname or ""
            return host, split.port or 443, split.path or "/", host
        service = object_at(config, "service")
        namespace, name = text_at(service, "namespace"), text_at(service, "name")
        if f"{namespace}/{name}" not in self._services:
            raise _UnansweredError(f'service "{name}" not found')
        host, port = self._services[f"{namespace}/{name}"]
        return host, port, text_at(service, "path") or "/", f"{name}.{namespace}.svc"


class _Tls(http.client.HTTPSConnection):
    """A connection to a server that is trusted by its name in the cluster, not by its address."""

    def __init__(self, host: str, port: int, server: str, bundle: str, timeout: float) -> None:
        try:
            pem = base64.b64decode(bundle, validate=True).decode("ascii")
            self._context_of_server = ssl.create_default_context(cadata=pem or None)
        except (binascii.Error, ValueError, ssl.SSLError) as error:
            raise _UnansweredError(f"caBundle cannot be used: {error}") from None
        super().__init__(host, port, timeout=timeout, context=self._context_of_server)
        self._server = server

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context_of_server.wrap_socket(self.sock, server_hostname=self._server)


def _meets(webhook: Object, attributes: Attributes) -> bool:
    conditions = list_at(webhook, "matchConditions")
    if not conditions:
        return True
    given = {"object": attributes.new, "oldObject": attributes.old, "request": attributes.request()}
    variables = Variables(given, {})
    try:
        return all(variables.holds(text_at(condition, "expression")) for condition in map(object_at, conditions))
    except ExpressionError as error:
        if text_at(webhook, "failurePolicy") == "Ignore":
            return False
        raise RefusedError(403, f'webhook "{text_at(webhook, "name")}" cannot be matched: {error}') from None


def _response(text: bytes, uid: str) -> Object:
    try:
        review = json.loads(text)
    except ValueError as error:
        raise _UnansweredError(f"the response is not JSON: {error}") from None
    if {name: object_at(review).get(name) for name in _REVIEW} != _REVIEW:
        raise _UnansweredError("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview")
    response: dict[str, Any] = object_at(review, "response")
    if not response:
        raise _UnansweredError("webhook response was absent")
    if response.get("uid") != uid:
        raise _UnansweredError(f"expected response.uid={uid!r}, got {response.get('uid')!r}")
    if response.get("patch") and response.get("patchType") != "JSONPatch":
        raise _UnansweredError("invalid response.patchType")
    return response


def _patched(webhook: Object, new: Object, response: Object) -> Object:
    try:
        patch = json.loads(base64.b64decode(text_at(response, "patch"), validate=True))
        found: Object = jsonpatch.apply_patch(new, patch)
    except (ValueError, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        message = f'admission webhook "{text_at(webhook, "name")}" gave a patch that cannot be applied: {error}'
        raise RefusedError(500, f"Internal error occurred: {message}", reason="InternalError") from None
    return found
