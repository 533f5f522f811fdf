//! What Kueue's controllers write into the status of workloads outside of cycles (rules/07 §12); `nodes` is the
//! controller of failed nodes.
//!
//! One pass handles one workload and ends with the first step that writes, since the update of the object triggers the
//! next pass. Pod readiness, provisioning and the retention of finished workloads are not written here.

mod active;
pub(crate) mod nodes;
mod reserved;
#[cfg(test)]
mod tests;
mod unadmitted;

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::gates::Gate;
use crate::base::ids::{QueueId, WorkloadId};
use crate::objects::conditions::{self, find, is_true};
use crate::objects::message::Message;
use crate::objects::variants::is_parent;
use crate::objects::{ClusterQueue, LocalQueue, StopPolicy, Time, Workload};
use crate::schedule::decision::Event;
use crate::state::State;
use crate::status::admissible::requeue_at;
use crate::status::checks::{required_checks, sync_admission_checks};
use crate::status::eviction::{self, Restarted, requeue_after_restart};
use crate::status::messages;
use crate::status::reservation::sync_admitted;
use crate::status::stage::{Stage, has_quota_reservation, is_active, is_admitted, is_finished};
use crate::workloads::Record;
use crate::workloads::before::Before;

/// More passes than any workload needs: Kueue's own steps settle after five or six.
const MAX_PASSES: usize = 32;

impl State {
    /// Writes what follows for a workload from its queues, checks, activity and the time, and moves it between queue
    /// and cache accordingly. Returns the events; if nothing has changed since the last call, nothing is written.
    pub fn reconcile(&mut self, id: WorkloadId, now: Time) -> Vec<Event> {
        let mut events = Vec::new();
        for _ in 0..MAX_PASSES {
            if !self.pass_over(id, now, &mut events) {
                return events;
            }
        }
        debug_assert!(false, "the passes over a workload come to rest");
        events
    }

    /// One pass; returns whether it has written anything, so that another one is due.
    pub(crate) fn pass_over(&mut self, id: WorkloadId, now: Time, events: &mut Vec<Event>) -> bool {
        self.now = now;
        self.settle_penalty_of_admitted(id);
        let mut workload = self.workloads.get(id).workload.clone();
        let mut pass = Pass::new(self, id, now);
        pass.run(&mut workload);
        if workload == self.workloads.get(id).workload {
            let wake = pass.wake(&workload);
            self.feeds.agenda.settled(id, wake);
            return false;
        }
        events.append(&mut pass.events);
        let record = self.workloads.get(id);
        let (before, spec) = (record.before_status(), Arc::clone(&record.spec));
        let object = self.workloads.transition(id, |it| std::mem::replace(it, workload));
        self.settle_status_change(id, &Before { object: Some((object, spec)), ..before });
        true
    }

    /// Why a workload has no quota, as known outside of cycles: reason and message.
    pub(crate) fn explain_unreserved(&self, id: WorkloadId) -> Option<(String, String)> {
        let mut workload = self.workloads.get(id).workload.clone();
        let mut pass = Pass::new(self, id, self.now);
        if !pass.refuse_devices(&mut workload) {
            pass.explain_unreserved(&mut workload);
        }
        let condition = find(&workload.status.conditions, conditions::QUOTA_RESERVED)?;
        Some((condition.reason.to_string(), condition.text().to_string()))
    }

    /// [`State::reconcile`] for every workload that something may have changed for, in the order of namespace and name.
    /// For all others it would write nothing.
    pub(crate) fn reconcile_all(&mut self, now: Time) -> Vec<Event> {
        self.now = now;
        self.settle_penalties_of_cycle();
        self.requeue_written();
        self.deliver_writes();
        let mut events = self.look_at_nodes(now);
        for (queue, shape) in self.feeds.agenda.take_parked() {
            for id in self.queues[queue].pending.parked_of_shape(shape) {
                self.feeds.agenda.touch(id);
            }
        }
        self.feeds.agenda.ring(now);
        let due = self.feeds.agenda.touched();
        let mut due: Vec<_> = due.map(|id| (self.workloads.get(id).key().clone(), id)).collect();
        due.sort();
        events.extend(due.into_iter().flat_map(|(_, id)| self.reconcile(id, now)));
        events
    }

