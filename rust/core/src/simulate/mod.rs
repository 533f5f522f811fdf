//! A run through time: objects come, change and go, jobs run and end, cycles follow one another until nothing is left
//! to happen.
//!
//! The engine decides; here stands only what a cluster has around a scheduler, in virtual time: the order of events, the
//! controllers between two cycles, jobs that stop when they are evicted and end when their time is over, admission
//! checks that are ready at once. Nothing is left to chance, so equal input gives equal output.

mod changes;
mod jobs;
mod samples;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::engine::Engine;
use crate::engine::columns::Columns;
use crate::objects::{Object, Time};
use crate::queue::Parked;
use crate::schedule::decision::Decision;
pub use jobs::{JobPlan, PodsPlan};
use jobs::{Jobs, TimerKind};
use samples::Samples;

/// Something that happens from outside.
#[derive(Clone, Debug)]
pub struct Happening {
    /// When; late if the cycles before took longer.
    pub at: Time,
    /// What.
    pub change: Change,
}

/// What can happen from outside. What names an object that is gone, or a workload that has finished, is ignored.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object appears.
    Create {
        /// The object.
        object: Box<Object>,
        /// What the job of a Workload does.
        job: JobPlan,
    },
    /// A workload appears that is a row of columns.
    Submit {
        /// The columns.
        columns: Arc<Columns>,
        /// The row.
        row: usize,
        /// Run time in nanoseconds; `None`: for ever.
        run_ns: Option<i64>,
    },
    /// An object is replaced: its spec, of a Workload also its labels and annotations, and `status.reclaimablePods` if
    /// there are any.
    Update(Box<Object>),
    /// The job of a workload ends, whether it runs or not.
    Finish(Key),
    /// A workload is deleted.
    Delete(Key),
}

impl Change {
    fn creates_workload(&self) -> bool {
        match self {
            Change::Create { object, .. } => matches!(**object, Object::Workload(_)),
            Change::Submit { .. } => true,
            Change::Update(_) | Change::Finish(_) | Change::Delete(_) => false,
        }
    }
}

/// How time goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a cycle takes.
    pub cycle_step_ns: i64,
    /// So many cycles in a row without a visible change end a round; `None`: one more than the most flavors in any
    /// resource group, so that a head can try them all.
    pub quiet_cycles: Option<usize>,
    /// The run stops after this many cycles; `None`: it may go on for ever.
    pub max_cycles: Option<u64>,
    /// How long the job of an evicted workload takes to stop.
    pub eviction_ns: i64,
    /// Keep events, messages and who was parked of every cycle?
    pub keeps_messages: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left to happen.
    #[default]
    Complete,
    /// The limit of cycles was reached.
    CycleLimit,
    /// The caller asked for it.
    Interrupted,
    /// What comes next would happen, or end, at the end of time or later.
    OutOfTime,
}

/// The end of time: whatever would happen later saturates here, so nothing may happen at it.
const END: Time = Time(i64::MAX);

impl Ending {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Complete => "Complete",
            Ending::CycleLimit => "CycleLimit",
            Ending::Interrupted => "Interrupted",
            Ending::OutOfTime => "OutOfTime",
        }
    }
}

/// A cycle of a run.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Its number in the run, from 1.
    pub number: u64,
    /// When it began.
    pub time: Time,
    /// What it decided, with or without events and pending heads as [`Options::keeps_messages`] says.
    pub decision: Decision,
    /// How many workloads it parked.
    pub n_parked: usize,
    /// These workloads in the order of their keys, if [`Options::keeps_messages`] says so.
    pub parked: Vec<Key>,
}

/// What became of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It appeared.
    Created,
    /// It may start.
    Admitted,
    /// It was evicted, and its job has stopped.
    Stopped,
    /// Its job has ended.
    Finished,
    /// It is gone.
    Deleted,
}

impl Step {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Created => "Created",
            Step::Admitted => "Admitted",
            Step::Stopped => "Stopped",
            Step::Finished => "Finished",
            Step::Deleted => "Deleted",
        }
    }
}

/// What came of a run; the engine holds the state at its end.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Why it ended.
    pub ending: Ending,
    /// The time at its end.
    pub end: Time,
    /// Number of cycles.
    pub n_cycles: u64,
    /// The cycles in which anything happened, or, with messages, was said.
    pub cycles: Vec<Cycle>,
    /// What became of the workloads, in order of time; these by number.
    pub steps: Vec<(Time, Step, u32)>,
    /// Namespace and name by number: first those that the happenings create, in the order in which they were given,
    /// then others. `None`: it never appeared.
    pub workloads: Vec<Option<Key>>,
}

impl Run {
    /// Namespace and name of the workload of a step.
    pub fn key(&self, number: u32) -> &Key {
        self.workloads[number as usize].as_ref().expect("a workload with steps has appeared")
    }
}

