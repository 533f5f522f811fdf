//! Which workloads may be queued (rules/05 §2).

use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{self, find, find_false, is_true};
use crate::objects::{Time, Workload, WorkloadStatus};
use crate::status::stage::{has_quota_reservation, is_active, is_finished, is_on_hold};

/// Annotation that keeps a workload out of the queue while it is not empty.
pub(crate) const ADMISSION_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";

/// The value that gates its admission (gate AdmissionGatedBy); `None` if it is not gated.
#[must_use]
pub(crate) fn admission_gated_by(workload: &Workload, gates: Gates) -> Option<&str> {
    let value = workload.meta.details.annotations.get(ADMISSION_GATED_BY).filter(|v| !v.is_empty())?;
    gates.enabled(Gate::AdmissionGatedBy).then_some(value.as_str())
}

/// May the workload itself be queued (rules/05 §2)? The caller checks its LocalQueue.
#[must_use]
pub(crate) fn is_admissible(workload: &Workload, gates: Gates) -> bool {
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
    workload.status.rare.requeue_state.as_ref().and_then(|s| s.requeue_at)
}

/// How long it has waited for quota, in nanoseconds: since condition Requeued last changed, else since its creation
/// (rules/05 §6.6). Saturates.
#[must_use]
pub(crate) fn queued_wait(workload: &Workload, now: Time) -> i64 {
    let start =
        find(&workload.status.conditions, conditions::REQUEUED).map_or(workload.meta.created, |c| c.last_transition);
    now.since(start)
}

/// Is any preemption gate of a spec closed (rules/05 §6.4 step 5)?
pub(crate) fn has_closed_preemption_gate(gates: &[String], status: &WorkloadStatus) -> bool {
    let is_open =
        |name: &String| status.rare.preemption_gates.iter().any(|gate| gate.name == *name && gate.position == "Open");
    !gates.iter().all(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::condition_type::Known;
    use crate::objects::conditions::condition;
    use crate::objects::{Condition, ConditionStatus, RequeueState};
    use crate::status::reasons;

    fn workload(kind: Known, status: ConditionStatus, reason: &'static str) -> Workload {
        let mut w = Workload::default();
        w.meta.created = Time(10);
        w.status.conditions.set(condition(kind, status, reason, "", Time(500), 0));
        w
    }

    fn off(gate: Gate) -> Gates {
        Gates::default().with(gate, false)
    }

    #[test]
    fn only_unfinished_active_ungated_workloads_without_quota_are_admissible() {
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
    fn a_backoff_ends_at_its_time_unless_requeued_is_false() {
        let mut w = Workload::default();
        assert!(backoff_expired(&w, Time(0)));
        w.status.rare.requeue_state = Some(RequeueState { count: Some(1), requeue_at: Some(Time(100)) });
        assert!(!backoff_expired(&w, Time(99)));
        assert!(backoff_expired(&w, Time(100)));
        let held =
            Condition { kind: conditions::REQUEUED.into(), status: ConditionStatus::False, ..Condition::default() };
        w.status.conditions.set(held);
        assert!(!backoff_expired(&w, Time(100)));
    }

    #[test]
    fn the_queued_wait_starts_at_creation_and_restarts_on_requeue() {
        let mut w = Workload::default();
        w.meta.created = Time(10);
        assert_eq!(queued_wait(&w, Time(50)), 40);
        w.status.conditions.set(condition(conditions::REQUEUED, ConditionStatus::False, "", "", Time(45), 0));
        assert_eq!(queued_wait(&w, Time(50)), 5);
        w.status.conditions.set(condition(conditions::REQUEUED, ConditionStatus::True, "", "", Time::ABSENT, 0));
        assert_eq!(queued_wait(&w, Time(50)), i64::MAX);
    }
}