    /// When a workload needs another pass, if nothing else happens.
    fn wake(&self, id: WorkloadId, now: Time) -> Option<Time> {
        Pass::new(self, id, now).wake(&self.workloads.get(id).workload)
    }

    /// The next time after `now` at which time alone changes something: a backoff, a maximum execution time or the wait
    /// for pods ends, a failed node must be checked again, a workload is due for a second pass, or a requested retry, or the
    /// time of an experiment ends.
    pub fn next_wake(&self, now: Time) -> Option<Time> {
        let touched = self.feeds.agenda.touched().filter_map(|id| self.wake(id, now));
        let second_pass = self.pending.second_passes.next_timer().filter(|at| *at > now);
        touched
            .chain(self.feeds.agenda.next_alarm(now))
            .chain(self.nodes.node_watch.next(Some(now)))
            .chain(second_pass)
            .chain(self.next_flush().filter(|at| *at > now))
            .chain(self.pending.experiments.next_after(now))
            .min()
    }
}

/// One pass over one workload: its environment, and the events so far.
struct Pass<'a> {
    state: &'a State,
    record: &'a Record,
    id: WorkloadId,
    now: Time,
    /// Its LocalQueue, if there is one.
    local_queue: Option<&'a LocalQueue>,
    /// The ClusterQueue that its LocalQueue points to; empty if the LocalQueue is missing or stopped (rules/05 §2).
    cluster_queue_name: &'a str,
    /// The ClusterQueue of that name, if there is one.
    cluster_queue: Option<(QueueId, &'a ClusterQueue)>,
    events: Vec<Event>,
}

impl<'a> Pass<'a> {
    fn new(state: &'a State, id: WorkloadId, now: Time) -> Self {
        let record = state.workloads.get(id);
        let local_queue = &state.local_queues[record.row.local_queue];
        let cluster_queue = state.queue_of(id).and_then(|queue| Some((queue, state.queues[queue].object.as_deref()?)));
        Self {
            state,
            record,
            id,
            now,
            local_queue: local_queue.object.as_deref(),
            cluster_queue_name: local_queue.running().map_or("", |queue| queue.cluster_queue.as_str()),
            cluster_queue,
            events: Vec::new(),
        }
    }

    /// The steps in Kueue's order; the first one that returns `true` ends the pass.
    fn run(&mut self, workload: &mut Workload) {
        let _ended = self.finish_orphan(workload)
            || self.end_finished(workload)
            || self.note_retry_time(workload)
            || self.refuse_devices(workload)
            || self.follow_activity(workload)
            || self.requeue_restarted_local_queue(workload)
            || self.follow_admission_gate(workload)
            || self.requeue_restarted_cluster_queue(workload)
            || self.sync_checks(workload)
            || self.sync_conditions(workload)
            || self.end_reservation(workload);
    }

    /// When this workload needs another pass, if nothing else happens.
    fn wake(&self, workload: &Workload) -> Option<Time> {
        if is_finished(workload) {
            return None;
        }
        // A backoff hides all other alarms. An inactive workload has no backoff, yet its job may still run.
        if let Some(backoff) = requeue_at(workload).filter(|at| is_active(workload) && *at > self.now) {
            return Some(backoff);
        }
        let unready = self.unready_until(workload).map(|(_, at)| at);
        [unready, reserved::execution_end(workload)].into_iter().flatten().filter(|at| *at > self.now).min()
    }

    fn gate(&self, gate: Gate) -> bool {
        self.state.gate(gate)
    }

    fn event(&mut self, kind: &'static str, reason: impl Into<Cow<'static, str>>, message: impl Into<Message>) {
        let (key, message) = (self.record.key().clone(), message.into());
        self.events.push(Event { kind, reason: reason.into(), key, message });
    }

