"""The fields that every kind has: name, labels and the rest of `metadata`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Self

from kueuecore._json import JsonObject, JsonValue
from kueuecore._kinds import KUEUE
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.objects._fields import Value, at, read

__all__ = ["ClusterObject", "NamespacedObject", "OwnerReference"]


@dataclass(frozen=True, slots=True)
class OwnerReference(Value):
    """An owner of an object.

    Args:
        name: Name of the owner.
        api_version: Its group and version, such as `batch/v1`.
        kind: Its kind.
        uid: Its UID.
        controller: Whether the owner manages the object.
        block_owner_deletion: Whether the owner's foreground deletion waits for the object.
    """

    name: str
    _: KW_ONLY
    api_version: str
    kind: str
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@dataclass(frozen=True, slots=True)
class ClusterObject(Value):
    """A cluster-scoped object.

    Args:
        name: `metadata.name`.
        labels: `metadata.labels`.
        annotations: `metadata.annotations`.
        uid: `metadata.uid`.
        creation_timestamp: `metadata.creationTimestamp`, in RFC 3339: `2026-01-01T00:00:00Z`.
        deletion_timestamp: `metadata.deletionTimestamp`, likewise; None until the object is deleted.
        generation: `metadata.generation`.
        finalizers: `metadata.finalizers`.
        owner_references: `metadata.ownerReferences`.
    """

    api_version: ClassVar[str] = KUEUE
    _place: ClassVar[str] = "spec"
    # Ignores the API server's own bookkeeping in metadata, and a status that the engine computes.
    _ignored: ClassVar[tuple[str, ...]] = ("metadata", "status")

    name: str = field(metadata=at("metadata"))
    _: KW_ONLY
    labels: Mapping[str, str] = field(default_factory=dict, metadata=at("metadata"))
    annotations: Mapping[str, str] = field(default_factory=dict, metadata=at("metadata"))
    uid: str = field(default="", metadata=at("metadata"))
    creation_timestamp: str | None = field(default=None, metadata=at("metadata"))
    deletion_timestamp: str | None = field(default=None, metadata=at("metadata"))
    generation: int | None = field(default=None, metadata=at("metadata"))
    finalizers: Sequence[str] = field(default=(), metadata=at("metadata"))
    owner_references: Sequence[OwnerReference] = field(default=(), metadata=at("metadata"))

    @classmethod
    def kind(cls) -> str:
        """The Kubernetes kind."""
        return cls.__name__

    @property
    def ref(self) -> ObjectRef:
        """The kind and name, as errors show them."""
        return ObjectRef(self.kind(), self.name)

    def to_manifest(self) -> JsonObject:
        """Return the object as plain JSON data, with defaults filled in, as the API server would.

        Empty lists, mappings and names are left out.
        """
        return {"apiVersion": self.api_version, "kind": self.kind(), **self._to_json()}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, JsonValue]) -> Self:
        """Make an object from a manifest of exactly this version.

        Args:
            manifest: Plain JSON data, from `parse_manifests` or a client library. Its `status` is ignored, except for a
                Workload.

        Raises:
            ManifestError: It has another kind or version, or a field is missing, unknown or of the wrong type.
        """
        found = (manifest.get("apiVersion"), manifest.get("kind"))
        if found != (cls.api_version, cls.kind()):
            message = f"found {found[0]} {found[1]} instead of {cls.api_version} {cls.kind()}"
            raise ManifestError([Problem(message, remedy="convert it first, or use the class of its kind")])
        result: Self = read(cls, manifest, ("apiVersion", "kind"))
        return result


@dataclass(frozen=True, slots=True)
class NamespacedObject(ClusterObject):
    """A namespaced object.

    Args:
        namespace: `metadata.namespace`.
    """

    _: KW_ONLY
    namespace: str = field(default="default", metadata=at("metadata"))

    @property
    def ref(self) -> ObjectRef:
        """The kind, name and namespace, as errors show them."""
        return ObjectRef(self.kind(), self.name, self.namespace)
