"""What every kind has: name, labels and the rest of `metadata`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Self

from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.objects._fields import Value, at, read

__all__ = ["ClusterObject", "NamespacedObject", "OwnerReference"]

KUEUE = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True, slots=True)
class OwnerReference(Value):
    """An owner of an object.

    Args:
        name: Name of the owner.
        api_version: Its group and version, `batch/v1` say.
        kind: Its kind.
        uid: Its UID.
        controller: Does the owner manage the object?
        block_owner_deletion: Does the owner wait for the object when it is deleted in the foreground?
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
    """An object that is in no namespace.

    Args:
        name: `metadata.name`.
        labels: `metadata.labels`.
        annotations: `metadata.annotations`.
        uid: `metadata.uid`.
        creation_timestamp: `metadata.creationTimestamp`, in RFC 3339: `2026-01-01T00:00:00Z`.
        deletion_timestamp: `metadata.deletionTimestamp`, likewise; None while nobody has deleted the object.
        generation: `metadata.generation`.
        finalizers: `metadata.finalizers`.
        owner_references: `metadata.ownerReferences`.
    """

    api_version: ClassVar[str] = KUEUE
    _place: ClassVar[str] = "spec"
    # What the API server keeps books of in metadata, and a status that the engine computes, are left out.
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
        """Kind and name, as errors show them."""
        return ObjectRef(self.kind(), self.name)

    def to_manifest(self) -> JsonObject:
        """The object as plain JSON data, as the API server would return it: with the defaults filled in.

        Empty lists, mappings and names are left out.
        """
        return {"apiVersion": self.api_version, "kind": self.kind(), **self._to_json()}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, JsonValue]) -> Self:
        """The object that a manifest of this very version describes.

        Args:
            manifest: Plain JSON data, from `parse_manifests` or a client library. Its `status` is left out, except
                that of a Workload.

        Raises:
            ManifestError: Another kind or version; a field that is missing, unknown or of the wrong type.
        """
        found = (manifest.get("apiVersion"), manifest.get("kind"))
        if found != (cls.api_version, cls.kind()):
            message = f"found {found[0]} {found[1]} where {cls.api_version} {cls.kind()} belongs"
            raise ManifestError([Problem(message, remedy="convert it first, or use the class of its kind")])
        result: Self = read(cls, manifest, ("apiVersion", "kind"))
        return result


@dataclass(frozen=True, slots=True)
class NamespacedObject(ClusterObject):
    """An object in a namespace.

    Args:
        namespace: `metadata.namespace`.
    """

    _: KW_ONLY
    namespace: str = field(default="default", metadata=at("metadata"))

    @property
    def ref(self) -> ObjectRef:
        """Kind, name and namespace, as errors show them."""
        return ObjectRef(self.kind(), self.name, self.namespace)
