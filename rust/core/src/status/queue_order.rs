//! Who may stand in a queue, and by what (rules/05 §1, §2; rules/04 §2).

use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{self, find, find_false, find_true, is_true};
use crate::objects::config::RequeuingTimestamp;
use crate::objects::{Time, Workload};
use crate::status::reasons;

/// The annotation that keeps a workload out of the queue while it is not empty.
pub const ADMISSION_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
/// The annotation with an i32 that is added to the priority.
pub const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";

const MILLISECOND_NS: i64 = 1_000_000;

/// The time by which the workload stands in its queue (rules/05 §1).
#[must_use]
pub fn queue_order_timestamp(workload: &Workload, requeuing: RequeuingTimestamp, gates: Gates) -> Time {
    let all = &workload.status.conditions;
    if let Some(evicted) = find_true(all, conditions::EVICTED) {
        let counts = match evicted.reason.as_str() {
            reasons::PODS_READY_TIMEOUT => requeuing == RequeuingTimestamp::Eviction,
            reasons::ADMISSION_CHECK => true,
            _ => false,
        };
        if counts {
            return evicted.last_transition;
        }
    }
    if !gates.enabled(Gate::PrioritySortingWithinCohort) {
        if let Some(preempted) = find_true(all, conditions::PREEMPTED) {
            if preempted.reason == reasons::IN_COHORT_RECLAIM_WHILE_BORROWING {
                // Just behind the workload that preempted it.
                return Time(preempted.last_transition.0.saturating_add(MILLISECOND_NS));
            }
        }
    }
    workload.meta.created
}

/// The priority of the spec, 0 when absent.
#[must_use]
pub fn base_priority(workload: &Workload) -> i32 {
    workload.priority.unwrap_or(0)
}

/// The boost of the annotation; 0 without the gate, without the annotation, and for a value that is no i32.
#[must_use]
pub fn priority_boost(workload: &Workload, gates: Gates) -> i32 {
    if !gates.enabled(Gate::PriorityBoost) {
        return 0;
    }
    workload.meta.details.annotations.get(PRIORITY_BOOST).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Priority plus boost (rules/04 §2).
#[must_use]
pub fn effective_priority(workload: &Workload, gates: Gates) -> i64 {
    i64::from(base_priority(workload)) + i64::from(priority_boost(workload, gates))
}

/// `spec.active`, true when absent.
#[must_use]
pub fn is_active(workload: &Workload) -> bool {
    workload.active.unwrap_or(true)
}

/// Does it hold quota, by its condition?
#[must_use]
pub fn has_quota_reservation(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::QUOTA_RESERVED)
}

/// Is it admitted, by its condition?
#[must_use]
pub fn is_admitted(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::ADMITTED)
}

/// Is it evicted, by its condition?
#[must_use]
pub fn is_evicted(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::EVICTED)
}

/// Is it finished, by its condition?
#[must_use]
pub fn is_finished(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::FINISHED)
}

/// Does its usage count: reserved, not finished, active?
#[must_use]
pub fn has_active_quota_reservation(workload: &Workload) -> bool {
    has_quota_reservation(workload) && !is_finished(workload) && is_active(workload)
}

/// Was its quota given back on purpose, not to be queued again (QuotaReserved False, `OnHold`)?
#[must_use]
pub fn is_on_hold(workload: &Workload) -> bool {
    find_false(&workload.status.conditions, conditions::QUOTA_RESERVED).is_some_and(|c| c.reason == reasons::ON_HOLD)
}

/// Who gates its admission (gate AdmissionGatedBy); `None` when nobody does.
#[must_use]
pub fn admission_gated_by(workload: &Workload, gates: Gates) -> Option<&str> {
    let value = workload.meta.details.annotations.get(ADMISSION_GATED_BY).filter(|v| !v.is_empty())?;
    gates.enabled(Gate::AdmissionGatedBy).then_some(value.as_str())
}

/// May it be queued, as far as the workload itself goes (rules/05 §2)? Its LocalQueue is the caller's question.
#[must_use]
pub fn is_admissible(workload: &Workload, gates: Gates) -> bool {
    is_active(workload)
        && !is_finished(workload)
        && !has_quota_reservation(workload)
        && admission_gated_by(workload, gates).is_none()
        && !is_on_hold(workload)
        && !is_true(&workload.status.conditions, conditions::WAITING_FOR_REPLACEMENT_PODS)
}

/// May it leave the inadmissible set by now (rules/05 §2.1 rule 3)?
#[must_use]
pub fn backoff_expired(workload: &Workload, now: Time) -> bool {
    let held = find_false(&workload.status.conditions, conditions::REQUEUED).is_some();
    !held && requeue_at(workload).is_none_or(|at| now >= at)
}

/// `status.requeueState.requeueAt`.
#[must_use]
pub fn requeue_at(workload: &Workload) -> Option<Time> {
    workload.status.requeue_state.as_ref().and_then(|s| s.requeue_at)
}

