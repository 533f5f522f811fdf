//! Whether the pods of an admitted workload become ready in time, and the consequences if not (rules/07 §6, rules/10
//! §4.4).

use crate::objects::conditions::{self, find, find_true};
use crate::objects::config::WaitForPodsReady;
use crate::objects::{Condition, ConditionStatus, Time, Workload};
use crate::status::reasons;
use crate::status::reservation::set;
use crate::status::stage::is_admitted;

const SECOND_NS: i64 = 1_000_000_000;

/// Writes condition PodsReady as reported by the job; returns whether it changed.
pub fn note_readiness(workload: &mut Workload, are_ready: bool, config: Option<&WaitForPodsReady>, now: Time) -> bool {
    let recorded = find(&workload.status.conditions, conditions::PODS_READY);
    let reason = recorded.map_or("", |it| it.reason.as_str());
    let was_ready = recorded.is_some_and(|it| it.status == ConditionStatus::True);
    let (status, reason, message) = match (is_admitted(workload), are_ready) {
        (true, true) => {
            let recovers = matches!(reason, reasons::WAIT_FOR_RECOVERY | reasons::RECOVERED);
            let reason = if recovers { reasons::RECOVERED } else { reasons::STARTED };
            (ConditionStatus::True, reason, "All pods reached readiness and the workload is running")
        }
        (true, false) if was_ready || reason == reasons::WAIT_FOR_RECOVERY => {
            (ConditionStatus::False, reasons::WAIT_FOR_RECOVERY, "At least one pod has failed, waiting for recovery")
        }
        (true, false) if config.is_some_and(|it| waits_for_nodes(workload, it)) => {
            (ConditionStatus::False, reasons::WAIT_FOR_SCHEDULING, "Not all pods are ready or succeeded")
        }
        _ => (ConditionStatus::False, reasons::WAIT_FOR_START, "Not all pods are ready or succeeded"),
    };
    if recorded.is_some_and(|it| it.status == status && it.reason == reason) {
        return false;
    }
    set(workload, conditions::PODS_READY, status, reason, message, now)
}

/// Writes condition PodsScheduled as it is seen of the pods of an admitted workload; returns whether it changed. Once
/// all had nodes, that stays so until the next admission.
pub fn note_scheduling(workload: &mut Workload, are_scheduled: bool, now: Time) -> bool {
    let Some(admitted) = find_true(&workload.status.conditions, conditions::ADMITTED) else {
        let had = find_true(&workload.status.conditions, conditions::PODS_SCHEDULED).is_some();
        let message = "At least one required pod is not scheduled";
        let (kind, reason) = (conditions::PODS_SCHEDULED, reasons::WAIT_FOR_START);
        return had && set(workload, kind, ConditionStatus::False, reason, message, now);
    };
    let admitted = admitted.last_transition;
    let recorded = find(&workload.status.conditions, conditions::PODS_SCHEDULED);
    let current = recorded.filter(|it| it.last_transition > admitted).map(|it| it.status);
    let status = if are_scheduled { ConditionStatus::True } else { ConditionStatus::False };
    if current == Some(ConditionStatus::True) || current == Some(status) {
        return false;
    }
    let (reason, message) = match are_scheduled {
        true => (reasons::ALL_REQUIRED_PODS_SCHEDULED, "All required pods are scheduled"),
        false => (reasons::WAIT_FOR_SCHEDULING, "At least one required pod is not scheduled"),
    };
    // Times are whole seconds: what is seen of this admission is later than it by one.
    let at = Time(now.0.max(admitted.0.saturating_add(SECOND_NS)));
    workload.status.conditions.remove(conditions::PODS_SCHEDULED);
    set(workload, conditions::PODS_SCHEDULED, status, reason, message, at)
}

/// Has a pod been without a node since the workload was admitted, as far as that is followed?
fn waits_for_nodes(workload: &Workload, config: &WaitForPodsReady) -> bool {
    let conditions = &workload.status.conditions;
    let seen = find(conditions, conditions::PODS_SCHEDULED)
        .filter(|it| it.status == ConditionStatus::False && it.reason == reasons::WAIT_FOR_SCHEDULING);
    let admitted = find_true(conditions, conditions::ADMITTED);
    let is_current = |(seen, admitted): (&Condition, &Condition)| seen.last_transition > admitted.last_transition;
    config.unscheduled_timeout_ns.is_some() && seen.zip(admitted).is_some_and(is_current)
}

