//! The reasons of workload conditions: part of the interface, spelled as Kueue spells them.

use crate::base::gates::{Gate, Gates};

/// Quota was reserved, for QuotaReserved and for the reset of Evicted, Preempted and others.
pub const QUOTA_RESERVED: &str = "QuotaReserved";
/// Admitted True.
pub const ADMITTED: &str = "Admitted";

/// Finished: the job has succeeded.
pub const SUCCEEDED: &str = "Succeeded";
/// Finished: the job has failed.
pub const FAILED: &str = "Failed";
/// Finished: a larger slice has replaced it.
pub(crate) const WORKLOAD_SLICE_REPLACED: &str = "WorkloadSliceReplaced";

// Why QuotaReserved is False (rules/07 §11).
/// No flavor of the ClusterQueue matches.
pub(crate) const NO_MATCHING_FLAVOR: &str = "NoMatchingFlavor";
/// It could fit if quota were free.
pub(crate) const WAITING_FOR_QUOTA: &str = "WaitingForQuota";
/// More than could ever be free.
pub(crate) const EXCEEDS_MAX_QUOTA: &str = "ExceedsMaxQuota";
/// Quota fits, topology does not.
pub(crate) const TOPOLOGY_PLACEMENT_FAILED: &str = "TopologyPlacementFailed";
/// Preemption is under way.
pub(crate) const WAITING_FOR_PREEMPTED_WORKLOADS: &str = "WaitingForPreemptedWorkloads";
/// A referenced object is missing or does not match.
pub(crate) const MISCONFIGURED: &str = "Misconfigured";
/// A queue is stopped or inactive.
pub(crate) const SUSPENDED: &str = "Suspended";
/// Not evaluated since something changed.
pub const PENDING_EVALUATION: &str = "PendingEvaluation";
/// Admission is blocked until all admitted workloads are ready.
pub(crate) const WAITING_FOR_PODS_READY: &str = "WaitingForPodsReady";
/// An admission gate or a preemption gate is closed.
pub(crate) const ADMISSION_GATED: &str = "AdmissionGated";
/// Quota was released on purpose.
pub(crate) const ON_HOLD: &str = "OnHold";
/// Reason without gate UnadmittedWorkloadsObservability.
pub(crate) const PENDING: &str = "Pending";
/// Reason without gate UnadmittedWorkloadsObservability.
pub(crate) const INADMISSIBLE: &str = "Inadmissible";
/// Devices that it claims cannot be charged.
pub(crate) const DRA_RESOURCES_UNRESOLVED: &str = "DRAResourcesUnresolved";
/// They can be charged now.
pub(crate) const DRA_RESOURCES_RESOLVED: &str = "DRAResourcesResolved";
/// Reason without gate UnadmittedWorkloadsObservability.
pub(crate) const WAITING: &str = "Waiting";

// Why Admitted is False (rules/07 §1).
/// No quota is reserved.
pub const NO_RESERVATION: &str = "NoReservation";
/// As before, without gate UnadmittedWorkloadsObservability and with checks that are not ready.
pub(crate) const NO_RESERVATION_UNSATISFIED_CHECKS: &str = "NoReservationUnsatisfiedChecks";
/// Some check is not Ready.
pub(crate) const UNSATISFIED_ADMISSION_CHECKS: &str = "UnsatisfiedAdmissionChecks";
/// As before, without gate UnadmittedWorkloadsObservability.
pub(crate) const UNSATISFIED_CHECKS: &str = "UnsatisfiedChecks";
/// A delayed topology request is pending.
pub(crate) const PENDING_DELAYED_TOPOLOGY_REQUESTS: &str = "PendingDelayedTopologyRequests";

// Why Evicted is True, and Requeued after it (rules/07 §8).
/// By a workload with precedence.
pub(crate) const PREEMPTED: &str = "Preempted";
/// A variant for a preferred flavor will run instead.
pub(crate) const FLAVOR_MIGRATION: &str = "FlavorMigration";
/// A node failed and could not be replaced.
pub(crate) const NODE_FAILURES: &str = "NodeFailures";
/// Its pods were not ready in time.
pub(crate) const PODS_READY_TIMEOUT: &str = "PodsReadyTimeout";
/// An admission check asks for a retry, or rejects.
pub(crate) const ADMISSION_CHECK: &str = "AdmissionCheck";
/// ClusterQueue with HoldAndDrain.
pub(crate) const CLUSTER_QUEUE_STOPPED: &str = "ClusterQueueStopped";
/// LocalQueue with HoldAndDrain.
pub(crate) const LOCAL_QUEUE_STOPPED: &str = "LocalQueueStopped";
/// `spec.active` is false. Followed by `DueTo` and the cause if Kueue did it.
pub(crate) const DEACTIVATED: &str = "Deactivated";

