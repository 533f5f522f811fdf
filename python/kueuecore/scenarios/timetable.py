"""Applies the timetable of a scenario: each change is computed and checked before the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore._kinds import KEPT, NAMESPACED
from kueuecore._patches import patched
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs import integration_of
from kueuecore.manifests import Manifest, located, object_ref
from kueuecore.scenarios.node_timetable import NodeChange, node_changes, nodes_of
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.timed_changes import (
    MAX_TIMES,
    Action,
    ApplyObjects,
    DeleteObject,
    PatchObject,
    ScaleQuota,
    Target,
    TimedChange,
    change_times,
)
from kueuecore.simulation.run import Happening, Operation
from kueuecore.world import DEFAULT_NAMESPACE, World

__all__ = ["timetable_happenings"]

_Key: TypeAlias = tuple[str, str, str]
# Fields that a job's Workload does not depend on.
_NO_CONTEXT = frozenset({"Workload", "ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "Node", "AdmissionCheck"})


def timetable_happenings(scenario: Scenario) -> Iterator[Happening]:
    """Yield what the timetable does to objects, in order of time; at the same time, in the timetable's order.

    Each change applies to the object in its state at that time, after earlier changes. A change of an object that is
    gone by then does nothing.

    Args:
        scenario: The scenario; a fleet has no timetable.

    Raises:
        ManifestError: Everything that is wrong with the changes; fields start with `timetable[3].patch...`.
    """
    if not scenario.timetable:
        return
    course, problems, complained = _Course(scenario), list[Problem](), set[int]()
    cluster = scenario.cluster
    nodes = node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start)
    # At the same time nodes change first, as in the run.
    timed: list[tuple[float, int, NodeChange | TimedChange]] = [(node.at, -1, node) for node in nodes]
    for index, change in enumerate(scenario.timetable):
        until = scenario.until_seconds
        timed += [(at, index, change) for at in change_times(change, index, seed=scenario.seed, until=until)]
        if len(timed) - len(nodes) > MAX_TIMES:
            remedy = "write fewer `times`, a longer `every` or an earlier `until`"
            raise _Place("timetable", change.document).error(f"it has more than {MAX_TIMES} changes", remedy)
    happenings: list[Happening] = []
    for at, index, row in sorted(timed, key=lambda row: row[:2]):
        if isinstance(row, NodeChange):
            course.change_node(row)
        elif index not in complained:
            try:
                happenings += course.change(at, row.action, row.path or f"timetable[{index}]", row.document)
            except ManifestError as error:
                problems += error.problems
                complained.add(index)
    if problems:
        raise ManifestError(problems)
    yield from happenings


class _Course:
    """The objects over the course of a scenario, and an engine that checks their new versions."""

    def __init__(self, scenario: Scenario) -> None:
        cluster = scenario.cluster
        self._scenario, self._configuration = scenario, cluster.configuration
        generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
        given = [*generated, *nodes_of(cluster.nodes, start=scenario.start), *cluster.objects]
        world = World.of(given, configuration=cluster.configuration)
        self._engine = Engine(cluster.configuration)
        world.apply_to(self._engine, now=scenario.start)
        self._objects = {_key(manifest.object): manifest for manifest in world.manifests}
        self._gone: set[_Key] = set()

    def change_node(self, change: NodeChange) -> None:
        """Let a node fail or recover."""
        key = ("Node", "", change.name)
        if change.manifest is None:
            self._forget(key, self._scenario.start)
        else:
            self._keep(change.manifest)

    def change(self, at: float, action: Action, path: str, document: Manifest) -> list[Happening]:
        """Return what one change does.

        Args:
            at: When, in seconds from the start.
            action: What to do.
            path: Its field.
            document: Its document.

        Raises:
            ManifestError: The change is not valid.
        """
        now = self._scenario.start + round(at * 1e9)
        match action:
            case ApplyObjects(objects):
                return self._put(at, self._completed(objects), now)
            case DeleteObject(target):
                return self._delete(at, target, _Place(f"{path}.delete", document), now)
            case PatchObject(target, patch):
                place = _Place(f"{path}.patch", document)
                found = self._find(target, place)
                return [] if found is None else self._patch(at, found, patch, place.below("patch"), now)
            case ScaleQuota():
                place = _Place(f"{path}.scale", document)
                found = self._find(action.target, place)
                if found is None:
                    return []
                return self._patch(at, found, _scaling(found, action, place), place, now)

    def _completed(self, objects: Sequence[Manifest]) -> list[Manifest]:
        """Add the Namespaces of objects."""
        names = {_key(object_.object)[1] for object_ in objects}
        there = [it for name in sorted(names) if (it := self._objects.get(("Namespace", "", name))) is not None]
        world = World.of([*there, *objects], configuration=self._configuration)
        new = {_key(object_.object) for object_ in objects}
        return [
            manifest
            for manifest in world.manifests
            if (key := _key(manifest.object)) in new or key not in self._objects
        ]

    def _context(self) -> list[Manifest]:
        """Return the objects that Workloads of jobs depend on."""
        return [
            object_
            for (kind, _, _), object_ in self._objects.items()
            if kind not in _NO_CONTEXT and integration_of(object_.object) is None
        ]

    def _put(
        self, at: float, manifests: Sequence[Manifest], now: int, patch: JsonObject | None = None
    ) -> list[Happening]:
        """Create or change objects; `patch` is the change, if any."""
        read = [manifest for manifest in manifests if _is_read(manifest)]
        try:
            warnings = self._engine.apply(read, now=now).warnings
        except ManifestError as error:
            raise located(error, read) from None
        # An unknown field in a file is a warning of the run; in a patch it is a mistake.
        unknown = [warning for warning in warnings if patch is not None and _has(patch, warning.field)]
        if unknown:
            raise ManifestError(unknown)
        found = []
        for manifest in manifests:
            key = _key(manifest.object)
            op = Operation.UPDATE if key in self._objects else Operation.CREATE
            if _is_read(manifest):
                found.append(Happening(at=at, op=op, object=manifest))
            self._keep(manifest)
        return found

    def _patch(self, at: float, before: Manifest, patch: JsonObject, place: _Place, now: int) -> list[Happening]:
        after = replace(before, object=patched(before.object, patch))
        try:
            if integration_of(after.object) is None:
                return self._put(at, [after], now, patch)
            made = self._made_of(after)
            if made and (field := next((name for name in patch if name != "metadata"), None)):
                remedy = "patch its labels and annotations, or delete it and write another job under work"
                raise ManifestError([Problem("a job that is queued may not change", field=field, remedy=remedy)])
            self._keep(after)
            # A job that has not arrived yet arrives as the work says: an update of its Workload then finds nothing.
            found = self._put(at, [manifest for manifest in (after, *made) if _is_read(manifest)], now)
            return [replace(happening, op=Operation.UPDATE) for happening in found]
        except ManifestError as error:
            raise place.moved(error, before) from None

    def _delete(self, at: float, target: Target, place: _Place, now: int) -> list[Happening]:
        found = self._find(target, place)
        if found is None:
            return []
        going = {_key(found.object)}
        if integration_of(found.object) is not None:
            going |= {_key(manifest.object) for manifest in self._made_of(found)}
            going |= {
                key for key, object_ in self._objects.items() if key[0] == "Workload" and _is_owned(object_, target)
            }
        happenings = []
        for key in sorted(going):
            kind, namespace, name = key
            self._forget(key, now)
            if kind in KEPT:
                ref = f"{namespace}/{name}" if namespace else name
                happenings.append(Happening(at=at, op=Operation.DELETE, kind=kind, key=ref))
        return happenings

    def _made_of(self, job: Manifest) -> tuple[Manifest, ...]:
        """Return the Workloads of a job."""
        return World.of([*self._context(), job], configuration=self._configuration).made

    def _find(self, target: Target, place: _Place) -> Manifest | None:
        """Return the current object, or a job of the work, which may arrive later; None if it is gone.

        Raises:
            ManifestError: It never existed.
        """
        key = (target.kind, target.namespace, target.name)
        if key in self._gone:
            return None
        if key in self._objects:
            return self._objects[key]
        for work in self._scenario.work:
            job = work.job_named(target.name, self._scenario.seed)
            if job is not None and _key(job.object) == key:
                return job
        there = sorted(name for kind, _, name in self._objects if kind == target.kind)[:3]
        remedy = f"write one such as {', '.join(there)}" if there else f"there is no {target.kind}; apply it before"
        raise place.error(f"Not found: {ObjectRef(target.kind, target.name, target.namespace)}", remedy, field="name")

    def _keep(self, manifest: Manifest) -> None:
        key = _key(manifest.object)
        self._objects[key] = manifest
        self._gone.discard(key)

    def _forget(self, key: _Key, now: int) -> None:
        kind, namespace, name = key
        self._objects.pop(key, None)
        self._gone.add(key)
        if kind in KEPT:
            self._engine.delete(kind, name, namespace=namespace, now=now)


class _Place:
    """A field in the scenario, for errors.

    Args:
        path: The field.
        document: Its document.
    """

    def __init__(self, path: str, document: Manifest) -> None:
        self._path, self._document = path, document

    def below(self, name: str) -> _Place:
        """Return a field of this one."""
        return _Place(f"{self._path}.{name}", self._document)

    def error(self, message: str, remedy: str, *, field: str = "") -> ManifestError:
        """Make an error about this field."""
        return ManifestError([self._placed(Problem(message, field=field, remedy=remedy))])

    def moved(self, error: ManifestError, about: Manifest) -> ManifestError:
        """Turn an object's problems into problems of the change that was made to it."""
        return error.mapped(
            lambda entry: self._placed(replace(entry, object=entry.object or object_ref(about.object), index=None))
        )

    def _placed(self, problem: Problem) -> Problem:
        path = ".".join(filter(None, (self._path, problem.field)))
        source = self._document.source
        return replace(
            problem, field=path, file=source.file, document=None, line=source.line_of(path) or None, column=None
        )


