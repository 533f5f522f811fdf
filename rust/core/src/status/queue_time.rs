//! The timestamp that orders a workload in its queue (rules/05 §1).

use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{self, find_true};
use crate::objects::config::RequeuingTimestamp;
use crate::objects::{Time, Workload};
use crate::status::reasons;

const MILLISECOND_NS: i64 = 1_000_000;

/// The timestamp that orders the workload in its queue (rules/05 §1). `takes_turns`: is a preempted one behind those that
/// wait already (rules/13 §4)?
#[must_use]
pub fn queue_order_timestamp(
    workload: &Workload,
    requeuing: RequeuingTimestamp,
    gates: Gates,
    takes_turns: bool,
) -> Time {
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
    if !gates.enabled(Gate::PrioritySortingWithinCohort)
        && let Some(preempted) = find_true(all, conditions::PREEMPTED)
        && preempted.reason == reasons::IN_COHORT_RECLAIM_WHILE_BORROWING
    {
        // Just after the workload that preempted it.
        return Time(preempted.last_transition.0.saturating_add(MILLISECOND_NS));
    }
    if takes_turns
        && let Some(preempted) = find_true(all, conditions::PREEMPTED)
        && preempted.reason == reasons::IN_CLUSTER_QUEUE
    {
        return preempted.last_transition;
    }
    workload.meta.created
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ConditionStatus;
    use crate::objects::condition_type::Known;
    use crate::objects::conditions::condition;

    fn workload(kind: Known, status: ConditionStatus, reason: &'static str) -> Workload {
        let mut w = Workload::default();
        w.meta.created = Time(10);
        w.status.conditions.set(condition(kind, status, reason, "", Time(500), 0));
        w
    }

    #[test]
    fn the_eviction_reason_decides_the_queue_order_timestamp() {
        use RequeuingTimestamp::{Creation, Eviction};
        for (kind, reason, by_eviction, by_creation) in [
            (conditions::EVICTED, reasons::PODS_READY_TIMEOUT, 500, 10),
            (conditions::EVICTED, reasons::ADMISSION_CHECK, 500, 500),
            (conditions::EVICTED, reasons::PREEMPTED, 10, 10),
            (conditions::PREEMPTED, reasons::IN_COHORT_RECLAIM_WHILE_BORROWING, 10, 10),
        ] {
            let w = workload(kind, ConditionStatus::True, reason);
            let gates = Gates::default();
            assert_eq!(queue_order_timestamp(&w, Eviction, gates, false), Time(by_eviction), "{reason}");
            assert_eq!(queue_order_timestamp(&w, Creation, gates, false), Time(by_creation), "{reason}");
        }
        let over = workload(conditions::EVICTED, ConditionStatus::False, reasons::ADMISSION_CHECK);
        assert_eq!(queue_order_timestamp(&over, Eviction, Gates::default(), false), Time(10));
    }

    #[test]
    fn without_priority_sorting_a_reclaimed_borrower_follows_its_preemptor() {
        let w = workload(conditions::PREEMPTED, ConditionStatus::True, reasons::IN_COHORT_RECLAIM_WHILE_BORROWING);
        let gates = Gates::default().with(Gate::PrioritySortingWithinCohort, false);
        assert_eq!(queue_order_timestamp(&w, RequeuingTimestamp::Eviction, gates, false), Time(1_000_500));
    }

    #[test]
    fn where_workloads_take_turns_a_preempted_one_counts_from_its_preemption() {
        for (reason, takes_turns, expected) in [
            (reasons::IN_CLUSTER_QUEUE, true, 500),
            (reasons::IN_CLUSTER_QUEUE, false, 10),
            (reasons::IN_COHORT_RECLAMATION, true, 10),
        ] {
            let w = workload(conditions::PREEMPTED, ConditionStatus::True, reason);
            let time = queue_order_timestamp(&w, RequeuingTimestamp::Eviction, Gates::default(), takes_turns);
            assert_eq!(time, Time(expected), "{reason}");
        }
    }
}
