"""Gets, lists in pages, and the events of a watch."""

from __future__ import annotations

import base64
import binascii
import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore._json import object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.refusals import Cause, bad_request, expired, invalid
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.selectors import Selector, selector_of
from kueuecore_apiserver.store import Store, encoded
from kueuecore_apiserver.tables import View, view_of
from kueuecore_apiserver.watches import Change

__all__ = ["Reads", "check_options", "version_asked_for"]

# How many paged lists are remembered.
_MAX_PAGED = 256


@dataclass(slots=True)
class _Page:
    """The rest of a list, as of its first page."""

    version: int
    items: list[Object]


class Reads:
    """Answers read-only requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    def get(self, request: Request, resource: Resource) -> bytes:
        """Return one object.

        Raises:
            RefusedError: There is none (404).
        """
        found = self._store.get(resource, request)
        return self.rendered(request, resource, found)

    def rendered(self, request: Request, resource: Resource, manifest: Object) -> bytes:
        """Return an object in the form that the request asks for."""
        view = view_of(request.accept)
        if view is View.PLAIN:
            return self._store.encoded(resource, manifest)
        return encoded(view.of_one(resource, manifest, request, self._store.api.now))

    def page(self, request: Request, resource: Resource) -> bytes:
        """Return a list, or a page of it.

        Raises:
            RefusedError: A selector or a version is malformed (400), the version does not exist yet (504), or the page
                is forgotten (410).
        """
        token = request.query.get("continue", "")
        if token:
            page = self._rest(token)
        else:
            version = version_asked_for(request)
            if version is not None and version > self._store.api.version:
                raise _too_large(version, self._store.api.version)
            page = _Page(self._store.api.version, self._selected(request, resource))
        limit = request.number("limit", 0)
        metadata: Object = {"resourceVersion": str(page.version)}
        items = page.items
        if 0 < limit < len(items):
            items, rest = items[:limit], items[limit:]
            metadata["continue"] = self._keep(page.version, rest)
            if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(rest)
        return self._list(request, resource, items, metadata)

    def _selected(self, request: Request, resource: Resource) -> list[Object]:
        objects = self._store.objects(resource, request.namespace)
        select = _selector(request, resource)
        return objects if select is None else [object_ for object_ in objects if select(object_)]

    def _keep(self, version: int, rest: list[Object]) -> str:
        """Remember the rest of a list under a token."""
        start = f"{text_at(rest[0], 'metadata', 'namespace')}/{text_at(rest[0], 'metadata', 'name')}"
        plain = encoded({"v": "meta.k8s.io/v1", "rv": version, "start": start, "n": self._store.random.getrandbits(32)})
        token = base64.urlsafe_b64encode(plain).decode().rstrip("=")
        self._pages[token] = _Page(version, rest)
        if len(self._pages) > _MAX_PAGED:
            self._pages.popitem(last=False)
        return token

    def _rest(self, token: str) -> _Page:
        try:
            json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except (binascii.Error, ValueError):
            raise bad_request(f"continue key is not valid: {token}") from None
        page = self._pages.get(token)
        if page is None or page.version < self._store.api.compacted:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        return page

    def _list(self, request: Request, resource: Resource, items: list[Object], metadata: Object) -> bytes:
        view = view_of(request.accept)
        if view is not View.PLAIN:
            return encoded(view.of_many(resource, items, metadata, request, self._store.api.now))
        head = encoded({"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata})
        lines: Iterable[bytes] = (self._store.encoded(resource, item) for item in items)
        if not resource.is_custom:
            # In a list, built-in objects lack apiVersion and kind.
            said = encoded({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
            lines = (b"{" + line[len(said) :] if line.startswith(said) else line for line in lines)
        return head[:-1] + b',"items":[' + b",".join(lines) + b"]}"

    def line(self, request: Request, resource: Resource, select: Selector | None, change: Change) -> bytes:
        """Return the line that a watch sends for a change; empty if the change does not affect it."""
        type_, manifest = change.type, change.object
        if request.namespace and resource.namespaced and manifest["metadata"].get("namespace") != request.namespace:
            return b""
        if select is not None:
            was = change.before is not None and select(change.before)
            # A deleted object no longer matches any selector.
            is_now = type_ != "DELETED" and select(manifest)
            if not was and not is_now:
                return b""
            type_ = "DELETED" if not is_now else "MODIFIED" if was else "ADDED"
            if type_ == "DELETED" and change.type != "DELETED" and change.before is not None:
                version = manifest["metadata"]["resourceVersion"]
                manifest = {**change.before, "metadata": {**change.before["metadata"], "resourceVersion": version}}
                return self.event(request, resource, type_, encoded({**manifest, "apiVersion": resource.api_version}))
        if change.type == "DELETED":
            plain = encoded({**manifest, "apiVersion": resource.api_version})
            if view_of(request.accept) is View.PLAIN:
                return self.event(request, resource, type_, plain)
        return self.event(request, resource, type_, self.rendered(request, resource, manifest))

    def event(self, request: Request, resource: Resource, type_: str, text: bytes) -> bytes:
        """Return a line of a watch."""
        return b'{"type":"' + type_.encode() + b'","object":' + text + b"}\n"

    def selector(self, request: Request, resource: Resource) -> Selector | None:
        """Return a selector for the objects that a request asks for.

        Raises:
            RefusedError: A selector is malformed (400).
        """
        return _selector(request, resource)

    def bookmark(self, request: Request, resource: Resource) -> bytes:
        """Return a bookmark, which only reports how far a watch has got."""
        metadata = {"resourceVersion": str(self._store.api.version), "creationTimestamp": None}
        view = view_of(request.accept)
        plain: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        shown = plain if view is View.PLAIN else view.of_one(resource, plain, request, self._store.api.now)
        return self.event(request, resource, "BOOKMARK", encoded(shown))


def _selector(request: Request, resource: Resource) -> Selector | None:
    fields = request.query.get("fieldSelector", "")
    if request.name:
        fields = f"metadata.name={request.name}"
    labels = request.query.get("labelSelector", "")
    return (
        selector_of(resource.group, resource.plural, labels, fields, resource.selectable) if labels or fields else None
    )


def version_asked_for(request: Request) -> int | None:
    """Return the `resourceVersion` of a list or watch; `None` if any will do.

    Raises:
        RefusedError: It is not a number (400).
    """
    text = request.query.get("resourceVersion", "")
    if not text or text == "0":
        return None
    if not text.isascii() or not text.isdigit():
        parsing = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f'resourceVersion: Invalid value: "{text}": {parsing}')
    return int(text)


def check_options(request: Request) -> None:
    """Refuse options that the server does not support: clients then do without.

    Raises:
        RefusedError: A watch asks for initial events in place of a list (422).
    """
    if request.flag("sendInitialEvents"):
        message = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise invalid("meta.k8s.io", "ListOptions", "", [Cause("sendInitialEvents", message)])


def _too_large(asked: int, newest: int) -> RefusedError:
    message = f"Too large resource version: {asked}, current: {newest}"
    cause: Object = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details: Object = {"causes": [cause], "retryAfterSeconds": 1}
    return RefusedError(504, f"Timeout: {message}", reason="Timeout", details=object_at(details))
