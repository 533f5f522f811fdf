"""Checks by plain arithmetic that no reservation exceeded a quota, a borrowing limit or a lending limit.

It knows ClusterQueues in flat cohorts, and shares no code with the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from scripts.clusters.ledger import Revision

__all__ = ["exceeded"]

# A decision is made from quotas that were read shortly before it is written.
_LAG_SECONDS = 5.0
_UNITS = {"m": 1, "": 1000, "k": 10**6, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}
_Cell: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Quota:
    """The quota of a ClusterQueue for a resource in a flavor; amounts in thousandths."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


@dataclass(slots=True)
class _Queue:
    """A ClusterQueue: its quotas now, and those that were replaced a while ago."""

    cohort: str = ""
    quotas: dict[_Cell, _Quota] = field(default_factory=dict)
    replaced: list[tuple[float, dict[_Cell, _Quota]]] = field(default_factory=list)

    def replace(self, quotas: dict[_Cell, _Quota], at: float) -> None:
        self.replaced.append((at, self.quotas))
        self.quotas = quotas

    def most(self, cell: _Cell, at: float) -> _Quota:
        """Return the most generous quota that a decision written now may have seen."""
        known = [self.quotas.get(cell, _Quota())]
        known += [quotas.get(cell, _Quota()) for until, quotas in self.replaced if until > at - _LAG_SECONDS]
        nominal = max(quota.nominal for quota in known)
        borrowing, lending = ([getattr(quota, name) for quota in known] for name in ("borrowing", "lending"))
        return _Quota(
            nominal,
            None if None in borrowing else max(borrowing),
            None if None in lending else max(lending),
        )


def exceeded(revisions: Iterable[Revision]) -> Iterator[str]:
    """Yield the reservations that exceeded what there was.

    Args:
        revisions: Those of ClusterQueues and Workloads, in their order.
    """
    queues: dict[str, _Queue] = {}
    listed = list(revisions)
    # Those that existed before the first revision may have changed after what they contain.
    for row in reversed([row for row in listed if row.kind == "ClusterQueue"]):
        queues[row.name] = _Queue(_cohort(row), dict(_quotas(row.object)))
    # By UID of the Workload: its ClusterQueue and what it uses there.
    held: dict[str, tuple[str, dict[_Cell, int]]] = {}
    for row in listed:
        if row.kind == "ClusterQueue":
            queue = queues[row.name]
            queue.cohort = _cohort(row)
            quotas = {} if row.is_gone else dict(_quotas(row.object))
            if quotas != queue.quotas:
                queue.replace(quotas, row.at)
            continue
        before, now = held.pop(row.uid, None), None if row.is_gone else _reservation(row.object)
        if now is not None:
            held[row.uid] = now
            if now != before:
                yield from (
                    f"revision {row.version}: {row.name}: {problem}" for problem in _problems(now, queues, held, row)
                )


def _cohort(row: Revision) -> str:
    return text_at(row.object, "spec", "cohortName") or f"alone {row.name}"


def _problems(
    reservation: tuple[str, dict[_Cell, int]],
    queues: dict[str, _Queue],
    held: dict[str, tuple[str, dict[_Cell, int]]],
    row: Revision,
) -> Iterator[str]:
    name, cells = reservation
    if name not in queues:
        yield f"there is no ClusterQueue {name}"
        return
    cohort = queues[name].cohort
    members = [other for other, queue in queues.items() if queue.cohort == cohort]
    for cell in cells:
        used = dict.fromkeys(members, 0)
        for queue, amounts in held.values():
            if queue in used:
                used[queue] += amounts.get(cell, 0)
        quotas = {member: queues[member].most(cell, row.at) for member in members}
        own = quotas[name]
        if own.borrowing is not None and used[name] > own.nominal + own.borrowing:
            yield f"{name} uses {used[name]} of {own} for {cell}"
        # What a member does not lend is its own; the rest is there for all.
        kept = {
            member: max(0, it.nominal - it.lending) if it.lending is not None else 0 for member, it in quotas.items()
        }
        pool = sum(quotas[member].nominal - kept[member] for member in members)
        taken = sum(max(0, used[member] - kept[member]) for member in members)
        if taken > pool:
            yield f"cohort {cohort} uses {taken} of {pool} for {cell}: {used}"


def _quotas(queue: JsonObject) -> Iterator[tuple[_Cell, _Quota]]:
    for group in map(object_at, list_at(queue, "spec", "resourceGroups")):
        for flavor in map(object_at, list_at(group, "flavors")):
            for resource in map(object_at, list_at(flavor, "resources")):
                cell = text_at(flavor, "name"), text_at(resource, "name")
                limits = {name: _milli(resource[name]) if name in resource else None
                          for name in ("borrowingLimit", "lendingLimit")}  # fmt: skip
                yield cell, _Quota(_milli(resource["nominalQuota"]), limits["borrowingLimit"], limits["lendingLimit"])


def _reservation(workload: JsonObject) -> tuple[str, dict[_Cell, int]] | None:
    """Return the ClusterQueue in which a Workload holds quota, and how much."""
    status = object_at(workload, "status")
    conditions = {row.get("type"): row.get("status") for row in map(object_at, list_at(status, "conditions"))}
    if conditions.get("QuotaReserved") != "True" or conditions.get("Finished") == "True":
        return None
    amounts: dict[_Cell, int] = defaultdict(int)
    # Pods that have ended use nothing any more; those that ended before the admission are not part of its count.
    pods = {row["name"]: int_at(row, "count") for row in map(object_at, list_at(workload, "spec", "podSets"))}
    reclaimable = {row["name"]: int_at(row, "count") for row in map(object_at, list_at(status, "reclaimablePods"))}
    for assigned in map(object_at, list_at(status, "admission", "podSetAssignments")):
        flavors, count = object_at(assigned, "flavors"), int_at(assigned, "count")
        left = min(count, pods[assigned["name"]] - reclaimable.get(assigned["name"], 0))
        for resource, amount in object_at(assigned, "resourceUsage").items():
            if resource in flavors:
                amounts[str(flavors[resource]), resource] += _milli(amount) * left // max(1, count)
    return text_at(status, "admission", "clusterQueue"), dict(amounts)


def _milli(amount: object) -> int:
    """Return a quantity as the tests write them: `2`, `500m`, `1Gi`."""
    text = str(amount)
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * _UNITS[unit]