def _scaling(found: Manifest, action: ScaleQuota, place: _Place) -> JsonObject:
    """Return the merge patch that changes a quota."""
    groups, is_there = list[JsonValue](), False
    flavors: set[str] = set()
    for group in list_at(found.object, "spec", "resourceGroups"):
        changed = list[JsonValue]()
        for flavor in list_at(group, "flavors"):
            name, resources = text_at(flavor, "name"), list_at(flavor, "resources")
            flavors.add(name)
            if name == action.flavor and any(text_at(resource, "name") == action.resource for resource in resources):
                is_there = True
                scaled: list[JsonValue] = [_scaled(resource, action) for resource in resources]
                flavor = {**_mapping(flavor), "resources": scaled}
            changed.append(flavor)
        groups.append({**_mapping(group), "flavors": changed})
    if not is_there:
        if action.flavor not in flavors:
            remedy = f"write one of {', '.join(sorted(flavors))}" if flavors else "it has no flavors"
            raise place.error(f'Not found: "{action.flavor}"', remedy, field="flavor")
        raise place.error(f'Not found: "{action.resource}"', "write a resource of this flavor", field="resource")
    return {"spec": {"resourceGroups": groups}}


def _scaled(resource: JsonValue, action: ScaleQuota) -> JsonValue:
    if text_at(resource, "name") != action.resource:
        return resource
    # No limit is an absent field.
    return {name: entry for name, entry in {**_mapping(resource), **action.amounts}.items() if entry is not None}


def _mapping(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _has(patch: JsonObject, field: str) -> bool:
    """Return whether a patch sets a field."""
    part: JsonValue = patch
    for name in field.partition("[")[0].split("."):
        if not isinstance(part, dict):
            return True
        if name not in part:
            return False
        part = part[name]
    return True


def _is_owned(workload: Manifest, target: Target) -> bool:
    if text_at(workload.object, "metadata", "namespace") != target.namespace:
        return False
    owners = list_at(workload.object, "metadata", "ownerReferences")
    return any((text_at(owner, "kind"), text_at(owner, "name")) == (target.kind, target.name) for owner in owners)


def _is_read(manifest: Manifest) -> bool:
    return text_at(manifest.object, "kind") in KEPT


def _key(plain: JsonObject) -> _Key:
    ref = object_ref(plain)
    is_named = ref.kind in NAMESPACED or integration_of(plain)
    return ref.kind, ref.namespace or (DEFAULT_NAMESPACE if is_named else ""), ref.name
