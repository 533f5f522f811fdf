"""Names, types, labels and buckets of the metrics of a controller: those of Kueue (rules/09 §10)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FAMILIES", "bounds_of", "full_name"]

_QUEUE = ("cluster_queue",)
_QUEUE_CLASS = ("cluster_queue", "priority_class")
_LOCAL = ("name", "namespace")
_LOCAL_CLASS = ("name", "namespace", "priority_class")
_CAUSE = ("reason", "underlying_cause")
_CELL = ("cohort", "cluster_queue", "flavor", "resource")
_LOCAL_CELL = ("name", "namespace", "flavor", "resource")
_COHORT_CELL = ("cohort", "flavor", "resource")
_PLACE = ("parent_cohort", "root_cohort")

FAMILIES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "admission_attempts_total": ("counter", ("result",), "Cycles, by whether they came to anything."),
    "admission_attempt_duration_seconds": (
        "histogram usual",
        ("result",),
        "How long cycles took, as their caller says.",
    ),
    "admission_cycle_preemption_skips": ("gauge", _QUEUE, "Preemptions skipped in the last cycle."),
    "preemption_target_recomputations_total": ("counter", (*_QUEUE, "result"), "Entries assigned anew."),
    "multikueue_workloads_dispatched_total": ("counter", (*_QUEUE, "cluster"), "Copies that were made on workers."),
    "multikueue_workloads_admitted_total": ("counter", (*_QUEUE, "cluster"), "Workloads that a worker has admitted."),
    "preempted_workloads_total": ("counter", ("preempting_cluster_queue", "reason"), "Preempted workloads."),
    "replaced_workload_slices_total": ("counter", _QUEUE, "Slices that their replacements ended."),
    "quota_reserved_workloads_total": ("counter", _QUEUE_CLASS, "Reservations."),
    "local_queue_quota_reserved_workloads_total": ("counter", _LOCAL_CLASS, "Reservations."),
    "quota_reserved_wait_time_seconds": ("histogram 14", _QUEUE_CLASS, "From created or requeued to reserved."),
    "local_queue_quota_reserved_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "admitted_workloads_total": ("counter", _QUEUE_CLASS, "Admissions."),
    "local_queue_admitted_workloads_total": ("counter", _LOCAL_CLASS, "Admissions."),
    "cohort_subtree_admitted_workloads_total": ("counter", ("cohort", "priority_class"), "Admissions below a cohort."),
    "admission_wait_time_seconds": ("histogram 16", _QUEUE_CLASS, "From created or requeued to admitted."),
    "local_queue_admission_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "admission_checks_wait_time_seconds": ("histogram 14", _QUEUE_CLASS, "From reserved to admitted."),
    "local_queue_admission_checks_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "ready_wait_time_seconds": ("histogram 14", _QUEUE_CLASS, "From created or requeued to ready for the first time."),
    "local_queue_ready_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "admitted_until_ready_wait_time_seconds": (
        "histogram 14",
        _QUEUE_CLASS,
        "From admitted to ready for the first time.",
    ),
    "local_queue_admitted_until_ready_wait_time_seconds": ("histogram 14", _LOCAL_CLASS, "The same by LocalQueue."),
    "evicted_workloads_total": ("counter", (*_QUEUE, *_CAUSE, "priority_class"), "Evictions."),
    "local_queue_evicted_workloads_total": ("counter", (*_LOCAL, *_CAUSE, "priority_class"), "Evictions."),
    "evicted_workloads_once_total": ("counter", (*_QUEUE, *_CAUSE, "priority_class"), "First evictions of workloads."),
    "pods_ready_to_evicted_time_seconds": ("histogram 14", (*_QUEUE, *_CAUSE), "From ready to evicted."),
    "workload_eviction_latency_seconds": ("histogram 14", (*_QUEUE, "reason"), "From evicted until the quota is free."),
    "finished_workloads_total": ("counter", _QUEUE_CLASS, "Finished workloads."),
    "local_queue_finished_workloads_total": ("counter", _LOCAL_CLASS, "Finished workloads."),
    "execution_time_seconds": ("histogram 16", _QUEUE_CLASS, "Time admitted, before and after evictions."),
    "local_queue_execution_time_seconds": ("histogram 16", _LOCAL_CLASS, "The same by LocalQueue."),
    "pending_workloads": ("gauge", (*_QUEUE, "status"), "Workloads that wait."),
    "local_queue_pending_workloads": ("gauge", (*_LOCAL, "status"), "Workloads that wait."),
    "unadmitted_workloads": ("gauge", (*_QUEUE, *_CAUSE), "Workloads that are not admitted, by why."),
    "local_queue_unadmitted_workloads": ("gauge", (*_LOCAL, *_QUEUE, *_CAUSE), "The same by LocalQueue."),
    "finished_workloads": ("gauge", _QUEUE, "Finished workloads that are still there."),
    "local_queue_finished_workloads": ("gauge", _LOCAL, "The same by LocalQueue."),
    "reserving_active_workloads": ("gauge", _QUEUE, "Workloads that hold quota."),
    "local_queue_reserving_active_workloads": ("gauge", _LOCAL, "The same by LocalQueue."),
    "admitted_active_workloads": ("gauge", _QUEUE, "Admitted workloads."),
    "local_queue_admitted_active_workloads": ("gauge", _LOCAL, "The same by LocalQueue."),
    "cluster_queue_status": ("gauge", (*_QUEUE, "status"), "1 for the status that holds."),
    "local_queue_status": ("gauge", (*_LOCAL, "active"), "1 for the status that holds."),
    "cluster_queue_weighted_share": ("gauge", (*_QUEUE, "cohort"), "Weighted share."),
    "cluster_queue_nominal_quota": ("gauge", _CELL, "Nominal quota."),
    "cluster_queue_borrowing_limit": ("gauge", _CELL, "Borrowing limit."),
    "cluster_queue_lending_limit": ("gauge", _CELL, "Lending limit."),
    "cluster_queue_resource_reservation": ("gauge", _CELL, "Reserved quota."),
    "cluster_queue_resource_usage": ("gauge", _CELL, "Quota of admitted workloads."),
    "local_queue_resource_reservation": ("gauge", _LOCAL_CELL, "Reserved quota."),
    "local_queue_resource_usage": ("gauge", _LOCAL_CELL, "Quota of admitted workloads."),
    "cohort_subtree_quota": ("gauge", _COHORT_CELL, "Quota of the subtree."),
    "cohort_subtree_resource_reservations": ("gauge", _COHORT_CELL, "What is reserved in the subtree."),
    "cohort_subtree_admitted_active_workloads": ("gauge", ("cohort",), "Admitted workloads below a cohort."),
    "cohort_info": ("gauge", ("cohort", *_PLACE), "1 for where a cohort stands."),
    "cluster_queue_info": ("gauge", (*_QUEUE, *_PLACE), "1 for where a ClusterQueue stands."),
}
"""Name to type, labels and help; the word after `histogram` says which buckets it has."""

_USUAL = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def full_name(family: str) -> str:
    """The name under which Prometheus knows a family: those of MultiKueue have no prefix.

    Example:
        >>> full_name("pending_workloads"), full_name("multikueue_workloads_admitted_total")
        ('kueue_pending_workloads', 'multikueue_workloads_admitted_total')
    """
    return family if family.startswith("multikueue_") else f"kueue_{family}"


def bounds_of(family: str) -> tuple[float, ...]:
    """The bounds of the buckets of a histogram, but the last, which has none."""
    _, which = FAMILIES[family][0].split()
    return _USUAL if which == "usual" else (1.0, *(2.5 * 2**k for k in range(int(which) - 1)))