    /// A workload whose job is gone is finished.
    fn finish_orphan(&mut self, workload: &mut Workload) -> bool {
        let meta = &workload.meta;
        if !meta.details.owners.is_empty() {
            return false;
        }
        if meta.details.deleting {
            // Nothing keeps it.
            return true;
        }
        let orphan = meta.details.labels.get(messages::JOB_UID_LABEL).is_some_and(|uid| !uid.is_empty());
        if orphan && self.gate(Gate::FinishOrphanedWorkloads) {
            eviction::finish(workload, "OwnerNotFound", "The workload's owner no longer exists", self.now);
        }
        false
    }

    fn end_finished(&mut self, workload: &mut Workload) -> bool {
        if self.gate(Gate::MultiKueueOrchestratedPreemption) {
            sync_preemption_gates(workload, self.now);
        }
        is_finished(workload)
    }

    /// Requeues it once its LocalQueue runs again.
    fn requeue_restarted_local_queue(&mut self, workload: &mut Workload) -> bool {
        self.local_queue.is_some_and(|queue| queue.stop_policy == StopPolicy::None)
            && requeue_after_restart(workload, Restarted::LocalQueue, self.now)
    }

    /// Requeues it once its ClusterQueue runs again.
    fn requeue_restarted_cluster_queue(&mut self, workload: &mut Workload) -> bool {
        self.cluster_queue.is_some_and(|(_, queue)| queue.stop_policy == StopPolicy::None)
            && requeue_after_restart(workload, Restarted::ClusterQueue, self.now)
    }

    /// The list of checks follows the ClusterQueue (rules/07 §2).
    fn sync_checks(&mut self, workload: &mut Workload) -> bool {
        let Some((_, queue)) = self.cluster_queue else { return false };
        !self.has_no_checks(workload)
            && sync_admission_checks(workload, &required_checks(queue, workload, self.state.config.changes), self.now)
    }

    /// Is it the parent of variants, which has no checks of its own?
    fn has_no_checks(&self, workload: &Workload) -> bool {
        is_parent(workload, self.state.config.gates)
    }

    /// Updates why it has no quota, and condition Admitted. An Admitted workload is skipped: only losing its quota ends
    /// the admission. Never ends the pass.
    fn sync_conditions(&mut self, workload: &mut Workload) -> bool {
        if is_admitted(workload) {
            return false;
        }
        if !has_quota_reservation(workload) {
            self.explain_unreserved(workload);
        }
        sync_admitted(workload, self.now, self.state.config.gates);
        if is_admitted(workload) {
            let queue = workload.status.admission.as_ref().map(|a| a.cluster_queue.shared()).unwrap_or_default();
            let since = find(&workload.status.conditions, conditions::QUOTA_RESERVED).map(|c| c.last_transition);
            let wait_ns = self.now.since(since.unwrap_or(self.now));
            self.event("Normal", "Admitted", Message::AdmittedBy { queue, wait_ns });
        }
        false
    }

    fn is_pending(&self, workload: &Workload) -> bool {
        Stage::of(workload) == Stage::Pending
    }

    /// Evicts, and emits the event if there was an admission to lose.
    fn evict(&mut self, workload: &mut Workload, reason: &'static str, cause: &str, message: impl Into<Message>) {
        let message = message.into();
        let had_admission = workload.status.admission.is_some();
        eviction::evict(workload, reason, cause, message.clone(), self.now);
        if had_admission {
            self.event("Normal", eviction::event_reason(reason, ""), message);
        }
    }
}

/// Every preemption gate of the spec has a state, initially closed; other states are removed.
fn sync_preemption_gates(workload: &mut Workload, now: Time) {
    if workload.preemption_gates.is_empty() && workload.status.rare.preemption_gates.is_empty() {
        return;
    }
    let (gates, states) = (&workload.preemption_gates, &mut workload.status.rare.preemption_gates);
    states.retain(|state| gates.contains(&state.name));
    for name in gates.iter() {
        if !states.iter().any(|state| state.name == *name) {
            states.push(crate::objects::PreemptionGateState {
                name: name.clone(),
                position: "Closed".to_owned(),
                last_transition: now,
            });
        }
    }
}

/// Is Kueue about to deactivate it?
fn is_deactivation_target(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, conditions::DEACTIVATION_TARGET)
}
