"""An API server in memory, as far as a controller sees it: versions, merge patches, conflicts, lists and watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeAlias

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import patched
from kueuecore.errors import KueuecoreError, Problem
from kueuecore.times import format_time
from kueuecore.writes import Answer, Verb, Write

__all__ = ["ApiServer", "Listener", "RefusedError", "Webhooks"]

_Key: TypeAlias = tuple[str, str, str]
# An object as JSON: the caller knows its shape.
_Object: TypeAlias = dict[str, Any]
Listener: TypeAlias = Callable[[str, _Object, _Object | None], None]
"""Called after each write with the kind, the event, and the previous object if there was one."""

# The reason for a code when the server names none.
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
    """An API server, or one of its webhooks, refused a request.

    A violation of the kind's schema is 422 `Invalid`, with the fields in `causes`; a webhook's refusal is 403
    `Forbidden`, with everything in one message.

    Args:
        code: The HTTP status code.
        message: Why.
        reason: The `reason` of the Status, one word; by default the usual one for the code.
        details: The `details` of the Status: which object, and the causes.
        problems: The problems field by field, even where the server puts them all into one message.

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
        """Read the refusal from the `Status` that an API server returned."""
        code = status.get("code")
        return cls(
            code if isinstance(code, int) else 500,
            text_at(status, "message"),
            reason=text_at(status, "reason"),
            details=object_at(status, "details"),
        )

    @property
    def causes(self) -> tuple[JsonObject, ...]:
        """The causes in the Status, each with `reason`, `message` and `field`."""
        return tuple(object_at(cause) for cause in list_at(self.details, "causes"))

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
    """The webhooks that run before an object is stored, such as `kueuecore.webhooks.admit`."""

    def __call__(self, new: JsonObject, *, old: JsonObject | None, around: Iterable[JsonObject]) -> _Stored:
        """Return the object as it will be stored.

        Raises:
            RefusedError: A webhook refuses it.
        """


