"""Writes a controller's metrics in the Prometheus text format, under Kueue's names and labels (rules/09 §10)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kueuecore import _arguments
from kueuecore._conditions import transition_time
from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.concurrent_admission import is_admitted_by_variant
from kueuecore.configuration import Configuration
from kueuecore.controller.metric_gauges import gauges_of
from kueuecore.controller.metric_objects import MetricObjects
from kueuecore.controller.metric_page import page
from kueuecore.controller.metric_series import Labels, MetricSeries
from kueuecore.controller.versions import Key
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.times import TimeLike, nanoseconds, saturated_ns
from kueuecore.writes import Write

__all__ = ["Metrics"]


class Metrics:
    """Counts what a controller decides and writes. Pass it to one `Controller`, and read it with `text`.

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
        self._series = MetricSeries()
        self._objects = MetricObjects()
        self._times_creation = True
        # Family and labels to count once this condition of a Workload is written.
        self._decided: dict[tuple[str, str], tuple[str, Labels]] = {}

    # From the controller.

    def configure(self, configuration: Configuration) -> None:
        """Start over with this Configuration and no objects. Counts stay."""
        self._objects = MetricObjects(configuration)
        self._times_creation = configuration.is_enabled("MetricForWorkloadCreationLatency")

    def note(self, key: Key, manifest: JsonObject | None) -> None:
        """Take in the current version of an object; None drops a deleted object and its counts."""
        for owner in self._objects.put(key, manifest):
            self._series.clear(owner)
        if self._decided and key[0] == "Workload" and manifest is None:
            for condition in ("Preempted", "Finished"):
                self._decided.pop((f"{key[1]}/{key[2]}", condition), None)

    def count_cycle(self, decision: Decision) -> None:
        """Count a cycle and its decision."""
        if decision.cycle == 0 or decision.waits_for_pods:
            return
        self._series.add("admission_attempts_total", (_result(decision),))
        for queue, n in decision.skipped_preemptions.items():
            # Kueue keeps the number until a cycle skips some of this ClusterQueue again.
            self._series.put("admission_cycle_preemption_skips", self._of_queue(queue), n)
        for queue, results in decision.target_recomputations.items():
            for result, n in results.items():
                self._series.add("preemption_target_recomputations_total", self._of_queue(queue, result), n)
        if not (decision.preemptions or decision.replaced_slices):
            return
        queues = {head.key: head.cluster_queue for head in decision.pending}
        queues |= {got.key: got.cluster_queue for got in decision.admissions}
        for victim in decision.preemptions:
            labels = self._of_queue(queues.get(victim.preemptor, ""), victim.reason)
            self._decided[victim.key, "Preempted"] = "preempted_workloads_total", labels
        for old in decision.replaced_slices:
            labels = self._of_queue(queues.get(old.successor, ""))
            self._decided[old.key, "Finished"] = "replaced_workload_slices_total", labels

    def count_write(self, write: Write, before: JsonObject, after: JsonObject) -> None:
        """Count an accepted write."""
        stats = [object_at(entry, "status", "schedulingStats").get("evictions") for entry in (before, after)]
        if not (write.gained or write.lost or stats[0] != stats[1]):
            return
        held, holds = conditions_that_hold(before), conditions_that_hold(after)
        it = self._written(write, before, after)
        # Others may have written since. A parent is admitted as its variant is, which was counted already.
        uncounted = ("QuotaReserved", "Admitted") if is_admitted_by_variant(after) else ()
        gained = [kind for kind in write.gained if kind in holds and kind not in uncounted]
        for kind in gained:
            if (decided := self._decided.pop((write.object.key, kind), None)) is not None:
                self._series.add(*decided)
        if "QuotaReserved" in gained:
            reserved = _seconds(holds["QuotaReserved"])
            self._count("quota_reserved_workloads_total", it)
            self._time("quota_reserved_wait_time_seconds", reserved - it.queued, it)
        if "Admitted" in gained:
            self._count_admission(it, held, holds, has_checks=bool(list_at(after, "status", "admissionChecks")))
        if "Finished" in gained:
            self._count("finished_workloads_total", it)
            if "Admitted" in held:
                past = int_at(after, "status", "accumulatedPastExecutionTimeSeconds")
                took = _seconds(holds["Finished"]) - _seconds(held["Admitted"]) + past
                self._time("execution_time_seconds", max(0.0, took), it)
        if "PodsReady" in gained:
            self._count_readiness(it, holds)
        if "Evicted" in holds and "QuotaReserved" in held and not holds.keys() & {"QuotaReserved", "Finished"}:
            since = _seconds(holds["Evicted"])
            latency = max(0.0, _seconds(_condition(after, "QuotaReserved")) - since)
            labels = self._of_queue(it.queue, text_at(holds["Evicted"], "reason"))
            if it.queue:
                self._series.observe("workload_eviction_latency_seconds", labels, latency)
        if stats[0] != stats[1] and it.queue:
            self._count_evictions(it, _evictions(before), _evictions(after), held, holds)

    # From a MultiKueue manager.

    def count_dispatched(self, cluster_queue: str, cluster: str) -> None:
        """Count a copy of a workload that was created on a worker."""
        self._series.add("multikueue_workloads_dispatched_total", (cluster_queue, cluster))

    def count_admitted_on_worker(self, cluster_queue: str, cluster: str) -> None:
        """Count a workload that a worker has admitted and whose check became Ready for it."""
        self._series.add("multikueue_workloads_admitted_total", (cluster_queue, cluster))

    # From the caller.

    def time_attempt(self, decision: Decision, *, seconds: float) -> None:
        """Record how long a cycle took, measured by the caller: there is no clock here.

        Args:
            decision: The decision of the cycle, such as `Turn.decision`.
            seconds: How long the call took.

        Raises:
            ValueError: `seconds` is negative or not finite.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds must be a time from 0 on, not {seconds}")
        if decision.cycle and not decision.waits_for_pods:
            self._series.observe("admission_attempt_duration_seconds", (_result(decision),), seconds)

    def workload_created(self, job: JsonObject, workload: JsonObject) -> None:
        """Record how long after its job a Workload was created, unless the job had changed before.

        Args:
            job: The job as the API server has it; for a group of pods, one of them.
            workload: Its Workload as the API server returned it.

        Raises:
            TypeError: One of them is not plain data.
            ValueError: A `creationTimestamp` is not a time.

        Example:
            >>> metrics = Metrics()
            >>> job = {"kind": "Job", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}}
            >>> metrics.workload_created(job, {"metadata": {"creationTimestamp": "2026-01-01T00:00:02Z"}})
            >>> 'kueue_workload_creation_latency_seconds_sum{job_kind="Job"' in metrics.text(Engine())
            True
        """
        _arguments.instance("job", job, dict)
        _arguments.instance("workload", workload, dict)
        times = [text_at(entry, "metadata", "creationTimestamp") for entry in (job, workload)]
        if not self._times_creation or int_at(job, "metadata", "generation") > 1 or not all(times):
            return
        try:
            created, followed = map(saturated_ns, times)
        except ValueError as error:
            raise ValueError(f"metadata.creationTimestamp: {error}") from None
        local = text_at(workload, "spec", "queueName"), text_at(workload, "metadata", "namespace")
        labels = (text_at(job, "kind"), *self._objects.custom("LocalQueue", *local))
        self._series.observe("workload_creation_latency_seconds", labels, (followed - created) / 10**9)

    def gate_removed(self, gate: str, workload: JsonObject, *, now: TimeLike, is_group: bool = False) -> None:
        """Record how long after the admission a pod's scheduling gate was removed, if its Workload is admitted.

        Args:
            gate: Name of the gate: `kueue.x-k8s.io/admission`, `…/topology` or `…/elastic-job`.
            workload: The Workload of the pod.
            now: The time.
            is_group: Whether the pod belongs to a group.

        Raises:
            TypeError, ValueError: `now` is not a time, `workload` not plain data, or another argument has the wrong
                type.
        """
        name = _arguments.text("gate", gate)
        _arguments.instance("workload", workload, dict)
        at, is_of_group = nanoseconds(now), _arguments.flag("is_group", is_group)
        admitted = conditions_that_hold(workload).get("Admitted")
        if admitted is not None:
            queue = text_at(workload, "status", "admission", "clusterQueue")
            labels = self._of_queue(queue, name, str(is_of_group).lower())
            latency = max(0.0, at / 10**9 - _seconds(admitted))
            self._series.observe("pod_scheduling_gate_removal_seconds", labels, latency)

    # Output.

    def text(self, engine: Engine) -> str:
        """Return all metrics in the Prometheus text format: what was counted, and the current state of an engine."""
        gauges = gauges_of(_arguments.instance("engine", engine, Engine), self._objects)
        silent = _silent(engine.configuration)
        return page(gauges, self._series, self._objects, replica_role=self.replica_role, silent=silent)

    # Counting.

    def _written(self, write: Write, before: JsonObject, after: JsonObject) -> _Written:
        admission = object_at(after, "status", "admission") or object_at(before, "status", "admission")
        queue = text_at(admission, "clusterQueue")
        local = text_at(after, "spec", "queueName"), write.namespace
        return _Written(
            queue=queue,
            # Without an admission Kueue finds no LocalQueue.
            local=local if queue and self._objects.exposes(*local, cluster_queue=queue) else None,
            priority_class=text_at(after, "spec", "priorityClassRef", "name"),
            queued=_queued_seconds(after),
            custom=self._objects.labels.values("Workload", after),
        )

    def _count_admission(
        self, it: _Written, held: dict[str, JsonObject], holds: dict[str, JsonObject], *, has_checks: bool
    ) -> None:
        admitted = _seconds(holds["Admitted"])
        self._count("admitted_workloads_total", it, of_workload=it.custom)
        self._time("admission_wait_time_seconds", admitted - it.queued, it, of_workload=it.custom)
        for cohort in self._objects.ancestors(it.queue):
            labels = (cohort, it.priority_class, *self._objects.custom("Cohort", cohort))
            self._series.add("cohort_subtree_admitted_workloads_total", labels)
        if has_checks or "QuotaReserved" in held:
            checked = admitted - _seconds(holds["QuotaReserved"])
            self._time("admission_checks_wait_time_seconds", checked, it)

    def _count_readiness(self, it: _Written, holds: dict[str, JsonObject]) -> None:
        """Record how long it took until all pods were ready; a recovery does not count."""
        if text_at(holds["PodsReady"], "reason") != "Started" or "Admitted" not in holds:
            return
        ready = _seconds(holds["PodsReady"])
        self._time("ready_wait_time_seconds", ready - it.queued, it)
        self._time("admitted_until_ready_wait_time_seconds", ready - _seconds(holds["Admitted"]), it)

    def _count_evictions(
        self,
        it: _Written,
        before: dict[tuple[str, str], int],
        after: dict[tuple[str, str], int],
        held: dict[str, JsonObject],
        holds: dict[str, JsonObject],
    ) -> None:
        for cause, n in after.items():
            if n <= before.get(cause, 0):
                continue
            if "PodsReady" in held and "Evicted" in holds:
                lasted = _seconds(holds["Evicted"]) - _seconds(held["PodsReady"])
                self._series.observe("pods_ready_to_evicted_time_seconds", self._of_queue(it.queue, *cause), lasted)
            self._count("evicted_workloads_total", it, *cause)
            if not before.get(cause):
                labels = self._of_queue(it.queue, *cause, it.priority_class)
                self._series.add("evicted_workloads_once_total", labels)

    def _of_queue(self, queue: str, *labels: str) -> Labels:
        return (queue, *labels, *self._objects.custom("ClusterQueue", queue))

    def _of_local_queue(self, local: tuple[str, str], labels: Labels, of_workload: Labels) -> Labels:
        return (*local, *labels, *self._objects.custom("LocalQueue", *local), *of_workload)

    def _count(self, family: str, it: _Written, *labels: str, of_workload: Labels = ()) -> None:
        labels = (*labels, it.priority_class)
        self._series.add(family, self._of_queue(it.queue, *labels))
        if it.local is not None:
            self._series.add(f"local_queue_{family}", self._of_local_queue(it.local, labels, of_workload))

    def _time(self, family: str, seconds: float, it: _Written, of_workload: Labels = ()) -> None:
        labels = (it.priority_class,)
        self._series.observe(family, self._of_queue(it.queue, *labels), seconds)
        if it.local is not None:
            self._series.observe(f"local_queue_{family}", self._of_local_queue(it.local, labels, of_workload), seconds)


@dataclass(frozen=True, slots=True)
class _Written:
    """The label values for the metrics of a write.

    Args:
        queue: The ClusterQueue of its admission.
        local: Its LocalQueue and namespace, if the LocalQueue has metrics.
        priority_class: Its priority class.
        queued: When it was queued, in seconds since 1970.
        custom: The custom labels of the Workload.
    """

    queue: str
    local: tuple[str, str] | None
    priority_class: str
    queued: float
    custom: Labels


def _result(decision: Decision) -> str:
    # The table avoids a Python object for each admission.
    return "success" if len(decision.admission_table) else "inadmissible"


def _silent(configuration: Configuration) -> list[str]:
    """Return the prefixes of the metrics that a Configuration has switched off."""
    local_queues = object_at(configuration.to_dict(), "metrics", "localQueueMetrics")
    has_local_queues = configuration.is_enabled("LocalQueueMetrics") and local_queues.get("enable") is not False
    silent = [] if has_local_queues else ["local_queue_"]
    if not configuration.is_enabled("UnadmittedWorkloadsObservability"):
        silent += ["unadmitted_", "local_queue_unadmitted_"]
    if not configuration.is_enabled("MetricsForCohorts"):
        # Kueue's gate is about these two alone.
        silent += ["cohort_info", "cluster_queue_info"]
    return silent


def _condition(workload: JsonObject, kind: str) -> JsonObject:
    return next(
        (
            object_at(condition)
            for condition in list_at(workload, "status", "conditions")
            if text_at(condition, "type") == kind
        ),
        {},
    )


def _seconds(condition: JsonObject) -> float:
    return transition_time(condition) / 10**9


def _queued_seconds(workload: JsonObject) -> float:
    """Return when a workload was queued: requeued or, if it never was, created."""
    requeued = _condition(workload, "Requeued")
    if requeued:
        return _seconds(requeued)
    created = text_at(workload, "metadata", "creationTimestamp")
    return saturated_ns(created) / 10**9 if created else 0.0


def _evictions(workload: JsonObject) -> dict[tuple[str, str], int]:
    """Return how often a workload was evicted, by reason and underlying cause."""
    entries = list_at(workload, "status", "schedulingStats", "evictions")
    return {(text_at(entry, "reason"), text_at(entry, "underlyingCause")): int_at(entry, "count") for entry in entries}