/// The deadline for the pods of an admitted workload to become ready, and the reason for waiting; `None`: they are
/// ready, or there is none.
#[must_use]
pub fn deadline(workload: &Workload, config: &WaitForPodsReady) -> Option<(&'static str, Time)> {
    let admitted = find_true(&workload.status.conditions, conditions::ADMITTED)?;
    let recorded = find(&workload.status.conditions, conditions::PODS_READY);
    if recorded.is_some_and(|it| it.status == ConditionStatus::True) {
        return None;
    }
    let (cause, since, timeout_ns) = match recorded.map(|it| (it.reason.as_str(), it.last_transition)) {
        None | Some((reasons::WAIT_FOR_START | reasons::PODS_READY, _)) => {
            (reasons::WAIT_FOR_START, admitted.last_transition, config.timeout_ns)
        }
        Some((reasons::WAIT_FOR_SCHEDULING, _)) => {
            let cause = match config.unscheduled_timeout_ns {
                Some(_) => reasons::WAIT_FOR_SCHEDULING,
                None => reasons::WAIT_FOR_START,
            };
            let unscheduled = config.unscheduled_timeout_ns.filter(|_| waits_for_nodes(workload, config));
            (cause, admitted.last_transition, unscheduled.unwrap_or(config.timeout_ns))
        }
        Some((reasons::WAIT_FOR_RECOVERY, since)) => (reasons::WAIT_FOR_RECOVERY, since, config.recovery_timeout_ns?),
        Some(_) => return None,
    };
    Some((cause, Time(since.0.saturating_add(timeout_ns))))
}

/// Has it reached the limit of retries?
#[must_use]
pub fn is_out_of_retries(workload: &Workload, config: &WaitForPodsReady) -> bool {
    config.backoff_limit_count.is_some_and(|limit| retries(workload) >= limit)
}

/// Counts another retry and sets its time: the base, doubled with each retry up to the maximum. Kueue adds up to 0.01 %
/// at random, which is left out here.
pub fn back_off(workload: &mut Workload, config: &WaitForPodsReady, now: Time) {
    let count = retries(workload).saturating_add(1);
    let base = i64::from(config.backoff_base_seconds);
    let maximum = if config.backoff_max_seconds == 0 { i64::MAX } else { i64::from(config.backoff_max_seconds) };
    let seconds = match u32::try_from(count - 1) {
        // The maximum does not apply to the first retry.
        Ok(0) | Err(_) => base,
        Ok(doublings) => base.saturating_mul(2_i64.saturating_pow(doublings)).min(maximum),
    };
    let at = now.0.saturating_add(seconds.saturating_mul(SECOND_NS));
    // Times in a status are whole seconds.
    let at = Time(at - at.rem_euclid(SECOND_NS));
    let state = workload.status.rare.requeue_state.get_or_insert_default();
    state.count = Some(count);
    state.requeue_at = state.requeue_at.max(Some(at));
}