@dataclass(slots=True)
class ApiServer:
    """Stores objects with versions that count up, and every event about them.

    Args:
        now: Its clock, in nanoseconds since 1970. Only you move it.
        version: The newest version.
        history: Every event so far with its version; compacted events can no longer be watched.
        webhooks: Called for each object before it is stored; without it, objects are stored as given.
        listeners: Called after each write, in order.
        new_uid: Makes the UID of a new object from its kind, namespace and name; by default UIDs are numbered.

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
    listeners: list[Listener] = field(default_factory=list)
    new_uid: Callable[[str, str, str], str] | None = None
    _objects: dict[str, dict[_Key, _Object]] = field(default_factory=dict)
    _compacted: int = 0

    def carry_out(self, *writes: Write) -> Answer:
        """Carry writes out, in order, until one is refused. Nothing is wrong with deleting what is gone.

        Returns:
            The answer to the last of them; with the current object if it was refused.
        """
        answer = Answer()
        for write in writes:
            try:
                answer = Answer(self._carried_out(write))
            except RefusedError as error:
                if write.verb is Verb.DELETE and error.code == 404:
                    continue
                found = self.find(write.kind, write.name, namespace=write.namespace)
                return Answer(found, str(error), error.code)
        return answer

    def _carried_out(self, write: Write) -> _Object | None:
        kind, name, namespace = write.kind, write.name, write.namespace
        match write.verb:
            case Verb.CREATE:
                return self.create(write.manifest)
            case Verb.UPDATE:
                return self.update(write.manifest, subresource=write.subresource)
            case Verb.PATCH:
                return self.patch(kind, name, write.manifest, namespace=namespace, subresource=write.subresource)
            case Verb.DELETE:
                self.delete(kind, name, namespace=namespace, preconditions=write.preconditions)
                return None
            case Verb.GET:
                return self.get(kind, name, namespace=namespace)

    def create(self, manifest: _Object, *, kind: str = "", dry_run: bool = False) -> _Object:
        """Create an object.

        Args:
            manifest: The object.
            kind: The kind to store it under; by default its own. Needed when two groups have a kind of the same name.
            dry_run: Check it without storing it.

        Raises:
            RefusedError: An object of that name exists (409), or a webhook refuses it.
        """
        kind = kind or text_at(manifest, "kind")
        metadata = dict(object_at(manifest, "metadata"))
        if not metadata.get("name"):
            metadata["name"] = f"{metadata.pop('generateName', 'unnamed-')}{self.version + 1}"
        manifest = self._admitted({**manifest, "metadata": metadata}, None)
        metadata = dict(object_at(manifest, "metadata"))
        key = kind, text_at(metadata, "namespace"), text_at(metadata, "name")
        if key in self._objects.get(kind, {}):
            message = f'{_resource(manifest)} "{key[2]}" already exists'
            raise RefusedError(409, message, reason="AlreadyExists", details=_details(manifest))
        metadata |= {
            "uid": self.new_uid(*key) if self.new_uid is not None else f"uid-{self.version + 1:09}",
            "creationTimestamp": metadata.get("creationTimestamp") or self._this_second,
            "generation": 1,
        }
        manifest = {**manifest, "metadata": metadata}
        return manifest if dry_run else self._store(key, "ADDED", manifest)

    def patch(self, kind: str, name: str, patch: _Object, *, namespace: str = "", subresource: str = "") -> _Object:
        """Apply a merge patch to an object or its status. A `resourceVersion` in the patch must be the newest.

        Raises:
            RefusedError: There is no such object (404), it has changed since (409), or a webhook refuses it.
        """
        old = self.get(kind, name, namespace=namespace)
        self._check_version(old, object_at(patch, "metadata"))
        parts = {"status": patch.get("status")} if subresource else {k: v for k, v in patch.items() if k != "status"}
        new = patched(old, {part: value for part, value in parts.items() if value is not None})
        return self._replaced((kind, namespace, name), old, new)

    def update(self, manifest: _Object, *, subresource: str = "") -> _Object:
        """Replace an object, or only its status.

        Raises:
            RefusedError: There is no such object (404), it has changed since (409), or a webhook refuses it.
        """
        namespace, name = text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")
        old = self.get(text_at(manifest, "kind"), name, namespace=namespace)
        base, other = (old, manifest) if subresource else (manifest, old)
        new = {part: value for part, value in base.items() if part != "status"}
        if "status" in other:
            new["status"] = other["status"]
        if subresource:
            new["metadata"] = {**new["metadata"], **_precondition(manifest)}
        return self.replace(new)

    def replace(self, manifest: _Object, *, kind: str = "", dry_run: bool = False) -> _Object:
        """Replace the stored object of the same name, including its status.

        Args:
            manifest: The object; a UID or version in it must match the stored one.
            kind: The kind to store it under; by default its own.
            dry_run: Check it without storing it.

        Raises:
            RefusedError: There is no such object (404), it has changed since (409), or a webhook refuses it.
        """
        kind = kind or text_at(manifest, "kind")
        metadata = object_at(manifest, "metadata")
        namespace, name = text_at(metadata, "namespace"), text_at(metadata, "name")
        old = self.get(kind, name, namespace=namespace)
        self._check_version(old, metadata)
        return self._replaced((kind, namespace, name), old, manifest, dry_run=dry_run)

    def _replaced(self, key: _Key, old: _Object, new: _Object, *, dry_run: bool = False) -> _Object:
        if new != old:
            new = self._admitted(new, old)
        before, metadata = object_at(old, "metadata"), dict(object_at(new, "metadata"))
        generation = _generation(before) + (old.get("spec") != new.get("spec"))
        kept = {name: before[name] for name in _KEPT if name in before} | {"generation": generation}
        metadata = {name: value for name, value in metadata.items() if name not in _KEPT} | kept
        new = {**new, "metadata": metadata}
        if new == old:
            return old
        if dry_run:
            return new
        return self._store(key, "DELETED" if _has_ended(new) else "MODIFIED", new)

    def delete(
        self,
        kind: str,
        name: str,
        *,
        namespace: str = "",
        preconditions: _Object | None = None,
        finalizers: Sequence[str] = (),
        dry_run: bool = False,
    ) -> _Object:
        """Delete an object; with finalizers, it stays until the last of them is removed.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Its namespace.
            preconditions: The `uid` and `resourceVersion` that it must have.
            finalizers: Finalizers to add first, for a garbage collector to remove.
            dry_run: Check without deleting.

        Raises:
            RefusedError: There is no such object (404), or a precondition fails (409).

        Returns:
            The last version of the object, or the version that waits for its finalizers.
        """
        old = self.get(kind, name, namespace=namespace)
        self._check_preconditions(old, preconditions or {})
        metadata = object_at(old, "metadata")
        held_by = list(dict.fromkeys((*list_at(metadata, "finalizers"), *finalizers)))
        is_marked = metadata.get("deletionTimestamp") and not metadata.get("deletionGracePeriodSeconds")
        if dry_run or (is_marked and held_by == list_at(metadata, "finalizers")):
            return old
        if not held_by:
            return self._store((kind, namespace, name), "DELETED", old)
        deleted = {**metadata, "finalizers": held_by}
        if "deletionTimestamp" not in metadata:
            deleted |= {"deletionTimestamp": self._this_second, "generation": _generation(metadata) + 1}
        deleted.pop("deletionGracePeriodSeconds", None)
        return self._store((kind, namespace, name), "MODIFIED", {**old, "metadata": deleted})

    def mark_deleted(
        self, kind: str, name: str, marks: _Object, *, namespace: str = "", changed: _Object | None = None
    ) -> _Object:
        """Mark an object as deleted that another component will remove: a pod on a node, or a namespace.

        Args:
            kind: Its kind.
            name: Its name.
            marks: Metadata to set, including `deletionTimestamp`.
            namespace: Its namespace.
            changed: Other fields to change.

        Raises:
            RefusedError: There is no such object (404).
        """
        old = self.get(kind, name, namespace=namespace)
        new = {**old, **(changed or {}), "metadata": {**old["metadata"], **marks}}
        return self._store((kind, namespace, name), "MODIFIED", new)

    def get(self, kind: str, name: str, *, namespace: str = "") -> _Object:
        """Return an object.

        Raises:
            RefusedError: There is no such object (404).
        """
        found = self.find(kind, name, namespace=namespace)
        if found is None:
            raise RefusedError(
                404, f'{_plural(kind)} "{name}" not found', details={"name": name, "kind": _plural(kind)}
            )
        return found

    def find(self, kind: str, name: str, *, namespace: str = "") -> _Object | None:
        """Return an object, or `None` if there is none of that name."""
        return self._objects.get(kind, {}).get((kind, namespace, name))

    @property
    def n_objects(self) -> int:
        """The number of objects of all kinds."""
        return sum(map(len, self._objects.values()))

    @property
    def compacted(self) -> int:
        """The version up to which events have been dropped."""
        return self._compacted

    def list(self, kind: str) -> tuple[list[_Object], str]:
        """Return all objects of a kind, and the version of the list."""
        objects = self._objects.get(kind, {})
        return [objects[key] for key in sorted(objects)], str(self.version)

    def events(self, kind: str, *, since: int) -> Iterator[_Object]:
        """Yield the events of a kind after a version, in order.

        Raises:
            RefusedError: Those events have been dropped (410).
        """
        if since < self._compacted:
            raise RefusedError(410, f"too old resource version: {since} ({self._compacted})")
        yield from (object_ for object_ in self.since(since) if text_at(object_, "object", "kind") == kind)

    def since(self, version: int) -> Sequence[_Object]:
        """Return the events of all kinds after a version, in order, as far as they have not been dropped."""
        # There is one event per version.
        n_new = self.version - version
        return [event for _, event in self.history[-n_new:]] if n_new > 0 else []

    def compact(self) -> None:
        """Drop the events so far: a watch from an older version must list again."""
        self._compacted = self.version
        self.history.clear()

    @property
    def _this_second(self) -> str:
        return format_time(self.now // 10**9 * 10**9)

    def _check_version(self, old: _Object, wanted: _Object) -> None:
        """Refuse a write that was made from an older version."""
        uid, version = text_at(old, "metadata", "uid"), text_at(old, "metadata", "resourceVersion")
        if wanted.get("uid") and wanted["uid"] != uid:
            raise _conflict(
                old, f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {uid}"
            )
        if wanted.get("resourceVersion") and wanted["resourceVersion"] != version:
            raise _conflict(
                old,
                "the object has been modified; please apply your changes to the latest version and try again",
            )

    def _check_preconditions(self, old: _Object, wanted: _Object) -> None:
        """Refuse a deletion meant for another object or version."""
        for name, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            found = text_at(old, "metadata", name)
            if wanted.get(name) and wanted[name] != found:
                raise _conflict(
                    old,
                    f"Precondition failed: {title} in precondition: {wanted[name]}, {title} in object meta: {found}",
                )

    def _admitted(self, new: _Object, old: _Object | None) -> _Object:
        """Return the object as the webhooks changed it."""
        if self.webhooks is None:
            return new
        around = (object_ for objects in self._objects.values() for object_ in objects.values())
        return self.webhooks(new, old=old, around=around).object

    def _store(self, key: _Key, happened: str, manifest: _Object) -> _Object:
        self.version += 1
        manifest = {**manifest, "metadata": {**object_at(manifest, "metadata"), "resourceVersion": str(self.version)}}
        before = self._objects.get(key[0], {}).get(key)
        if happened == "DELETED":
            del self._objects[key[0]][key]
        else:
            self._objects.setdefault(key[0], {})[key] = manifest
        event = {"type": happened, "object": manifest}
        self.history.append((self.version, event))
        for listener in self.listeners:
            listener(key[0], event, before)
        return manifest


# Only the server writes these.
_KEPT = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


def _has_ended(manifest: _Object) -> bool:
    """Return whether it is deleted and nothing holds it: no finalizer, no container that is still terminating."""
    metadata = object_at(manifest, "metadata")
    is_held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    # A namespace has finalizers of its own.
    return bool(metadata.get("deletionTimestamp")) and not is_held and not list_at(manifest, "spec", "finalizers")


def _generation(metadata: _Object) -> int:
    generation = metadata.get("generation")
    return generation if isinstance(generation, int) else 1


def _precondition(manifest: _Object) -> _Object:
    metadata = object_at(manifest, "metadata")
    return {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}


def _plural(kind: str) -> str:
    """Return the resource name of a kind, by the rule that all of Kubernetes' own kinds follow."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _details(manifest: _Object) -> JsonObject:
    group = text_at(manifest, "apiVersion").rpartition("/")[0]
    details: JsonObject = {"name": text_at(manifest, "metadata", "name"), "kind": _plural(text_at(manifest, "kind"))}
    return {**details, "group": group} if group else details


def _resource(manifest: _Object) -> str:
    """Return how messages name the kind of an object: `jobs.batch`."""
    group = text_at(manifest, "apiVersion").rpartition("/")[0]
    return f"{_plural(text_at(manifest, 'kind'))}.{group}" if group else _plural(text_at(manifest, "kind"))


def _conflict(old: _Object, why: str) -> RefusedError:
    name = text_at(old, "metadata", "name")
    message = f'Operation cannot be fulfilled on {_resource(old)} "{name}": {why}'
    return RefusedError(409, message, details=_details(old))
