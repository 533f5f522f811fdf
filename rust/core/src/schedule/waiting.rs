//! A cycle that pauses until the pods of all workloads with quota are ready (`blockAdmission`, rules/07 §6).
//!
//! Kueue's scheduler sleeps there while its controllers continue; afterwards it decides on what it saw before. Here the
//! cycle is stored with a copy of that state, and the next call continues it.

mod stored;

use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::objects::conditions::{FINISHED, find_true};
use crate::objects::{Time, Workload};
use crate::schedule::decision::Decision;
use crate::schedule::round::{Cycle, Progress, Round};
use crate::state::State;
use crate::status::reservation::unset_quota_reservation;
use crate::status::stage::{is_evicted, is_finished};
use crate::status::{messages, reasons};
use crate::workloads::before::Before;

/// A cycle that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The state as the cycle sees it, with what its entries have taken so far.
    seen: State,
    round: Round,
    /// The entry that fits and waits.
    entry: usize,
    /// The slice that it replaces.
    slice: Option<WorkloadId>,
}

impl Waiting {
    /// An independent copy.
    pub(crate) fn fork(&mut self) -> Self {
        let Self { seen, round, entry, slice } = self;
        Self { seen: seen.fork(), round: round.clone(), entry: *entry, slice: *slice }
    }

    /// The head that waits.
    fn head(&self) -> Key {
        self.seen.workloads.get(self.round.entries[self.entry].workload).key().clone()
    }
}

impl State {
    /// Are there workloads, with quota or about to get it in this cycle, whose pods block admissions?
    pub(crate) fn is_blocked(&self, cycle: &Cycle) -> bool {
        let is_on = self.config.wait_for_pods_ready.as_ref().is_some_and(|config| config.block_admission);
        // What the cycle writes counts at once: a second pass writes an old copy, whose pods may have been ready.
        let is_assumed = |id: &WorkloadId| cycle.assumed.iter().any(|assumed| assumed.workload == *id);
        is_on
            && (!self.pending.unready.iter().all(is_assumed)
                || cycle.assumed.iter().any(|assumed| self.blocks_admission(assumed.workload)))
    }

    /// Stores a cycle whose entry waits, with a copy of the state as the cycle sees it.
    pub(crate) fn wait(
        &mut self,
        mut round: Round,
        entry: usize,
        slice: Option<WorkloadId>,
        waiting: &mut Option<Box<Waiting>>,
        now: Time,
    ) -> Decision {
        let seen = self.fork();
        self.take_back(&mut round.cycle);
        self.put_aside(Box::new(Waiting { seen, round, entry, slice }), waiting, now)
    }

    /// Continues a stored cycle once all pods are ready.
    pub(crate) fn go_on(&mut self, mut cycle: Box<Waiting>, waiting: &mut Option<Box<Waiting>>, now: Time) -> Decision {
        if !self.pending.unready.is_empty() {
            let waits_for_pods = Some(cycle.head());
            *waiting = Some(cycle);
            return Decision { cycle: self.cycle, waits_for_pods, ..Decision::default() };
        }
        self.pending.has_waiting_cycle = false;
        self.note_gone(&mut cycle);
        let Waiting { seen, round, entry, slice } = &mut *cycle;
        seen.now = now;
        seen.pending.unready.clear();
        seen.admit(*entry, *slice, round);
        let progress = seen.process_entries(round);
        self.spare_gone(&mut cycle);
        let victims = self.bring_victims_back(&cycle);
        match progress {
            Progress::Done => {
                let Waiting { mut round, .. } = *cycle;
                self.write(&mut round.cycle, now);
                self.settle_victims(victims);
                self.requeue_entries(round, now)
            }
            Progress::Waits { entry, slice } => {
                (cycle.entry, cycle.slice) = (entry, slice);
                let decision = self.put_aside(cycle, waiting, now);
                self.settle_victims(victims);
                decision
            }
        }
    }

