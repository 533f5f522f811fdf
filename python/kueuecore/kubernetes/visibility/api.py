"""Serves Kueue's visibility API: the pending workloads of a queue in their order, behind the aggregation layer."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import escaped
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.endpoints import Health, health_pages
from kueuecore.kubernetes.https.delegated_access import (
    ANONYMOUS,
    AccessUnknownError,
    DelegatedAccess,
    User,
    bearer_token,
)
from kueuecore.kubernetes.https.front_proxy import FrontProxy
from kueuecore.kubernetes.https.messages import Request, Response
from kueuecore.kubernetes.visibility.documents import GROUP, RESOURCES, VERSIONS, document
from kueuecore.kubernetes.visibility.pending_pages import PendingQuery

__all__ = ["Pending", "VisibilityApi"]

_HEALTH = ("/healthz", "/livez", "/readyz")
# Of Kueue.
_LIMIT, _MAX_LIMIT = 1000, 100_000
_INT64 = range(-(2**63), 2**63)
_MASTERS = "system:masters"

Pending: TypeAlias = Callable[[PendingQuery], "list[JsonValue] | None"]
"""Returns a page of pending workloads; None: there is no such queue. Raises `queue.Empty` if it takes too long."""


class VisibilityApi:
    """Answers the requests.

    Args:
        pending: Finds pending workloads.
        access: Knows users and their rights.
        proxy: Knows whom the API server forwards requests for.
        healthy: As for `serve_health`.
        ready: As for `serve_health`; nothing is answered before.
    """

    def __init__(
        self, pending: Pending, access: DelegatedAccess, proxy: FrontProxy, *, healthy: Health, ready: Health
    ) -> None:
        self._pending, self._access, self._proxy, self._ready = pending, access, proxy, ready
        self._health = health_pages(healthy=healthy, ready=ready)

    def answer(self, request: Request) -> Response:
        """Answer a request."""
        if request.path in _HEALTH:
            return self._health(request)
        try:
            return self._answer(request)
        except RefusedError as error:
            headers = {"Retry-After": "1"} if error.code in (500, 503) else {}
            return Response(error.code, Response.json(error.code, error.status).body, headers=headers)

    def _answer(self, request: Request) -> Response:
        user = self._user(request)
        place = _place_of(request.path)
        self._check(user, request, place)
        if place is None or place.subresource != "pendingworkloads":
            found = document(request.path) if place is None else None
            if found is None:
                raise RefusedError(404, "the server could not find the requested resource", details={})
            _require_get(request)
            return Response.json(200, found)
        _require_get(request)
        return Response.json(200, self._summary(request, place))

    def _user(self, request: Request) -> User:
        """Return who makes a request.

        Raises:
            RefusedError: The token is not accepted (401), or nobody can tell (500).
        """
        forwarded = self._proxy.settings.user_of(request)
        if forwarded is not None:
            return forwarded
        if "Authorization" not in request.headers:
            return ANONYMOUS
        token = bearer_token(request.headers)
        try:
            user = self._access.user_of(token) if token else None
        except AccessUnknownError as error:
            raise RefusedError(500, f"Internal error occurred: {error}", reason="InternalError") from None
        if user is None:
            raise RefusedError(401, "Unauthorized")
        return user

    def _check(self, user: User, request: Request, place: _Place | None) -> None:
        """Refuse what a user may not do.

        Raises:
            RefusedError: The user may not (403), or nobody can tell (500).
        """
        if _MASTERS in user.groups:
            return
        asked: JsonObject = {"nonResourceAttributes": {"path": request.path, "verb": request.method.lower()}}
        if place is not None:
            asked = {"resourceAttributes": place.attributes(request.method)}
        try:
            verdict = self._access.verdict(user, asked)
        except AccessUnknownError as error:
            raise RefusedError(500, f"Internal error occurred: {error}", reason="InternalError") from None
        if not verdict.is_allowed:
            who, why = escaped(user.name), f": {verdict.reason}" if verdict.reason else ""
            if place is None:
                said = f'forbidden: User "{who}" cannot {request.method.lower()} path "{escaped(request.path)}"'
                raise RefusedError(403, said + why, details={})
            raise RefusedError(403, place.refusal(who, request.method) + why, details=place.details(place.resource))

    def _summary(self, request: Request, place: _Place) -> JsonObject:
        limit, offset = _number(request, "limit") or _LIMIT, _number(request, "offset")
        asked = PendingQuery(place.name, place.namespace, max(offset, 0), min(max(limit, 0), _MAX_LIMIT))
        if unready := self._ready():
            kind, why = next(iter(unready.items()))
            raise RefusedError(503, f"not ready yet: {kind} {why}", reason="ServiceUnavailable", details={})
        try:
            items = self._pending(asked)
        except queue.Empty:
            raise RefusedError(503, "busy, ask again later", reason="ServiceUnavailable", details={}) from None
        if items is None:
            singular = RESOURCES[place.resource]
            message = f'{singular}.{GROUP} "{escaped(place.name)}" not found'
            raise RefusedError(404, message, details=place.details(singular))
        head: JsonObject = {"kind": "PendingWorkloadsSummary", "apiVersion": f"{GROUP}/{place.version}"}
        return {**head, "metadata": {}, "items": items}


class _Place:
    """The object that a path is about."""

    def __init__(self, version: str, namespace: str, resource: str, name: str, subresource: str) -> None:
        self.version, self.namespace = version, namespace
        self.resource, self.name, self.subresource = resource, name, subresource

    def attributes(self, method: str) -> JsonObject:
        """Return what a SubjectAccessReview asks about."""
        fields = {
            "verb": _verb(method, self.name),
            "group": GROUP,
            "version": self.version,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {key: text for key, text in fields.items() if text}

    def refusal(self, user: str, method: str) -> str:
        """Return why a user may not, as an API server says it."""
        whole = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        scope = f'in the namespace "{escaped(self.namespace)}"' if self.namespace else "at the cluster scope"
        named = f' "{escaped(self.name)}"' if self.name else ""
        does = f'cannot {_verb(method, self.name)} resource "{escaped(whole)}" in API group "{GROUP}" {scope}'
        return f'{escaped(self.resource)}.{GROUP}{named} is forbidden: User "{user}" {does}'

    def details(self, kind: str) -> JsonObject:
        """Return the details of a refusal."""
        fields = {"name": self.name, "group": GROUP, "kind": kind}
        return {key: text for key, text in fields.items() if text}


_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OBJECT = re.compile(
    rf"/apis/{re.escape(GROUP)}/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>.+))?"
)


def _verb(method: str, name: str) -> str:
    verb = _VERBS.get(method, method.lower())
    return verb if name or verb not in ("get", "delete") else {"get": "list", "delete": "deletecollection"}[verb]


def _place_of(path: str) -> _Place | None:
    """Return the object that a path is about; None if it is a document, or nothing."""
    found = _OBJECT.fullmatch(path)
    if found is None or found["version"] not in VERSIONS:
        return None
    texts = found.groupdict(default="")
    place = _Place(**texts)
    # What is namespaced has a namespace, and the other has none; other resources have nothing.
    is_known = place.resource in RESOURCES and (place.resource == "localqueues") == bool(place.namespace)
    if place.subresource and not is_known:
        place.subresource = "none"
    return place


def _require_get(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        message = "the server does not allow this method on the requested resource"
        raise RefusedError(405, message, reason="MethodNotAllowed", details={})


def _number(request: Request, name: str) -> int:
    """Return a parameter as a number; 0 if it is not given."""
    text = request.query.get(name, ["0"])[0]
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise RefusedError(400, f'strconv.ParseInt: parsing "{escaped(text[:100])}": invalid syntax', details={})
    # No longer than 64 bits have digits: larger texts take long to read.
    if len(text) > 30 or int(text) not in _INT64:
        raise RefusedError(400, f'strconv.ParseInt: parsing "{text[:100]}": value out of range', details={})
    return int(text)