/// Runs on from what the engine holds at `now` until nothing is left to happen. `happenings` are taken in the order of
/// their times, and among equal times as given. `interrupted` is asked between cycles; it ends the run with `true`.
pub fn simulate(
    engine: &mut Engine,
    happenings: Vec<Happening>,
    options: Options,
    now: Time,
    interrupted: impl FnMut() -> bool,
) -> Run {
    let mut n_created = 0;
    let number = |happening: Happening| {
        let number = n_created;
        n_created += u32::from(happening.change.creates_workload());
        (happening, number)
    };
    let mut numbered: Vec<(Happening, u32)> = happenings.into_iter().map(number).collect();
    numbered.sort_by_key(|(happening, _)| happening.at);
    let mut simulation = Simulation {
        engine,
        jobs: Jobs::default(),
        samples: Samples::default(),
        happenings: numbered.into(),
        options,
        clock: now,
        run: Run { workloads: vec![None; n_created as usize], ..Run::default() },
        numbers: FxHashMap::default(),
        interrupted,
    };
    simulation.run();
    simulation.run.end = simulation.clock;
    simulation.run
}

struct Simulation<'a, F> {
    engine: &'a mut Engine,
    jobs: Jobs,
    samples: Samples,
    /// What is to come, with the numbers of the workloads that are created.
    happenings: VecDeque<(Happening, u32)>,
    options: Options,
    clock: Time,
    run: Run,
    /// The numbers of workloads.
    numbers: FxHashMap<WorkloadId, u32>,
    interrupted: F,
}