    /// Gives victims the status back that the cycle saw, which Kueue writes whatever has happened to them since: only
    /// their end and the pods that are done remain (rules/04 §8 3). Returns what they were before.
    fn bring_victims_back(&mut self, Waiting { seen, round, .. }: &Waiting) -> Vec<(WorkloadId, Before)> {
        let preempted = round.cycle.preemptions.iter().map(|(target, ..)| target.workload);
        let preempted = preempted.filter(|id| !is_evicted(seen.as_it_was(*id)));
        let mut victims = Vec::new();
        for id in preempted.chain(round.cycle.migrations.iter().map(|(from, _)| *from)) {
            let status = seen.as_it_was(id).status.clone();
            let record = self.workloads.get(id);
            if record.workload.status == status {
                continue;
            }
            victims.push((id, record.before_status()));
            self.workloads.transition(id, |it| {
                let newest = std::mem::replace(&mut it.status, status);
                if it.status.rare.reclaimable_pods != newest.rare.reclaimable_pods {
                    it.status.rare.reclaimable_pods.clone_from(&newest.rare.reclaimable_pods);
                }
                if let Some(finished) = find_true(&newest.conditions, FINISHED) {
                    it.status.conditions.set(finished.clone());
                }
            });
        }
        victims
    }

    /// Those that had lost their quota hold it again, until their jobs have stopped.
    fn settle_victims(&mut self, victims: Vec<(WorkloadId, Before)>) {
        for (id, before) in victims {
            self.settle_status_change(id, &before);
        }
    }

    /// Writes the decisions so far, and what the waiting entry waits for.
    fn put_aside(&mut self, mut cycle: Box<Waiting>, waiting: &mut Option<Box<Waiting>>, now: Time) -> Decision {
        self.write(&mut cycle.round.cycle, now);
        let head = cycle.head();
        let id = cycle.round.entries[cycle.entry].workload;
        if self.is_same(&cycle.seen, id) {
            let gates = self.config.gates;
            let reason = reasons::unadmitted(reasons::WAITING_FOR_PODS_READY, reasons::WAITING, gates);
            let old = self.workloads.get(id).before_status();
            let unset =
                |it: &mut Workload| unset_quota_reservation(it, reason, messages::WAITING_FOR_PODS_READY, now, gates);
            if self.workloads.transition(id, unset) {
                self.settle_status_change(id, &old);
            }
        }
        let mut decision = std::mem::take(&mut cycle.round.cycle.decision);
        decision.cycle = self.cycle;
        decision.waits_for_pods = Some(head);
        self.pending.has_waiting_cycle = true;
        *waiting = Some(cycle);
        decision
    }

    /// Is this the workload that the cycle saw, and may it still be admitted?
    fn is_same(&self, seen: &State, id: WorkloadId) -> bool {
        self.is_there(seen, id) && !is_finished(&self.workloads.get(id).workload)
    }

    /// Is this the workload that the cycle saw?
    fn is_there(&self, seen: &State, id: WorkloadId) -> bool {
        self.workloads.find_by_id(id).is_some_and(|record| record.key().is_copy(seen.workloads.get(id).key()))
    }

    /// Entries deleted in the meantime are not admitted.
    fn note_gone(&self, waiting: &mut Waiting) {
        let Waiting { seen, round, .. } = waiting;
        for entry in round.entries.iter_mut().chain(&mut round.not_nominated) {
            entry.is_gone |= !self.is_same(seen, entry.workload);
            entry.is_homeless |= self.queues[entry.queue].settled.is_none();
        }
    }

