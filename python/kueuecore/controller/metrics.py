"""Metrics of a controller in the text form of Prometheus, under Kueue's names and labels (rules/09 §10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.controller.metric_families import FAMILIES, bounds_of, full_name
from kueuecore.controller.metric_gauges import gauges_of
from kueuecore.controller.metric_queues import MetricQueues
from kueuecore.controller.versions import Key
from kueuecore.controller.writes import WorkloadWrite, conditions_that_hold
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.times import nanoseconds

__all__ = ["Metrics"]


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
        self._queues = MetricQueues()

    # What a controller tells.

    def note(self, key: Key, manifest: JsonObject | None) -> None:
        """An object is so now; None if it has gone."""
        self._queues.put(key, manifest)

    def count_cycle(self, decision: Decision) -> None:
        """A cycle has decided."""
        if decision.cycle == 0 or decision.waits_for_pods:
            return
        self._add("admission_attempts_total", _result(decision))
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
            for cohort in self._queues.ancestors(queue):
                self._add("cohort_subtree_admitted_workloads_total", cohort, by_class)
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
        self._count_readiness(gained, holds, queue, local, by_class, wait)
        if "Evicted" in holds and "QuotaReserved" in held and "QuotaReserved" not in holds and queue:
            since = _seconds(holds["Evicted"])
            latency = max(0.0, _seconds(_condition(after, "QuotaReserved")) - since)
            self._observe("workload_eviction_latency_seconds", (queue, text_at(holds["Evicted"], "reason")), latency)
        old = _evictions(before)
        for cause, n in _evictions(after).items():
            if n > old.get(cause, 0) and queue:
                if "PodsReady" in held and "Evicted" in holds:
                    lasted = _seconds(holds["Evicted"]) - _seconds(held["PodsReady"])
                    self._observe("pods_ready_to_evicted_time_seconds", (queue, *cause), lasted)
                self._add("evicted_workloads_total", queue, *cause, by_class)
                self._add("local_queue_evicted_workloads_total", *local, *cause, by_class)
                if cause not in old:
                    self._add("evicted_workloads_once_total", queue, *cause, by_class)

    def _count_readiness(
        self,
        gained: Sequence[str],
        holds: dict[str, JsonObject],
        queue: str,
        local: tuple[str, str],
        by_class: str,
        wait: float,
    ) -> None:
        """How long it took until all pods were ready; of a recovery nothing is counted."""
        if "PodsReady" not in gained or text_at(holds["PodsReady"], "reason") != "Started" or "Admitted" not in holds:
            return
        ready = _seconds(holds["PodsReady"])
        self._time("ready_wait_time_seconds", ready - wait, queue, local, by_class)
        admitted = _seconds(holds["Admitted"])
        self._time("admitted_until_ready_wait_time_seconds", ready - admitted, queue, local, by_class)

    # What a manager of MultiKueue tells.

    def count_dispatched(self, cluster_queue: str, cluster: str) -> None:
        """A copy of a workload was made on a worker."""
        self._add("multikueue_workloads_dispatched_total", cluster_queue, cluster)

    def count_admitted_on_worker(self, cluster_queue: str, cluster: str) -> None:
        """A worker has admitted a workload, and its check has become Ready for it."""
        self._add("multikueue_workloads_admitted_total", cluster_queue, cluster)

    # What only the caller knows.

    def time_attempt(self, decision: Decision, *, seconds: float) -> None:
        """How long a cycle took, by the clock of who called it: there is none here.

        Args:
            decision: What the cycle decided, such as `Turn.decision`.
            seconds: The time from its call to its answer.

        Raises:
            ValueError: It is no time: negative, or not finite.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds must be a time from 0 on, not {seconds}")
        if decision.cycle and not decision.waits_for_pods:
            self._observe("admission_attempt_duration_seconds", (_result(decision),), seconds)

    def _add(self, name: str, *labels: str, n: float = 1) -> None:
        counts = self._counted.setdefault(name, {})
        counts[labels] = counts.get(labels, 0) + n

    def _count(self, name: str, queue: str, local: tuple[str, str], by_class: str) -> None:
        self._add(name, queue, by_class)
        self._add(f"local_queue_{name}", *local, by_class)

    def _time(self, name: str, seconds: float, queue: str, local: tuple[str, str], by_class: str) -> None:
        self._observe(name, (queue, by_class), seconds)
        self._observe(f"local_queue_{name}", (*local, by_class), seconds)

    def _observe(self, family: str, labels: tuple[str, ...], seconds: float) -> None:
        bounds = bounds_of(family)
        total, counts = self._timed.setdefault(family, {}).get(labels, (0.0, [0] * (len(bounds) + 1)))
        place = next((index for index, bound in enumerate(bounds) if seconds <= bound), len(bounds))
        counts[place] += 1
        self._timed[family][labels] = total + seconds, counts

    # What is asked for.

    def text(self, engine: Engine) -> str:
        """All metrics in the text form of Prometheus: what was counted, and how things stand in an engine."""
        gauges = gauges_of(instance("engine", engine, Engine), self._queues)
        silent = _silent(engine)
        lines: list[str] = []
        for name, (kind, labels, about) in FAMILIES.items():
            if name.startswith(silent):
                continue
            values = gauges.get(name) or self._counted.get(name) or {}
            timed = self._timed.get(name, {})
            if values or timed:
                shown = full_name(name)
                lines += [f"# HELP {shown} {about}", f"# TYPE {shown} {kind.split()[0]}"]
            for key, value in sorted(values.items()):
                lines.append(f"{full_name(name)}{self._labels(labels, key)} {_number(value)}")
            for key, (total, counts) in sorted(timed.items()):
                lines += self._histogram(name, labels, key, total, counts)
        return "".join(f"{line}\n" for line in lines)

    def _histogram(
        self, family: str, labels: Sequence[str], key: Sequence[str], total: float, counts: Sequence[int]
    ) -> Iterator[str]:
        so_far, name = 0, full_name(family)
        for bound, n in zip((*bounds_of(family), float("inf")), counts, strict=True):
            so_far += n
            yield f"{name}_bucket{self._labels((*labels, 'le'), (*key, _number(bound)))} {so_far}"
        yield f"{name}_sum{self._labels(labels, key)} {_number(total)}"
        yield f"{name}_count{self._labels(labels, key)} {so_far}"

    def _labels(self, names: Sequence[str], values: Sequence[str]) -> str:
        pairs = [*zip(names, values, strict=True), ("replica_role", self.replica_role)]
        return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(pairs)) + "}"


def _result(decision: Decision) -> str:
    return "success" if decision.admissions else "inadmissible"


def _silent(engine: Engine) -> tuple[str, ...]:
    """What the names of metrics begin with that a Configuration has switched off."""
    configuration = engine.configuration
    settings = object_at(configuration.to_dict(), "metrics", "localQueueMetrics")
    has_local = configuration.is_enabled("LocalQueueMetrics") and settings.get("enable") is not False
    unadmitted = configuration.is_enabled("UnadmittedWorkloadsObservability")
    return (
        *(() if has_local else ("local_queue_",)),
        *(() if unadmitted else ("unadmitted_", "local_queue_unadmitted_")),
        *(
            ()
            if configuration.is_enabled("MetricsForCohorts")
            else ("cohort_subtree_", "cohort_info", "cluster_queue_info")
        ),
    )


def _condition(workload: JsonObject, kind: str) -> JsonObject:
    return next((object_at(it) for it in list_at(workload, "status", "conditions") if text_at(it, "type") == kind), {})


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
