//! Why a workload has no quota, beyond what a cycle finds (rules/07 §11).

use crate::base::gates::Gate;
use crate::base::text::Text;
use crate::objects::conditions::{self, find};
use crate::objects::message::{Blocker, Message, Queue};
use crate::objects::selectors::selects;
use crate::objects::{Condition, ConditionStatus, StopPolicy, Workload};
use crate::status::admissible::admission_gated_by;
use crate::status::reservation::{set, unset_quota_reservation};
use crate::status::stage::{has_quota_reservation, is_active, is_on_hold};
use crate::status::{messages, reasons};

use super::Pass;

/// Reason and message.
type Because = (Text, Message);

impl Pass<'_> {
    /// Sets condition QuotaReserved to the reason why there is no quota, if one is known.
    pub(super) fn explain_unreserved(&mut self, workload: &mut Workload) {
        let because = if self.gate(Gate::UnadmittedWorkloadsObservability) {
            self.because(workload)
        } else {
            self.queue_blocker(workload).map(|(_, message)| (reasons::INADMISSIBLE.into(), message))
        };
        if let Some((reason, message)) = because {
            let kind = conditions::QUOTA_RESERVED;
            set(workload, kind, ConditionStatus::False, reason, message, self.now);
        }
    }

    /// The first matching row of rules/07 §11.
    fn because(&self, workload: &Workload) -> Option<Because> {
        let recorded = find(&workload.status.conditions, conditions::QUOTA_RESERVED);
        let as_recorded = |it: &Condition| (it.reason.clone(), it.message.clone());
        if !is_active(workload) {
            return Some((reasons::DEACTIVATED.into(), messages::DEACTIVATED.into()));
        }
        if is_on_hold(workload) {
            return recorded.map(as_recorded);
        }
        if let Some((reason, message)) = self.queue_blocker(workload).or_else(|| self.misfit(workload)) {
            return Some((reason.into(), message));
        }
        if let Some(by) = admission_gated_by(workload, self.state.config.gates) {
            return Some((reasons::ADMISSION_GATED.into(), Message::GatedBy(by.into())));
        }
        if let Some(reason) = self.parked_reason(recorded) {
            return Some((reason.into(), messages::BYPASSED.into()));
        }
        match recorded {
            // The result of a cycle stays until the next one.
            Some(it) if is_of_cycle(&it.reason) => Some(as_recorded(it)),
            None if !self.gate(Gate::UnadmittedWorkloadsExplicitStatus) => None,
            _ => Some((reasons::PENDING_EVALUATION.into(), messages::PENDING_EVALUATION.into())),
        }
    }

    /// The queue that is missing or does not admit.
    fn queue_blocker(&self, workload: &Workload) -> Option<(&'static str, Message)> {
        let local = || Queue::Local(workload.queue_name.shared());
        let cluster = || Queue::Cluster(self.cluster_queue_name.into());
        let Some(local_queue) = self.local_queue else {
            return Some((reasons::MISCONFIGURED, Message::Blocked(local(), Blocker::Missing)));
        };
        if local_queue.stop_policy != StopPolicy::None {
            return Some((reasons::SUSPENDED, Message::Blocked(local(), Blocker::Inactive)));
        }
        match self.cluster_queue {
            None => Some((reasons::MISCONFIGURED, Message::Blocked(cluster(), Blocker::Missing))),
            Some((queue, _)) if !self.state.queues[queue].is_active() => {
                Some((reasons::SUSPENDED, Message::Blocked(cluster(), Blocker::Inactive)))
            }
            Some(_) => None,
        }
    }

    /// Problems of the workload itself: its namespace, its requests. Unlike in a cycle, the pod sets are taken as
    /// applied, without the defaults of LimitRanges.
    fn misfit(&self, workload: &Workload) -> Option<(&'static str, Message)> {
        let (_, queue) = self.cluster_queue?;
        let namespace = workload.meta.key.namespace();
        let message = match self.state.namespace_labels(namespace) {
            None => Message::NamespaceMissing(namespace.into()),
            Some(labels) if !selects(queue.namespace_selector.as_ref(), labels) => messages::NAMESPACE_MISMATCH.into(),
            Some(_) => self.record.spec.original_misfit.clone()?.into(),
        };
        Some((reasons::MISCONFIGURED, message))
    }

    /// Why an equivalent workload failed with which this one was parked (rules/05 §4); used only while nothing more
    /// specific is known.
    fn parked_reason(&self, recorded: Option<&Condition>) -> Option<&'static str> {
        let open = match recorded.map(|it| it.reason.as_str()) {
            None => self.gate(Gate::UnadmittedWorkloadsExplicitStatus),
            Some("" | reasons::PENDING_EVALUATION | reasons::PENDING | reasons::SUSPENDED | reasons::DEACTIVATED) => {
                true
            }
            Some(_) => false,
        };
        if !open || !self.gate(Gate::SchedulingEquivalenceHashing) {
            return None;
        }
        let pending = &self.state.queues[self.cluster_queue?.0].pending;
        pending
            .is_inadmissible(&self.state.pending.places, self.id)
            .then(|| pending.parked_reason(self.record.row.shape))
            .flatten()
    }

    /// Records the annotation that gates admission, and its removal. Ends the pass if it wrote.
    pub(super) fn follow_admission_gate(&mut self, workload: &mut Workload) -> bool {
        let gates = self.state.config.gates;
        if !gates.enabled(Gate::AdmissionGatedBy) {
            return false;
        }
        let is_recorded = find(&workload.status.conditions, conditions::QUOTA_RESERVED)
            .is_some_and(|it| it.reason == reasons::ADMISSION_GATED);
        match admission_gated_by(workload, gates).map(str::to_owned) {
            None if is_recorded => {
                let reason = reasons::unadmitted(reasons::PENDING_EVALUATION, reasons::PENDING, gates);
                let message = "AdmissionGatedBy cleared, waiting for quota reservation";
                unset_quota_reservation(workload, reason, message, self.now, gates);
                self.event("Normal", "AdmissionGateCleared", "Admission gate cleared, workload is now admissible");
                true
            }
            Some(by) if !is_recorded && !self.outranks_gate(workload) => {
                let message = Message::GatedBy(by.as_str().into());
                unset_quota_reservation(workload, reasons::ADMISSION_GATED, message, self.now, gates);
                self.event("Normal", "AdmissionGated", format!("Workload admission is gated by: {by}"));
                true
            }
            _ => false,
        }
    }

    /// Would the condition be overwritten right away? Kueue then alternates between both forever; here the first in
    /// rules/07 §11 wins.
    fn outranks_gate(&self, workload: &Workload) -> bool {
        if has_quota_reservation(workload) {
            return false;
        }
        if !self.gate(Gate::UnadmittedWorkloadsObservability) {
            return self.queue_blocker(workload).is_some();
        }
        !is_active(workload)
            || !is_on_hold(workload) && (self.queue_blocker(workload).is_some() || self.misfit(workload).is_some())
    }
}

/// Is it a reason of a cycle or an eviction, which stays until the next cycle?
fn is_of_cycle(reason: &str) -> bool {
    matches!(
        reason,
        reasons::WAITING_FOR_QUOTA
            | reasons::NO_MATCHING_FLAVOR
            | reasons::EXCEEDS_MAX_QUOTA
            | reasons::TOPOLOGY_PLACEMENT_FAILED
            | reasons::WAITING_FOR_PREEMPTED_WORKLOADS
            | reasons::WAITING_FOR_PODS_READY
            | reasons::PENDING_EVALUATION
    )
}
