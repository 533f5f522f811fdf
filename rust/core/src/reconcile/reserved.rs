//! What ends a reservation or an admission: checks, stopped queues, time (rules/07 §3, §7, §10).

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::objects::conditions::{self, find_true};
use crate::objects::message::{Blocker, Message, Queue};
use crate::objects::variants::is_variant;
use crate::objects::{CheckState, StopPolicy, Time, Workload};
use crate::state::State;
use crate::status::activeness::MULTI_KUEUE_CONTROLLER;
use crate::status::checks::describe_checks;
use crate::status::eviction::set_deactivation_target;
use crate::status::own_timeouts::with_own_timeouts;
use crate::status::reservation::unset_quota_reservation;
use crate::status::stage::{has_quota_reservation, is_active, is_admitted, is_evicted};
use crate::status::{readiness, reasons};

use super::{Pass, is_deactivation_target};

const SECOND_NS: i64 = 1_000_000_000;

impl State {
    /// Do its pods run in another cluster, so that those here never have a node?
    pub(crate) fn runs_elsewhere(&self, workload: &Workload) -> bool {
        let is_multikueue =
            |check: &str| self.objects.checks.get(check).is_some_and(|it| it.controller_name == MULTI_KUEUE_CONTROLLER);
        self.gate(Gate::MultiKueue)
            && workload.status.rare.admission_checks.iter().any(|check| is_multikueue(&check.name))
    }
}

