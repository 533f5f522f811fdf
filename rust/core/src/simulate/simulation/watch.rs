//! Looks ahead: runs until the workloads that somebody asks about have been admitted.

use rustc_hash::FxHashMap;

use super::jobs::TimerKind;
use super::{Next, Simulation, Turn};
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Time;
use crate::simulate::plan::Ending;
use crate::simulate::record::Step;

/// An eviction counts as this many steps more: it takes a search, and leads to another admission. Where workloads
/// keep preempting each other, nearly all steps are evictions.
const MORE_OF_AN_EVICTION: u64 = 4;

/// When workloads were first admitted, and how much has happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The watched workloads, with their places in `admitted`.
    places: FxHashMap<WorkloadId, usize>,
    admitted: Vec<Option<Time>>,
    /// How many of them have not been admitted.
    n_left: usize,
    n_counted: u64,
}

impl Watch {
    pub(super) fn note(&mut self, step: Step, id: WorkloadId, now: Time) {
        self.n_counted += 1 + if step == Step::Stopped { MORE_OF_AN_EVICTION } else { 0 };
        if step == Step::Admitted {
            self.admit(id, now);
        }
    }

    /// A workload is gone, so its slot may be reused.
    pub(super) fn forget(&mut self, id: WorkloadId) {
        self.places.remove(&id);
    }

    fn admit(&mut self, id: WorkloadId, now: Time) {
        if let Some(admitted) = self.places.get(&id).map(|place| &mut self.admitted[*place]) {
            self.n_left -= usize::from(admitted.is_none());
            admitted.get_or_insert(now);
        }
    }
}

impl Simulation {
    /// From now on watches these workloads; those whose jobs run count as admitted now.
    pub fn watch(&mut self, ids: &[WorkloadId]) {
        let n_counted = self.watch.n_counted;
        let places: FxHashMap<_, _> = ids.iter().copied().zip(0..).collect();
        self.watch = Watch { n_left: places.len(), admitted: vec![None; ids.len()], places, n_counted };
        for id in ids {
            if self.is_running(*id) {
                self.watch.admit(*id, self.clock);
            }
        }
    }

    /// When each watched workload was first admitted.
    pub fn admitted(&self) -> &[Option<Time>] {
        &self.watch.admitted
    }

    /// Have all watched workloads been admitted?
    pub fn has_seen_all(&self) -> bool {
        self.watch.n_left == 0
    }

    /// How many arrivals, admissions, evictions and ends there were; an eviction counts as five.
    pub fn n_counted(&self) -> u64 {
        self.watch.n_counted
    }

    /// Sets how long the job of a workload runs in total (`None`: forever), and how much of that is done by now.
    pub fn set_run(&mut self, engine: &Engine, id: WorkloadId, run_ns: Option<i64>, done_ns: i64) {
        let now = self.clock;
        let Some(end) = self.jobs.set_run(id, run_ns, done_ns, now) else { return };
        let key = engine.state.workloads.get(id).key().clone();
        self.jobs.set(id, &key, TimerKind::Finished, end);
    }

    /// Does everything that happens now, up to where a cycle begins or time goes by; returns the workloads to ask the
    /// controllers about first.
    pub fn arrive(&mut self, engine: &mut Engine) -> Option<Vec<WorkloadId>> {
        let is_due = |it: &Self, engine: &Engine| matches!(it.next(engine), Next::Instant(time) if time <= it.clock);
        while self.then.is_some() || is_due(self, engine) {
            if let Turn::Ask(asked) = self.step(engine) {
                return Some(asked);
            }
        }
        None
    }

    /// Like [`Simulation::advance`], but also ends as soon as all watched workloads have been admitted, or this much has
    /// been counted.
    pub fn look_ahead(
        &mut self,
        engine: &mut Engine,
        until: Time,
        most: Option<u64>,
        mut interrupted: impl FnMut(&Self) -> bool,
    ) -> Turn {
        let is_enough = |it: &Self| it.has_seen_all() || most.is_some_and(|most| it.n_counted() >= most);
        match self.advance(engine, Some(until), |it| is_enough(it) || interrupted(it)) {
            Turn::Done(Ending::Interrupted) if is_enough(self) => Turn::Done(Ending::Complete),
            Turn::Done(Ending::Complete) => {
                self.go_to(until);
                Turn::Done(Ending::Complete)
            }
            turn => turn,
        }
    }
}

#[cfg(test)]
mod tests;
