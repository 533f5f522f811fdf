"""Writes to an API server and how they went, as plain data: who decides returns them, who has I/O sends them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from kueuecore._arguments import instance
from kueuecore._events import Event
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ObjectRef

__all__ = ["Answer", "Verb", "WorkloadKey", "Write", "patch_of", "reference"]

WorkloadKey: TypeAlias = tuple[str, str]
"""Namespace and name of a Workload."""


class Verb(StrEnum):
    """What to do with an object, as in RBAC roles."""

    CREATE = "create"
    UPDATE = "update"
    """Replace the object, or with a subresource only its status. Of several, each builds on the one before."""
    PATCH = "patch"
    """Send a JSON merge patch (RFC 7386)."""
    DELETE = "delete"
    """Delete the object, and in the background what it owns."""
    GET = "get"
    """Read the current version: one watch may lag behind what another has delivered."""


@dataclass(frozen=True, slots=True)
class Write:
    """One request to an API server.

    Args:
        verb: What to do.
        manifest: The object to create or store, or a merge patch that names its object; to delete or read one, what
            names it. `metadata.uid` and `metadata.resourceVersion` are preconditions of all but a creation: a server
            refuses it with a conflict (409) if somebody else wrote first.
        subresource: `status`, or empty for the object itself.
        workload: The workload that it serves; for a variant, its parent; empty names if none.
        check: Name of the AdmissionCheck that it serves; empty if none, or no longer any.
        cluster: The worker to send it to; empty for the cluster itself, or the manager of a fleet.
        number: Number of the write, from 1, if it is open until it is answered; else 0.
        gained: Types of the conditions of a Workload that become True, such as `Admitted` or `Evicted`.
        lost: Types of the conditions that are no longer True.
        events: The events to emit about the Workload once it is written.

    Example:
        >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "lab", "uid": "u1"}}
        >>> write = Write(Verb.DELETE, pod)
        >>> write.verb.value, str(write.object)
        ('delete', 'Pod "lab/a"')
    """

    verb: Verb
    manifest: JsonObject
    subresource: str = ""
    workload: WorkloadKey = ("", "")
    check: str = ""
    cluster: str = ""
    number: int = 0
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def api_version(self) -> str:
        """Group and version of the object."""
        return text_at(self.manifest, "apiVersion")

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return text_at(self.manifest, "kind")

    @property
    def namespace(self) -> str:
        """Namespace of the object; empty if its kind has none."""
        return text_at(self.manifest, "metadata", "namespace")

    @property
    def name(self) -> str:
        """Name of the object."""
        return text_at(self.manifest, "metadata", "name")

    @property
    def uid(self) -> str:
        """UID that the object must have; empty if any."""
        return text_at(self.manifest, "metadata", "uid")

    @property
    def object(self) -> ObjectRef:
        """Kind, name and namespace of the object."""
        return ObjectRef(self.kind, self.name, self.namespace)

    @property
    def preconditions(self) -> JsonObject:
        """The `uid` and `resourceVersion` that the object must have, as far as they are given."""
        metadata = object_at(self.manifest, "metadata")
        return {key: metadata[key] for key in ("uid", "resourceVersion") if metadata.get(key)}

    def following(self, stored: JsonObject) -> Write:
        """Return the write with the `resourceVersion` of its object as a server has just returned it.

        Without it, the write would undo what somebody else writes in between: a patch replaces whole lists, such as
        conditions. A write that already has a `resourceVersion` is returned unchanged.

        Args:
            stored: The object as stored by the previous write.

        Raises:
            TypeError: `stored` is not plain data.

        Example:
            >>> stored = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "8"}}
            >>> write = Write(Verb.PATCH, {"kind": "Pod", "metadata": {"name": "a", "labels": {"b": "c"}}})
            >>> write.following(stored).manifest["metadata"]
            {'resourceVersion': '8', 'name': 'a', 'labels': {'b': 'c'}}
        """
        version = text_at(instance("stored", stored, dict), "metadata", "resourceVersion")
        if self.verb is Verb.CREATE or not version:
            return self
        metadata: JsonObject = {"resourceVersion": version, **object_at(self.manifest, "metadata")}
        return replace(self, manifest={**self.manifest, "metadata": metadata})

    def event_manifests(self, now: str) -> tuple[JsonObject, ...]:
        """Return its events as `v1` Events to create.

        Args:
            now: The time as RFC 3339.
        """
        return tuple(event.manifest(now, uid=self.uid) for event in self.events)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a write went.

    Args:
        object: The object as it is now, if known: in the server's answer, or as found after a refusal.
        error: Why it was refused, or why its outcome is unknown; empty: it was accepted.
        code: The HTTP status code of a refusal; 0 without one.
    """

    object: JsonObject | None = None
    error: str = ""
    code: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether it was carried out."""
        return not (self.error or self.code)

    @property
    def is_gone(self) -> bool:
        """Whether the object no longer exists."""
        return self.code == 404 and self.object is None

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else wrote first: a watch may not have shown yet which object of that name exists."""
        return self.code == 409


def reference(manifest: JsonObject, *, is_of_version: bool = False) -> JsonObject:
    """Return what names an object: apiVersion, kind, name and namespace, with the UID that it must have.

    Args:
        manifest: The object.
        is_of_version: Whether it must also have the same `resourceVersion`.
    """
    keys = ("name", "namespace", "uid", *(("resourceVersion",) if is_of_version else ()))
    metadata = object_at(manifest, "metadata")
    named: JsonObject = {key: manifest[key] for key in ("apiVersion", "kind") if key in manifest}
    return {**named, "metadata": {key: metadata[key] for key in keys if key in metadata}}


def patch_of(stored: JsonObject, patch: JsonObject, *, is_of_version: bool = True) -> JsonObject:
    """Return a merge patch that names its object, and unless told otherwise the version that it was made for.

    Example:
        >>> stored = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u1", "resourceVersion": "7"}}
        >>> patch_of(stored, {"status": {"phase": "Failed"}})["metadata"]
        {'name': 'a', 'uid': 'u1', 'resourceVersion': '7'}
    """
    named = reference(stored, is_of_version=is_of_version)
    metadata: JsonObject = {**object_at(patch, "metadata"), **object_at(named, "metadata")}
    return {**named, **patch, "metadata": metadata}