impl Pass<'_> {
    /// Handles a workload that holds quota; always the last step.
    pub(super) fn end_reservation(&mut self, workload: &mut Workload) -> bool {
        has_quota_reservation(workload)
            && (self.follow_checks(workload)
                || self.follow_local_queue(workload)
                || self.follow_cluster_queue(workload)
                || self.end_unready(workload)
                || self.end_execution(workload))
    }

    /// A rejection deactivates, otherwise a retry evicts.
    fn follow_checks(&mut self, workload: &mut Workload) -> bool {
        // A rejection is final, so it also counts while the workload is being evicted (rules/07 §3).
        let rejects_evicted = self.state.config.changes.has(Change::RejectionCountsDuringEviction);
        if self.has_no_checks(workload) || (is_evicted(workload) && !rejects_evicted) {
            return false;
        }
        let describes = self.state.config.changes.has(Change::FailedChecksAreDescribed);
        if let Some(described) = describe_checks(workload, CheckState::Rejected) {
            let (message, event) = if describes {
                let event = format!("Deactivated due to {described}");
                (described, event)
            } else {
                plain_rejection(workload)
            };
            if set_deactivation_target(workload, reasons::ADMISSION_CHECK, message, self.now) {
                self.event("Warning", "AdmissionCheckRejected", event);
            }
            return true;
        }
        if is_evicted(workload) {
            return false;
        }
        let Some(described) = describe_checks(workload, CheckState::Retry) else { return false };
        let message = match describes {
            true => format!("Evicted due to {described}"),
            false => "At least one admission check is false".to_owned(),
        };
        self.evict(workload, reasons::ADMISSION_CHECK, "", message);
        true
    }

    fn follow_local_queue(&mut self, workload: &mut Workload) -> bool {
        let policy = self.local_queue.map_or(StopPolicy::None, |queue| queue.stop_policy);
        if is_admitted(workload) {
            return self.drain(workload, policy, reasons::LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped");
        }
        let gone = self.local_queue.is_none_or(|queue| queue.meta.deleting);
        let queue = Queue::Local(workload.queue_name.shared());
        self.cancel_reservation(workload, gone, policy, queue)
    }

    fn follow_cluster_queue(&mut self, workload: &mut Workload) -> bool {
        let policy = self.cluster_queue.map_or(StopPolicy::None, |(_, queue)| queue.stop_policy);
        if is_admitted(workload) {
            return self.drain(workload, policy, reasons::CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped");
        }
        let gone = self.cluster_queue.is_none_or(|(_, queue)| queue.meta.deleting);
        self.cancel_reservation(workload, gone, policy, Queue::Cluster(self.cluster_queue_name.into()))
    }

    /// An admitted workload keeps running, unless its queue is drained.
    fn drain(
        &mut self,
        workload: &mut Workload,
        policy: StopPolicy,
        reason: &'static str,
        message: &'static str,
    ) -> bool {
        if policy != StopPolicy::HoldAndDrain || is_evicted(workload) {
            return false;
        }
        self.evict(workload, reason, "", message);
        true
    }

    /// A workload that waits for checks loses its quota when its queue stops, without an eviction.
    fn cancel_reservation(&mut self, workload: &mut Workload, gone: bool, policy: StopPolicy, queue: Queue) -> bool {
        let (reason, blocker) = if gone {
            (reasons::MISCONFIGURED, Blocker::Gone)
        } else if policy != StopPolicy::None {
            (reasons::SUSPENDED, Blocker::Stopped)
        } else {
            return false;
        };
        let gates = self.state.config.gates;
        let reason = reasons::unadmitted(reason, reasons::INADMISSIBLE, gates);
        unset_quota_reservation(workload, reason, Message::Blocked(queue, blocker), self.now, gates);
        true
    }

    /// If pods are not ready in time, the workload loses its quota; after too many times it is deactivated (rules/07
    /// §6).
    fn end_unready(&mut self, workload: &mut Workload) -> bool {
        let Some(config) = &self.state.config.wait_for_pods_ready else { return false };
        let Some((cause, _)) = self.unready_until(workload).filter(|(_, at)| *at <= self.now) else { return false };
        if readiness::is_out_of_retries(workload, config) {
            let message = "exceeding the maximum number of re-queuing retries";
            set_deactivation_target(workload, reasons::REQUEUING_LIMIT_EXCEEDED, message, self.now);
            return true;
        }
        readiness::back_off(workload, config, self.now);
        let (namespace, name) = (self.record.key().namespace(), self.record.key().name());
        let message = format!("Exceeded the PodsReady timeout {namespace}/{name}");
        self.evict(workload, reasons::PODS_READY_TIMEOUT, cause, message);
        true
    }

    /// The deadline for its pods to be ready, if that matters.
    pub(super) fn unready_until(&self, workload: &Workload) -> Option<(&'static str, Time)> {
        let config = self.state.config.wait_for_pods_ready.as_ref()?;
        // Readiness of variants is handled at their parent.
        let is_variant = self.gate(Gate::ConcurrentAdmission) && is_variant(workload);
        let counts = !is_variant && is_active(workload) && !is_evicted(workload);
        let may_have_own = counts && self.gate(Gate::WorkloadLevelWaitForPodsReady);
        let mut own = if may_have_own { with_own_timeouts(workload, config) } else { None };
        if counts && config.unscheduled_timeout_ns.is_some() && self.state.runs_elsewhere(workload) {
            own.get_or_insert_with(|| config.clone()).unscheduled_timeout_ns = None;
        }
        readiness::deadline(workload, own.as_ref().unwrap_or(config)).filter(|_| counts)
    }

    /// Running longer than `maximumExecutionTimeSeconds` deactivates.
    fn end_execution(&mut self, workload: &mut Workload) -> bool {
        if is_deactivation_target(workload) || execution_end(workload).is_none_or(|end| end > self.now) {
            return false;
        }
        let seconds = workload.maximum_execution_time_seconds.unwrap_or_default();
        let reason = reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED;
        set_deactivation_target(workload, reason, "exceeding the maximum execution time", self.now);
        workload.status.rare.accumulated_past_execution_time_seconds = None;
        self.event("Warning", reason, format!("The maximum execution time ({seconds}s) exceeded"));
        true
    }
}

/// When an admitted workload exceeds its maximum execution time; earlier admissions count (rules/07 §7).
pub(super) fn execution_end(workload: &Workload) -> Option<Time> {
    let admitted = find_true(&workload.status.conditions, conditions::ADMITTED)?;
    let past = workload.status.rare.accumulated_past_execution_time_seconds.unwrap_or(0);
    let left = i64::from(workload.maximum_execution_time_seconds?) - i64::from(past);
    Some(Time(admitted.last_transition.0.saturating_add(left.saturating_mul(SECOND_NS))))
}

/// The messages of a rejection before they listed the checks with what they say (change FailedChecksAreDescribed): of
/// condition DeactivationTarget, and of the event.
fn plain_rejection(workload: &Workload) -> (String, String) {
    let checks = workload.status.rare.admission_checks.iter().filter(|it| it.state == CheckState::Rejected);
    let names: Vec<&str> = checks.clone().map(|it| it.name.as_str()).collect();
    let (name, why) = checks.clone().next().map_or(("", ""), |it| (it.name.as_str(), it.message.as_str()));
    let event = format!("Deactivating workload because AdmissionCheck for {name} was Rejected: {why}");
    (format!("Admission check(s): {}, were rejected", names.join(",")), event)
}
