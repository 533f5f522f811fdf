//! Eviction and what follows it: release of the quota, return to the queue, deactivation, the end
//! (rules/04 §8, §9; rules/07 §8, §9).

use crate::conditions::{self, condition, find, find_false, find_true, is_true};
use crate::gates::{Gate, Gates};
use crate::objects::{AdmissionCheckState, CheckState, Condition, ConditionStatus, EvictionCount, Time, Workload};
use crate::queue_order::{has_quota_reservation, is_evicted, is_finished, requeue_at};
use crate::reasons;
use crate::reservation::{set, unset_quota_reservation};

const POD_GROUP_WORKLOAD: &str = "kueue.x-k8s.io/is-group-workload";

/// Writes an eviction; returns whether it is the first one for this reason and cause.
///
/// The quota stays reserved until [`release_after_eviction`]. `cause` may be empty; it enters the reason of the
/// condition only for `Deactivated`, and the counter always.
pub fn evict(workload: &mut Workload, reason: &str, cause: &str, message: &str, now: Time) -> bool {
    let shown = if reason == reasons::DEACTIVATED { reasons::with_cause(reason, cause) } else { reason.to_owned() };
    set(workload, conditions::EVICTED, ConditionStatus::True, &shown, message, now);
    if is_true(&workload.status.conditions, conditions::BLOCKED_ON_PREEMPTION_GATES) {
        set(workload, conditions::BLOCKED_ON_PREEMPTION_GATES, ConditionStatus::False, &shown, message, now);
    }
    let status = &mut workload.status;
    status.cluster_name = None;
    status.nominated_cluster_names.clear();
    status.unhealthy_nodes.clear();
    for check in &mut status.admission_checks {
        reset_check(check, now);
    }
    for gate in &mut status.preemption_gates {
        "Closed".clone_into(&mut gate.position);
        gate.last_transition = now;
    }
    if status.admission.is_some() {
        // What is assigned stands in the admission.
        status.resource_requests.clear();
    }
    count_eviction(&mut status.evictions, reason, cause)
}

/// Writes an eviction by preemption, with condition Preempted for `preempted_reason`; returns as [`evict`].
pub fn preempt(workload: &mut Workload, preempted_reason: &str, message: &str, now: Time) -> bool {
    // This one condition carries no generation.
    let preempted = condition(conditions::PREEMPTED, ConditionStatus::True, preempted_reason, message, now, 0);
    conditions::set(&mut workload.status.conditions, preempted);
    evict(workload, reasons::PREEMPTED, "", message, now)
}

/// Writes what follows when the job of an evicted workload has stopped: its quota is free, and condition Requeued
/// tells whether it is back in the queue. Returns whether anything changed; without eviction or quota nothing does.
pub fn release_after_eviction(workload: &mut Workload, now: Time, gates: Gates) -> bool {
    if !has_quota_reservation(workload) {
        return false;
    }
    let Some(evicted) = find_true(&workload.status.conditions, conditions::EVICTED) else { return false };
    let Condition { reason, message, .. } = evicted.clone();
    let back_at_once = matches!(reason.as_str(), reasons::PREEMPTED | reasons::NODE_FAILURES)
        && !(gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads) && owned_by_single_pod(workload));
    set_requeued(workload, back_at_once, &reason, &message, now);
    let pending = reasons::unadmitted(reasons::PENDING_EVALUATION, reasons::PENDING, gates);
    unset_quota_reservation(workload, pending, &message, now, gates);
    true
}

/// Sets condition Requeued; returns whether it changed.
pub fn set_requeued(workload: &mut Workload, requeued: bool, reason: &str, message: &str, now: Time) -> bool {
    let status = if requeued { ConditionStatus::True } else { ConditionStatus::False };
    set(workload, conditions::REQUEUED, status, reason, message, now)
}

/// Brings an active workload back to the queue if it was kept out by a deactivation or by a backoff that is over;
/// returns whether anything changed. Stopped queues: [`requeue_after_restart`].
pub fn requeue_if_due(workload: &mut Workload, now: Time) -> bool {
    let Some(held) = find_false(&workload.status.conditions, conditions::REQUEUED) else { return false };
    match held.reason.as_str() {
        reasons::DEACTIVATED => {
            set_requeued(workload, true, reasons::REACTIVATED, "The workload was reactivated", now);
            true
        }
        reasons::PODS_READY_TIMEOUT | reasons::ADMISSION_CHECK => {
            if requeue_at(workload).is_some_and(|at| now < at) {
                return false;
            }
            if let Some(state) = &mut workload.status.requeue_state {
                state.requeue_at = None;
            }
            set_requeued(workload, true, reasons::BACKOFF_FINISHED, "The workload backoff was finished", now);
            true
        }
        _ => false,
    }
}

