"""What a recording keeps of a world and of a run, whoever played them. Holds no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "Clock",
    "Decided",
    "Seen",
    "after_cycle",
    "cycle_of_run",
    "final",
    "queue_status",
    "readiness",
    "run",
    "victims",
]

_Json = dict[str, Any]
_SECOND = 1_000_000_000
_PARTS = ("name", "count", "flavors", "topologyAssignment", "delayedTopologyRequest")
_QUEUE_STATUSES = {"Ready": "active", "Terminating": "terminating", "NotFound": ""}


class Seen(Protocol):
    """A world, as it is seen from outside."""

    def statuses(self) -> Mapping[str, Mapping[str, Any]]:
        """The statuses of all Workloads, by key."""

    def admissions(self) -> Mapping[str, _Json]:
        """The admissions of the Workloads that hold quota of active ClusterQueues, by key."""

    def pending(self) -> Iterable[tuple[str, str, str]]:
        """ClusterQueue, key and place (active or inadmissible) of each Workload that waits, in queue order."""

    def accounts(self) -> Mapping[str, _Json]:
        """`consumed`, `pendingPenalty` and `lastUpdate`, in nanoseconds, by LocalQueue."""

    def usage(self) -> Iterable[tuple[str, str, str, str, str]]:
        """Kind and name of each node that is scheduled, flavor, resource, and how much is used, if any is."""

    def topology_usage(self) -> _Json:
        """What workloads use, by flavor, domain and resource."""


class Decided(Protocol):
    """What a cycle decided, as far as engine and reference have one name for it."""

    @property
    def events(self) -> Sequence[Any]:
        """The events."""

    @property
    def evictions(self) -> Sequence[Any]:
        """Who must stop because a node has failed."""

    @property
    def preemptions(self) -> Sequence[Any]:
        """Who must stop for others."""

    @property
    def replaced_slices(self) -> Sequence[Any]:
        """The slices that others have replaced."""

    @property
    def skipped_preemptions(self) -> Mapping[str, int]:
        """The preemptions that were skipped, by ClusterQueue."""

    @property
    def target_recomputations(self) -> Mapping[str, Mapping[str, int]]:
        """What came of assigning anew, by ClusterQueue."""


@dataclass(frozen=True)
class Clock:
    """The time since a beginning, in seconds; `moment` reads RFC 3339."""

    start: int
    moment: Callable[[str], int]

    def seconds(self, time: int | str) -> float:
        """The seconds, an integer if whole."""
        after = (self.moment(time) if isinstance(time, str) else time) - self.start
        whole, rest = divmod(after, _SECOND)
        return whole + rest / _SECOND if rest else whole


def after_cycle(seen: Seen, decided: Decided) -> _Json:
    """The world after a single cycle, and what that said."""
    return {
        "workloads": [{"key": name, "status": status} for name, status in sorted(seen.statuses().items())],
        "admissions": dict(seen.admissions()),
        **_places(seen),
        "localQueueUsage": {
            name: {part: of for part, of in account.items() if part != "lastUpdate"}
            for name, account in seen.accounts().items()
        },
        "events": [_event(each) for each in decided.events],
        "skippedPreemptions": dict(decided.skipped_preemptions),
        "preemptionTargetRecomputations": {n: dict(of) for n, of in decided.target_recomputations.items()},
    }


def readiness(reason: str, message: str, *, terminates: bool) -> _Json:
    """Why a ClusterQueue may admit, or not."""
    is_active = reason == "Ready"
    return {
        "status": str(is_active),
        "reason": reason,
        "message": message,
        "active": is_active,
        "terminating": terminates,
        "clusterQueueStatus": queue_status(reason),
    }


def queue_status(reason: str) -> str:
    """The word for the status of a ClusterQueue that is ready, or not, for this reason."""
    return _QUEUE_STATUSES.get(reason, "pending")


def victims(targets: Iterable[tuple[str, str, str]], statuses: Mapping[str, Mapping[str, Any]]) -> _Json:
    """Who makes room for a workload, in order: key, reason, ClusterQueue. And what is written to them."""
    found = [{"key": name, "reason": reason, "clusterQueue": queue} for name, reason, queue in targets]
    written = [{"key": name, "status": statuses[name]} for name in sorted(each["key"] for each in found)]
    return {"targets": found, "preempted": len(found), "workloads": written}


def cycle_of_run(
    clock: Clock,
    at: tuple[int, int],
    *,
    admitted: Iterable[tuple[str, _Json, int]],
    placed: Iterable[tuple[str, _Json]],
    decision: Decided,
    parked: Iterable[str],
) -> _Json:
    """A cycle of a run.

    Args:
        clock: The clock of the run.
        at: Its number and its time.
        admitted: Who got quota: key, admission, time.
        placed: Whose pods a second pass has placed: key, admission.
        decision: The rest of what it decided.
        parked: Who was set aside.
    """
    number, time = at
    special = {
        "assigned": [{"key": name, "podSets": _pod_sets(admission)} for name, admission in placed],
        "evicted": [{"key": e.key, "reason": e.reason, "again": e.again} for e in decision.evictions],
        "finished": [{"key": s.key, "reason": "WorkloadSliceReplaced"} for s in decision.replaced_slices],
    }
    return {
        "n": number,
        "t": clock.seconds(time),
        "admitted": _sorted(
            _admitted(name, admission) | ({"t": clock.seconds(when)} if when != time else {})
            for name, admission, when in admitted
        ),
        "preempting": _sorted(
            {"key": p.key, "reason": p.reason, "preemptor": p.preemptor} for p in decision.preemptions
        ),
        "inadmissible": list(parked),
        "messages": [_event(each) for each in decision.events],
        **{name: _sorted(rows) for name, rows in special.items() if rows},
    }


def run(cycles: Iterable[_Json], end: _Json) -> _Json:
    """A whole run: what only said something is kept apart from what decided something."""
    busy: list[_Json] = []
    quiet: list[_Json] = []
    for each in cycles:
        is_busy = any(value for name, value in each.items() if name not in ("n", "t", "messages"))
        (busy if is_busy else quiet).append(each)
    return {"cycles": busy, "quietMessages": quiet, "final": end}


def final(seen: Seen, clock: Clock, at: int, *, n_cycles: int, is_cut: bool) -> _Json:
    """The end of a run."""
    usage: dict[str, _Json] = {"ClusterQueue": {}, "Cohort": {}}
    for kind, name, flavor, resource, amount in seen.usage():
        usage[kind].setdefault(name, {}).setdefault(flavor, {})[resource] = amount
    end: _Json = {
        "t": clock.seconds(at),
        "cycles": n_cycles,
        "admitted": _sorted(_admitted(name, admission) for name, admission in seen.admissions().items()),
        "usage": usage["ClusterQueue"],
        "cohortUsage": usage["Cohort"],
        **_places(seen),
        "statuses": {name: _status(status, clock) for name, status in sorted(seen.statuses().items())},
        "localQueues": {
            name: {
                "consumed": account["consumed"],
                "penalty": account.get("pendingPenalty", {}),
                "lastUpdate": clock.seconds(account["lastUpdate"]),
            }
            for name, account in seen.accounts().items()
        },
    }
    if on_nodes := seen.topology_usage():
        end["topologyUsage"] = on_nodes
    if is_cut:
        end["stopped"] = "maxCycles"
    return end


def _admitted(name: str, admission: _Json) -> _Json:
    return {"key": name, "clusterQueue": admission["clusterQueue"], "podSets": _pod_sets(admission)}


def _pod_sets(admission: _Json) -> list[_Json]:
    """The pod sets of an admission; an absent count is 0, and absent flavors are none."""
    assigned = ({"count": 0, "flavors": {}} | each for each in admission["podSetAssignments"])
    return [{name: each[name] for name in _PARTS if name in each} for each in assigned]


def _sorted(entries: Iterable[_Json]) -> list[_Json]:
    return sorted(entries, key=lambda entry: str(entry["key"]))


def _event(event: Any) -> _Json:
    return {"type": event.type, "reason": event.reason, "key": event.key, "message": event.message}


def _places(seen: Seen) -> _Json:
    places: dict[str, dict[str, list[str]]] = {"active": {}, "inadmissible": {}}
    for queue, name, place in seen.pending():
        places[place].setdefault(queue, []).append(name)
    return {"queued": places["active"], "inadmissible": places["inadmissible"]}


def _status(status: Mapping[str, Any], clock: Clock) -> _Json:
    """What a run keeps of the status of a Workload."""
    shown = [{name: c[name] for name in ("type", "status", "reason", "message")} for c in status.get("conditions", ())]
    finished = [c for c in shown if c["type"] == "Finished" and c["status"] == "True"]
    result = {
        "conditions": finished or sorted(shown, key=lambda c: str(c["type"])),
        "evictions": status.get("schedulingStats", {}).get("evictions", []),
    }
    if finished:
        return result
    requeue = status.get("requeueState", {})
    if "requeueAt" in requeue:
        result["requeueAt"] = clock.seconds(requeue["requeueAt"])
    if "count" in requeue:
        result["requeueCount"] = requeue["count"]
    checks = status.get("admissionChecks", ())
    result["admissionChecks"] = [{"name": c["name"], "state": c["state"]} for c in checks]
    if nodes := status.get("unhealthyNodes"):
        result["unhealthyNodes"] = [node["name"] for node in nodes]
    result["resourceRequests"] = status.get("resourceRequests", [])
    return result