/// How long it has been waiting for quota, in nanoseconds: since condition Requeued last changed, else since its
/// creation (rules/05 §6.6). Saturates.
#[must_use]
pub fn queued_wait(workload: &Workload, now: Time) -> i64 {
    let start =
        find(&workload.status.conditions, conditions::REQUEUED).map_or(workload.meta.created, |c| c.last_transition);
    now.since(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::condition_type::Known;
    use crate::objects::conditions::condition;
    use crate::objects::{Condition, ConditionStatus, RequeueState};

    fn workload(kind: Known, status: ConditionStatus, reason: &'static str) -> Workload {
        let mut w = Workload::default();
        w.meta.created = Time(10);
        w.status.conditions.push(condition(kind, status, reason, "", Time(500), 0));
        w
    }

    fn off(gate: Gate) -> Gates {
        Gates::default().with(gate, false)
    }

    #[test]
    fn the_cause_of_an_eviction_decides_the_place_in_the_queue() {
        use RequeuingTimestamp::{Creation, Eviction};
        for (kind, reason, by_eviction, by_creation) in [
            (conditions::EVICTED, reasons::PODS_READY_TIMEOUT, 500, 10),
            (conditions::EVICTED, reasons::ADMISSION_CHECK, 500, 500),
            (conditions::EVICTED, reasons::PREEMPTED, 10, 10),
            (conditions::PREEMPTED, reasons::IN_COHORT_RECLAIM_WHILE_BORROWING, 10, 10),
        ] {
            let w = workload(kind, ConditionStatus::True, reason);
            let gates = Gates::default();
            assert_eq!(queue_order_timestamp(&w, Eviction, gates), Time(by_eviction), "{reason}");
            assert_eq!(queue_order_timestamp(&w, Creation, gates), Time(by_creation), "{reason}");
        }
        let over = workload(conditions::EVICTED, ConditionStatus::False, reasons::ADMISSION_CHECK);
        assert_eq!(queue_order_timestamp(&over, Eviction, Gates::default()), Time(10));
    }

    #[test]
    fn without_priority_sorting_a_reclaimed_borrower_follows_its_preemptor() {
        let w = workload(conditions::PREEMPTED, ConditionStatus::True, reasons::IN_COHORT_RECLAIM_WHILE_BORROWING);
        let ts = queue_order_timestamp(&w, RequeuingTimestamp::Eviction, off(Gate::PrioritySortingWithinCohort));
        assert_eq!(ts, Time(1_000_500));
    }

    #[test]
    fn the_boost_counts_with_its_gate_and_if_it_is_a_number() {
        let on = Gates::default().with(Gate::PriorityBoost, true);
        for (text, expected) in [("5", 15), ("-5", 5), ("+5", 15), ("", 10), ("x", 10), ("2147483648", 10)] {
            let mut w = Workload { priority: Some(10), ..Workload::default() };
            w.meta.details.annotations.insert(PRIORITY_BOOST.to_owned(), text.to_owned());
            assert_eq!(effective_priority(&w, on), expected, "{text}");
            assert_eq!(effective_priority(&w, Gates::default()), 10, "{text}");
        }
    }

    #[test]
    fn who_may_be_queued() {
        use ConditionStatus::{False, True};
        let gates = Gates::default();
        assert!(is_admissible(&Workload::default(), gates));
        assert!(!is_admissible(&Workload { active: Some(false), ..Workload::default() }, gates));
        for (kind, status, reason, expected) in [
            (conditions::FINISHED, True, "Succeeded", false),
            (conditions::QUOTA_RESERVED, True, "QuotaReserved", false),
            (conditions::QUOTA_RESERVED, False, "Pending", true),
            (conditions::QUOTA_RESERVED, False, reasons::ON_HOLD, false),
            (conditions::WAITING_FOR_REPLACEMENT_PODS, True, "", false),
            (conditions::WAITING_FOR_REPLACEMENT_PODS, False, "", true),
        ] {
            assert_eq!(is_admissible(&workload(kind, status, reason), gates), expected, "{kind:?} {reason}");
        }
        let mut gated = Workload::default();
        gated.meta.details.annotations.insert(ADMISSION_GATED_BY.to_owned(), "me".to_owned());
        assert!(!is_admissible(&gated, gates));
        assert!(is_admissible(&gated, off(Gate::AdmissionGatedBy)));
        gated.meta.details.annotations.insert(ADMISSION_GATED_BY.to_owned(), String::new());
        assert!(is_admissible(&gated, gates));
    }

    #[test]
    fn backoff_ends_at_its_time_unless_requeued_is_false() {
        let mut w = Workload::default();
        assert!(backoff_expired(&w, Time(0)));
        w.status.requeue_state = Some(RequeueState { count: Some(1), requeue_at: Some(Time(100)) });
        assert!(!backoff_expired(&w, Time(99)));
        assert!(backoff_expired(&w, Time(100)));
        let held =
            Condition { kind: conditions::REQUEUED.into(), status: ConditionStatus::False, ..Condition::default() };
        w.status.conditions.push(held);
        assert!(!backoff_expired(&w, Time(100)));
    }

    #[test]
    fn waiting_starts_at_creation_and_again_when_requeued() {
        let mut w = Workload::default();
        w.meta.created = Time(10);
        assert_eq!(queued_wait(&w, Time(50)), 40);
        w.status.conditions.push(condition(conditions::REQUEUED, ConditionStatus::False, "", "", Time(45), 0));
        assert_eq!(queued_wait(&w, Time(50)), 5);
        w.status.conditions[0].last_transition = Time::ABSENT;
        assert_eq!(queued_wait(&w, Time(50)), i64::MAX);
    }
}
