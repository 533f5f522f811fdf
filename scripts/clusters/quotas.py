"""Checks by plain arithmetic that no reservation exceeded a quota, a borrowing limit or a lending limit.

It knows ClusterQueues in flat cohorts, with LocalQueues of their names, and shares no code with the engine.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from scripts.clusters.ledger import Revision

__all__ = ["exceeded"]

# A decision is made from quotas that were read shortly before it is written, and a cycle's decisions are written in any
# order.
_LAG_SECONDS = 5.0
_UNITS = {"m": 1, "": 1000, "k": 10**6, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}
_Cell: TypeAlias = tuple[str, str]
_PREEMPTOR = re.compile(r"Preempted to accommodate a workload \(UID: ([^,]+),")


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


@dataclass(slots=True)
class _Workload:
    """A Workload: what it holds, and what it asks for.

    Args:
        queue: Its queue.
        asks: The resources that it asks for, until it has ended.
        held: What it uses in its ClusterQueue; None: it holds no quota.
        preempted: When it was preempted, and the UID of its preemptor.
    """

    queue: str
    asks: dict[str, int]
    held: tuple[str, dict[_Cell, int]] | None = None
    preempted: list[tuple[float, str]] = field(default_factory=list)

    def preemptor(self, at: float) -> str | None:
        """Return the UID of the Workload that preempts this one, if a decision written now may know of that."""
        if self.held is None:
            return None
        return next((uid for since, uid in self.preempted if since <= at + _LAG_SECONDS), None)


def exceeded(revisions: Iterable[Revision]) -> Iterator[str]:
    """Yield the reservations that exceeded what there was.

    What victims leave beyond their preemptor's request counts as free: the same cycle may give it away, while they
    still run (rules/05 §6.4 steps 2 and 9).

    Args:
        revisions: Those of ClusterQueues and Workloads, in their order.
    """
    queues: dict[str, _Queue] = {}
    listed = list(revisions)
    # Those that existed before the first revision may have changed after what they contain.
    for row in reversed([row for row in listed if row.kind == "ClusterQueue"]):
        queues[row.name] = _Queue(_cohort(row), dict(_quotas(row.object)))
    workloads = _workloads(listed)
    for row in listed:
        if row.kind == "ClusterQueue":
            queue = queues[row.name]
            queue.cohort = _cohort(row)
            quotas = {} if row.is_gone else dict(_quotas(row.object))
            if quotas != queue.quotas:
                queue.replace(quotas, row.at)
            continue
        workload = workloads[row.uid]
        before, workload.held = workload.held, None if row.is_gone else _reservation(row.object)
        if workload.held is None:
            if row.is_gone or _is_true(row.object, "Finished"):
                workload.asks = {}
            # It may be preempted again.
            workload.preempted = [entry for entry in workload.preempted if entry[0] > row.at]
        elif workload.held != before:
            yield from (
                f"revision {row.version}: {row.name}: {problem}"
                for problem in _problems(workload.held, queues, workloads, row)
            )


def _workloads(revisions: Iterable[Revision]) -> dict[str, _Workload]:
    """Return the Workloads by UID, with all their preemptions."""
    found: dict[str, _Workload] = {}
    preempted: set[str] = set()
    for row in revisions:
        if row.kind != "Workload":
            continue
        if row.uid not in found:
            found[row.uid] = _Workload(text_at(row.object, "spec", "queueName"), _asks(row.object))
        conditions = map(object_at, list_at(row.object, "status", "conditions"))
        evicted = next((it for it in conditions if it.get("type") == "Evicted" and it.get("status") == "True"), {})
        by = _PREEMPTOR.match(text_at(evicted, "message")) if evicted.get("reason") == "Preempted" else None
        if by is None:
            preempted.discard(row.uid)
        elif row.uid not in preempted:
            preempted.add(row.uid)
            found[row.uid].preempted.append((row.at, by[1]))
    return found


def _cohort(row: Revision) -> str:
    return text_at(row.object, "spec", "cohortName") or f"alone {row.name}"


def _problems(
    reservation: tuple[str, dict[_Cell, int]],
    queues: dict[str, _Queue],
    workloads: dict[str, _Workload],
    row: Revision,
) -> Iterator[str]:
    name, cells = reservation
    if name not in queues:
        yield f"there is no ClusterQueue {name}"
        return
    cohort = queues[name].cohort
    members = [other for other, queue in queues.items() if queue.cohort == cohort]
    victims: dict[str, list[_Workload]] = defaultdict(list)
    for workload in workloads.values():
        if (by := workload.preemptor(row.at)) in workloads:
            victims[by].append(workload)
    for cell in cells:
        quotas = {member: queues[member].most(cell, row.at) for member in members}
        own = quotas[name]
        # What a member does not lend is its own; the rest is there for all.
        kept = {
            member: max(0, it.nominal - it.lending) if it.lending is not None else 0 for member, it in quotas.items()
        }
        pool = sum(quotas[member].nominal - kept[member] for member in members)

        def taken(used: dict[str, int], kept: dict[str, int] = kept) -> int:
            return sum(max(0, used[member] - kept[member]) for member in members)

        used = dict.fromkeys(members, 0)
        for workload in workloads.values():
            _add(used, workload, cell)
        used_of_own = used[name]
        for by, its_victims in victims.items():
            without = dict(used)
            for victim in its_victims:
                _add(without, victim, cell, sign=-1)
            used_of_own = min(used_of_own, without[name])
            preemptor = workloads[by]
            if preemptor.held is None and preemptor.queue in without:
                without[preemptor.queue] += preemptor.asks.get(cell[1], 0)
            # What it needs beyond its victims is free only once others have gone, which need not be now.
            used = min(used, without, key=taken)
        if own.borrowing is not None and used_of_own > own.nominal + own.borrowing:
            yield f"{name} uses {used_of_own} of {own} for {cell}"
        if taken(used) > pool:
            yield f"cohort {cohort} uses {taken(used)} of {pool} for {cell}: {used}"


def _add(used: dict[str, int], workload: _Workload, cell: _Cell, *, sign: int = 1) -> None:
    if workload.held is not None and workload.held[0] in used:
        used[workload.held[0]] += sign * workload.held[1].get(cell, 0)


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
    if not _is_true(workload, "QuotaReserved") or _is_true(workload, "Finished"):
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


def _is_true(workload: JsonObject, kind: str) -> bool:
    conditions = map(object_at, list_at(workload, "status", "conditions"))
    return any((row.get("type"), row.get("status")) == (kind, "True") for row in conditions)


def _asks(workload: JsonObject) -> dict[str, int]:
    """Return what the pods of a Workload ask for."""
    amounts: dict[str, int] = defaultdict(int)
    for pod_set in map(object_at, list_at(workload, "spec", "podSets")):
        for container in map(object_at, list_at(pod_set, "template", "spec", "containers")):
            for resource, amount in object_at(container, "resources", "requests").items():
                amounts[resource] += _milli(amount) * int_at(pod_set, "count")
    return dict(amounts)


def _milli(amount: object) -> int:
    """Return a quantity as the tests write them: `2`, `500m`, `1Gi`."""
    text = str(amount)
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * _UNITS[unit]
