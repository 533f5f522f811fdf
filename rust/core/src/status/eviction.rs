//! Eviction and its consequences: release of the quota, return to the queue, deactivation, finish (rules/04 §8, §9;
//! rules/07 §8, §9).

use std::sync::Arc;

use crate::base::changes::{Change, Changes};
use crate::base::gates::{Gate, Gates};
use crate::base::text::Text;
use crate::objects::conditions::{self, condition, find, find_false, find_true, is_true};
use crate::objects::message::Message;
use crate::objects::{AdmissionCheckState, CheckState, Condition, ConditionStatus, EvictionCount, Time, Workload};
use crate::status::admissible::requeue_at;
use crate::status::reservation::{set, unset_quota_reservation};
use crate::status::stage::{has_quota_reservation, is_evicted, is_finished};
use crate::status::{messages, reasons};

const POD_GROUP_WORKLOAD: &str = "kueue.x-k8s.io/is-group-workload";

/// Writes an eviction; returns whether it is the first one for this reason and cause.
///
/// The quota stays reserved until [`release_after_eviction`]. `cause` may be empty; it is part of the condition's
/// reason only for `Deactivated`, but always of the counter.
pub fn evict(
    workload: &mut Workload,
    reason: impl Into<Text>,
    cause: &str,
    message: impl Into<Message>,
    now: Time,
) -> bool {
    let reason: Text = reason.into();
    let shown = if reason == reasons::DEACTIVATED && !cause.is_empty() {
        reasons::with_cause(&reason, cause).into()
    } else {
        reason.clone()
    };
    let message = message.into();
    set(workload, conditions::EVICTED, ConditionStatus::True, shown.clone(), message.clone(), now);
    if is_true(&workload.status.conditions, conditions::BLOCKED_ON_PREEMPTION_GATES) {
        set(workload, conditions::BLOCKED_ON_PREEMPTION_GATES, ConditionStatus::False, shown, message, now);
    }
    let status = &mut workload.status;
    status.rare.cluster_name = None;
    status.rare.nominated_cluster_names.clear();
    status.rare.unhealthy_nodes.clear();
    for check in &mut status.rare.admission_checks {
        reset_check(check, now);
    }
    for gate in &mut status.rare.preemption_gates {
        "Closed".clone_into(&mut gate.position);
        gate.last_transition = now;
    }
    if status.admission.is_some() {
        // The admission has the requests now.
        status.resource_requests = None;
    }
    count_eviction(&mut status.rare.evictions, &reason, cause)
}

/// The reason of the event of an eviction, such as `EvictedDueToDeactivatedDueToAdmissionCheck`.
#[must_use]
pub fn event_reason(reason: &str, cause: &str) -> String {
    let evicted = reasons::with_cause(conditions::EVICTED.as_str(), reason);
    if reason == reasons::DEACTIVATED { reasons::with_cause(&evicted, cause) } else { evicted }
}

/// Writes an eviction by preemption, with condition Preempted for `preempted_reason`; returns the same as [`evict`].
pub fn preempt(
    workload: &mut Workload,
    preempted_reason: &'static str,
    message: impl Into<Message>,
    now: Time,
) -> bool {
    // Only this condition has no generation.
    let message = message.into();
    let preempted = condition(conditions::PREEMPTED, ConditionStatus::True, preempted_reason, message.clone(), now, 0);
    workload.status.conditions.set(preempted);
    evict(workload, reasons::PREEMPTED, "", message, now)
}

