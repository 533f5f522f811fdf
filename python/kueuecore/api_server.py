"""An API server in memory, as far as a controller sees it: versions, merge patches, conflicts, lists and watches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeAlias

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import merge_patch, patched
from kueuecore.errors import KueuecoreError, Problem
from kueuecore.times import format_time

__all__ = ["ApiServer", "RefusedError", "Webhooks"]

_Key: TypeAlias = tuple[str, str, str]
# An object as JSON: who asks for it knows what is in it.
_Object: TypeAlias = dict[str, Any]


# The reason that belongs to a code, if a server gives none.
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class RefusedError(KueuecoreError):
    """An API server, or one of its webhooks, refuses a request.

    What the schema of a kind refuses is 422 `Invalid`, and `causes` has the fields; what a webhook refuses is 403
    `Forbidden`, and all is in one message.

    Args:
        code: Its code, as in HTTP.
        message: Why.
        reason: The reason of the Status, one word; by default that of the code.
        details: `details` of the Status: which object, and the causes.
        problems: What is wrong field by field, also where the server puts it all into one message.

    Example:
        >>> refused = RefusedError.of({"kind": "Status", "status": "Failure", "code": 409, "reason": "AlreadyExists",
        ...                            "message": 'jobs.batch "sum" already exists'})
        >>> refused.code, refused.reason, str(refused)
        (409, 'AlreadyExists', 'jobs.batch "sum" already exists')
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: Mapping[str, JsonValue] | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS.get(code, "")
        self.details: JsonObject = dict(details or {})
        self.problems = tuple(problems)

    @classmethod
    def of(cls, status: JsonObject) -> Self:
        """Read the refusal from the `Status` that an API server has returned."""
        code = status.get("code")
        return cls(
            code if isinstance(code, int) else 500,
            text_at(status, "message"),
            reason=text_at(status, "reason"),
            details=object_at(status, "details"),
        )

    @property
    def causes(self) -> tuple[JsonObject, ...]:
        """The causes of the Status, each with `reason`, `message` and `field`."""
        return tuple(object_at(it) for it in list_at(self.details, "causes"))

    @property
    def status(self) -> JsonObject:
        """The refusal as a Kubernetes `Status`."""
        status: JsonObject = {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return {**status, "details": self.details} if self.details else status

    def __reduce__(self) -> tuple[object, ...]:
        return _refusal, (self.code, self.message, self.reason, self.details, self.problems)


def _refusal(code: int, message: str, reason: str, details: JsonObject, problems: tuple[Problem, ...]) -> RefusedError:
    return RefusedError(code, message, reason=reason, details=details, problems=problems)


class _Stored(Protocol):
    @property
    def object(self) -> JsonObject: ...


class Webhooks(Protocol):
    """The webhooks that are asked before an object is stored: `kueuecore.webhooks.admit`, say."""

    def __call__(self, new: JsonObject, *, old: JsonObject | None, around: Iterable[JsonObject]) -> _Stored:
        """The object as it is stored.

        Raises:
            RefusedError: It is refused.
        """


@dataclass(slots=True)
class ApiServer:
    """Objects with versions that count up, and the events of all that happened to them.

    Args:
        now: Its clock, in nanoseconds since 1970: who uses it moves it.
        version: The newest version.
        history: Every event so far with its version; what was compacted is not watched any more.
        webhooks: Is asked about each object before it is stored; without one, everything is stored as it is.

    Example:
        >>> server = ApiServer()
        >>> _ = server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        >>> _ = server.patch("Namespace", "default", {"metadata": {"labels": {"team": "a"}}})
        >>> [event["type"] for event in server.events("Namespace", since=0)]
        ['ADDED', 'MODIFIED']
    """

    now: int = 0
    version: int = 0
    history: list[tuple[int, _Object]] = field(default_factory=list)
    webhooks: Webhooks | None = None
    _objects: dict[str, dict[_Key, _Object]] = field(default_factory=dict)
    _compacted: int = 0

    def create(self, manifest: _Object) -> _Object:
        """Create an object.

        Raises:
            RefusedError: There is one of that name (409), or the webhooks refuse it.
        """
        kind = text_at(manifest, "kind")
        metadata = dict(object_at(manifest, "metadata"))
        if not metadata.get("name"):
            metadata["name"] = f"{metadata.pop('generateName', 'unnamed-')}{self.version + 1}"
        manifest = self._admitted({**manifest, "metadata": metadata}, None)
        metadata = dict(object_at(manifest, "metadata"))
        key = kind, text_at(metadata, "namespace"), text_at(metadata, "name")
        if key in self._objects.get(kind, {}):
            raise RefusedError(409, f"{'/'.join(key)} already exists", reason="AlreadyExists")
        metadata |= {
            "uid": f"uid-{self.version + 1:09}",
            "creationTimestamp": metadata.get("creationTimestamp") or format_time(self.now // 10**9 * 10**9),
            "generation": 1,
        }
        return self._store(key, "ADDED", {**manifest, "metadata": metadata})

    def patch(self, kind: str, name: str, patch: _Object, *, namespace: str = "", subresource: str = "") -> _Object:
        """Apply a merge patch to an object or its status. A version in the patch has to be the newest one.

        Raises:
            RefusedError: There is no such object (404), it was written meanwhile (409), or the webhooks refuse it.
        """
        old = self.get(kind, name, namespace=namespace)
        self._check_version(old, object_at(patch, "metadata"))
        parts = {"status": patch.get("status")} if subresource else {k: v for k, v in patch.items() if k != "status"}
        new = patched(old, {part: value for part, value in parts.items() if value is not None})
        if new != old:
            new = self._admitted(new, old)
        metadata = object_at(new, "metadata") | {
            "uid": text_at(old, "metadata", "uid"),
            "generation": _generation(old) + (old.get("spec") != new.get("spec")),
        }
        if {**new, "metadata": {**metadata, "resourceVersion": text_at(old, "metadata", "resourceVersion")}} == old:
            return old
        # The last finalizer held it.
        has_gone = bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
        return self._store(
            (kind, namespace, name), "DELETED" if has_gone else "MODIFIED", {**new, "metadata": metadata}
        )

    def update(self, manifest: _Object, *, subresource: str = "") -> _Object:
        """Replace an object by a newer version of it, or only its status.

        Raises:
            RefusedError: There is no such object (404), it was written meanwhile (409), or the webhooks refuse it.
        """
        kind, namespace = text_at(manifest, "kind"), text_at(manifest, "metadata", "namespace")
        name = text_at(manifest, "metadata", "name")
        old = self.get(kind, name, namespace=namespace)
        return self.patch(kind, name, merge_patch(old, manifest), namespace=namespace, subresource=subresource)

    def delete(self, kind: str, name: str, *, namespace: str = "", preconditions: _Object | None = None) -> _Object:
        """Delete an object; one with finalizers stays until the last of them is removed.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Its namespace.
            preconditions: The `uid` and `resourceVersion` that it has to have.

        Raises:
            RefusedError: There is no such object (404), or it is not what it was (409).

        Returns:
            The object as it was last, or as it is while it waits for its finalizers.
        """
        old = self.get(kind, name, namespace=namespace)
        self._check_version(old, preconditions or {})
        metadata = object_at(old, "metadata")
        if not metadata.get("finalizers"):
            return self._store((kind, namespace, name), "DELETED", old)
        if metadata.get("deletionTimestamp"):
            return old
        deleted = {**metadata, "deletionTimestamp": format_time(self.now // 10**9 * 10**9)}
        return self._store((kind, namespace, name), "MODIFIED", {**old, "metadata": deleted})

    def get(self, kind: str, name: str, *, namespace: str = "") -> _Object:
        """An object as it is.

        Raises:
            RefusedError: There is no such object (404).
        """
        found = self.find(kind, name, namespace=namespace)
        if found is None:
            raise RefusedError(404, f"there is no {kind} {namespace}/{name}")
        return found

    def find(self, kind: str, name: str, *, namespace: str = "") -> _Object | None:
        """An object as it is, if there is one."""
        return self._objects.get(kind, {}).get((kind, namespace, name))

    @property
    def n_objects(self) -> int:
        """How many objects there are, of all kinds."""
        return sum(map(len, self._objects.values()))

    def list(self, kind: str) -> tuple[list[_Object], str]:
        """All objects of a kind, and the version of the list."""
        objects = self._objects.get(kind, {})
        return [objects[key] for key in sorted(objects)], str(self.version)

    def events(self, kind: str, *, since: int) -> Iterator[_Object]:
        """What happened to objects of a kind after a version, in order.

        Raises:
            RefusedError: That is too long ago (410).
        """
        if since < self._compacted:
            raise RefusedError(410, f"too old resource version: {since} ({self._compacted})")
        yield from (it for it in self.since(since) if text_at(it, "object", "kind") == kind)

    def since(self, version: int) -> Sequence[_Object]:
        """What happened to objects of all kinds after a version, as far as it is not forgotten, in order."""
        # Each version has one event.
        n_new = self.version - version
        return [event for _, event in self.history[-n_new:]] if n_new > 0 else []

    def compact(self) -> None:
        """Forget the events so far: who watches from an older version has to list again."""
        self._compacted = self.version
        self.history.clear()

    def _check_version(self, old: _Object, wanted: _Object) -> None:
        for name in ("resourceVersion", "uid"):
            if wanted.get(name) and wanted[name] != text_at(old, "metadata", name):
                kind, metadata = text_at(old, "kind"), object_at(old, "metadata")
                place = f"{text_at(metadata, 'namespace')}/{text_at(metadata, 'name')}"
                raise RefusedError(409, f"{kind} {place} is not what it was")

    def _admitted(self, new: _Object, old: _Object | None) -> _Object:
        """The object as the webhooks leave it."""
        if self.webhooks is None:
            return new
        around = (it for objects in self._objects.values() for it in objects.values())
        return self.webhooks(new, old=old, around=around).object

    def _store(self, key: _Key, happened: str, manifest: _Object) -> _Object:
        self.version += 1
        manifest = {**manifest, "metadata": {**object_at(manifest, "metadata"), "resourceVersion": str(self.version)}}
        if happened == "DELETED":
            del self._objects[key[0]][key]
        else:
            self._objects.setdefault(key[0], {})[key] = manifest
        self.history.append((self.version, {"type": happened, "object": manifest}))
        return manifest


def _generation(manifest: _Object) -> int:
    generation = object_at(manifest, "metadata").get("generation")
    return generation if isinstance(generation, int) else 1
