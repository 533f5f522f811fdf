//! A waiting cycle as bytes ([`crate::snapshot`]): the state as it sees it, and its data.

use std::sync::Arc;

use super::Waiting;
use crate::assign::Assignment;
use crate::base::ids::{Id, IdSet, ShapeId};
use crate::base::sorted::Sorted;
use crate::schedule::entry::{Entry, EntryStatus};
use crate::schedule::round::{Cycle, Round};
use crate::schedule::tournament::Tournament;
use crate::schedule::victims::Victims;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::State;

stored!(enum EntryStatus { 0 = NotNominated, 1 = Nominated, 2 = Skipped, 3 = PreemptionGated, 4 = Assumed, 5 = Evicted });

impl Waiting {
    /// The shapes of its entries. They belong to the engine in which it waits, and are written there.
    pub(crate) fn shapes(&self) -> Vec<Option<ShapeId>> {
        self.round.entries.iter().chain(&self.round.not_nominated).map(|entry| entry.shape).collect()
    }

    /// Writes the cycle without these shapes. It waits in an engine with this state.
    pub(crate) fn store(&self, of: &State) -> Vec<u8> {
        let Self { seen, round, entry, slice } = self;
        let mut out = Writer::new(&seen.names);
        seen.store(&mut out);
        // A workload replaced by another one of the same name is not admitted.
        let mut same = IdSet::default();
        let is_same = |id, key| of.workloads.find_by_id(id).is_some_and(|record| record.key().is_copy(key));
        let ids = seen.workloads.iter().filter(|(id, record)| is_same(*id, record.key()));
        ids.for_each(|(id, _)| _ = same.insert(id));
        same.write_to(&mut out);
        round.store(&mut out);
        entry.write_to(&mut out);
        slice.write_to(&mut out);
        out.finish()
    }

    /// Reads it.
    pub(crate) fn restore(of: &State, shapes: Vec<Option<ShapeId>>, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut seen = State::restore(from)?;
        for id in from.live_workloads()?.iter() {
            let key = of.workloads.find_by_id(id).map(|record| record.key());
            let own = &mut seen.workloads.get_mut(id).workload.meta.key;
            let Some(key) = key.filter(|key| key.is_same(own)) else {
                return Err(from.damage("a workload that was replaced"));
            };
            *own = key.clone();
        }
        let mut round = Round::restore(&seen, from)?;
        let (entry, slice) = (from.index(round.entries.len(), "entry")?, Stored::read_from(from)?);
        round.check(&seen, of, from)?;
        from.check(shapes.len() == round.entries.len() + round.not_nominated.len(), "entries without shapes")?;
        let entries = round.entries.iter_mut().chain(&mut round.not_nominated);
        entries.zip(shapes).for_each(|(entry, shape)| entry.shape = shape);
        Ok(Self { seen, round, entry, slice })
    }
}

impl Round {
    /// Decisions are already written, and the order is recomputed.
    fn store(&self, out: &mut Writer<'_>) {
        let Self { entries, not_nominated, left, tournament: _, cycle } = self;
        let Cycle { marks: _, decision: _, assumed, replaced, preemptions, evictions, migrations, victims } = cycle;
        debug_assert!(assumed.is_empty() && replaced.is_empty() && preemptions.is_empty());
        debug_assert!(evictions.is_empty() && migrations.is_empty());
        for entries in [entries, not_nominated] {
            out.count(entries.len());
            entries.iter().for_each(|entry| entry.store(out));
        }
        out.list(left.iter().collect::<Vec<_>>().into_iter());
        victims.store(out);
    }

    fn restore(seen: &State, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let entries = from.list(|from| Entry::restore(seen, from))?;
        let not_nominated = from.list(|from| Entry::restore(seen, from))?;
        let left = from.list(|from| from.index(entries.len(), "entry"))?;
        from.check(left.is_sorted_by(|a, b| a < b), "entries that are not in order")?;
        let cycle = Cycle { victims: Victims::restore(&seen.ledger.forest, from)?, ..Cycle::default() };
        let (left, tournament) = (Sorted::from_sorted(left), Tournament::default());
        Ok(Self { entries, not_nominated, left, tournament, cycle })
    }

