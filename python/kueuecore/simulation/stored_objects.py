"""Stores the objects of a virtual cluster as its API server would; the engine keeps the statuses of Workloads."""

from __future__ import annotations

import re
from dataclasses import replace

from kueuecore._file_kinds import is_of_command, python_use_of
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._kinds import NAMESPACED
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.manifests import Manifest, object_ref, parse_manifests, plain_object
from kueuecore.object_batch import Objects, each_manifest
from kueuecore.states import WorkloadState
from kueuecore.times import SECOND_NS, format_time

__all__ = ["Stored", "given_objects"]


# Texts are read where they are applied, and only the few with such a document before.
_OF_US = re.compile(r"""apiVersion['"]?\s*:\s*['"]?kueuecore/""")


def given_objects(objects: Objects) -> bytes | str | tuple[Manifest, ...]:
    """Convert objects in any form that `Engine.apply` takes to one that can be read twice.

    Raises:
        ManifestError: One of them is a Scenario or another document of kueuecore, in which nothing would happen.
    """
    if isinstance(objects, bytes | bytearray | memoryview):
        data = bytes(objects)
        if _OF_US.search(data.decode("utf-8", "replace")):
            _refuse_documents(parse_manifests(data))
        return data
    if isinstance(objects, str):
        if _OF_US.search(objects):
            _refuse_documents(parse_manifests(objects))
        return objects
    given = tuple(
        like if isinstance(like, Manifest) else Manifest(plain_object(like)) for like in each_manifest(objects)
    )
    _refuse_documents(given)
    return given


def _refuse_documents(given: tuple[Manifest, ...]) -> None:
    problems = [
        manifest.problem("it is not an object of a cluster", field="kind", remedy=python_use_of(manifest.object))
        for manifest in given
        if is_of_command(manifest.object)
    ]
    if problems:
        raise ManifestError(problems)


class Stored:
    """The engine's objects by kind, namespace and name, read lazily.

    Args:
        engine: The engine with the statuses.
        trusted: Whether objects are taken as they are.
    """

    def __init__(self, engine: Engine, *, trusted: bool) -> None:
        self._engine = engine
        self.trusted = trusted
        # By kind, so that many Workloads do not slow down the rest.
        self._kinds: dict[str, dict[ObjectRef, JsonObject]] = {}
        self._unread: list[tuple[bytes | str | tuple[Manifest, ...], int]] = []

    def copied(self, engine: Engine) -> Stored:
        """Return an independent copy, for a fork of the engine."""
        twin = Stored(engine, trusted=self.trusted)
        twin._kinds = {kind: dict(of_kind) for kind, of_kind in self._kinds.items()}
        twin._unread = list(self._unread)
        return twin

    def ref(self, manifest: Manifest) -> ObjectRef:
        """Return kind, name and namespace of an object as it is stored."""
        return object_ref(self._named(manifest.object))

    def add(self, given: bytes | str | tuple[Manifest, ...], *, now: int) -> None:
        """Add objects that the engine has accepted."""
        self._unread.append((given, now))

    def read(self) -> list[JsonObject]:
        """Read what was added since the last call, and return those objects as stored."""
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
        """Record that a scheduled event created or updated an object."""
        self.read()
        updated = self._updated(manifest.object) if is_update else manifest.object
        if updated is not None:
            self.add((replace(manifest, object=updated),), now=now)

    def forget(self, ref: ObjectRef) -> bool:
        """Remove an object; return whether it existed."""
        self.read()
        return self._kinds.get(ref.kind, {}).pop(ref, None) is not None

    def get(self, ref: ObjectRef) -> JsonObject | None:
        """Return an object; a Workload comes without its status."""
        self.read()
        return self._kinds.get(ref.kind, {}).get(ref)

    def of_kind(self, kind: str) -> tuple[JsonObject, ...]:
        """Return all objects of a kind, in order of creation."""
        self.read()
        return tuple(self._kinds.get(kind, {}).values())

    def others(self) -> tuple[JsonObject, ...]:
        """Return all objects except Workloads."""
        self.read()
        return tuple(row for kind, of_kind in self._kinds.items() if kind != "Workload" for row in of_kind.values())

    def workload(self, state: WorkloadState) -> JsonObject:
        """Return a Workload with its status."""
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
        """Return an object after an update; `None` if that changes nothing.

        For a Workload, the spec, labels and annotations change.
        """
        new = self._named(new)
        ref = object_ref(new)
        old = self.get(ref)
        if ref.kind != "Workload":
            is_same = old is not None and old.get("spec") == new.get("spec")
            if ref.kind in ("ClusterQueue", "LocalQueue", "Cohort"):
                return None if is_same else new
            # An update does not bring back a deleted object.
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
        """Fill in the engine's default namespace, so that both use the same name for the object."""
        metadata = object_at(plain, "metadata")
        if self.trusted or text_at(plain, "kind") not in NAMESPACED or text_at(metadata, "namespace"):
            return plain
        return {**plain, "metadata": {**metadata, "namespace": "default"}}

    def _completed(self, plain: JsonObject, now: int) -> JsonObject:
        """Fill in what an API server adds when it stores a Workload, so that it can be written to later."""
        plain = self._named(plain)
        if text_at(plain, "kind") != "Workload" or self.trusted:
            return plain
        metadata: JsonObject = {
            "creationTimestamp": format_time(now // SECOND_NS * SECOND_NS),
            "generation": 1,
            **{name: entry for name, entry in object_at(plain, "metadata").items() if entry is not None},
        }
        return {**_with_defaults(plain), "metadata": metadata}


def _without_status(workload: JsonObject) -> JsonObject:
    return {name: value for name, value in workload.items() if name != "status"}


def _with_defaults(workload: JsonObject) -> JsonObject:
    """Fill in the default name and count of pod sets: `main` and one pod."""
    spec = object_at(workload, "spec")
    if "podSets" not in spec:
        return workload
    pod_sets: list[JsonValue] = [
        {"name": "main", "count": 1, **pod_set} if isinstance(pod_set, dict) else pod_set
        for pod_set in list_at(spec, "podSets")
    ]
    return {**workload, "spec": {**spec, "podSets": pod_sets}}
