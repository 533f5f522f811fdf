//! Whether the pods of an admitted workload become ready in time, and the consequences if not (rules/07 §6, rules/10
//! §4.4).

use crate::objects::conditions::{self, find, find_true};
use crate::objects::config::WaitForPodsReady;
use crate::objects::{ConditionStatus, Time, Workload};
use crate::status::reasons;
use crate::status::reservation::set;
use crate::status::stage::is_admitted;

const SECOND_NS: i64 = 1_000_000_000;

/// Writes condition PodsReady as reported by the job; returns whether it changed.
pub fn note_readiness(workload: &mut Workload, are_ready: bool, now: Time) -> bool {
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
        _ => (ConditionStatus::False, reasons::WAIT_FOR_START, "Not all pods are ready or succeeded"),
    };
    if recorded.is_some_and(|it| it.status == status && it.reason == reason) {
        return false;
    }
    set(workload, conditions::PODS_READY, status, reason, message, now)
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
            assert_eq!(note_readiness(&mut workload, ready, Time(2)), new, "{expected:?}");
            assert_eq!(recorded(&workload), expected);
        }
        workload.status.conditions.remove(ADMITTED);
        assert!(note_readiness(&mut workload, true, Time(3)), "it is not admitted any more");
        assert_eq!(recorded(&workload), (False, "WaitForStart"));
    }

    #[test]
    fn a_start_counts_from_the_admission_and_a_recovery_from_the_failure() {
        let config = config(1, 1);
        let mut workload = admitted_at(1);
        assert_eq!(deadline(&workload, &config), Some(("WaitForStart", Time(11))));
        note_readiness(&mut workload, true, Time(5));
        assert_eq!(deadline(&workload, &config), None);
        note_readiness(&mut workload, false, Time(7));
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
}
