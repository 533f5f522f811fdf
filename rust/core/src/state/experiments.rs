//! What waits for the time of an experiment: rules that Kueue does not have (rules/13). Empty while all are off.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::objects::Time;
use crate::objects::conditions::{self, find_true};
use crate::objects::config::Experiments;
use crate::snapshot::{Damage, Reader, Stored, Writer};
use crate::state::State;
use crate::status::reasons;
use crate::workloads::charge::Target;

/// Which workloads run since when, and which ClusterQueues wait before they borrow again.
#[derive(Clone, Debug, Default)]
pub struct ExperimentWaits {
    /// Since when workloads that hold quota have been Admitted. Evicted ones have had their turn.
    since: BTreeMap<WorkloadId, Time>,
    /// When they will have run for the time of an experiment, if nobody has looked since.
    ends: BTreeSet<(Time, WorkloadId)>,
    /// Until when a ClusterQueue does not borrow a flavor-resource again.
    backoffs: BTreeMap<(QueueId, FlavorResourceId), Time>,
    /// The last time that somebody looked.
    seen: Time,
}

/// The times of the experiments that count from an admission.
fn ends(config: Experiments, since: Time) -> impl Iterator<Item = Time> {
    let after = move |ns: i64| Time(since.0.saturating_add(ns));
    [config.min_run_ns, config.time_share_ns].into_iter().flatten().map(after)
}

impl ExperimentWaits {
    /// Since when a workload has been Admitted; `None`: it is not, or is evicted, or no experiment asks.
    pub(crate) fn since(&self, id: WorkloadId) -> Option<Time> {
        self.since.get(&id).copied()
    }

    /// Must a ClusterQueue wait before it borrows this again (rules/13 §3)?
    pub(crate) fn waits_to_borrow(&self, queue: QueueId, fr: FlavorResourceId, now: Time) -> bool {
        !self.backoffs.is_empty() && self.backoffs.get(&(queue, fr)).is_some_and(|until| now < *until)
    }

    /// The workload holds no quota any more.
    pub(crate) fn end_turn(&mut self, id: WorkloadId, config: Experiments) {
        if let Some(since) = self.since.remove(&id) {
            ends(config, since).for_each(|at| _ = self.ends.remove(&(at, id)));
        }
    }

    /// The first time at which a wait ends, past or not.
    pub(crate) fn next(&self) -> Option<Time> {
        self.ends.first().map(|(at, _)| *at).into_iter().chain(self.backoffs.values().copied()).min()
    }

    /// The first time after `now` at which a wait ends.
    pub(crate) fn next_after(&self, now: Time) -> Option<Time> {
        let turns = self.ends.range((Time(now.0.saturating_add(1)), WorkloadId(0))..).next().map(|(at, _)| *at);
        turns.into_iter().chain(self.backoffs.values().copied().filter(|until| *until > now)).min()
    }

    /// For how long a workload that runs has still to run, for each experiment that asks; 0 once it has.
    pub(crate) fn turn_left(&self, id: WorkloadId, config: Experiments, now: Time) -> impl Iterator<Item = i64> {
        let since = self.since(id).into_iter();
        since.flat_map(move |since| ends(config, since)).map(move |at| at.0.saturating_sub(now.0).max(0))
    }

    /// Which ClusterQueues must not borrow what again yet, and for how long.
    pub(crate) fn backoffs_left(&self, now: Time) -> impl Iterator<Item = (QueueId, FlavorResourceId, i64)> {
        let waiting = self.backoffs.iter().filter(move |(_, until)| **until > now);
        waiting.map(move |(&(queue, fr), until)| (queue, fr, until.0.saturating_sub(now.0)))
    }

    fn begin_turn(&mut self, id: WorkloadId, since: Time, config: Experiments) {
        self.since.insert(id, since);
        self.ends.extend(ends(config, since).filter(|at| *at > self.seen).map(|at| (at, id)));
    }
}

impl Stored for ExperimentWaits {
    /// Turns follow from the workloads ([`State::restore_turns`]).
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { since: _, ends: _, backoffs, seen } = self;
        out.count(backoffs.len());
        for (&(queue, fr), until) in backoffs {
            queue.write_to(out);
            fr.write_to(out);
            until.write_to(out);
        }
        seen.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut backoffs = BTreeMap::new();
        for _ in 0..from.count()? {
            let key = (Stored::read_from(from)?, Stored::read_from(from)?);
            let before = backoffs.insert(key, Stored::read_from(from)?);
            from.check(before.is_none(), "a ClusterQueue that waits twice for the same")?;
        }
        Ok(Self { backoffs, seen: Stored::read_from(from)?, ..Self::default() })
    }
}

impl State {
    /// Notes since when a workload with quota runs, after its conditions have changed.
    pub(crate) fn note_turn(&mut self, id: WorkloadId) {
        let config = self.config.experiments;
        if config.min_run_ns.is_none() && config.time_share_ns.is_none() {
            return;
        }
        let record = self.workloads.get(id);
        let admitted = find_true(&record.workload.status.conditions, conditions::ADMITTED);
        let since = admitted.map(|it| it.last_transition).filter(|_| !record.row.is_evicted);
        let waits = &mut self.pending.experiments;
        if waits.since(id) != since {
            waits.end_turn(id, config);
            if let Some(since) = since {
                waits.begin_turn(id, since, config);
            }
        }
    }

    /// Notes all turns again, after a load.
    pub(crate) fn restore_turns(&mut self) {
        let all = self.workloads.iter().filter(|(_, record)| record.charge.is_some());
        let all: Vec<WorkloadId> = all.map(|(id, _)| id).collect();
        all.into_iter().for_each(|id| self.note_turn(id));
    }

    /// A workload is preempted: what it used is not borrowed again for a while, if it was reclaimed (rules/13 §3).
    pub(crate) fn note_reclaim(&mut self, target: &Target, now: Time) {
        let Some(backoff) = self.config.experiments.reclaim_backoff_ns else { return };
        if !matches!(target.reason, reasons::IN_COHORT_RECLAMATION | reasons::IN_COHORT_RECLAIM_WHILE_BORROWING) {
            return;
        }
        let Some(charge) = self.workloads.get(target.workload).charge.clone() else { return };
        let until = Time(now.0.saturating_add(backoff));
        let backoffs = &mut self.pending.experiments.backoffs;
        backoffs.extend(charge.usage.iter().map(|(fr, _)| ((target.queue, *fr), until)));
    }

    /// Requests a retry of the trees in which a wait has ended by `now` (rules/13 §5).
    pub(crate) fn ring_experiments(&mut self, now: Time) {
        if !self.config.experiments.are_on() {
            return;
        }
        let waits = &mut self.pending.experiments;
        let mut due: BTreeSet<QueueId> = BTreeSet::new();
        waits.backoffs.retain(|(queue, _), until| {
            let is_over = *until <= now;
            due.extend(is_over.then_some(*queue));
            !is_over
        });
        let later = waits.ends.split_off(&(Time(now.0.saturating_add(1)), WorkloadId(0)));
        let over = std::mem::replace(&mut waits.ends, later);
        waits.seen = waits.seen.max(now);
        due.extend(over.into_iter().filter_map(|(_, id)| self.workloads.get(id).cached_in()));
        due.into_iter().for_each(|queue| self.request_flush(queue));
    }
}

#[cfg(test)]
mod tests;