/// Writes what follows when the job of an evicted workload has stopped: its quota is released, and condition Requeued
/// says whether it is back in the queue. Returns whether anything changed, which needs an eviction or quota.
pub fn release_after_eviction(workload: &mut Workload, now: Time, gates: Gates) -> bool {
    if !has_quota_reservation(workload) {
        return false;
    }
    let Some(evicted) = find_true(&workload.status.conditions, conditions::EVICTED) else { return false };
    let Condition { reason, message, .. } = evicted.clone();
    let back_at_once = matches!(reason.as_str(), reasons::PREEMPTED | reasons::NODE_FAILURES)
        && !(gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads) && owned_by_single_pod(workload));
    set_requeued(workload, back_at_once, reason, message.clone(), now);
    let pending = reasons::unadmitted(reasons::PENDING_EVALUATION, reasons::PENDING, gates);
    unset_quota_reservation(workload, pending, message, now, gates);
    true
}

/// Sets condition Requeued; returns whether it changed.
pub fn set_requeued(
    workload: &mut Workload,
    requeued: bool,
    reason: impl Into<Text>,
    message: impl Into<Message>,
    now: Time,
) -> bool {
    let status = if requeued { ConditionStatus::True } else { ConditionStatus::False };
    set(workload, conditions::REQUEUED, status, reason, message, now)
}

/// Returns an active workload to the queue after a deactivation or an expired backoff; returns whether anything
/// changed. Stopped queues: [`requeue_after_restart`].
pub fn requeue_if_due(workload: &mut Workload, now: Time, changes: Changes) -> bool {
    let Some(held) = find_false(&workload.status.conditions, conditions::REQUEUED) else { return false };
    // A derived reason names the cause, too (rules/07 §9).
    let is_derived = changes.has(Change::DerivedDeactivationIsUndone) && held.reason.starts_with(reasons::DEACTIVATED);
    match held.reason.as_str() {
        reason if reason == reasons::DEACTIVATED || is_derived => {
            set_requeued(workload, true, reasons::REACTIVATED, "The workload was reactivated", now);
            true
        }
        reasons::PODS_READY_TIMEOUT | reasons::ADMISSION_CHECK => {
            if requeue_at(workload).is_some_and(|at| now < at) {
                return false;
            }
            if requeue_at(workload).is_some()
                && let Some(state) = &mut workload.status.rare.requeue_state
            {
                state.requeue_at = None;
            }
            set_requeued(workload, true, reasons::BACKOFF_FINISHED, "The workload backoff was finished", now);
            true
        }
        _ => false,
    }
}

/// The queue that was restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarted {
    /// The LocalQueue.
    LocalQueue,
    /// The ClusterQueue.
    ClusterQueue,
}

/// Returns a workload to the queue that was out because that queue was stopped; returns whether anything changed.
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

/// Announces that Kueue will deactivate the workload; returns whether that is new. The caller then sets `spec.active`
/// to false.
pub fn set_deactivation_target(
    workload: &mut Workload,
    reason: impl Into<Text>,
    message: impl Into<Message>,
    now: Time,
) -> bool {
    set(workload, conditions::DEACTIVATION_TARGET, ConditionStatus::True, reason, message, now)
}

/// Updates an inactive workload: evicts it if it was not, and removes condition DeactivationTarget and the requeue
/// state. Returns the underlying cause if it was evicted here; empty if a user deactivated it (rules/07 §9).
pub fn deactivate(workload: &mut Workload, now: Time) -> Option<String> {
    let evict_now = !is_evicted(workload);
    if !evict_now && workload.status.rare.requeue_state.is_none() {
        return None;
    }
    let target = find(&workload.status.conditions, conditions::DEACTIVATION_TARGET).cloned();
    if target.is_some() {
        workload.status.conditions.remove(conditions::DEACTIVATION_TARGET);
    }
    if workload.status.rare.requeue_state.is_some() {
        workload.status.rare.requeue_state = None;
    }
    if !evict_now {
        return None;
    }
    let (cause, message) = match target {
        Some(target) => (target.reason.to_string(), Message::DeactivatedDueTo(Arc::new(target.message))),
        None => (String::new(), messages::DEACTIVATED.into()),
    };
    evict(workload, reasons::DEACTIVATED, &cause, message, now);
    Some(cause)
}

