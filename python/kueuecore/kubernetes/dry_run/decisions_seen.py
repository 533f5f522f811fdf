"""Reads from a Workload what Kueue decided on it, in texts that two schedulers can be compared by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.checks import WorkloadKey
from kueuecore.controller.writes import conditions_that_hold

__all__ = ["JUDGED_EVICTIONS", "Kind", "Seen", "admission_text", "placement_text", "seen_between", "stated"]


class Kind(StrEnum):
    """The kinds of decisions that are judged, the weightiest first."""

    ADMISSION = "admission"
    """Which workload gets quota: ClusterQueue, flavors, counts."""
    PREEMPTION = "preemption"
    """Which workload is preempted: the reason, and by whom."""
    EVICTION = "eviction"
    """Which workload loses its quota for another reason."""
    PLACEMENT = "placement"
    """Where the pods of a workload go: topology domains."""
    MESSAGE = "message"
    """What Kueue says of a workload that waits."""


# The others depend on what only pods or a person know.
JUDGED_EVICTIONS = frozenset(
    {"ClusterQueueStopped", "LocalQueueStopped", "AdmissionCheck", "MaximumExecutionTimeExceeded", "NodeFailures"}
)
_PREEMPTED = "Preempted"
_UIDS = re.compile(r"UID: ([\w.-]+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A decision of Kueue that a watch has shown.

    Args:
        at: When it was shown, in nanoseconds since 1970.
        number: The number of its event among the recent ones: the state before that event is the last one that Kueue
            can have decided on.
        version: The number of the `resourceVersion` that it made; None: unknown.
        key: Namespace and name of the Workload.
        uid: Its UID.
        kind: What was decided.
        text: The decision, as `stated` says it.
    """

    at: int
    number: int
    version: int | None
    key: WorkloadKey
    uid: str
    kind: Kind
    text: str


def stated(kind: Kind, workload: JsonObject) -> str | None:
    """Return what a Workload says of one kind of decision; None if there is no such decision.

    Args:
        kind: The kind.
        workload: The Workload; only its status is read.

    Example:
        >>> condition = {"type": "QuotaReserved", "status": "True"}
        >>> assignment = {"name": "main", "count": 2, "flavors": {"cpu": "spot"}}
        >>> admission = {"clusterQueue": "lab", "podSetAssignments": [assignment]}
        >>> stated(Kind.ADMISSION, {"status": {"conditions": [condition], "admission": admission}})
        'admitted in lab, main: 2 pods, cpu on spot'
    """
    holds = conditions_that_hold(workload)
    if "QuotaReserved" not in holds:
        return _message(workload) if kind is Kind.MESSAGE else None
    if "Evicted" in holds:
        return _eviction(kind, holds)
    if kind is Kind.ADMISSION:
        return _admission(workload)
    return _placement(workload) if kind is Kind.PLACEMENT else None


def seen_between(before: JsonObject, after: JsonObject) -> Iterator[tuple[Kind, str]]:
    """Yield what Kueue has decided on a Workload between two versions of it.

    Args:
        before: The earlier version.
        after: The later one.
    """
    had, has = conditions_that_hold(before), conditions_that_hold(after)
    if "Finished" in has:
        return
    if "QuotaReserved" in had:
        if "Evicted" in has and "Evicted" not in had:
            # Its quota may be released by the same write.
            kind = Kind.PREEMPTION if text_at(has["Evicted"], "reason") == _PREEMPTED else Kind.EVICTION
            if kind is Kind.PREEMPTION or text_at(has["Evicted"], "reason") in JUDGED_EVICTIONS:
                yield kind, _eviction(kind, has) or ""
        elif "QuotaReserved" in has and (now := stated(Kind.PLACEMENT, after)) not in (
            None,
            stated(Kind.PLACEMENT, before),
        ):
            yield Kind.PLACEMENT, now
        return
    for kind in (Kind.ADMISSION, Kind.PLACEMENT, Kind.MESSAGE):
        now = stated(kind, after)
        if now is not None and now != stated(kind, before):
            yield kind, now


def admission_text(cluster_queue: str, pod_sets: Iterable[tuple[str, int, Mapping[str, object]]]) -> str:
    """Return the text of an admission.

    Args:
        cluster_queue: The ClusterQueue.
        pod_sets: Name, count and flavors by resource of each pod set.
    """
    sets = []
    for name, count, flavors in pod_sets:
        where = (f"{resource} on {flavor}" for resource, flavor in sorted(flavors.items()))
        sets.append(f"{name}: {', '.join((counted(count, 'pod'), *where))}")
    return ", ".join((f"admitted in {cluster_queue}", *sets))


def placement_text(pod_sets: Iterable[tuple[str, Mapping[str, object] | None]]) -> str | None:
    """Return the text of a placement; None if no pod set has domains.

    Args:
        pod_sets: Name and topology assignment of each pod set.
    """
    placed = [f"{name} on {_sorted_text(domains)}" for name, domains in pod_sets if domains]
    return f"placed {'; '.join(placed)}" if placed else None


def _eviction(kind: Kind, holds: Mapping[str, JsonObject]) -> str | None:
    is_preempted = text_at(holds["Evicted"], "reason") == _PREEMPTED
    if is_preempted:
        return _preemption(holds) if kind is Kind.PREEMPTION else None
    return f"evicted: {text_at(holds['Evicted'], 'reason')}" if kind is Kind.EVICTION else None


def _admission(workload: JsonObject) -> str:
    admission = object_at(workload, "status", "admission")
    sets = map(object_at, list_at(admission, "podSetAssignments"))
    return admission_text(
        text_at(admission, "clusterQueue"),
        ((text_at(row, "name"), int_at(row, "count"), object_at(row, "flavors")) for row in sets),
    )


def _placement(workload: JsonObject) -> str | None:
    sets = map(object_at, list_at(workload, "status", "admission", "podSetAssignments"))
    return placement_text((text_at(row, "name"), object_at(row, "topologyAssignment")) for row in sets)


def _sorted_text(plain: object) -> str:
    if isinstance(plain, Mapping):
        return "{" + ", ".join(f"{name}: {_sorted_text(plain[name])}" for name in sorted(plain)) + "}"
    if isinstance(plain, list | tuple):
        return "[" + ", ".join(map(_sorted_text, plain)) + "]"
    return str(plain)


def _preemption(holds: Mapping[str, JsonObject]) -> str:
    preempted = holds.get("Preempted", {})
    message = text_at(preempted, "message") or text_at(holds["Evicted"], "message")
    by = _UIDS.search(message)
    return f"preempted: {text_at(preempted, 'reason')}{f', by {by[1]}' if by else ''}"


def _message(workload: JsonObject) -> str | None:
    for condition in list_at(workload, "status", "conditions"):
        if text_at(condition, "type") == "QuotaReserved" and text_at(condition, "status") == "False":
            return f"waits: {text_at(condition, 'message')}"
    return None