impl<F: FnMut() -> bool> Simulation<'_, F> {
    fn run(&mut self) {
        self.engine.state.now = self.clock;
        self.settle();
        self.begin_samples();
        // What stands in the queues from the start is not kept waiting for the first event.
        let mut goes_on = self.round();
        while goes_on {
            if (self.interrupted)() {
                self.run.ending = Ending::Interrupted;
                return;
            }
            let Some(time) = self.next_time() else { return };
            if time == END {
                self.run.ending = Ending::OutOfTime;
                return;
            }
            self.instant(time);
            goes_on = self.round();
        }
    }

    /// All that happens at `time`: from outside, then by timers, then what was waited for.
    fn instant(&mut self, time: Time) {
        self.clock = self.clock.max(time);
        self.engine.state.now = self.clock;
        while self.happenings.front().is_some_and(|(happening, _)| happening.at == time) {
            if let Some((happening, number)) = self.happenings.pop_front() {
                self.change(happening.change, number);
                self.settle();
            }
        }
        while let Some((kind, workload)) = self.jobs.take_due(time) {
            match (kind, workload) {
                (TimerKind::Stopped, Some(workload)) => self.stop(workload),
                (TimerKind::Finished, Some(workload)) => self.finish(workload),
                (TimerKind::PodsReady, Some(workload)) => self.change_pods(workload, true),
                (TimerKind::PodFailed, Some(workload)) => self.change_pods(workload, false),
                (_, None) => {}
            }
            self.settle();
        }
        // Backoffs, execution times and waits that end.
        self.engine.state.agenda.ring(time);
        self.settle();
        self.take_samples(time);
    }

    /// When something happens next. Samples alone neither keep a run going nor end it as out of time.
    fn next_time(&self) -> Option<Time> {
        let happening = self.happenings.front().map(|(happening, _)| happening.at);
        let alarm = self.engine.state.agenda.first_alarm();
        let next = [happening, self.jobs.next_time(), alarm].into_iter().flatten().min()?;
        let sample = self.samples.next_time().filter(|_| next < END);
        Some(sample.map_or(next, |sample| sample.min(next)))
    }

    /// Cycle after cycle, until there is no head or nothing moves; `false` ends the run.
    fn round(&mut self) -> bool {
        self.engine.state.flush();
        let patience = self.options.quiet_cycles.unwrap_or_else(|| 1 + self.most_flavors());
        let mut n_quiet = 0;
        while n_quiet < patience && self.engine.has_heads() {
            if self.options.max_cycles.is_some_and(|max| self.run.n_cycles >= max) {
                self.run.ending = Ending::CycleLimit;
                return false;
            }
            if (self.interrupted)() {
                self.run.ending = Ending::Interrupted;
                return false;
            }
            match self.cycle() {
                Some(true) => n_quiet = 0,
                Some(false) => n_quiet += 1,
                None => return false,
            }
        }
        true
    }

    /// One cycle and what follows from it; did anything change that can be seen? `None`: it waits for ever, or time ends.
    fn cycle(&mut self) -> Option<bool> {
        let before = self.contents();
        let began = self.clock;
        let mut decision = self.engine.cycle(self.clock);
        self.run.n_cycles += 1;
        let parked_before = decision.waits_for_pods.as_ref().map(|_| self.parked());
        while decision.waits_for_pods.is_some() {
            self.deliver(&decision);
            self.settle();
            if !self.wait_for_pods() {
                break;
            }
            decision.go_on(self.engine.cycle(self.clock));
        }
        let is_over = decision.waits_for_pods.is_none();
        let kept = decision.pending.iter().filter(|kept| kept.parked).map(|kept| &kept.key);
        let mut n_parked = kept.clone().count() + decision.parked.iter().map(Parked::len).sum::<usize>();
        let mut parked = Vec::new();
        if let Some(before) = parked_before {
            // Others may have lost their quota while it waited.
            parked.extend(self.parked().difference(&before).cloned());
            n_parked = parked.len();
        } else if self.options.keeps_messages {
            parked.extend(kept.chain(decision.parked_keys()).cloned());
            parked.sort();
        }
        if !self.options.keeps_messages {
            // Who keeps them has them copied when they change.
            decision.parked = Vec::new();
        }
        self.deliver(&decision);
        self.settle();
        let changed = !decision.admissions.is_empty() || !decision.preemptions.is_empty() || before != self.contents();
        self.engine.state.flush();
        let is_told = self.options.keeps_messages && !decision.events.is_empty();
        if !self.options.keeps_messages {
            decision.events = Vec::new();
            decision.pending = Vec::new();
            parked = Vec::new();
        }
        if is_told || n_parked > 0 || !decision.admissions.is_empty() || !decision.preemptions.is_empty() {
            self.run.cycles.push(Cycle { number: self.run.n_cycles, time: began, decision, n_parked, parked });
        }
        self.clock = Time(self.clock.0.saturating_add(self.options.cycle_step_ns));
        self.engine.state.now = self.clock;
        if self.clock == END {
            self.run.ending = Ending::OutOfTime;
            return None;
        }
        is_over.then_some(changed)
    }

    /// Lets time go by until the pods of all workloads with quota are ready; `false`: that never happens.
    fn wait_for_pods(&mut self) -> bool {
        loop {
            if (self.interrupted)() {
                self.run.ending = Ending::Interrupted;
                return false;
            }
            // A sleeping scheduler is not woken by what it did itself before.
            match self.next_time() {
                Some(END) => {
                    self.run.ending = Ending::OutOfTime;
                    return false;
                }
                Some(time) => self.instant(time),
                None => return self.engine.state.unready.is_empty(),
            }
            if self.engine.state.unready.is_empty() {
                return true;
            }
        }
    }

    fn parked(&self) -> BTreeSet<Key> {
        let state = &self.engine.state;
        let parked = state.queues.iter().flat_map(|queue| queue.pending.inadmissible());
        parked.map(|id| state.workloads.get(id).key().clone()).collect()
    }

    /// What a cycle wrote comes back as updates of the objects.
    fn deliver(&mut self, decision: &Decision) {
        let state = &mut self.engine.state;
        let keeps_progress = state.gate(Gate::FlavorFungibilityPreserveScanProgress);
        state.deliver_writes();
        for kept in decision.pending.iter().filter(|kept| kept.written && !keeps_progress) {
            if let Some(id) = state.workloads.find(kept.key.namespace(), kept.key.name()) {
                state.workloads.get_mut(id).resume = None;
            }
        }
        // Nothing is written to what was parked in one step, so no controller hears of it.
        state.agenda.take_parked();
    }

    /// Controllers and jobs do what follows from changes, until nothing follows any more.
    fn settle(&mut self) {
        loop {
            let state = &self.engine.state;
            let touched = state.agenda.touched();
            let mut due: Vec<(Key, WorkloadId)> =
                touched.map(|id| (state.workloads.get(id).key().clone(), id)).collect();
            if due.is_empty() {
                break;
            }
            due.sort();
            for (_, id) in due {
                // A job hears of each write before the controller looks at it again.
                self.engine.state.pass_over(id, self.clock, &mut Vec::new());
                self.play(id);
            }
        }
        let state = &mut self.engine.state;
        state.forest.flush(&state.names);
    }

    fn contents(&self) -> Vec<u64> {
        self.engine.state.queues.iter().map(|queue| queue.pending.content()).collect()
    }

    fn most_flavors(&self) -> usize {
        let groups = self.engine.state.queues.iter().flat_map(|queue| &queue.rules.groups);
        groups.map(|group| group.flavors.len()).max().unwrap_or(0)
    }

    fn note(&mut self, step: Step, id: WorkloadId) {
        let Self { run, numbers, engine, .. } = self;
        let number = *numbers.entry(id).or_insert_with(|| {
            run.workloads.push(None);
            u32::try_from(run.workloads.len() - 1).expect("fewer than 2^32 workloads")
        });
        let key = &mut run.workloads[number as usize];
        if key.is_none() {
            *key = Some(engine.state.workloads.get(id).key().clone());
        }
        run.steps.push((self.clock, step, number));
    }
}
