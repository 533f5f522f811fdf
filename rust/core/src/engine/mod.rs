//! The public API: objects in, a cycle, decisions out.

pub mod ahead;
pub mod columns;
pub mod explain;
pub mod save;
pub mod what_if;

use crate::base::ids::WorkloadId;
use crate::base::text::Text;
use crate::objects::config::Config;
use crate::objects::{Condition, Kind, Object, Time};
use crate::reconcile::nodes::terminated_by_kueue;
use crate::schedule::decision::{Decision, Event};
use crate::schedule::waiting::Waiting;
use crate::state::State;
use crate::state::changed_queues::Changed;
use crate::status::eviction;
use crate::status::readiness::{note_readiness, note_scheduling};
use crate::status::stage::Stage;
use crate::topology::hosts::used_hosts;

/// A scheduler that only decides; carrying out its decisions is up to the caller.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// Its state, on which the modules of this crate work.
    pub state: State,
    /// A cycle that waits until pods are ready.
    waiting: Option<Box<Waiting>>,
}

impl Engine {
    /// An engine without objects.
    pub fn new(config: Config) -> Self {
        Self { state: State::new(config), waiting: None }
    }

    /// An independent copy that shares unchanged parts.
    pub fn fork(&mut self) -> Self {
        let waiting = self.waiting.as_mut().map(|waiting| Box::new(waiting.fork()));
        Self { state: self.state.fork(), waiting }
    }

    /// Applies objects in any order: objects that others depend on go first. `now` is the time of the change.
    pub fn apply(&mut self, mut objects: Vec<Object>, now: Time) {
        self.state.now = now;
        objects.sort_by_key(|object| object.kind().rank());
        self.state.apply_all(objects);
        self.settle();
    }

    /// Recomputes changed quota trees, so that readers see current numbers.
    pub(crate) fn settle(&mut self) {
        let state = &mut self.state;
        state.ledger.forest.flush(&state.names);
    }

    /// The stored version of the object with the same kind and name.
    pub fn stored(&self, object: &Object) -> Option<Object> {
        self.state.stored(object)
    }

    /// Deletes an object; returns whether it existed.
    pub fn delete(&mut self, kind: Kind, namespace: &str, name: &str, now: Time) -> bool {
        self.state.now = now;
        let found = self.state.remove(kind, namespace, name);
        self.settle();
        found
    }

    /// One scheduling cycle (rules/05 §6).
    pub fn cycle(&mut self, now: Time) -> Decision {
        self.state.pending.second_passes.ripen(now);
        self.decide(now)
    }

    /// The same for callers that ripen second passes themselves.
    pub(crate) fn decide(&mut self, now: Time) -> Decision {
        let state = &mut self.state;
        if !state.feeds.agenda.is_followed() {
            return state.run_cycle(&mut self.waiting, now);
        }
        // Kueue writes while the next cycles run: each of its reservations can be forgotten until it is confirmed.
        let mut unconfirmed = std::mem::take(&mut state.ledger.unconfirmed);
        let mut replaced_slices = std::mem::take(&mut state.ledger.replaced_slices);
        replaced_slices.retain(|new, _| unconfirmed.contains_key(new));
        let decision = state.run_cycle(&mut self.waiting, now);
        unconfirmed.extend(state.ledger.unconfirmed.drain());
        replaced_slices.append(&mut state.ledger.replaced_slices);
        state.ledger.unconfirmed = unconfirmed;
        state.ledger.replaced_slices = replaced_slices;
        decision
    }

    /// The workloads that may have been written to since the last call, in the order of namespace and name. The first
    /// call returns none; from then on reservations stay unconfirmed until [`Engine::confirm`] or [`Engine::forget`].
    pub fn take_written(&mut self) -> Vec<WorkloadId> {
        let state = &mut self.state;
        let mut written: Vec<_> = state.feeds.agenda.take_followed().iter().collect();
        written.sort_by_cached_key(|&id| state.workloads.get(id).key().clone());
        written
    }

    /// The queues and cohorts whose status may have changed since the last call. The first call returns none.
    pub fn take_changed_queues(&mut self) -> Changed {
        self.settle();
        self.state.take_changed_queues()
    }

    /// The pods that were failed since the last call because their node has failed, by namespace and name, with the
    /// condition to add; their phase is `Failed` (rules/08 §13.4).
    pub fn take_failed_pods(&mut self) -> Vec<(String, String, Condition)> {
        let failed = self.state.nodes.node_watch.take_failed_pods().into_iter();
        failed.map(|((namespace, name), at)| (namespace, name, terminated_by_kueue(at))).collect()
    }

    /// Confirms that a reservation was written: it can no longer be forgotten. `false` if none was unconfirmed.
    pub fn confirm(&mut self, id: WorkloadId) -> bool {
        self.state.ledger.replaced_slices.remove(&id);
        self.state.ledger.unconfirmed.remove(&id).is_some()
    }

