//! One scheduling cycle: heads, nominate, order, process, write, requeue (rules/05 §6).

use crate::base::ids::{QueueId, WorkloadId};
use crate::base::sorted::Sorted;
use crate::objects::Time;
use crate::schedule::back::Back;
use crate::schedule::decision::Decision;
use crate::schedule::entry::{Entry, EntryStatus};
use crate::schedule::order::sort_classical;
use crate::schedule::round::{Cycle, Fitting, Progress, Round};
use crate::schedule::waiting::Waiting;
use crate::state::admission_fair_sharing::local_queue_usage;
use crate::state::{PendingWork, State};
use crate::status::messages;

impl State {
    /// Runs one cycle at `now`. Without any head nothing happens, and the cycle does not count.
    ///
    /// A cycle that waits for pods is not over: it is stored in `waiting`, and the next call continues it
    /// ([`Decision::waits_for_pods`]).
    pub(crate) fn run_cycle(&mut self, waiting: &mut Option<Box<Waiting>>, now: Time) -> Decision {
        self.now = now;
        let decision = match waiting.take() {
            Some(cycle) => self.go_on(cycle, waiting, now),
            None => self.begin_cycle(waiting, now),
        };
        self.put_copies_away();
        self.note_all_left();
        decision
    }

    fn begin_cycle(&mut self, waiting: &mut Option<Box<Waiting>>, now: Time) -> Decision {
        let unparked = self.settle_before_cycle();
        let mut decision = Decision { unparked, ..Decision::default() };
        let heads = self.heads(&mut decision);
        if heads.is_empty() {
            return decision;
        }
        self.cycle += 1;
        let mut round = self.nominate(heads);
        round.cycle.decision.unparked = unparked;
        round.cycle.decision.events.splice(..0, decision.events);
        self.order(&mut round);
        if let Progress::Waits { entry, slice } = self.process_entries(&mut round) {
            return self.wait(round, entry, slice, waiting, now);
        }
        self.take_back(&mut round.cycle);
        self.write(&mut round.cycle, now);
        self.requeue_entries(round, now)
    }

    /// Handles what has happened since the last cycle. Returns how many parked workloads went back to their heaps.
    fn settle_before_cycle(&mut self) -> usize {
        self.ledger.unconfirmed.clear();
        self.ledger.replaced_slices.clear();
        self.deliver_writes();
        let unparked = self.flush();
        self.settle_before_look();
        unparked
    }

    /// Workloads due for a second pass, and the head of every active ClusterQueue by name (rules/05 §3).
    fn heads(&mut self, decision: &mut Decision) -> Vec<(QueueId, WorkloadId, Option<u32>)> {
        let waiting: Vec<QueueId> = self.pending.waiting.iter().map(|(_, queue)| *queue).collect();
        let mut heads = Vec::with_capacity(waiting.len());
        for (queue, workload, iteration) in self.take_second_passes() {
            if self.queues[queue].node.is_some() {
                heads.push((queue, workload, Some(iteration)));
            } else {
                let message = messages::queue_not_found(&self.names.queues[queue]).into();
                self.fail_second_pass(workload, iteration, message, decision);
            }
        }
        for queue in waiting {
            if !self.queues[queue].is_active() {
                continue;
            }
            let State { queues, local_queues, pending: PendingWork { places, .. }, config, .. } = self;
            let changes = config.changes;
            let usage = |id| {
                let config = config.admission_fair_sharing.as_ref();
                config.map_or(0.0, |config| local_queue_usage(config, &local_queues[id], changes))
            };
            if let Some(workload) = queues[queue].pending.pop(places, usage) {
                let record = self.workloads.get_mut(workload);
                record.evaluated_generation = record.row.generation;
                heads.push((queue, workload, None));
            }
        }
        heads
    }

    /// Sorts the entries into the order of decisions. With fair sharing each decision changes the order, so
    /// [`Tournament`](crate::schedule::tournament::Tournament) finds the next one.
    fn order(&self, round: &mut Round) {
        if self.config.fair_sharing.is_none() {
            sort_classical(&mut round.entries, self.config.gates);
        }
        let mut left: Vec<usize> = (0..round.entries.len()).collect();
        if self.config.fair_sharing.is_some() {
            // Of several heads of one ClusterQueue only the last one counts.
            let queue_of = |at: &usize| round.entries[*at].queue;
            let is_last = |at: &usize| !round.entries[at + 1..].iter().any(|later| later.queue == queue_of(at));
            if round.entries.iter().any(|entry| entry.second_pass.is_some()) {
                left.retain(is_last);
            }
        }
        round.left = Sorted::from_sorted(left);
    }