fn retries(workload: &Workload) -> i32 {
    workload.status.rare.requeue_state.as_ref().and_then(|state| state.count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::conditions::{ADMITTED, PODS_READY, condition};
    use crate::objects::config::RequeuingTimestamp;

    fn config(base: i32, max: i32) -> WaitForPodsReady {
        WaitForPodsReady {
            timeout_ns: 10,
            recovery_timeout_ns: Some(20),
            unscheduled_timeout_ns: None,
            block_admission: false,
            requeuing_timestamp: RequeuingTimestamp::Eviction,
            backoff_limit_count: Some(2),
            backoff_base_seconds: base,
            backoff_max_seconds: max,
        }
    }

    fn admitted_at(time: i64) -> Workload {
        let mut workload = Workload::default();
        workload.status.conditions.set(condition(ADMITTED, ConditionStatus::True, "", "", Time(time), 0));
        workload
    }

    fn recorded(workload: &Workload) -> (ConditionStatus, &str) {
        let condition = find(&workload.status.conditions, PODS_READY).expect("PodsReady is set");
        (condition.status, &condition.reason)
    }

    #[test]
    fn the_pods_ready_reason_distinguishes_start_from_recovery() {
        use ConditionStatus::{False, True};
        let mut workload = admitted_at(1);
        for (ready, expected, new) in [
            (false, (False, "WaitForStart"), true),
            (false, (False, "WaitForStart"), false),
            (true, (True, "Started"), true),
            (false, (False, "WaitForRecovery"), true),
            (false, (False, "WaitForRecovery"), false),
            (true, (True, "Recovered"), true),
            (true, (True, "Recovered"), false),
            (false, (False, "WaitForRecovery"), true),
        ] {
            assert_eq!(note_readiness(&mut workload, ready, None, Time(2)), new, "{expected:?}");
            assert_eq!(recorded(&workload), expected);
        }
        workload.status.conditions.remove(ADMITTED);
        assert!(note_readiness(&mut workload, true, None, Time(3)), "it is not admitted any more");
        assert_eq!(recorded(&workload), (False, "WaitForStart"));
    }

    #[test]
    fn a_start_counts_from_the_admission_and_a_recovery_from_the_failure() {
        let config = config(1, 1);
        let mut workload = admitted_at(1);
        assert_eq!(deadline(&workload, &config), Some(("WaitForStart", Time(11))));
        note_readiness(&mut workload, true, None, Time(5));
        assert_eq!(deadline(&workload, &config), None);
        note_readiness(&mut workload, false, None, Time(7));
        assert_eq!(deadline(&workload, &config), Some(("WaitForRecovery", Time(27))));
        assert_eq!(deadline(&workload, &WaitForPodsReady { recovery_timeout_ns: None, ..config.clone() }), None);
        assert_eq!(deadline(&Workload::default(), &config), None);
    }

    #[test]
    fn a_backoff_doubles_up_to_its_maximum_and_never_comes_earlier() {
        let seconds = |base, max| -> Vec<i64> {
            let mut workload = Workload::default();
            (0..4)
                .map(|_| {
                    back_off(&mut workload, &config(base, max), Time(0));
                    let state = workload.status.rare.requeue_state.as_mut().expect("set");
                    state.requeue_at.take().expect("set").0 / SECOND_NS
                })
                .collect()
        };
        assert_eq!(seconds(5, 12), [5, 10, 12, 12]);
        assert_eq!(seconds(60, 20), [60, 20, 20, 20]);
        assert_eq!(seconds(0, 20), [0, 0, 0, 0]);
        assert_eq!(seconds(i32::MAX, 0)[3], i64::MAX / SECOND_NS, "it saturates");
        let mut workload = Workload::default();
        workload.status.rare.requeue_state.get_or_insert_default().count = Some(63);
        back_off(&mut workload, &config(20, 3600), Time(0));
        let state = workload.status.rare.requeue_state.clone().expect("set");
        assert_eq!((state.count, state.requeue_at), (Some(64), Some(Time(3600 * SECOND_NS))), "no shift goes too far");

        let mut workload = Workload::default();
        workload.status.rare.requeue_state.get_or_insert_default().requeue_at = Some(Time(9 * SECOND_NS));
        back_off(&mut workload, &config(1, 1), Time(0));
        let state = workload.status.rare.requeue_state.clone().expect("set");
        assert_eq!((state.count, state.requeue_at), (Some(1), Some(Time(9 * SECOND_NS))));
    }

    #[test]
    fn retries_are_limited() {
        let mut workload = Workload::default();
        for out in [false, false, true] {
            assert_eq!(is_out_of_retries(&workload, &config(1, 1)), out);
            back_off(&mut workload, &config(1, 1), Time(0));
        }
    }

    #[test]
    fn pods_without_a_node_have_a_deadline_of_their_own() {
        let at = |seconds: i64| Time(seconds * SECOND_NS);
        let config = WaitForPodsReady {
            timeout_ns: 600 * SECOND_NS,
            unscheduled_timeout_ns: Some(120 * SECOND_NS),
            ..config(1, 1)
        };
        let plain = WaitForPodsReady { unscheduled_timeout_ns: None, ..config.clone() };
        let mut workload = admitted_at(0);
        assert!(note_scheduling(&mut workload, false, at(0)));
        assert!(!note_scheduling(&mut workload, false, at(5)));
        assert!(note_readiness(&mut workload, false, Some(&config), at(1)));
        assert_eq!(recorded(&workload), (ConditionStatus::False, "WaitForScheduling"));
        assert_eq!(deadline(&workload, &config), Some(("WaitForScheduling", at(120))));
        assert_eq!(deadline(&workload, &plain), Some(("WaitForStart", at(600))));
        assert!(note_scheduling(&mut workload, true, at(60)));
        assert_eq!(
            deadline(&workload, &config),
            Some(("WaitForScheduling", at(600))),
            "the job has not been asked yet"
        );
        assert!(note_readiness(&mut workload, false, Some(&config), at(60)));
        assert_eq!(deadline(&workload, &config), Some(("WaitForStart", at(600))));
        assert!(!note_scheduling(&mut workload, false, at(70)), "pods that had nodes once");

        // It loses its admission, and gets another one: what was seen before does not count.
        workload.status.conditions.remove(ADMITTED);
        assert!(note_scheduling(&mut workload, false, at(80)));
        workload.status.conditions.set(condition(ADMITTED, ConditionStatus::True, "", "", at(90), 0));
        note_readiness(&mut workload, false, Some(&config), at(91));
        assert_eq!(recorded(&workload).1, "WaitForStart");
    }
}