    /// Writes what Kueue's workload controller writes outside of cycles, with the consequences (rules/07). Samples the
    /// usage of LocalQueues when due (rules/09 §1.4).
    pub fn reconcile(&mut self, now: Time) -> Vec<Event> {
        self.state.now = now;
        let events = self.state.reconcile_all(now);
        self.state.sample_local_queues(now);
        self.settle();
        events
    }

    /// Marks a workload Finished and releases its quota; `false` if it had finished before.
    pub fn finish(&mut self, id: WorkloadId, reason: &str, message: &str, now: Time) -> bool {
        self.change(id, now, |workload| eviction::finish(workload, reason.to_owned(), Text::copied(message), now))
    }

    /// Marks a workload Evicted; it keeps its quota until [`Engine::release`] (rules/04 §8).
    pub fn evict(&mut self, id: WorkloadId, reason: &str, message: &str, now: Time) -> bool {
        self.change(id, now, |workload| eviction::evict(workload, reason.to_owned(), "", Text::copied(message), now))
    }

    /// The job of an evicted workload has stopped: its quota is released and it is pending again (rules/04 §9).
    pub fn release(&mut self, id: WorkloadId, now: Time) -> bool {
        let gates = self.state.config.gates;
        self.change(id, now, |workload| eviction::release_after_eviction(workload, now, gates))
    }

    /// Writes condition PodsReady as reported by the job of a workload; `false` if it does not change (rules/07 §6).
    pub fn note_readiness(&mut self, id: WorkloadId, are_ready: bool, now: Time) -> bool {
        let config = self.state.config.wait_for_pods_ready.clone();
        self.change(id, now, |workload| note_readiness(workload, are_ready, config.as_ref(), now))
    }

    /// Writes condition PodsScheduled as it is seen of the pods of a workload; `false` if it does not change, or if that
    /// is not followed, as where the pods run in another cluster (rules/07 §6).
    pub fn note_scheduling(&mut self, id: WorkloadId, are_scheduled: bool, now: Time) -> bool {
        let config = self.state.config.wait_for_pods_ready.as_ref();
        let is_followed = config.is_some_and(|it| it.unscheduled_timeout_ns.is_some())
            && !self.state.runs_elsewhere(&self.state.workloads.get(id).workload);
        is_followed && self.change(id, now, |workload| note_scheduling(workload, are_scheduled, now))
    }

    /// The API server rejected a reservation or an eviction of the last cycle, or of an earlier one whose writes are
    /// followed. `gone`: the workload no longer exists. Restores the workload's state from before the cycle, and
    /// retries it unless it is gone (rules/05 §6.4 step 12, rules/08 §11.7).
    pub fn forget(&mut self, id: WorkloadId, gone: bool, now: Time) -> bool {
        let Some(before) = self.state.ledger.unconfirmed.remove(&id) else { return false };
        self.state.forget_reservation(id, before, gone, now);
        true
    }

    /// A write to a workload was rejected, which may have included what the controller of failed nodes wrote: that
    /// checks the nodes of the workload again (rules/08 §13.1). `false`: it has no nodes.
    pub fn look_at_nodes_again(&mut self, id: WorkloadId) -> bool {
        let hosts: Vec<_> = used_hosts(&self.state.workloads.get(id).workload).map(ToString::to_string).collect();
        hosts.iter().for_each(|host| self.state.nodes.node_watch.touch(host));
        !hosts.is_empty()
    }

    pub(crate) fn change(
        &mut self,
        id: WorkloadId,
        now: Time,
        write: impl FnOnce(&mut crate::objects::Workload) -> bool,
    ) -> bool {
        self.state.now = now;
        self.state.change(id, write)
    }

    /// May a cycle have something to do: is there a workload in the heap of an active ClusterQueue, or a requested
    /// retry?
    pub fn has_heads(&self) -> bool {
        self.has_ready_heads() || self.state.pending.next_second_pass().is_some_and(|due| due <= self.state.now)
    }

    /// The same for callers that ripen second passes themselves.
    pub(crate) fn has_ready_heads(&self) -> bool {
        let state = &self.state;
        let waits = state.pending.waiting.iter().any(|&(_, queue)| state.queues[queue].is_active());
        let is_due = |time: Option<Time>| time.is_some_and(|due| due <= state.now);
        waits
            || is_due(state.next_flush())
            || is_due(state.pending.experiments.next())
            || state.pending.has_second_pass()
    }

    /// The stage of a workload.
    pub fn stage(&self, id: WorkloadId) -> Stage {
        Stage::of(&self.state.workloads.get(id).workload)
    }
}

#[cfg(test)]
mod tests;
