"""The objects of a virtual cluster as its API server stores them; the statuses of Workloads are the engine's."""

from __future__ import annotations

from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._kinds import NAMESPACED
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef
from kueuecore.manifests import Manifest, object_ref, parse_manifests, plain_object
from kueuecore.object_batch import Objects, each_manifest
from kueuecore.states import WorkloadState
from kueuecore.times import format_time

__all__ = ["Stored", "given_objects"]

_SECOND_NS = 1_000_000_000


def given_objects(objects: Objects) -> bytes | str | tuple[Manifest, ...]:
    """Objects in any form that `Engine.apply` takes, in one that can be read twice."""
    if isinstance(objects, bytes | bytearray | memoryview):
        return bytes(objects)
    if isinstance(objects, str):
        return objects
    return tuple(it if isinstance(it, Manifest) else Manifest(plain_object(it)) for it in each_manifest(objects))


class Stored:
    """The objects that the engine was given, by kind, namespace and name. They are read when somebody looks.

    Args:
        engine: The engine that has the statuses.
        trusted: Are objects taken as they are?
    """

    def __init__(self, engine: Engine, *, trusted: bool) -> None:
        self._engine = engine
        self.trusted = trusted
        # By kind, so that many Workloads are in nobody's way.
        self._kinds: dict[str, dict[ObjectRef, JsonObject]] = {}
        self._unread: list[tuple[bytes | str | tuple[Manifest, ...], int]] = []

    def ref(self, manifest: Manifest) -> ObjectRef:
        """Kind, name and namespace of an object as it is stored."""
        return object_ref(self._named(manifest.object))

    def add(self, given: bytes | str | tuple[Manifest, ...], *, now: int) -> None:
        """The engine has taken these objects."""
        self._unread.append((given, now))

    def read(self) -> list[JsonObject]:
        """Take in what was added since the last call; those objects as they are stored."""
        found = []
        unread, self._unread = self._unread, []
        for given, now in unread:
            for manifest in given if isinstance(given, tuple) else parse_manifests(given):
                stored = self._completed(manifest.object, now)
                ref = object_ref(stored)
                self._kinds.setdefault(ref.kind, {})[ref] = (
                    _without_status(stored) if ref.kind == "Workload" else stored
                )
                found.append(stored)
        return found

    def happen(self, manifest: Manifest, *, is_update: bool, now: int) -> None:
        """The clock has let the engine create or update an object."""
        self.read()
        updated = self._updated(manifest.object) if is_update else manifest.object
        if updated is not None:
            self.add((replace(manifest, object=updated),), now=now)

    def forget(self, ref: ObjectRef) -> bool:
        """An object has gone; was it there?"""
        self.read()
        return self._kinds.get(ref.kind, {}).pop(ref, None) is not None

    def get(self, ref: ObjectRef) -> JsonObject | None:
        """An object; of a Workload without its status."""
        self.read()
        return self._kinds.get(ref.kind, {}).get(ref)

    def of_kind(self, kind: str) -> tuple[JsonObject, ...]:
        """All objects of a kind, in the order in which they came."""
        self.read()
        return tuple(self._kinds.get(kind, {}).values())

    def others(self) -> tuple[JsonObject, ...]:
        """All objects but the Workloads."""
        self.read()
        return tuple(it for kind, of_kind in self._kinds.items() if kind != "Workload" for it in of_kind.values())

    def workload(self, state: WorkloadState) -> JsonObject:
        """A Workload with its status."""
        self.read()
        ref = ObjectRef("Workload", state.name, state.namespace)
        stored = self._kinds["Workload"][ref]
        if not state.is_active and object_at(stored, "spec").get("active") is not False:
            # Kueue has deactivated it.
            metadata = {**object_at(stored, "metadata"), "generation": int_at(stored, "metadata", "generation") + 1}
            stored = {**stored, "metadata": metadata, "spec": {**object_at(stored, "spec"), "active": False}}
            self._kinds["Workload"][ref] = stored
        return {**stored, "status": dict(state.status)}

    def _updated(self, new: JsonObject) -> JsonObject | None:
        """An object as an update of the one that is there makes it; `None` if that changes nothing.

        Of a Workload the spec changes, and labels and annotations.
        """
        new = self._named(new)
        ref = object_ref(new)
        old = self.get(ref)
        if ref.kind != "Workload":
            is_same = old is not None and old.get("spec") == new.get("spec")
            if ref.kind in ("ClusterQueue", "LocalQueue", "Cohort"):
                return None if is_same else new
            # What has gone does not come back by an update.
            return None if old is None and ref.kind in ("Node", "Pod", "Topology") else new
        if old is None:
            return None
        metadata: JsonObject = {**object_at(old, "metadata")}
        for name in ("labels", "annotations"):
            given: JsonObject = dict(texts_at(new, "metadata", name))
            metadata[name] = given
        spec = _with_defaults(new).get("spec")
        metadata["generation"] = int_at(metadata, "generation") + (spec != old.get("spec"))
        return {**new, "metadata": metadata, "spec": spec}

    def _named(self, plain: JsonObject) -> JsonObject:
        """With the namespace that the engine takes where there is none, so that both call the object the same."""
        metadata = object_at(plain, "metadata")
        if self.trusted or text_at(plain, "kind") not in NAMESPACED or text_at(metadata, "namespace"):
            return plain
        return {**plain, "metadata": {**metadata, "namespace": "default"}}

    def _completed(self, plain: JsonObject, now: int) -> JsonObject:
        """What an API server fills in when it stores a Workload, so that it can be written to later."""
        plain = self._named(plain)
        if text_at(plain, "kind") != "Workload" or self.trusted:
            return plain
        metadata: JsonObject = {
            "creationTimestamp": format_time(now // _SECOND_NS * _SECOND_NS),
            "generation": 1,
            **{name: it for name, it in object_at(plain, "metadata").items() if it is not None},
        }
        return {**_with_defaults(plain), "metadata": metadata}


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