// Why Requeued is True.
/// Active again.
pub(crate) const REACTIVATED: &str = "Reactivated";
/// The backoff is over.
pub(crate) const BACKOFF_FINISHED: &str = "BackoffFinished";
/// The ClusterQueue is no longer stopped.
pub(crate) const CLUSTER_QUEUE_RESTARTED: &str = "ClusterQueueRestarted";
/// The LocalQueue is no longer stopped.
pub(crate) const LOCAL_QUEUE_RESTARTED: &str = "LocalQueueRestarted";

// Reasons of PodsReady, and causes of evictions after its timeout (rules/07 §6).
/// Not all pods are ready yet.
pub(crate) const WAIT_FOR_START: &str = "WaitForStart";
/// A pod has no node yet.
pub(crate) const WAIT_FOR_SCHEDULING: &str = "WaitForScheduling";
/// All pods have, or had, a node.
pub(crate) const ALL_REQUIRED_PODS_SCHEDULED: &str = "AllRequiredPodsScheduled";
/// The same, as written by older versions of Kueue.
pub(crate) const PODS_READY: &str = "PodsReady";
/// Pods that were ready have failed.
pub(crate) const WAIT_FOR_RECOVERY: &str = "WaitForRecovery";
/// All pods are ready.
pub(crate) const STARTED: &str = "Started";
/// All pods are ready again.
pub(crate) const RECOVERED: &str = "Recovered";

// Why DeactivationTarget is True.
/// Requeued too often.
pub(crate) const REQUEUING_LIMIT_EXCEEDED: &str = "RequeuingLimitExceeded";
/// It ran too long.
pub(crate) const MAXIMUM_EXECUTION_TIME_EXCEEDED: &str = "MaximumExecutionTimeExceeded";

// Why Preempted is True (rules/04 §4.1, §5.4).
/// A victim in the preemptor's ClusterQueue.
pub(crate) const IN_CLUSTER_QUEUE: &str = "InClusterQueue";
/// The preemptor reclaims lent quota.
pub(crate) const IN_COHORT_RECLAMATION: &str = "InCohortReclamation";
/// By Fair Sharing.
pub(crate) const IN_COHORT_FAIR_SHARING: &str = "InCohortFairSharing";
/// The preemptor borrows.
pub(crate) const IN_COHORT_RECLAIM_WHILE_BORROWING: &str = "InCohortReclaimWhileBorrowing";
/// BlockedOnPreemptionGates True.
pub(crate) const PREEMPTION_GATED: &str = "PreemptionGated";

/// The reasons of a cycle's decisions: at first those of pending heads, later ones of either sort. Decision tables and
/// saves use their indexes, so append new ones.
pub const OF_DECISIONS: [&str; 21] = [
    "",
    NO_MATCHING_FLAVOR,
    WAITING_FOR_QUOTA,
    EXCEEDS_MAX_QUOTA,
    TOPOLOGY_PLACEMENT_FAILED,
    WAITING_FOR_PREEMPTED_WORKLOADS,
    MISCONFIGURED,
    SUSPENDED,
    PENDING_EVALUATION,
    WAITING_FOR_PODS_READY,
    ADMISSION_GATED,
    ON_HOLD,
    PENDING,
    INADMISSIBLE,
    WAITING,
    IN_CLUSTER_QUEUE,
    IN_COHORT_RECLAMATION,
    IN_COHORT_FAIR_SHARING,
    IN_COHORT_RECLAIM_WHILE_BORROWING,
    FLAVOR_MIGRATION,
    DRA_RESOURCES_UNRESOLVED,
];

/// The index of a reason in [`OF_DECISIONS`]; 255 for any other.
#[must_use]
pub fn code(reason: &str) -> u8 {
    let place = OF_DECISIONS.iter().position(|it| *it == reason);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

/// `granular` with gate UnadmittedWorkloadsObservability, else the older `fallback`.
#[must_use]
pub(crate) fn unadmitted(granular: &'static str, fallback: &'static str, gates: Gates) -> &'static str {
    if gates.enabled(Gate::UnadmittedWorkloadsObservability) { granular } else { fallback }
}

/// A reason with its underlying cause, as in `DeactivatedDueToAdmissionCheck`; without a cause the bare reason.
#[must_use]
pub(crate) fn with_cause(reason: &str, cause: &str) -> String {
    if cause.is_empty() { reason.to_owned() } else { format!("{reason}DueTo{cause}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_reason_is_its_index() {
        assert_eq!(OF_DECISIONS.map(|reason| usize::from(code(reason))), std::array::from_fn(|place| place));
        assert_eq!(code(BACKOFF_FINISHED), u8::MAX);
    }
}
