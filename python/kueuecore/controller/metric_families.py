"""Names, types, labels and buckets of a controller's metrics: Kueue's own (rules/09 §10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["FAMILIES", "Family", "full_name"]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its series.

    Args:
        type: `counter`, `gauge` or `histogram`.
        labels: Names of its labels, except custom ones and `replica_role`.
        about: The help text.
        sources: Kinds of objects whose labels may become its labels.
        owner: Kind of the object that the first labels name; deleting it drops its series. Empty: they stay.
        bounds: Upper bounds of a histogram's buckets, except the last, which has none.
    """

    type: str
    labels: tuple[str, ...]
    about: str
    sources: tuple[str, ...] = ()
    owner: str = ""
    bounds: tuple[float, ...] = ()

    @property
    def n_owner_labels(self) -> int:
        """How many labels name the owner: two for a LocalQueue, which has a namespace."""
        return 2 if self.owner == "LocalQueue" else 1 if self.owner else 0


_USUAL = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_B14 = (1.0, *(2.5 * 2**k for k in range(13)))
_B16 = (1.0, *(2.5 * 2**k for k in range(15)))
_CREATION = tuple(0.01 * 2**k for k in range(11))

_CAUSE = ("reason", "underlying_cause")
_CELL = ("flavor", "resource")
_PLACE = ("parent_cohort", "root_cohort")


def _plain(type_: str, about: str, *labels: str, bounds: tuple[float, ...] = ()) -> Family:
    """Describe a family about the process, or about things without labels of their own."""
    return Family(type_, labels, about, bounds=bounds)


def _queue(type_: str, about: str, *more: str, bounds: tuple[float, ...] = ()) -> Family:
    """Describe a family by ClusterQueue."""
    return Family(type_, ("cluster_queue", *more), about, ("ClusterQueue",), "ClusterQueue", bounds)


def _local(type_: str, about: str, *more: str, bounds: tuple[float, ...] = ()) -> Family:
    """Describe a family by LocalQueue."""
    return Family(type_, ("name", "namespace", *more), about, ("LocalQueue",), "LocalQueue", bounds)


def _cohort(type_: str, about: str, *more: str) -> Family:
    """Describe a family by Cohort."""
    return Family(type_, ("cohort", *more), about, ("Cohort",), "Cohort")


def _of_workloads(family: Family) -> Family:
    """Add the labels of workloads to a family."""
    return replace(family, sources=(*family.sources, "Workload"))


_CLASS = "priority_class"

