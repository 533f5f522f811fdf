"""Metrics of a controller in the text form of Prometheus, under Kueue's names and labels (rules/09 §10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore.controller.writes import WorkloadWrite, conditions_that_hold
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.states import QuotaRow
from kueuecore.times import nanoseconds

__all__ = ["FAMILIES", "Metrics"]

_QUEUE = ("cluster_queue",)
_QUEUE_CLASS = ("cluster_queue", "priority_class")
_LOCAL = ("name", "namespace")
_LOCAL_CLASS = ("name", "namespace", "priority_class")
_CAUSE = ("reason", "underlying_cause")
_CELL = ("cohort", "cluster_queue", "flavor", "resource")
_COHORT_CELL = ("cohort", "flavor", "resource")


def _buckets(n: int) -> tuple[float, ...]:
    return (1.0, *(2.5 * 2**k for k in range(n - 1)))


# Name to type, labels and help; of a histogram the buckets follow from the type.
FAMILIES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "admission_attempts_total": ("counter", ("result",), "Cycles, by whether they came to anything."),
    "admission_cycle_preemption_skips": ("gauge", _QUEUE, "Preemptions skipped in the last cycle."),
    "preemption_target_recomputations_total": ("counter", (*_QUEUE, "result"), "Entries assigned anew."),
    "preempted_workloads_total": ("counter", ("preempting_cluster_queue", "reason"), "Preempted workloads."),
    "replaced_workload_slices_total": ("counter", _QUEUE, "Slices that their replacements ended."),
    "quota_reserved_workloads_total": ("counter", _QUEUE_CLASS, "Reservations."),
    "local_queue_quota_reserved_workloads_total": ("counter", _LOCAL_CLASS, "Reservations."),
    "quota_reserved_wait_time_seconds": ("histogram 14", _QUEUE_CLASS, "From created or requeued to reserved."),
    "local_queue_quota_reserved_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "admitted_workloads_total": ("counter", _QUEUE_CLASS, "Admissions."),
    "local_queue_admitted_workloads_total": ("counter", _LOCAL_CLASS, "Admissions."),
    "admission_wait_time_seconds": ("histogram 16", _QUEUE_CLASS, "From created or requeued to admitted."),
    "local_queue_admission_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "admission_checks_wait_time_seconds": ("histogram 14", _QUEUE_CLASS, "From reserved to admitted."),
    "local_queue_admission_checks_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "evicted_workloads_total": ("counter", (*_QUEUE, *_CAUSE, "priority_class"), "Evictions."),
    "local_queue_evicted_workloads_total": ("counter", (*_LOCAL, *_CAUSE, "priority_class"), "Evictions."),
    "evicted_workloads_once_total": ("counter", (*_QUEUE, *_CAUSE, "priority_class"), "First evictions of workloads."),
    "finished_workloads_total": ("counter", _QUEUE_CLASS, "Finished workloads."),
    "local_queue_finished_workloads_total": ("counter", _LOCAL_CLASS, "Finished workloads."),
    "execution_time_seconds": ("histogram 16", _QUEUE_CLASS, "Time admitted, before and after evictions."),
    "local_queue_execution_time_seconds": ("histogram 16", _LOCAL_CLASS, "The same by LocalQueue."),
    "pending_workloads": ("gauge", (*_QUEUE, "status"), "Workloads that wait."),
    "local_queue_pending_workloads": ("gauge", (*_LOCAL, "status"), "Workloads that wait."),
    "reserving_active_workloads": ("gauge", _QUEUE, "Workloads that hold quota."),
    "admitted_active_workloads": ("gauge", _QUEUE, "Admitted workloads."),
    "cluster_queue_status": ("gauge", (*_QUEUE, "status"), "1 for the status that holds."),
    "cluster_queue_weighted_share": ("gauge", (*_QUEUE, "cohort"), "Weighted share."),
    "cluster_queue_nominal_quota": ("gauge", _CELL, "Nominal quota."),
    "cluster_queue_borrowing_limit": ("gauge", _CELL, "Borrowing limit."),
    "cluster_queue_lending_limit": ("gauge", _CELL, "Lending limit."),
    "cluster_queue_resource_reservation": ("gauge", _CELL, "Reserved quota."),
    "cluster_queue_resource_usage": ("gauge", _CELL, "Quota of admitted workloads."),
    "cohort_subtree_quota": ("gauge", _COHORT_CELL, "Quota of the subtree."),
    "cohort_subtree_resource_reservations": ("gauge", _COHORT_CELL, "What is reserved in the subtree."),
}


class Metrics:
    """Counts what a controller decides and writes. Give it to one `Controller`, and ask it for `text`.

    Args:
        replica_role: Label `replica_role` of every metric: `leader`, `follower` or `standalone`.

    Example:
        >>> from kueuecore.controller import Controller
        >>> metrics = Metrics()
        >>> controller = Controller(metrics=metrics)
        >>> _ = controller.turn("2026-01-01T00:00:00Z")
        >>> metrics.text(controller.engine)
        ''
    """

    def __init__(self, *, replica_role: str = "standalone") -> None:
        self.replica_role = replica_role
        self._counted: dict[str, dict[tuple[str, ...], float]] = {}
        # Sum and counts by bucket, the last without bound.
        self._timed: dict[str, dict[tuple[str, ...], tuple[float, list[int]]]] = {}

    # What a controller tells.

    def count_cycle(self, decision: Decision) -> None:
        """A cycle has decided."""
        if decision.cycle == 0 or decision.waits_for_pods:
            return
        self._add("admission_attempts_total", "success" if decision.admissions else "inadmissible")
        self._counted["admission_cycle_preemption_skips"] = {
            (queue,): float(n) for queue, n in decision.skipped_preemptions.items()
        }
        for queue, results in decision.target_recomputations.items():
            for result, n in results.items():
                self._add("preemption_target_recomputations_total", queue, result, n=n)
        queues = {head.key: head.cluster_queue for head in decision.pending}
        queues |= {got.key: got.cluster_queue for got in decision.admissions}
        for victim in decision.preemptions:
            self._add("preempted_workloads_total", queues.get(victim.preemptor, ""), victim.reason)
        for old in decision.replaced_slices:
            self._add("replaced_workload_slices_total", queues.get(old.successor, ""))

    def count_write(self, write: WorkloadWrite, before: JsonObject, after: JsonObject) -> None:
        """A write was accepted."""
        held, holds = conditions_that_hold(before), conditions_that_hold(after)
        admission = object_at(after, "status", "admission") or object_at(before, "status", "admission")
        queue = text_at(admission, "clusterQueue")
        by_class = text_at(after, "spec", "priorityClassRef", "name")
        local = text_at(after, "spec", "queueName"), write.namespace
        wait = _queued_seconds(after)
        # Others may have written since.
        gained = [kind for kind in write.gained if kind in holds]
        if "QuotaReserved" in gained:
            reserved = _seconds(holds["QuotaReserved"])
            self._count("quota_reserved_workloads_total", queue, local, by_class)
            self._time("quota_reserved_wait_time_seconds", reserved - wait, queue, local, by_class)
        if "Admitted" in gained:
            admitted = _seconds(holds["Admitted"])
            self._count("admitted_workloads_total", queue, local, by_class)
            self._time("admission_wait_time_seconds", admitted - wait, queue, local, by_class)
            if list_at(after, "status", "admissionChecks"):
                checked = admitted - _seconds(holds["QuotaReserved"])
                self._time("admission_checks_wait_time_seconds", checked, queue, local, by_class)
        if "Finished" in gained:
            self._count("finished_workloads_total", queue, local, by_class)
            if "Admitted" in held:
                past = object_at(after, "status").get("accumulatedPastExecutionTimeSeconds")
                took = _seconds(holds["Finished"]) - _seconds(held["Admitted"])
                took += past if isinstance(past, int) else 0
                self._time("execution_time_seconds", took, queue, local, by_class)
        old = _evictions(before)
        for cause, n in _evictions(after).items():
            if n > old.get(cause, 0) and queue:
                self._add("evicted_workloads_total", queue, *cause, by_class)
                self._add("local_queue_evicted_workloads_total", *local, *cause, by_class)
                if cause not in old:
                    self._add("evicted_workloads_once_total", queue, *cause, by_class)

    def _add(self, name: str, *labels: str, n: float = 1) -> None:
        counts = self._counted.setdefault(name, {})
        counts[labels] = counts.get(labels, 0) + n

    def _count(self, name: str, queue: str, local: tuple[str, str], by_class: str) -> None:
        self._add(name, queue, by_class)
        self._add(f"local_queue_{name}", *local, by_class)

    def _time(self, name: str, seconds: float, queue: str, local: tuple[str, str], by_class: str) -> None:
        for family, labels in ((name, (queue, by_class)), (f"local_queue_{name}", (*local, by_class))):
            bounds = _bounds(family)
            total, counts = self._timed.setdefault(family, {}).get(labels, (0.0, [0] * (len(bounds) + 1)))
            place = next((index for index, bound in enumerate(bounds) if seconds <= bound), len(bounds))
            counts[place] += 1
            self._timed[family][labels] = total + seconds, counts

    # What is asked for.

    def text(self, engine: Engine) -> str:
        """All metrics in the text form of Prometheus: what was counted, and how things stand in an engine."""
        gauges = _gauges(engine)
        lines: list[str] = []
        for name, (kind, labels, about) in FAMILIES.items():
            values = gauges.get(name) or self._counted.get(name) or {}
            timed = self._timed.get(name, {})
            if values or timed:
                lines += [f"# HELP kueue_{name} {about}", f"# TYPE kueue_{name} {kind.split()[0]}"]
            for key, value in sorted(values.items()):
                lines.append(f"kueue_{name}{self._labels(labels, key)} {_number(value)}")
            for key, (total, counts) in sorted(timed.items()):
                lines += self._histogram(name, labels, key, total, counts)
        return "".join(f"{line}\n" for line in lines)

    def _histogram(
        self, name: str, labels: Sequence[str], key: Sequence[str], total: float, counts: Sequence[int]
    ) -> Iterator[str]:
        so_far = 0
        for bound, n in zip((*_bounds(name), float("inf")), counts, strict=True):
            so_far += n
            yield f"kueue_{name}_bucket{self._labels((*labels, 'le'), (*key, _number(bound)))} {so_far}"
        yield f"kueue_{name}_sum{self._labels(labels, key)} {_number(total)}"
        yield f"kueue_{name}_count{self._labels(labels, key)} {so_far}"

    def _labels(self, names: Sequence[str], values: Sequence[str]) -> str:
        pairs = [*zip(names, values, strict=True), ("replica_role", self.replica_role)]
        return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(pairs)) + "}"


def _gauges(engine: Engine) -> dict[str, dict[tuple[str, ...], float]]:
    """How things stand: family to labels to value."""
    gauges: dict[str, dict[tuple[str, ...], float]] = {}

    def put(name: str, *labels: str, value: float) -> None:
        gauges.setdefault(name, {})[labels] = value

    rows = engine.quota()
    cohorts = {row.name: row.parent or "" for row in rows if row.kind == "ClusterQueue"}
    admitted: dict[tuple[str, str, str], float] = {}
    for queue in engine.cluster_queues():
        state = engine.cluster_queue(queue)
        waiting = {"active": 0, "inadmissible": 0}
        local: dict[tuple[str, str, str], int] = {}
        for pending in engine.pending(queue):
            # What waits in an inactive ClusterQueue counts as inadmissible.
            place = pending.place if state.is_active else "inadmissible"
            waiting[place] += 1
            key = pending.local_queue, pending.namespace, place
            local[key] = local.get(key, 0) + 1
        for place, n in waiting.items():
            put("pending_workloads", queue, place, value=n)
        for key, n in local.items():
            put("local_queue_pending_workloads", *key, value=n)
        put("reserving_active_workloads", queue, value=state.reserving_workloads)
        put("admitted_active_workloads", queue, value=state.admitted_workloads)
        holds = "active" if state.is_active else "terminating" if state.reason == "Terminating" else "pending"
        for status in ("pending", "active", "terminating"):
            put("cluster_queue_status", queue, status, value=float(status == holds))
        if "fairSharing" in state.status:
            share = state.status["fairSharing"]["weightedShare"]
            put("cluster_queue_weighted_share", queue, cohorts.get(queue, ""), value=share)
        admitted |= _admitted(queue, state.status)
    if object_at(engine.configuration.to_dict(), "metrics").get("enableClusterQueueResources"):
        for row in rows:
            if row.kind == "ClusterQueue":
                _put_resources(gauges, row, admitted)
    for row in rows:
        if row.kind == "Cohort":
            cell = row.name, row.flavor, row.resource
            put("cohort_subtree_quota", *cell, value=_units(row.subtree_quota))
            put("cohort_subtree_resource_reservations", *cell, value=_units(row.usage))
    return gauges


def _put_resources(
    gauges: dict[str, dict[tuple[str, ...], float]], row: QuotaRow, admitted: Mapping[tuple[str, str, str], float]
) -> None:
    for name, value in {
        "nominal_quota": _units(row.nominal),
        "borrowing_limit": _units(row.borrowing_limit),
        "lending_limit": _units(row.lending_limit),
        "resource_reservation": _units(row.usage),
        "resource_usage": admitted.get((row.name, row.flavor, row.resource), 0.0),
    }.items():
        cell = row.parent or "", row.name, row.flavor, row.resource
        gauges.setdefault(f"cluster_queue_{name}", {})[cell] = value


def _admitted(queue: str, status: Mapping[str, Any]) -> dict[tuple[str, str, str], float]:
    return {
        (queue, flavor["name"], resource["name"]): _units(resource["total"])
        for flavor in status.get("flavorsUsage", ())
        for resource in flavor["resources"]
    }


def _bounds(family: str) -> tuple[float, ...]:
    return _buckets(int(FAMILIES[family][0].split()[1]))


def _seconds(condition: JsonObject) -> float:
    return nanoseconds(text_at(condition, "lastTransitionTime")) / 10**9


def _queued_seconds(workload: JsonObject) -> float:
    """Since when a workload waits: requeued or, if it never was, created."""
    for condition in list_at(workload, "status", "conditions"):
        if text_at(condition, "type") == "Requeued":
            return _seconds(object_at(condition))
    created = text_at(workload, "metadata", "creationTimestamp")
    return nanoseconds(created) / 10**9 if created else 0.0


def _evictions(workload: JsonObject) -> dict[tuple[str, str], int]:
    """How often it was evicted, by reason and underlying cause."""
    found = {}
    for entry in list_at(workload, "status", "schedulingStats", "evictions"):
        count = object_at(entry).get("count")
        found[text_at(entry, "reason"), text_at(entry, "underlyingCause")] = count if isinstance(count, int) else 0
    return found


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _units(quantity: str | None) -> float:
    """A quantity in whole units; infinity for one without a limit."""
    units = float("inf") if quantity is None else number(quantity)
    assert units is not None, "the engine writes quantities"
    return float(units)
