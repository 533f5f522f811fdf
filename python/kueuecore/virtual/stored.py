"""The objects of a virtual cluster as its API server stores them; the statuses of Workloads are the engine's."""

from __future__ import annotations

from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef
from kueuecore.manifests import Manifest, object_ref, parse_manifests, plain_object
from kueuecore.object_batch import Objects, each_manifest
from kueuecore.states import WorkloadState
from kueuecore.times import format_time

__all__ = ["Stored", "manifests_of"]

_SECOND_NS = 1_000_000_000


def manifests_of(objects: Objects) -> tuple[Manifest, ...]:
    """Objects in any form that `Engine.apply` takes, one by one."""
    if isinstance(objects, bytes | bytearray | memoryview):
        return parse_manifests(bytes(objects))
    return tuple(it if isinstance(it, Manifest) else Manifest(plain_object(it)) for it in each_manifest(objects))


class Stored:
    """What was applied, by kind, namespace and name.

    Args:
        engine: The engine that has the statuses.
        trusted: Are objects taken as they are?
    """

    def __init__(self, engine: Engine, *, trusted: bool) -> None:
        self._engine = engine
        self.trusted = trusted
        # By kind, so that many Workloads are in nobody's way.
        self._kinds: dict[str, dict[ObjectRef, JsonObject]] = {}
        self._patience: int | None = None

    def apply(self, manifests: tuple[Manifest, ...], *, now: int) -> tuple[Manifest, ...]:
        """Store objects, all or none; what came of each.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        completed = tuple(self._completed(it, now) for it in manifests)
        self._engine.apply(completed, now=now, trusted=self.trusted)
        for manifest in completed:
            ref = object_ref(manifest.object)
            kept = _without_status(manifest.object) if ref.kind == "Workload" else manifest.object
            self._kinds.setdefault(ref.kind, {})[ref] = kept
            if ref.kind == "ClusterQueue":
                self._patience = None
        return completed

    def delete(self, ref: ObjectRef, *, now: int) -> bool:
        """Delete an object; was it there?"""
        if self._kinds.get(ref.kind, {}).pop(ref, None) is None:
            return False
        if ref.kind == "ClusterQueue":
            self._patience = None
        if ref.kind in _KEPT_BY_ENGINE:
            self._engine.delete(ref.kind, ref.name, namespace=ref.namespace, now=now)
        return True

    def get(self, ref: ObjectRef) -> JsonObject | None:
        """An object; of a Workload without its status."""
        return self._kinds.get(ref.kind, {}).get(ref)

    def of_kind(self, kind: str) -> tuple[JsonObject, ...]:
        """All objects of a kind, in the order in which they came."""
        return tuple(self._kinds.get(kind, {}).values())

    def others(self) -> tuple[JsonObject, ...]:
        """All objects but the Workloads."""
        return tuple(it for kind, of_kind in self._kinds.items() if kind != "Workload" for it in of_kind.values())

    def workload(self, state: WorkloadState) -> JsonObject:
        """A Workload with its status."""
        ref = ObjectRef("Workload", state.name, state.namespace)
        stored = self._kinds["Workload"][ref]
        if not state.is_active and object_at(stored, "spec").get("active") is not False:
            # Kueue has deactivated it.
            metadata = {**object_at(stored, "metadata"), "generation": int_at(stored, "metadata", "generation") + 1}
            stored = {**stored, "metadata": metadata, "spec": {**object_at(stored, "spec"), "active": False}}
            self._kinds["Workload"][ref] = stored
        return {**stored, "status": dict(state.status)}

    def write_status(self, state: WorkloadState, status: JsonObject, *, now: int) -> None:
        """Somebody writes the status of a Workload."""
        self._engine.apply({**self.workload(state), "status": status}, now=now, trusted=self.trusted)

    def patience(self) -> int:
        """After how many cycles without a change none will change anything: a head tries one flavor after the other."""
        if self._patience is None:
            groups = [
                group for queue in self.of_kind("ClusterQueue") for group in list_at(queue, "spec", "resourceGroups")
            ]
            self._patience = 1 + max((len(list_at(group, "flavors")) for group in groups), default=0)
        return self._patience

    def updated(self, manifest: Manifest) -> Manifest | None:
        """An object as an update of the one that is there makes it; `None` if that changes nothing.

        Of a Workload the spec changes, labels and annotations, and `status.reclaimablePods` if there are any.
        """
        manifest = self._named(manifest)
        ref = object_ref(manifest.object)
        old = self.get(ref)
        if ref.kind == "Workload":
            return None if old is None else replace(manifest, object=self._updated_workload(ref, old, manifest.object))
        is_same = old is not None and old.get("spec") == manifest.object.get("spec")
        return None if is_same and ref.kind in ("ClusterQueue", "LocalQueue", "Cohort") else manifest

    def _updated_workload(self, ref: ObjectRef, old: JsonObject, new: JsonObject) -> JsonObject:
        state = self._engine.workload(ref.name, namespace=ref.namespace)
        metadata: JsonObject = {**object_at(old, "metadata")}
        for name in ("labels", "annotations"):
            given: JsonObject = dict(texts_at(new, "metadata", name))
            metadata[name] = given
        spec = _with_defaults(new).get("spec")
        metadata["generation"] = int_at(metadata, "generation") + (spec != self.workload(state).get("spec"))
        status: JsonObject = dict(state.status)
        if reclaimable := list_at(new, "status", "reclaimablePods"):
            status["reclaimablePods"] = reclaimable
        return {**new, "metadata": metadata, "spec": spec, "status": status}

    def _named(self, manifest: Manifest) -> Manifest:
        """With the namespace that the engine takes where there is none, so that both call the object the same."""
        plain = manifest.object
        metadata = object_at(plain, "metadata")
        if self.trusted or text_at(plain, "kind") not in _NAMESPACED or text_at(metadata, "namespace"):
            return manifest
        return replace(manifest, object={**plain, "metadata": {**metadata, "namespace": "default"}})

    def _completed(self, manifest: Manifest, now: int) -> Manifest:
        """What an API server fills in when it stores a Workload, so that it can be written to later."""
        manifest = self._named(manifest)
        plain = manifest.object
        if text_at(plain, "kind") != "Workload" or self.trusted:
            return manifest
        metadata: JsonObject = {
            "creationTimestamp": format_time(now // _SECOND_NS * _SECOND_NS),
            "generation": 1,
            **{name: it for name, it in object_at(plain, "metadata").items() if it is not None},
        }
        return replace(manifest, object={**_with_defaults(plain), "metadata": metadata})


_NAMESPACED = frozenset({"LocalQueue", "Workload", "LimitRange", "ResourceClaimTemplate"})
_KEPT_BY_ENGINE = frozenset(
    {
        "Namespace",
        "ResourceFlavor",
        "Topology",
        "Cohort",
        "ClusterQueue",
        "LocalQueue",
        "AdmissionCheck",
        "WorkloadPriorityClass",
        "LimitRange",
        "RuntimeClass",
        "ResourceClaimTemplate",
        "DeviceClass",
        "Workload",
    }
)


def _without_status(workload: JsonObject) -> JsonObject:
    return {name: value for name, value in workload.items() if name != "status"}


def _with_defaults(workload: JsonObject) -> JsonObject:
    """A Workload with the names and counts of its pod sets: `main`, and one pod."""
    spec = object_at(workload, "spec")
    if "podSets" not in spec:
        return workload
    pod_sets: list[JsonValue] = [
        {"name": "main", "count": 1, **it} if isinstance(it, dict) else it for it in list_at(spec, "podSets")
    ]
    return {**workload, "spec": {**spec, "podSets": pod_sets}}
