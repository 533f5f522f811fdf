//! What is written into a workload's status when it gets quota, when it does not, and when the condition Admitted
//! follows (rules/05 §6.5, §6.6; rules/07 §1).

use std::collections::BTreeSet;

use crate::checks::{has_all_checks, has_all_checks_ready};
use crate::conditions::{self, condition, find, find_true};
use crate::gates::{Gate, Gates};
use crate::objects::{Admission, ConditionStatus, PodSetRequest, Time, Workload};
use crate::queue_order::{has_quota_reservation, is_admitted};
use crate::reasons;

const SECOND_NS: i64 = 1_000_000_000;

/// Writes that quota is reserved as `admission` says; returns whether the workload is Admitted now.
///
/// `required_checks` are the checks of its ClusterQueue that apply to the assigned flavors
/// ([`crate::checks::required_checks`]). Only if all of them are in the status already is Admitted written.
pub fn reserve_quota(
    workload: &mut Workload,
    admission: Admission,
    required_checks: &BTreeSet<String>,
    now: Time,
    gates: Gates,
) -> bool {
    let message = format!("Quota reserved in ClusterQueue {}", admission.cluster_queue);
    workload.status.admission = Some(admission);
    workload.status.resource_requests.clear();
    if gates.enabled(Gate::TopologyAwareScheduling) {
        workload.status.unhealthy_nodes.clear();
    }
    set(workload, conditions::QUOTA_RESERVED, ConditionStatus::True, reasons::QUOTA_RESERVED, &message, now);
    for kind in [conditions::EVICTED, conditions::PREEMPTED, conditions::BLOCKED_ON_PREEMPTION_GATES] {
        reset_active(workload, kind, now);
    }
    if has_all_checks(workload, required_checks) {
        sync_admitted(workload, now, gates);
    }
    is_admitted(workload)
}

/// Writes that a head of a cycle stays pending; returns whether anything changed.
///
/// `reason` is the granular one; without gate UnadmittedWorkloadsObservability `Pending` is written instead.
/// `resource_requests` are its totals per pod set.
pub fn keep_pending(
    workload: &mut Workload,
    reason: &str,
    message: &str,
    resource_requests: Vec<PodSetRequest>,
    now: Time,
    gates: Gates,
) -> bool {
    let reason = reasons::unadmitted(reason, reasons::PENDING, gates);
    let mut changed = unset_quota_reservation(workload, reason, message, now, gates);
    if workload.status.resource_requests != resource_requests {
        workload.status.resource_requests = resource_requests;
        changed = true;
    }
    changed
}

/// QuotaReserved False with `reason` as it is, no admission, Admitted synced; returns whether anything changed.
pub fn unset_quota_reservation(workload: &mut Workload, reason: &str, message: &str, now: Time, gates: Gates) -> bool {
    let mut changed = set(workload, conditions::QUOTA_RESERVED, ConditionStatus::False, reason, message, now);
    changed |= workload.status.admission.take().is_some();
    changed |= sync_admitted(workload, now, gates);
    changed
}

/// Writes that only a closed preemption gate keeps it from preempting; returns whether anything changed.
pub fn block_on_preemption_gates(workload: &mut Workload, message: &str, now: Time) -> bool {
    let (kind, reason) = (conditions::BLOCKED_ON_PREEMPTION_GATES, reasons::PREEMPTION_GATED);
    set(workload, kind, ConditionStatus::True, reason, message, now)
}

/// Makes condition Admitted follow reservation, checks and delayed topology; returns whether it changed.
///
/// Admitted going from True to False adds the whole seconds since its transition to
/// `accumulatedPastExecutionTimeSeconds`.
pub fn sync_admitted(workload: &mut Workload, now: Time, gates: Gates) -> bool {
    let observability = gates.enabled(Gate::UnadmittedWorkloadsObservability);
    let (status, reason, message) = admitted_state(workload, observability);
    let was_admitted = is_admitted(workload);
    let all = &workload.status.conditions;
    if observability {
        // Neither condition is brought into being before the workload was ever looked at.
        let untouched = find(all, conditions::QUOTA_RESERVED).is_none() && find(all, conditions::ADMITTED).is_none();
        if untouched && !gates.enabled(Gate::UnadmittedWorkloadsExplicitStatus) {
            return false;
        }
    } else if was_admitted == (status == ConditionStatus::True) {
        return false;
    }
    if was_admitted && status == ConditionStatus::False {
        accumulate_execution_time(workload, now);
    }
    set(workload, conditions::ADMITTED, status, reason, message, now)
}

/// Does a pod set wait for its delayed topology assignment?
#[must_use]
pub fn has_topology_pending(workload: &Workload) -> bool {
    workload.status.admission.as_ref().is_some_and(|admission| {
        admission
            .pod_set_assignments
            .iter()
            .any(|p| p.topology_assignment.is_empty() && p.delayed_topology_request == "Pending")
    })
}

/// What Admitted ought to say (rules/07 §1), first match.
fn admitted_state(workload: &Workload, observability: bool) -> (ConditionStatus, &'static str, &'static str) {
    use ConditionStatus::{False, True};
    let reserved = has_quota_reservation(workload);
    let ready = has_all_checks_ready(workload);
    if !reserved && !ready && !observability {
        let message = "The workload has no reservation and not all checks ready";
        (False, reasons::NO_RESERVATION_UNSATISFIED_CHECKS, message)
    } else if !reserved {
        (False, reasons::NO_RESERVATION, "The workload has no reservation")
    } else if !ready {
        let reason = if observability { reasons::UNSATISFIED_ADMISSION_CHECKS } else { reasons::UNSATISFIED_CHECKS };
        (False, reason, "The workload has not all checks ready")
    } else if has_topology_pending(workload) {
        (False, reasons::PENDING_DELAYED_TOPOLOGY_REQUESTS, "There are pending delayed topology requests")
    } else {
        (True, reasons::ADMITTED, "The workload is admitted")
    }
}

fn accumulate_execution_time(workload: &mut Workload, now: Time) {
    let Some(admitted) = find(&workload.status.conditions, conditions::ADMITTED) else { return };
    let seconds = now.since(admitted.last_transition) / SECOND_NS;
    let seconds = i32::try_from(seconds).unwrap_or(if seconds < 0 { i32::MIN } else { i32::MAX });
    let past = workload.status.accumulated_past_execution_time_seconds.unwrap_or(0);
    workload.status.accumulated_past_execution_time_seconds = Some(past.saturating_add(seconds));
}

/// A True condition that quota has made obsolete becomes False and keeps its message as the past.
fn reset_active(workload: &mut Workload, kind: &str, now: Time) {
    let Some(old) = find_true(&workload.status.conditions, kind) else { return };
    let message = format!("Previously: {}", old.message);
    set(workload, kind, ConditionStatus::False, reasons::QUOTA_RESERVED, &message, now);
}

/// Sets one condition for the workload's present generation.
pub(crate) fn set(
    workload: &mut Workload,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    now: Time,
) -> bool {
    let new = condition(kind, status, reason, message, now, workload.meta.generation);
    conditions::set(&mut workload.status.conditions, new)
}