    /// Drops decisions about workloads deleted in the meantime.
    fn spare_gone(&self, waiting: &mut Waiting) {
        let Waiting { seen, round, .. } = waiting;
        let is_same = |id: WorkloadId| self.is_same(seen, id);
        let cycle = &mut round.cycle;
        cycle.replaced.retain(|(old, new)| is_same(*old) && is_same(*new));
        let is_there = |id: WorkloadId| self.is_there(seen, id);
        cycle.preemptions.retain(|(target, preemptor, _)| is_there(target.workload) && is_same(*preemptor));
        cycle.migrations.retain(|(from, to)| is_there(*from) && is_same(*to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::conditions::{QUOTA_RESERVED, condition};
    use crate::objects::{Admission, ConditionStatus, Kind, Object, Workload};
    use crate::status::readiness::note_readiness;
    use crate::testing::{World, at, cluster_queue, workload};

    fn outcome(decision: &Decision) -> (Vec<&str>, Option<&str>) {
        let admitted = decision.admissions.iter().map(|admission| admission.key.name()).collect();
        (admitted, decision.waits_for_pods.as_ref().map(|key| key.name()))
    }

    fn become_ready(world: &mut World, name: &str) {
        let now = world.now;
        world.change(name, |workload| assert!(note_readiness(workload, true, None, now)));
    }

    #[test]
    fn a_cycle_admits_one_after_the_other_as_their_pods_become_ready() {
        let mut world = World::where_pods_block();
        assert_eq!(outcome(&world.cycle()), (vec!["a"], Some("b")));
        let message = "WaitingForPodsReady: waiting for all admitted workloads to be in PodsReady condition";
        assert!(world.condition("b", QUOTA_RESERVED).contains(message), "{}", world.condition("b", QUOTA_RESERVED));
        world.now = at(5);
        assert_eq!(outcome(&world.cycle()), (vec![], Some("b")), "nothing has become ready");
        become_ready(&mut world, "a");
        let decision = world.cycle();
        assert_eq!((outcome(&decision), decision.cycle), ((vec!["b"], Some("c")), 1));
        become_ready(&mut world, "b");
        assert_eq!(outcome(&world.cycle()), (vec!["c"], None));
        assert_eq!(world.cycle().cycle, 0, "there was no other head");
    }

    /// Someone else's reservation of `b` is seen while the cycle waits; the cycle's own is rejected.
    #[test]
    fn a_restored_reservation_counts_once_its_cluster_queue_exists() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.change("b", |workload| {
            let admission = Admission { cluster_queue: "later".into(), ..Admission::default() };
            workload.status.admission = Some(admission.into());
            let reserved = condition(QUOTA_RESERVED, ConditionStatus::True, "QuotaReserved", "", at(10), 1);
            workload.status.conditions.set(reserved);
        });
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["b"], Some("c")));
        let later = || [Object::ClusterQueue(cluster_queue("later", "1"))];
        world.apply(later());
        let (id, now) = (world.id("b"), world.now);
        assert!(world.engine.forget(id, false, now));
        world.delete(Kind::ClusterQueue, "later");
        world.apply(later());
        let state = &world.engine.state;
        assert_eq!(state.workloads.get(id).cached_in(), state.find_queue("later"));
    }

    #[test]
    fn a_cycle_stops_waiting_for_workloads_that_lose_their_quota() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.delete(Kind::Workload, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["b"], Some("c")));
    }

    #[test]
    fn a_head_deleted_during_the_wait_is_not_admitted() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.delete(Kind::Workload, "b");
        // Its slot belongs to another workload now.
        world.submit(Workload { queue_name: "b".into(), ..workload("d", "4") });
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["c"], None));
        become_ready(&mut world, "c");
        assert_eq!(outcome(&world.cycle()), (vec!["d"], None));
    }

    #[test]
    fn a_workload_with_another_uid_is_not_admitted_as_the_head_and_not_lost() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.change("b", |workload| {
            let key = &workload.meta.key;
            workload.meta.key = Key::new(key.namespace(), key.name(), "another");
        });
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["c"], None));
        become_ready(&mut world, "c");
        assert_eq!(outcome(&world.cycle()), (vec!["b"], None));
    }

    #[test]
    fn a_head_whose_queue_is_deleted_during_the_wait_is_not_admitted() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.delete(Kind::ClusterQueue, "b");
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["c"], None));
        become_ready(&mut world, "c");
        assert_eq!(world.cycle().cycle, 0);
        world.apply([Object::ClusterQueue(cluster_queue("b", "4"))]);
        assert_eq!(outcome(&world.cycle()), (vec!["b"], None));
    }

    #[test]
    fn a_waiting_cycle_does_not_see_later_changes() {
        let mut world = World::where_pods_block();
        world.cycle();
        // It would no longer fit; the cycle decides on what it saw.
        world.apply([Object::ClusterQueue(cluster_queue("b", "1"))]);
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["b"], Some("c")));
    }
    #[test]
    fn a_head_that_shrinks_during_the_wait_is_charged_its_new_requests() {
        let mut world = World::where_pods_block();
        world.cycle();
        world.change("b", |workload| {
            let mut pod_sets = workload.pod_sets.to_vec();
            pod_sets[0].count = 0;
            workload.pod_sets = pod_sets.into();
        });
        become_ready(&mut world, "a");
        assert_eq!(outcome(&world.cycle()), (vec!["b"], Some("c")));
        let record = world.engine.state.workloads.get(world.id("b"));
        assert_eq!((record.totals[0].count, record.totals[0].requests[0].1), (0, 0));
    }
}
