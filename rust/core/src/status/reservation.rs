//! Statuses for reserved and refused quota, and condition Admitted (rules/05 §6.5, §6.6; rules/07 §1).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::gates::{Gate, Gates};
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::objects::condition_type::Known;
use crate::objects::conditions::{self, condition, find, find_true};
use crate::objects::message::Message;
use crate::objects::{Admission, ConditionStatus, PodSetRequest, Time, Workload};
use crate::status::checks::{has_all_checks, has_all_checks_ready};
use crate::status::reasons;
use crate::status::stage::{has_quota_reservation, is_admitted};

const SECOND_NS: i64 = 1_000_000_000;

/// Writes that quota is reserved as in `admission`; returns whether the workload is Admitted now.
///
/// `required_checks` are the checks of its ClusterQueue that apply to the assigned flavors
/// ([`crate::status::checks::required_checks`]). Admitted is written only if all of them are already in the status.
pub(crate) fn reserve_quota(
    workload: &mut Workload,
    admission: Shared<Admission>,
    required_checks: &BTreeSet<String>,
    now: Time,
    gates: Gates,
) -> bool {
    let message = Message::QuotaReserved(admission.cluster_queue.shared());
    let status = &mut *workload.status;
    status.admission = Some(admission);
    status.resource_requests = None;
    if gates.enabled(Gate::TopologyAwareScheduling) && !status.rare.unhealthy_nodes.is_empty() {
        status.rare.unhealthy_nodes.clear();
    }
    status.conditions.reserve_usual();
    set(workload, conditions::QUOTA_RESERVED, ConditionStatus::True, reasons::QUOTA_RESERVED, message, now);
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
/// `resource_requests` are its totals per pod set, unless the status already has them.
pub(crate) fn keep_pending(
    workload: &mut Workload,
    reason: &'static str,
    message: impl Into<Message>,
    resource_requests: Option<Shared<Vec<PodSetRequest>>>,
    now: Time,
    gates: Gates,
) -> bool {
    let reason = reasons::unadmitted(reason, reasons::PENDING, gates);
    let mut changed = unset_quota_reservation(workload, reason, message, now, gates);
    if resource_requests.is_some() {
        workload.status.resource_requests = resource_requests;
        changed = true;
    }
    changed
}

/// Sets QuotaReserved to False with `reason` as given, removes the admission and syncs Admitted; returns whether
/// anything changed.
pub(crate) fn unset_quota_reservation(
    workload: &mut Workload,
    reason: &'static str,
    message: impl Into<Message>,
    now: Time,
    gates: Gates,
) -> bool {
    let mut changed = set(workload, conditions::QUOTA_RESERVED, ConditionStatus::False, reason, message, now);
    if workload.status.admission.is_some() {
        workload.status.admission = None;
        changed = true;
    }
    changed |= sync_admitted(workload, now, gates);
    changed
}

/// Writes that only a closed preemption gate keeps it from preempting; returns whether anything changed.
pub(crate) fn block_on_preemption_gates(workload: &mut Workload, message: impl Into<Message>, now: Time) -> bool {
    let (kind, reason) = (conditions::BLOCKED_ON_PREEMPTION_GATES, reasons::PREEMPTION_GATED);
    set(workload, kind, ConditionStatus::True, reason, message, now)
}

/// Makes condition Admitted follow reservation, checks and delayed topology; returns whether it changed.
///
/// When Admitted goes from True to False, adds the whole seconds since its transition to
/// `accumulatedPastExecutionTimeSeconds`.
pub fn sync_admitted(workload: &mut Workload, now: Time, gates: Gates) -> bool {
    let observability = gates.enabled(Gate::UnadmittedWorkloadsObservability);
    let (status, reason, message) = admitted_state(workload, observability);
    let was_admitted = is_admitted(workload);
    let all = &workload.status.conditions;
    if observability {
        // Adds neither condition to a workload that was never evaluated.
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
pub(crate) fn has_topology_pending(workload: &Workload) -> bool {
    workload.status.admission.as_ref().is_some_and(|admission| admission.pod_set_assignments.wait_for_topology())
}

/// The expected state of Admitted (rules/07 §1): the first row that matches.
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
    let past = workload.status.rare.accumulated_past_execution_time_seconds.unwrap_or(0);
    workload.status.rare.accumulated_past_execution_time_seconds = Some(past.saturating_add(seconds));
}

/// Sets a True condition that quota has made obsolete to False, with its message marked as past.
fn reset_active(workload: &mut Workload, kind: Known, now: Time) {
    let Some(old) = find_true(&workload.status.conditions, kind) else { return };
    let message = Message::Previously(Arc::new(old.message.clone()));
    set(workload, kind, ConditionStatus::False, reasons::QUOTA_RESERVED, message, now);
}

/// Sets one condition with the workload's current generation.
pub(crate) fn set(
    workload: &mut Workload,
    kind: Known,
    status: ConditionStatus,
    reason: impl Into<Text>,
    message: impl Into<Message>,
    now: Time,
) -> bool {
    let new = condition(kind, status, reason, message, now, workload.meta.generation);
    // A retried head mostly stays as it is, and shares its status with others.
    let old = find(&workload.status.conditions, kind);
    if old.is_some_and(|old| conditions::says_the_same(old, &new)) {
        return false;
    }
    workload.status.conditions.put(new);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::conditions::{ADMITTED, EVICTED, PREEMPTED, QUOTA_RESERVED};
    use crate::objects::{AdmissionCheckState, CheckState, Condition, PodSetAssignment};

    const SECOND: i64 = SECOND_NS;

    fn gates(observability: bool) -> Gates {
        Gates::default().with(Gate::UnadmittedWorkloadsObservability, observability)
    }

    fn admission() -> Shared<Admission> {
        Admission { cluster_queue: "cq".into(), ..Default::default() }.into()
    }

    fn check(name: &str, state: CheckState) -> AdmissionCheckState {
        AdmissionCheckState { name: name.to_owned(), state, ..Default::default() }
    }

    fn with(conditions: &[(Known, ConditionStatus)], checks: &[CheckState]) -> Workload {
        let mut w = Workload::default();
        w.meta.generation = 3;
        for (kind, status) in conditions {
            w.status.conditions.set(condition(*kind, *status, "Old", "old", Time(0), 1));
        }
        w.status.rare.admission_checks = checks.iter().map(|s| check("c", *s)).collect();
        w
    }

    fn admitted_at(time: Time) -> Workload {
        let mut w = Workload::default();
        w.status.conditions.set(condition(ADMITTED, ConditionStatus::True, "Old", "old", time, 1));
        w
    }

    fn get(w: &Workload, kind: Known) -> &Condition {
        find(&w.status.conditions, kind).expect("the condition is set")
    }

    #[test]
    fn a_reservation_without_required_checks_admits_at_once() {
        let mut w = with(&[(QUOTA_RESERVED, ConditionStatus::False)], &[]);
        w.status.resource_requests = Some(vec![PodSetRequest::default()].into());
        assert!(reserve_quota(&mut w, admission(), &BTreeSet::new(), Time(SECOND), gates(true)));
        let expected = |kind, reason, message| condition(kind, ConditionStatus::True, reason, message, Time(SECOND), 3);
        assert_eq!(
            *w.status.conditions,
            [
                expected(QUOTA_RESERVED, "QuotaReserved", "Quota reserved in ClusterQueue cq"),
                expected(ADMITTED, "Admitted", "The workload is admitted"),
            ]
        );
        assert_eq!(w.status.admission, Some(admission()));
        assert!(w.status.resource_requests.is_none());
    }

    #[test]
    fn a_reservation_clears_unhealthy_nodes_only_with_topology_aware_scheduling() {
        for counts in [true, false] {
            let mut w = with(&[], &[]);
            w.status.rare.unhealthy_nodes = vec!["node".to_owned()];
            let gates = gates(true).with(Gate::TopologyAwareScheduling, counts);
            reserve_quota(&mut w, admission(), &BTreeSet::new(), Time(SECOND), gates);
            assert_eq!(w.status.rare.unhealthy_nodes.is_empty(), counts);
        }
    }

    #[test]
    fn a_reservation_leaves_admitted_unset_until_required_checks_are_listed() {
        let required: BTreeSet<String> = ["c".to_owned()].into();
        let mut w = with(&[], &[]);
        assert!(!reserve_quota(&mut w, admission(), &required, Time(0), gates(true)));
        assert!(find(&w.status.conditions, ADMITTED).is_none());
        let mut w = with(&[], &[CheckState::Pending]);
        assert!(!reserve_quota(&mut w, admission(), &required, Time(0), gates(true)));
        assert_eq!(get(&w, ADMITTED).reason, "UnsatisfiedAdmissionChecks");
    }

    #[test]
    fn a_reservation_resets_conditions_that_are_true() {
        let mut w = with(&[(EVICTED, ConditionStatus::True), (PREEMPTED, ConditionStatus::False)], &[]);
        reserve_quota(&mut w, admission(), &BTreeSet::new(), Time(SECOND), gates(true));
        let reset = condition(EVICTED, ConditionStatus::False, "QuotaReserved", "Previously: old", Time(SECOND), 3);
        assert_eq!(get(&w, EVICTED), &reset);
        assert_eq!(get(&w, PREEMPTED).reason, "Old");
    }

    #[test]
    fn pending_is_written_once() {
        let requests = || Shared::from(vec![PodSetRequest { name: "main".to_owned(), ..Default::default() }]);
        for (observability, reason) in [(true, "WaitingForQuota"), (false, "Pending")] {
            let mut w = with(&[], &[]);
            let mut keep = |now, requests| {
                let g = gates(observability);
                keep_pending(&mut w, reasons::WAITING_FOR_QUOTA, "no room", requests, Time(now), g)
            };
            assert!(keep(1, Some(requests())));
            assert!(!keep(2, None));
            let expected = condition(QUOTA_RESERVED, ConditionStatus::False, reason, "no room", Time(1), 3);
            assert_eq!(get(&w, QUOTA_RESERVED), &expected);
            assert_eq!(w.status.resource_requests, Some(requests()));
            // The older form never adds an Admitted condition that was absent.
            assert_eq!(find(&w.status.conditions, ADMITTED).is_some(), observability);
        }
    }

    #[test]
    fn losing_the_reservation_clears_admission_and_admitted() {
        let mut w = with(&[(QUOTA_RESERVED, ConditionStatus::True), (ADMITTED, ConditionStatus::True)], &[]);
        w.status.admission = Some(admission());
        w.status.rare.accumulated_past_execution_time_seconds = Some(5);
        assert!(unset_quota_reservation(&mut w, "R", "m", Time(2 * SECOND + 1), gates(true)));
        assert_eq!(w.status.admission, None);
        assert_eq!(
            (get(&w, ADMITTED).status, get(&w, ADMITTED).reason.as_str()),
            (ConditionStatus::False, "NoReservation")
        );
        assert_eq!(w.status.rare.accumulated_past_execution_time_seconds, Some(7));
    }

    #[test]
    fn execution_time_saturates_at_both_ends() {
        for (admitted, now, expected) in [(0, i64::MAX, i32::MAX), (i64::MAX, 0, i32::MIN), (SECOND, 0, -1)] {
            let mut w = admitted_at(Time(admitted));
            sync_admitted(&mut w, Time(now), gates(true));
            assert_eq!(w.status.rare.accumulated_past_execution_time_seconds, Some(expected));
        }
    }

    #[test]
    fn a_closed_gate_is_reported_once() {
        let mut w = with(&[], &[]);
        assert!(block_on_preemption_gates(&mut w, "gated", Time(1)));
        assert!(!block_on_preemption_gates(&mut w, "gated", Time(2)));
    }

    #[test]
    fn admitted_follows_reservation_checks_and_topology() {
        use CheckState::{Pending, Ready};
        // (quota, checks, topology pending) -> (reason with observability, reason without)
        let table: [(bool, &[CheckState], bool, &str, &str); 6] = [
            (true, &[], false, "Admitted", "Admitted"),
            (true, &[Ready], false, "Admitted", "Admitted"),
            (true, &[Ready, Pending], true, "UnsatisfiedAdmissionChecks", "UnsatisfiedChecks"),
            (true, &[Ready], true, "PendingDelayedTopologyRequests", "PendingDelayedTopologyRequests"),
            (false, &[Ready], false, "NoReservation", "NoReservation"),
            (false, &[Pending], false, "NoReservation", "NoReservationUnsatisfiedChecks"),
        ];
        for (quota, checks, topology, granular, older) in table {
            for (observability, reason) in [(true, granular), (false, older)] {
                let admitted = reason == "Admitted";
                // Start from the opposite state, so that there is something to write.
                let before = if admitted { ConditionStatus::False } else { ConditionStatus::True };
                let quota = if quota { ConditionStatus::True } else { ConditionStatus::False };
                let mut w = with(&[(QUOTA_RESERVED, quota), (ADMITTED, before)], checks);
                let delayed = if topology { "Pending" } else { "" };
                let pod_set = PodSetAssignment { delayed_topology_request: delayed.to_owned(), ..Default::default() };
                w.status.admission =
                    Some(Admission { pod_set_assignments: vec![pod_set].into(), ..Admission::default() }.into());
                assert!(sync_admitted(&mut w, Time(SECOND), gates(observability)));
                assert_eq!((get(&w, ADMITTED).reason.as_str(), is_admitted(&w)), (reason, admitted));
            }
        }
    }

    #[test]
    fn admitted_false_gets_a_new_reason_only_with_observability() {
        for (observability, reason) in [(true, "NoReservation"), (false, "Old")] {
            let mut w = with(&[(ADMITTED, ConditionStatus::False)], &[]);
            assert_eq!(sync_admitted(&mut w, Time(SECOND), gates(observability)), observability);
            assert_eq!((get(&w, ADMITTED).reason.as_str(), get(&w, ADMITTED).last_transition), (reason, Time(0)));
        }
    }

    #[test]
    fn admitted_false_is_created_only_with_explicit_status() {
        let explicit = gates(true).with(Gate::UnadmittedWorkloadsExplicitStatus, true);
        assert!(!sync_admitted(&mut with(&[], &[]), Time(0), gates(true)));
        assert!(!sync_admitted(&mut with(&[], &[]), Time(0), gates(false)));
        assert!(sync_admitted(&mut with(&[], &[]), Time(0), explicit));
    }

    #[test]
    fn an_absent_admission_time_saturates_execution_time() {
        let mut w = admitted_at(Time::ABSENT);
        sync_admitted(&mut w, Time(SECOND), gates(true));
        assert_eq!(w.status.rare.accumulated_past_execution_time_seconds, Some(i32::MAX));
    }
}
