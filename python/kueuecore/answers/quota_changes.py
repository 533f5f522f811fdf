"""Tries more quota and higher limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.answers.amounts import quantity_of, requests_of, units_of
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, least_changes
from kueuecore.answers.trials import Trials
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.scenarios.edits import Edit
from kueuecore.states import QuotaRow

__all__ = ["QuotaTree", "limit_changes", "quota_changes"]

_FAR = 2**10
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """The quota around a ClusterQueue.

    Args:
        queue: The ClusterQueue.
        above: Its cohorts, from the nearest up.
        rows: Quota and usage of its whole cohort tree, by kind, name, flavor and resource.
    """

    queue: str
    above: tuple[str, ...]
    rows: dict[tuple[str, str, str, str], QuotaRow]

    @classmethod
    def of(cls, engine: Engine, queue: str) -> QuotaTree:
        """The tree of a ClusterQueue."""
        rows = engine.quota()
        parents = {(row.kind, row.name): row.parent for row in rows}
        roots = {node: _path(node, parents) for node in parents}
        path = roots.get(("ClusterQueue", queue), (queue,))
        kept = [row for row in rows if roots[row.kind, row.name][-1] == path[-1]]
        return cls(queue, path[1:], {(row.kind, row.name, row.flavor, row.resource): row for row in kept})

    @property
    def queues(self) -> frozenset[str]:
        """All ClusterQueues of the tree."""
        return frozenset({name for kind, name, *_ in self.rows if kind == "ClusterQueue"} | {self.queue})

    def far(self, flavor: str, resource: str, asked: int) -> int:
        """An amount that is certainly more than needed."""
        there = [row for (*_, of, name), row in self.rows.items() if (of, name) == (flavor, resource)]
        used = sum(units_of(resource, row.usage) + units_of(resource, row.nominal) for row in there)
        return int(min((asked + used + 1) * _FAR, _LARGEST))

    def unit(self, resource: str, asked: int) -> int:
        """The largest amount of which all amounts of a resource are multiples; free quota changes in such steps."""
        amounts = {asked}
        for (*_, name), row in self.rows.items():
            if name == resource:
                quotas = (row.nominal, row.usage, row.borrowing_limit, row.lending_limit)
                amounts |= {units_of(resource, quota) for quota in quotas if quota is not None}
        return gcd(*amounts) or 1


def quota_changes(trials: Trials, workload: JsonObject, tree: QuotaTree) -> Iterator[Change | Failure]:
    """The smallest sufficient `nominalQuota` of the ClusterQueue, and of each Cohort object above it."""
    engine, asked = trials.engine, requests_of(workload)
    queue = engine.object("ClusterQueue", tree.queue)
    nodes = [("ClusterQueue", queue), *(("Cohort", it) for name in tree.above if (it := _cohort(engine, name)))]
    for group in map(object_at, list_at(queue, "spec", "resourceGroups")):
        resources = [text for text in _covered(group) if text in asked]
        flavors = [text_at(flavor, "name") for flavor in list_at(group, "flavors")] if resources else []
        for flavor in flavors:
            for kind, node in nodes:
                place = _place(kind, node, flavor, group)
                if place is not None:
                    dials = [_quota_dial(place, resource, tree, asked[resource]) for resource in resources]
                    yield from least_changes(trials, [dial for dial in dials if dial is not None])


def limit_changes(trials: Trials, workload: JsonObject, tree: QuotaTree) -> Iterator[Change | Failure]:
    """The smallest sufficient `borrowingLimit` on the way up, and `lendingLimit` elsewhere, where there are limits."""
    engine, asked = trials.engine, requests_of(workload)
    path = [("ClusterQueue", tree.queue), *(("Cohort", name) for name in tree.above)]
    flavors = {flavor for (kind, name, flavor, _) in tree.rows if (kind, name) == path[0]}
    places: dict[tuple[str, str, str, str], list[Dial]] = {}
    for (kind, name, flavor, resource), row in tree.rows.items():
        is_on_path = (kind, name) in path
        field = "borrowingLimit" if is_on_path else "lendingLimit"
        limit = row.borrowing_limit if is_on_path else row.lending_limit
        if limit is None or resource not in asked or flavor not in flavors:
            continue
        try:
            place = _Place.of(kind, engine.object(kind, name), flavor)
        except UnknownObjectError:
            continue
        if place is None or resource not in place.entries:
            continue
        # A lendingLimit must not exceed the nominalQuota (rules/01 §1).
        room = units_of(resource, row.nominal) - units_of(resource, limit)
        most = tree.far(flavor, resource, asked[resource]) if is_on_path else room
        if most > 0:
            unit, now = tree.unit(resource, asked[resource]), units_of(resource, limit)
            dial = _dial(place, resource, field, now, most, asked[resource], asked[resource], unit)
            places.setdefault((field, kind, name, flavor), []).append(dial)
    for dials in places.values():
        yield from least_changes(trials, dials)


@dataclass(frozen=True, slots=True)
class _Place:
    """The quotas of one flavor in a ClusterQueue or Cohort.

    Args:
        kind: Its kind.
        name: Its name.
        flavor: The flavor.
        path: The path of its resources.
        entries: Its quotas, by resource.
        base: Edits that create it, if it does not exist yet.
    """

    kind: str
    name: str
    flavor: str
    path: str
    entries: dict[str, JsonObject]
    base: tuple[Edit, ...] = ()

    @classmethod
    def of(cls, kind: str, node: JsonObject, flavor: str, base: tuple[Edit, ...] = ()) -> _Place | None:
        """The place of a flavor; `None` if it has none."""
        for index, group in enumerate(list_at(node, "spec", "resourceGroups")):
            for of in list_at(group, "flavors"):
                if text_at(of, "name") == flavor:
                    path = f"spec.resourceGroups[{index}].flavors[name={flavor}].resources"
                    entries = {text_at(resource, "name"): object_at(resource) for resource in list_at(of, "resources")}
                    return cls(kind, text_at(node, "metadata", "name"), flavor, path, entries, base)
        return None


def _place(kind: str, node: JsonObject, flavor: str, group: JsonObject) -> _Place | None:
    """The place of a flavor; one is created if it is missing and allowed there."""
    found = _Place.of(kind, node, flavor)
    if found is not None or kind != "Cohort":
        return found
    covered = _covered(group)
    groups = [object_at(resource_group) for resource_group in list_at(node, "spec", "resourceGroups")]
    fitting = next((n for n, group in enumerate(groups) if set(_covered(group)) & set(covered)), None)
    quotas: list[JsonValue] = []
    if fitting is None:
        quotas += [{"name": text, "nominalQuota": "0"} for text in covered]
        made: JsonObject = {"coveredResources": [*covered], "flavors": [{"name": flavor, "resources": quotas}]}
        changed = [*groups, made]
    else:
        old = groups[fitting]
        quotas += [{"name": text, "nominalQuota": "0"} for text in _covered(old)]
        added: JsonObject = {"name": flavor, "resources": quotas}
        flavors = [*list_at(old, "flavors"), added]
        changed = [{**group, "flavors": flavors} if n == fitting else group for n, group in enumerate(groups)]
    name = text_at(node, "metadata", "name")
    edit = Edit(kind=kind, name=name, path="spec.resourceGroups", value=[*changed])
    return _Place.of(kind, edit.apply(node), flavor, (edit,))


def _quota_dial(place: _Place, resource: str, tree: QuotaTree, asked: int) -> Dial | None:
    if resource not in place.entries:
        return None
    row = tree.rows.get(("ClusterQueue", tree.queue, place.flavor, resource))
    missing = asked - units_of(resource, row.available) if row is not None else asked
    nominal = units_of(resource, place.entries[resource].get("nominalQuota"))
    most = tree.far(place.flavor, resource, asked)
    unit = tree.unit(resource, asked)
    return _dial(place, resource, "nominalQuota", nominal, most, missing, asked, unit)


def _dial(place: _Place, resource: str, field: str, now: int, most: int, hint: int, weight: int, unit: int) -> Dial:
    path = f"{place.path}[name={resource}].{field}"
    return Dial(
        kind=ChangeKind(field[0].upper() + field[1:]) if field != "nominalQuota" else ChangeKind.QUOTA,
        what=f"{field} of {place.kind} {place.name} for {resource} in {place.flavor}",
        most=most,
        edits=lambda turn: (
            Edit(kind=place.kind, name=place.name, path=path, value=quantity_of(resource, now + turn)),
        ),
        shown=lambda turn: quantity_of(resource, now + turn),
        weight=weight,
        hint=hint,
        likely=[max(hint, unit) << power for power in range(1, most.bit_length())],
        unit=unit,
        origin=-now,
        base=place.base,
    )


def _covered(group: JsonObject) -> list[str]:
    return [resource for resource in list_at(group, "coveredResources") if isinstance(resource, str)]


def _cohort(engine: Engine, name: str) -> JsonObject | None:
    try:
        return engine.object("Cohort", name)
    except UnknownObjectError:
        return None


def _path(node: tuple[str, str], parents: dict[tuple[str, str], str | None]) -> tuple[str, ...]:
    """Names from a node up to its root."""
    path = [node[1]]
    above = parents.get(node)
    while above is not None and above not in path[1:]:
        path.append(above)
        above = parents.get(("Cohort", above))
    return tuple(path)