    /// Are the ids in it valid where they are used?
    fn check(&self, seen: &State, now: &State, from: &Reader<'_>) -> Result<(), Damage> {
        let are_nominated = self.entries.iter().all(|entry| entry.assignment.is_some());
        from.check(are_nominated, "an entry without an assignment")?;
        for entry in self.entries.iter().chain(&self.not_nominated) {
            let known = |id: crate::base::ids::QueueId| id.index() < now.queues.len();
            let is_known = known(entry.queue) && entry.targets.iter().all(|target| known(target.queue));
            from.check(is_known, "an unknown ClusterQueue")?;
            let Some(assignment) = &entry.assignment else { continue };
            let n_sets = seen.workloads.get(entry.workload).spec.adjusted.len();
            let names = &now.names;
            let is_known = assignment.pod_sets().iter().all(|pod_set| {
                pod_set.index < n_sets
                    && pod_set.requests.iter().all(|(resource, _)| resource.index() < names.n_resources())
                    && pod_set.flavors.iter().all(|choice| {
                        choice.flavor.index() < names.flavors.len() && choice.resource.index() < names.n_resources()
                    })
            });
            from.check(is_known, "an assignment with unknown names")?;
        }
        Ok(())
    }
}

impl Entry {
    fn store(&self, out: &mut Writer<'_>) {
        let Self {
            workload,
            queue,
            // Located by its ClusterQueue.
            node: _,
            tree: _,
            row: _,
            assignment,
            targets,
            stands,
            shape: _,
            generation,
            starts_over,
            status,
            message,
            reason,
            requeue,
            silent,
            is_gone,
            is_homeless,
            has_reservation,
            second_pass,
            is_preemptor,
            priority,
            time,
        } = self;
        workload.write_to(out);
        queue.write_to(out);
        assignment.is_some().write_to(out);
        assignment.iter().for_each(|assignment| assignment.write_to(out));
        targets.write_to(out);
        stands.write_to(out);
        generation.write_to(out);
        starts_over.write_to(out);
        status.write_to(out);
        message.write_to(out);
        reason.write_to(out);
        requeue.write_to(out);
        silent.write_to(out);
        is_gone.write_to(out);
        is_homeless.write_to(out);
        has_reservation.write_to(out);
        second_pass.write_to(out);
        is_preemptor.write_to(out);
        priority.write_to(out);
        time.write_to(out);
    }

    fn restore(seen: &State, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let (workload, queue) = (Stored::read_from(from)?, Stored::read_from(from)?);
        let Some(node) = seen.queues[queue].node else { return Err(from.damage("a head without a ClusterQueue")) };
        let (tree, row) = seen.ledger.forest.locate(node);
        Ok(Self {
            workload,
            queue,
            node,
            tree,
            row,
            assignment: Option::<Assignment>::read_from(from)?.map(Arc::new),
            targets: Stored::read_from(from)?,
            stands: Stored::read_from(from)?,
            shape: None,
            generation: Stored::read_from(from)?,
            starts_over: Stored::read_from(from)?,
            status: Stored::read_from(from)?,
            message: Stored::read_from(from)?,
            reason: Stored::read_from(from)?,
            requeue: Stored::read_from(from)?,
            silent: Stored::read_from(from)?,
            is_gone: Stored::read_from(from)?,
            is_homeless: Stored::read_from(from)?,
            has_reservation: Stored::read_from(from)?,
            second_pass: Stored::read_from(from)?,
            is_preemptor: Stored::read_from(from)?,
            priority: Stored::read_from(from)?,
            time: Stored::read_from(from)?,
        })
    }
}