FAMILIES: Mapping[str, Family] = {
    "admission_attempts_total": _plain("counter", "Cycles, by whether they came to anything.", "result"),
    "admission_attempt_duration_seconds": _plain(
        "histogram", "How long cycles took, as their caller reports.", "result", bounds=_USUAL
    ),
    "multikueue_workloads_dispatched_total": _plain(
        "counter", "Copies that were made on workers.", "cluster_queue", "cluster"
    ),
    "multikueue_workloads_admitted_total": _plain(
        "counter", "Workloads that a worker has admitted.", "cluster_queue", "cluster"
    ),
    # What happened.
    "admission_cycle_preemption_skips": _queue("gauge", "Preemptions skipped in the last cycle that skipped any."),
    "preemption_target_recomputations_total": _queue("counter", "Entries assigned anew.", "result"),
    "preempted_workloads_total": Family(
        "counter",
        ("preempting_cluster_queue", "reason"),
        "Preempted workloads.",
        ("ClusterQueue",),
        "ClusterQueue",
    ),
    "replaced_workload_slices_total": _queue("counter", "Slices that their replacements ended."),
    "quota_reserved_workloads_total": _queue("counter", "Reservations.", _CLASS),
    "local_queue_quota_reserved_workloads_total": _local("counter", "Reservations.", _CLASS),
    "quota_reserved_wait_time_seconds": _queue(
        "histogram", "From created or requeued to reserved.", _CLASS, bounds=_B14
    ),
    "local_queue_quota_reserved_wait_time_seconds": _local(
        "histogram", "From created or requeued to reserved.", _CLASS, bounds=_B14
    ),
    "admitted_workloads_total": _queue("counter", "Admissions.", _CLASS),
    "local_queue_admitted_workloads_total": _of_workloads(_local("counter", "Admissions.", _CLASS)),
    "cohort_subtree_admitted_workloads_total": _cohort("counter", "Admissions below a cohort.", _CLASS),
    "admission_wait_time_seconds": _queue("histogram", "From created or requeued to admitted.", _CLASS, bounds=_B16),
    "local_queue_admission_wait_time_seconds": _of_workloads(
        _local("histogram", "From created or requeued to admitted.", _CLASS, bounds=_B14)
    ),
    "admission_checks_wait_time_seconds": _queue("histogram", "From reserved to admitted.", _CLASS, bounds=_B14),
    "local_queue_admission_checks_wait_time_seconds": _local(
        "histogram", "From reserved to admitted.", _CLASS, bounds=_B14
    ),
    "ready_wait_time_seconds": _queue(
        "histogram", "From created or requeued to ready for the first time.", _CLASS, bounds=_B14
    ),
    "local_queue_ready_wait_time_seconds": _local(
        "histogram", "From created or requeued to ready for the first time.", _CLASS, bounds=_B14
    ),
    "admitted_until_ready_wait_time_seconds": _queue(
        "histogram", "From admitted to ready for the first time.", _CLASS, bounds=_B14
    ),
    "local_queue_admitted_until_ready_wait_time_seconds": _local(
        "histogram", "From admitted to ready for the first time.", _CLASS, bounds=_B14
    ),
    "evicted_workloads_total": _queue("counter", "Evictions.", *_CAUSE, _CLASS),
    "local_queue_evicted_workloads_total": _local("counter", "Evictions.", *_CAUSE, _CLASS),
    "evicted_workloads_once_total": _queue("counter", "First evictions of workloads.", *_CAUSE, _CLASS),
    "pods_ready_to_evicted_time_seconds": _queue("histogram", "From ready to evicted.", *_CAUSE, bounds=_B14),
    "workload_eviction_latency_seconds": _queue(
        "histogram", "From evicted until the quota is free.", "reason", bounds=_B14
    ),
    "finished_workloads_total": _queue("counter", "Finished workloads.", _CLASS),
    "local_queue_finished_workloads_total": _local("counter", "Finished workloads.", _CLASS),
    "execution_time_seconds": _queue("histogram", "Time admitted, before and after evictions.", _CLASS, bounds=_B16),
    "local_queue_execution_time_seconds": _local(
        "histogram", "Time admitted, before and after evictions.", _CLASS, bounds=_B16
    ),
    # Its labels name the LocalQueue of a job, and its series outlive every owner.
    "workload_creation_latency_seconds": Family(
        "histogram", ("job_kind",), "From a new job to its Workload.", ("LocalQueue",), bounds=_CREATION
    ),
    "pod_scheduling_gate_removal_seconds": _queue(
        "histogram", "From admitted until a gate of a pod was removed.", "name", "is_group", bounds=_USUAL
    ),
    # The current state.
    "pending_workloads": _of_workloads(_queue("gauge", "Workloads that wait.", "status")),
    "local_queue_pending_workloads": _local("gauge", "Workloads that wait.", "status"),
    "pending_scheduling_hashes": _queue("gauge", "Kinds of workloads that wait, as scheduling sees them.", "status"),
    "unadmitted_workloads": _queue("gauge", "Workloads that are not admitted, by why.", *_CAUSE),
    "local_queue_unadmitted_workloads": _local(
        "gauge", "Workloads that are not admitted, by why.", "cluster_queue", *_CAUSE
    ),
    "finished_workloads": _queue("gauge", "Finished workloads that are still there."),
    "local_queue_finished_workloads": _local("gauge", "Finished workloads that are still there."),
    "reserving_active_workloads": _queue("gauge", "Workloads that hold quota."),
    "local_queue_reserving_active_workloads": _local("gauge", "Workloads that hold quota."),
    "admitted_active_workloads": _of_workloads(_queue("gauge", "Admitted workloads.")),
    "local_queue_admitted_active_workloads": _of_workloads(_local("gauge", "Admitted workloads.")),
    "cluster_queue_status": _queue("gauge", "1 for the status that holds.", "status"),
    "local_queue_status": _local("gauge", "1 for the status that holds.", "active"),
    "cluster_queue_weighted_share": _queue("gauge", "Weighted share; NaN: borrows with weight 0.", "cohort"),
    "cohort_weighted_share": _cohort("gauge", "Weighted share; +Inf: borrows with weight 0."),
    "cluster_queue_nominal_quota": _queue("gauge", "Nominal quota.", "cohort", *_CELL),
    "cluster_queue_borrowing_limit": _queue("gauge", "Borrowing limit; +Inf: none.", "cohort", *_CELL),
    "cluster_queue_lending_limit": _queue("gauge", "Lending limit; +Inf: none.", "cohort", *_CELL),
    "cluster_queue_resource_reservation": _queue("gauge", "Reserved quota.", "cohort", *_CELL),
    "cluster_queue_resource_usage": _queue("gauge", "Quota of admitted workloads.", "cohort", *_CELL),
    "cluster_queue_resource_pending": _queue("gauge", "What workloads that wait ask for.", "resource"),
    "local_queue_resource_reservation": _local("gauge", "Reserved quota.", *_CELL),
    "local_queue_resource_usage": _local("gauge", "Quota of admitted workloads.", *_CELL),
    "local_queue_admission_fair_sharing_usage": _local(
        "gauge", "What was used of late, by which admission fair sharing orders.", "cluster_queue"
    ),
    "cohort_subtree_quota": _cohort("gauge", "Quota of the subtree.", *_CELL),
    "cohort_subtree_resource_reservations": _cohort("gauge", "What is reserved in the subtree.", *_CELL),
    # Its custom labels are those of the ClusterQueues below.
    "cohort_subtree_admitted_active_workloads": Family(
        "gauge", ("cohort",), "Admitted workloads below a cohort.", ("ClusterQueue",), "Cohort"
    ),
    "cohort_info": _cohort("gauge", "1 for where a cohort stands.", *_PLACE),
    "cluster_queue_info": _queue("gauge", "1 for where a ClusterQueue stands.", *_PLACE),
}
"""Families by name. The labels that name the owner come first."""


def full_name(family: str) -> str:
    """Return the Prometheus name of a family; MultiKueue's have no prefix.

    Example:
        >>> full_name("pending_workloads"), full_name("multikueue_workloads_admitted_total")
        ('kueue_pending_workloads', 'multikueue_workloads_admitted_total')
    """
    return family if family.startswith("multikueue_") else f"kueue_{family}"