/// Which queue is not stopped any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarted {
    /// The LocalQueue.
    LocalQueue,
    /// The ClusterQueue.
    ClusterQueue,
}

/// Brings a workload back that was kept out because that queue was stopped; returns whether anything changed.
pub fn requeue_after_restart(workload: &mut Workload, queue: Restarted, now: Time) -> bool {
    let (stopped, restarted, message) = match queue {
        Restarted::LocalQueue => (
            reasons::LOCAL_QUEUE_STOPPED,
            reasons::LOCAL_QUEUE_RESTARTED,
            "The LocalQueue was restarted after being stopped",
        ),
        Restarted::ClusterQueue => (
            reasons::CLUSTER_QUEUE_STOPPED,
            reasons::CLUSTER_QUEUE_RESTARTED,
            "The ClusterQueue was restarted after being stopped",
        ),
    };
    let held = find_false(&workload.status.conditions, conditions::REQUEUED).is_some_and(|c| c.reason == stopped);
    held && set_requeued(workload, true, restarted, message, now)
}

/// Announces that Kueue will deactivate the workload; returns whether that is new. The caller then sets
/// `spec.active` to false.
pub fn set_deactivation_target(workload: &mut Workload, reason: &str, message: &str, now: Time) -> bool {
    set(workload, conditions::DEACTIVATION_TARGET, ConditionStatus::True, reason, message, now)
}

/// Writes what an inactive workload gets: evicted if it was not, condition DeactivationTarget and the requeue state
/// removed. Returns the underlying cause if it was evicted here; empty when a user did it (rules/07 §9).
pub fn deactivate(workload: &mut Workload, now: Time) -> Option<String> {
    let evict_now = !is_evicted(workload);
    if !evict_now && workload.status.requeue_state.is_none() {
        return None;
    }
    let target = find(&workload.status.conditions, conditions::DEACTIVATION_TARGET).cloned();
    conditions::remove(&mut workload.status.conditions, conditions::DEACTIVATION_TARGET);
    workload.status.requeue_state = None;
    if !evict_now {
        return None;
    }
    let (cause, message) = match target {
        Some(target) => (target.reason, format!("The workload is deactivated due to {}", target.message)),
        None => (String::new(), "The workload is deactivated".to_owned()),
    };
    evict(workload, reasons::DEACTIVATED, &cause, &message, now);
    Some(cause)
}

/// Writes that the workload is finished; returns whether it was not before.
pub fn finish(workload: &mut Workload, reason: &str, message: &str, now: Time) -> bool {
    !is_finished(workload) && set(workload, conditions::FINISHED, ConditionStatus::True, reason, message, now)
}

/// Is exactly one plain Pod its owner (and no pod group)? Then nothing can use a second assignment.
#[must_use]
pub fn owned_by_single_pod(workload: &Workload) -> bool {
    let [owner] = workload.meta.owners.as_slice() else { return false };
    let group = workload.meta.annotations.get(POD_GROUP_WORKLOAD).is_some_and(|v| v == "true");
    !group && owner.kind == "Pod" && owner.api_version == "v1"
}

/// A check that had answered starts anew; only a Retry is counted on, any other count is lost.
fn reset_check(check: &mut AdmissionCheckState, now: Time) {
    let retry_count = match check.state {
        CheckState::Pending => return,
        CheckState::Retry => Some(check.retry_count.unwrap_or(0).saturating_add(1)),
        CheckState::Ready | CheckState::Rejected => None,
    };
    *check = AdmissionCheckState {
        name: std::mem::take(&mut check.name),
        state: CheckState::Pending,
        message: format!("Reset to Pending after eviction. Previously: {:?}", check.state),
        last_transition: now,
        requeue_after_seconds: check.requeue_after_seconds,
        retry_count,
        pod_set_updates: String::new(),
    };
}

fn count_eviction(evictions: &mut Vec<EvictionCount>, reason: &str, cause: &str) -> bool {
    if let Some(entry) = evictions.iter_mut().find(|e| e.reason == reason && e.underlying_cause == cause) {
        let first = entry.count == 0;
        entry.count = entry.count.saturating_add(1);
        return first;
    }
    evictions.push(EvictionCount { reason: reason.to_owned(), underlying_cause: cause.to_owned(), count: 1 });
    true
}