    /// Decides on the remaining entries one by one, in the order of the configured algorithm.
    pub(crate) fn process_entries(&mut self, round: &mut Round) -> Progress {
        let gates = self.config.gates;
        let mut refills = self.refills(round);
        while !round.left.is_empty() {
            let next = if self.config.fair_sharing.is_none() {
                *round.left.first().expect("not empty")
            } else {
                round.tournament.next(&mut self.ledger.forest, gates, &round.entries, &round.left)
            };
            round.left.remove(&next);
            let fitting = self.process(&mut round.entries[next], refills.has(next), &mut round.cycle);
            if let Fitting::Waits(slice) = fitting {
                return Progress::Waits { entry: next, slice };
            }
            self.refill(next, &mut refills, round);
        }
        Progress::Done
    }

    /// Rolls back the trial usage of the entries.
    pub(crate) fn take_back(&mut self, cycle: &mut Cycle) {
        for (tree, mark) in std::mem::take(&mut cycle.marks) {
            self.ledger.forest.tree_mut(tree).rollback(mark);
        }
        self.nodes.sites.rollback_all();
    }

    /// Writes the decisions, with all trial usage rolled back.
    pub(crate) fn write(&mut self, cycle: &mut Cycle, now: Time) {
        let assumed = std::mem::take(&mut cycle.assumed);
        self.ledger.unconfirmed.reserve(assumed.len());
        cycle.decision.admissions.reserve(assumed.len());
        cycle.decision.events.reserve(assumed.len());
        // The last write to a workload wins.
        let (placed_later, mut assumed): (Vec<_>, Vec<_>) = assumed.into_iter().partition(|it| it.is_victim);
        for it in assumed.iter_mut().filter(|it| it.had_quota) {
            let migrates = cycle.migrations.iter().any(|(from, _)| *from == it.workload);
            it.is_overwritten = (cycle.preempts(it.workload) || migrates) && !self.pending.came_evicted(it.workload);
        }
        self.assume(assumed, now, &mut cycle.decision);
        for (old, new) in std::mem::take(&mut cycle.replaced) {
            self.take_over_cluster(old, new);
            // Kueue's write is rejected then: the eviction has made a newer version.
            if !cycle.evictions.iter().any(|it| it.workload == old) {
                self.replace_slice(old, new, now, &mut cycle.decision);
            }
        }
        let evictions = std::mem::take(&mut cycle.evictions);
        let (later, first): (Vec<_>, Vec<_>) = evictions.into_iter().partition(|it| it.is_victim);
        for eviction in first {
            self.evict_from_failed_nodes(eviction, now, &mut cycle.decision);
        }
        for (target, preemptor, queue) in std::mem::take(&mut cycle.preemptions) {
            self.write_preemption(target, preemptor, queue, now, &mut cycle.decision);
        }
        for eviction in later {
            self.evict_from_failed_nodes(eviction, now, &mut cycle.decision);
        }
        self.assume(placed_later, now, &mut cycle.decision);
        for (from, to) in std::mem::take(&mut cycle.migrations) {
            self.write_migration(from, to, now, &mut cycle.decision);
        }
        self.show_victims(&cycle.victims);
    }

    /// Returns the pending heads to their queues, then writes why: table by table.
    pub(crate) fn requeue_entries(&mut self, round: Round, now: Time) -> Decision {
        let Round { mut entries, mut not_nominated, mut cycle, .. } = round;
        let stays =
            |entry: &&mut Entry| !matches!(entry.status, EntryStatus::Assumed | EntryStatus::Evicted) && !entry.is_gone;
        let pending: Vec<&mut Entry> = entries.iter_mut().chain(&mut not_nominated).filter(stays).collect();
        let back: Vec<Back> = pending.iter().map(|entry| self.give_back(entry, &mut cycle.decision)).collect();
        for (entry, back) in pending.into_iter().zip(back) {
            self.write_pending(entry, back, now, &mut cycle.decision);
        }
        cycle.decision.cycle = self.cycle;
        cycle.decision
    }
}