/// Marks the workload finished; returns whether it was not before.
pub fn finish(workload: &mut Workload, reason: impl Into<Text>, message: impl Into<Message>, now: Time) -> bool {
    !is_finished(workload) && set(workload, conditions::FINISHED, ConditionStatus::True, reason, message, now)
}

/// Is its owner exactly one plain Pod (and no pod group)? A single Pod cannot use a second assignment.
#[must_use]
pub fn owned_by_single_pod(workload: &Workload) -> bool {
    let [owner] = workload.meta.details.owners.as_slice() else { return false };
    let group = workload.meta.details.annotations.get(POD_GROUP_WORKLOAD).is_some_and(|v| v == "true");
    !group && owner.kind == "Pod" && owner.api_version == "v1"
}

/// Resets a check that has answered; retryCount is kept and incremented only for Retry, otherwise it is lost.
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
        updates: Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::condition_type::Known;
    use crate::objects::conditions::{ADMITTED, EVICTED, QUOTA_RESERVED, REQUEUED};
    use crate::objects::{Admission, OwnerReference, PreemptionGateState, RequeueState};

    const NOW: Time = Time(9_000_000_000);

    fn running() -> Workload {
        let mut w = Workload::default();
        w.meta.generation = 3;
        for kind in [QUOTA_RESERVED, ADMITTED] {
            w.status.conditions.set(condition(kind, ConditionStatus::True, kind.as_str(), "", Time(0), 3));
        }
        w.status.admission = Some(Admission { cluster_queue: "cq".into(), ..Default::default() }.into());
        w
    }

    fn get(w: &Workload, kind: Known) -> &Condition {
        find(&w.status.conditions, kind).expect("the condition is set")
    }

    #[test]
    fn preemption_sets_two_conditions_and_keeps_the_quota() {
        let mut w = running();
        assert!(preempt(&mut w, reasons::IN_CLUSTER_QUEUE, "for another", NOW));
        let expected = [
            condition(conditions::PREEMPTED, ConditionStatus::True, "InClusterQueue", "for another", NOW, 0),
            condition(EVICTED, ConditionStatus::True, "Preempted", "for another", NOW, 3),
        ];
        assert_eq!(w.status.conditions[2..], expected);
        assert!(has_quota_reservation(&w) && w.status.admission.is_some());
    }

    #[test]
    fn evictions_are_counted_by_reason_and_cause() {
        let mut w = running();
        assert!(evict(&mut w, reasons::DEACTIVATED, "AdmissionCheck", "m", NOW));
        assert_eq!(get(&w, EVICTED).reason, "DeactivatedDueToAdmissionCheck");
        assert!(evict(&mut w, reasons::PODS_READY_TIMEOUT, "WaitForStart", "m", NOW));
        assert_eq!(get(&w, EVICTED).reason, "PodsReadyTimeout");
        assert!(!evict(&mut w, reasons::PODS_READY_TIMEOUT, "WaitForStart", "m", NOW));
        assert!(evict(&mut w, reasons::PODS_READY_TIMEOUT, "WaitForRecovery", "m", NOW));
        let count = |reason: &str, cause: &str, count| EvictionCount {
            reason: reason.to_owned(),
            underlying_cause: cause.to_owned(),
            count,
        };
        assert_eq!(
            w.status.rare.evictions,
            vec![
                count("Deactivated", "AdmissionCheck", 1),
                count("PodsReadyTimeout", "WaitForStart", 2),
                count("PodsReadyTimeout", "WaitForRecovery", 1),
            ]
        );
    }

    #[test]
    fn an_eviction_resets_checks_and_counts_only_retries() {
        use CheckState::{Pending, Ready, Rejected, Retry};
        let reset = "Reset to Pending after eviction. Previously: ";
        for (state, message, retries, at) in [
            (Pending, "m".to_owned(), Some(4), Time(1)),
            (Ready, format!("{reset}Ready"), None, NOW),
            (Rejected, format!("{reset}Rejected"), None, NOW),
            (Retry, format!("{reset}Retry"), Some(5), NOW),
        ] {
            let mut w = running();
            let before = AdmissionCheckState {
                name: "c".to_owned(),
                state,
                message: "m".to_owned(),
                last_transition: Time(1),
                requeue_after_seconds: Some(60),
                retry_count: Some(4),
                pod_set_updates: "[]".to_owned(),
                updates: Vec::new(),
            };
            w.status.rare.admission_checks = vec![before.clone()];
            evict(&mut w, reasons::ADMISSION_CHECK, "", "m", NOW);
            let pod_set_updates = if state == Pending { "[]".to_owned() } else { String::new() };
            let after = AdmissionCheckState {
                state: Pending,
                message,
                last_transition: at,
                retry_count: retries,
                pod_set_updates,
                ..before
            };
            assert_eq!(w.status.rare.admission_checks, vec![after]);
        }
    }

    #[test]
    fn eviction_clears_the_placement_and_closes_the_gates() {
        let mut w = running();
        w.status.rare.cluster_name = Some("worker".to_owned());
        w.status.rare.nominated_cluster_names = vec!["worker".to_owned()];
        w.status.rare.unhealthy_nodes = vec!["node".to_owned()];
        w.status.rare.preemption_gates =
            vec![PreemptionGateState { name: "g".to_owned(), position: "Open".to_owned(), last_transition: Time(1) }];
        let kind = conditions::BLOCKED_ON_PREEMPTION_GATES;
        set(&mut w, kind, ConditionStatus::True, reasons::PREEMPTION_GATED, "gated", Time(1));
        evict(&mut w, reasons::PREEMPTED, "", "m", NOW);
        assert_eq!((w.status.rare.cluster_name.as_ref(), w.status.rare.nominated_cluster_names.len()), (None, 0));
        assert!(w.status.rare.unhealthy_nodes.is_empty());
        assert_eq!(w.status.rare.preemption_gates[0].position, "Closed");
        assert_eq!(get(&w, kind), &condition(kind, ConditionStatus::False, "Preempted", "m", NOW, 3));
    }

    #[test]
    fn only_some_eviction_reasons_requeue_at_once() {
        for (reason, back) in [
            (reasons::PREEMPTED, true),
            (reasons::NODE_FAILURES, true),
            (reasons::PODS_READY_TIMEOUT, false),
            (reasons::ADMISSION_CHECK, false),
            (reasons::CLUSTER_QUEUE_STOPPED, false),
        ] {
            let mut w = running();
            evict(&mut w, reason, "", "why", NOW);
            assert!(release_after_eviction(&mut w, NOW, Gates::default()));
            let requeued = if back { ConditionStatus::True } else { ConditionStatus::False };
            assert_eq!(get(&w, REQUEUED), &condition(REQUEUED, requeued, reason, "why", NOW, 3));
            let quota = condition(QUOTA_RESERVED, ConditionStatus::False, "PendingEvaluation", "why", NOW, 3);
            assert_eq!(get(&w, QUOTA_RESERVED), &quota);
            assert_eq!(get(&w, ADMITTED).reason, "NoReservation");
            assert_eq!(
                (w.status.admission.as_ref(), w.status.rare.accumulated_past_execution_time_seconds),
                (None, Some(9))
            );
            assert!(!release_after_eviction(&mut w, NOW, Gates::default()));
        }
        assert!(!release_after_eviction(&mut running(), NOW, Gates::default()));
    }

    #[test]
    fn a_workload_owned_by_a_single_pod_is_not_requeued() {
        let owner = OwnerReference { api_version: "v1".to_owned(), kind: "Pod".to_owned(), ..Default::default() };
        let on = Gates::default().with(Gate::SkipReassignmentForPodOwnedWorkloads, true);
        let off = on.with(Gate::SkipReassignmentForPodOwnedWorkloads, false);
        for (gates, group, back) in [(on, "", false), (on, "true", true), (off, "", true)] {
            let mut w = running();
            w.meta.details.owners = vec![owner.clone()];
            w.meta.details.annotations.insert(POD_GROUP_WORKLOAD.to_owned(), group.to_owned());
            preempt(&mut w, reasons::IN_CLUSTER_QUEUE, "m", NOW);
            release_after_eviction(&mut w, NOW, gates);
            assert_eq!(is_true(&w.status.conditions, REQUEUED), back, "{group}");
        }
    }

    #[test]
    fn the_cause_of_the_eviction_decides_when_requeued_becomes_true() {
        use Restarted::{ClusterQueue, LocalQueue};
        let held = |reason: &'static str, requeue_at: Option<Time>| {
            let mut w = Workload::default();
            set_requeued(&mut w, false, reason, "m", Time(0));
            w.status.rare.requeue_state = Some(RequeueState { count: Some(1), requeue_at });
            w
        };
        for (reason, at, back) in [
            (reasons::DEACTIVATED, Some(Time(NOW.0 + 1)), Some("Reactivated")),
            (reasons::PODS_READY_TIMEOUT, Some(Time(NOW.0 + 1)), None),
            (reasons::PODS_READY_TIMEOUT, Some(NOW), Some("BackoffFinished")),
            (reasons::ADMISSION_CHECK, None, Some("BackoffFinished")),
            (reasons::CLUSTER_QUEUE_STOPPED, None, None),
        ] {
            let mut w = held(reason, at);
            assert_eq!(requeue_if_due(&mut w, NOW, Changes::default()), back.is_some(), "{reason}");
            let shown = back.unwrap_or(reason);
            assert_eq!(
                (is_true(&w.status.conditions, REQUEUED), get(&w, REQUEUED).reason.as_str()),
                (back.is_some(), shown)
            );
        }
        assert!(requeue_after_restart(&mut held(reasons::LOCAL_QUEUE_STOPPED, None), LocalQueue, NOW));
        assert!(!requeue_after_restart(&mut held(reasons::LOCAL_QUEUE_STOPPED, None), ClusterQueue, NOW));
        assert!(requeue_after_restart(&mut held(reasons::CLUSTER_QUEUE_STOPPED, None), ClusterQueue, NOW));
    }

    #[test]
    fn deactivation_names_its_cause_and_clears_the_backoff() {
        let mut w = running();
        w.status.rare.requeue_state = Some(RequeueState { count: Some(3), requeue_at: None });
        set_deactivation_target(&mut w, reasons::REQUEUING_LIMIT_EXCEEDED, "too often", NOW);
        assert_eq!(deactivate(&mut w, NOW), Some("RequeuingLimitExceeded".to_owned()));
        let evicted = get(&w, EVICTED);
        assert_eq!(evicted.reason, "DeactivatedDueToRequeuingLimitExceeded");
        assert_eq!(evicted.text(), "The workload is deactivated due to too often");
        assert_eq!(
            (find(&w.status.conditions, conditions::DEACTIVATION_TARGET), &w.status.rare.requeue_state),
            (None, &None)
        );
        assert_eq!(deactivate(&mut w, NOW), None);

        let mut by_user = running();
        assert_eq!(deactivate(&mut by_user, NOW), Some(String::new()));
        assert_eq!(
            (get(&by_user, EVICTED).reason.as_str(), get(&by_user, EVICTED).text().as_str()),
            ("Deactivated", "The workload is deactivated")
        );
    }

    #[test]
    fn finishing_is_final() {
        let mut w = running();
        assert!(finish(&mut w, "Succeeded", "done", NOW));
        assert!(!finish(&mut w, "Failed", "no", NOW));
        assert_eq!(get(&w, conditions::FINISHED).reason, "Succeeded");
    }
}
