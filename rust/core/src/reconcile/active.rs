//! Whether a workload may run at all: backoffs, deactivation, devices (rules/07 §3, §8, §9).

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::text::Text;
use crate::objects::Workload;
use crate::objects::conditions::{EVICTED, QUOTA_RESERVED, REQUEUED, find, find_false};
use crate::objects::message::Message;
use crate::pods::devices::Devices;
use crate::status::admissible::requeue_at;
use crate::status::checks::retry_time;
use crate::status::eviction::{deactivate, event_reason, requeue_if_due, set_requeued};
use crate::status::reasons;
use crate::status::reservation::unset_quota_reservation;
use crate::status::stage::{is_active, is_on_hold};

use super::{Pass, is_deactivation_target};

/// Our own words.
const DEVICES_RESOLVED: &str = "The workload's DRA resources can be charged now";

impl Pass<'_> {
    /// A check that asks for a retry sets the time first; the next pass evicts.
    pub(super) fn note_retry_time(&mut self, workload: &mut Workload) -> bool {
        let Some(at) = retry_time(workload).filter(|at| *at > self.now) else { return false };
        // An inactive workload has no backoff: Kueue would set and remove it in turn until that time.
        if !is_active(workload) || requeue_at(workload).is_some_and(|already| already >= at) {
            return false;
        }
        workload.status.rare.requeue_state.get_or_insert_default().requeue_at = Some(at);
        true
    }

    /// A workload whose devices cannot be charged is not queued, and its status says why, until they can be charged
    /// (rules/09 §8).
    pub(super) fn refuse_devices(&mut self, workload: &mut Workload) -> bool {
        let Some(devices) = self.record.devices.as_deref().filter(|_| self.is_pending(workload)) else { return false };
        // Without the gate, even a workload on hold gets the message.
        if is_on_hold(workload) && self.gate(Gate::KueueDRAIntegration) {
            return false;
        }
        let Devices::Refused(refusal) = devices else {
            let held = find_false(&workload.status.conditions, REQUEUED);
            let unresolved = [reasons::INADMISSIBLE, reasons::DRA_RESOURCES_UNRESOLVED];
            if held.is_some_and(|held| unresolved.contains(&held.reason.as_str())) {
                workload.status.conditions.remove(QUOTA_RESERVED);
                if self.state.config.changes.has(Change::ResolvedDevicesAreNamed) {
                    set_requeued(workload, true, reasons::DRA_RESOURCES_RESOLVED, DEVICES_RESOLVED, self.now);
                } else {
                    workload.status.conditions.remove(REQUEUED);
                }
            }
            return false;
        };
        let gates = self.state.config.gates;
        let (granular, held) = match self.state.config.changes.has(Change::UnresolvedDevicesAreNamed) {
            true => (reasons::DRA_RESOURCES_UNRESOLVED, reasons::DRA_RESOURCES_UNRESOLVED),
            false => (reasons::MISCONFIGURED, reasons::INADMISSIBLE),
        };
        let reason = reasons::unadmitted(granular, reasons::INADMISSIBLE, gates);
        let held = reasons::unadmitted(held, reasons::INADMISSIBLE, gates);
        if unset_quota_reservation(workload, reason, Text::copied(&refusal.message), self.now, gates) {
            set_requeued(workload, false, held, Text::copied(&refusal.requeued_message), self.now);
        }
        true
    }

    /// The effects of `spec.active` and of a backoff.
    pub(super) fn follow_activity(&mut self, workload: &mut Workload) -> bool {
        if !is_active(workload) {
            return self.deactivate(workload);
        }
        if is_deactivation_target(workload) {
            workload.active = Some(false);
            workload.meta.generation = workload.meta.generation.saturating_add(1);
            return true;
        }
        match requeue_at(workload) {
            Some(at) if at > self.now => return true,
            Some(_) if self.is_pending(workload) => {
                if let Some(state) = &mut workload.status.rare.requeue_state {
                    state.requeue_at = None;
                }
                return true;
            }
            _ => {}
        }
        requeue_if_due(workload, self.now, self.state.config.changes)
    }

    fn deactivate(&mut self, workload: &mut Workload) -> bool {
        let had_admission = workload.status.admission.is_some();
        let had_requeue_state = workload.status.rare.requeue_state.is_some();
        let Some(cause) = deactivate(workload, self.now) else { return had_requeue_state };
        if had_admission {
            let message =
                find(&workload.status.conditions, EVICTED).map_or_else(Message::default, |c| c.message.clone());
            self.event("Normal", event_reason(reasons::DEACTIVATED, &cause), message);
        }
        true
    }
}
