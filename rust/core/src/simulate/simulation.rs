//! A simulation step by step: what comes next, and everything at one instant.

mod changes;
mod checkpoint;
mod cycles;
mod evictions;
mod jobs;
mod nodes;
mod quotas;
mod samples;
mod settle;
mod usage;
mod watch;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use self::checkpoint::ResumeError;
use self::cycles::Underway;
use self::jobs::{Jobs, TimerKind};
use self::samples::Samples;
use self::settle::Asking;
use self::watch::Watch;
use super::log_part::Mark;
use super::plan::{END, Ending, Happening, Options, Timers};
use super::record::{Log, Run, Step};
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Time;
use crate::quota::forest::NodeId;
use crate::state::records::Owner;
use crate::status::reasons::{FAILED, NODE_FAILURES, SUCCEEDED};

/// A simulation that the caller advances. The caller changes the engine only between two steps, at the time of the run,
/// and then calls [`Simulation::happened`].
#[derive(Clone, Debug)]
pub struct Simulation {
    options: Options,
    start: Time,
    clock: Time,
    /// When the scheduler is free for the next cycle, since a cycle takes time.
    free_at: Time,
    jobs: Jobs,
    samples: Samples,
    /// When pods will be gone from failed nodes.
    leaving: BTreeSet<(Time, String)>,
    /// Scheduled events, in order of time.
    happenings: VecDeque<Scheduled>,
    n_scheduled: u32,
    /// Which of them have happened since the last call of `take_happened`, by number.
    happened: Vec<u32>,
    /// What comes once all consequences of the last event are handled; `None`: nothing is in progress.
    then: Option<Then>,
    asking: Option<Asking>,
    /// The cycle in progress.
    underway: Option<Box<Underway>>,
    /// Number of successive cycles without a visible change.
    n_quiet: usize,
    /// How many of them end a round.
    patience: usize,
    n_cycles: u64,
    n_created: u64,
    n_finished: u64,
    watch: Watch,
    log: Arc<Log>,
    /// How much of the log is stored with a checkpoint.
    kept: Mark,
    /// The numbers of workloads.
    numbers: FxHashMap<WorkloadId, u32>,
    /// Finished workloads that need not be kept.
    over: Vec<WorkloadId>,
    /// Deleted workloads whose last charges are still to be recorded.
    departing: Vec<(WorkloadId, u32)>,
    /// Is usage recorded yet?
    follows_usage: bool,
    /// The nodes of the forest of quotas, with their codes in the log.
    quota_nodes: FxHashMap<NodeId, (u32, Owner)>,
    /// The codes of ClusterQueues (`true`) and Cohorts in the log, by name.
    quota_codes: FxHashMap<(bool, String), u32>,
    /// How often each workload had been evicted for each cause, by id, as far as recorded.
    evictions: BTreeMap<u32, Vec<i32>>,
}

/// A scheduled event.
#[derive(Clone, Debug)]
struct Scheduled {
    happening: Happening,
    /// Its index in scheduling order.
    number: u32,
    /// The number of the workload that it creates, if it does.
    workload: u32,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A cycle, or the part of one up to where it waits for pods.
    Cycle,
    /// All that happens at one instant.
    Instant,
    /// In the middle of either: the controllers that decide on checks are asked about these workloads, then the step
    /// continues.
    Ask(Vec<WorkloadId>),
    /// Nothing is left to do.
    Done(Ending),
}

/// What comes once all consequences are handled.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Something changed from outside between two steps.
    Outside,
    /// The instant continues with this stage.
    Instant(Time, Stage),
    /// The cycle that has decided ends, or waits.
    Cycle,
}

/// The stages of one instant, in this order.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// External events, then what jobs do by themselves.
    Happenings,
    /// Backoffs, execution times and waits have ended; samples remain.
    Rung,
}

enum Next {
    Cycle(Time),
    /// The cycle that waits for pods continues.
    GoOn,
    Instant(Time),
    End(Ending),
}

impl Simulation {
    /// A simulation that begins at `now`.
    pub fn new(options: Options, now: Time) -> Self {
        Self {
            options,
            start: now,
            clock: now,
            free_at: now,
            jobs: Jobs::default(),
            samples: Samples::default(),
            leaving: BTreeSet::new(),
            happenings: VecDeque::new(),
            n_scheduled: 0,
            happened: Vec::new(),
            then: None,
            asking: None,
            underway: None,
            n_quiet: 0,
            patience: 0,
            n_cycles: 0,
            n_created: 0,
            n_finished: 0,
            watch: Watch::default(),
            log: Arc::default(),
            kept: Mark::default(),
            numbers: FxHashMap::default(),
            over: Vec::new(),
            departing: Vec::new(),
            follows_usage: false,
            quota_nodes: FxHashMap::default(),
            quota_codes: FxHashMap::default(),
            evictions: BTreeMap::new(),
        }
    }

    /// Schedules events, ordered by time, and among equal times as given.
    pub fn schedule(&mut self, happenings: Vec<Happening>) {
        for happening in happenings {
            // Workloads are numbered as given, not by time.
            let workload = u32::try_from(self.log.workloads.len()).expect("fewer than 2^32 workloads");
            if self.options.keeps_log && happening.change.creates_workload() {
                Arc::make_mut(&mut self.log).workloads.push(None);
            }
            self.happenings.push_back(Scheduled { happening, number: self.n_scheduled, workload });
            self.n_scheduled += 1;
        }
        self.happenings.make_contiguous().sort_by_key(|it| it.happening.at);
    }

    /// The engine was changed from outside between two steps, or initialized: there may be consequences.
    pub fn happened(&mut self, engine: &mut Engine) {
        engine.state.now = self.clock;
        self.ask_anyway();
        self.then.get_or_insert(Then::Outside);
    }

    /// The current time. A cycle in progress advances it only once nothing is due before its end.
    pub fn now(&self) -> Time {
        self.clock
    }

    /// Moves the time to `now`; it never goes back.
    pub fn go_to(&mut self, now: Time) {
        self.clock = self.clock.max(now);
    }

    /// Which of the scheduled events have happened since the last call, by number in the order in which they were
    /// given.
    pub fn take_happened(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.happened)
    }

    /// Number of cycles so far.
    pub fn n_cycles(&self) -> u64 {
        self.n_cycles
    }

    /// How many workloads have come so far, and how many jobs have ended.
    pub fn progress(&self) -> (u64, u64) {
        (self.n_created, self.n_finished)
    }

    /// The log so far, without a cycle that waits for pods.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// When the next step is due; `None`: nothing is left to do.
    pub fn next_time(&self, engine: &Engine) -> Option<Time> {
        if self.then.is_some() {
            return Some(self.clock);
        }
        match self.next(engine) {
            Next::Cycle(time) | Next::Instant(time) => Some(time),
            Next::GoOn => Some(self.clock),
            // The step itself refuses what goes beyond the end of time.
            Next::End(ending) => (ending == Ending::OutOfTime).then_some(END),
        }
    }

    /// Has it reached its limit of cycles?
    pub fn is_cut(&self, engine: &Engine) -> bool {
        self.then.is_none() && matches!(self.next(engine), Next::End(Ending::CycleLimit))
    }

    /// Runs step by step up to `until`, or until a controller must be asked. `interrupted` is called before each step;
    /// it ends the run by returning `true`. `Done(Complete)`: nothing is left to do up to `until`.
    pub fn advance(
        &mut self,
        engine: &mut Engine,
        until: Option<Time>,
        mut interrupted: impl FnMut(&Self) -> bool,
    ) -> Turn {
        loop {
            if interrupted(self) {
                return Turn::Done(Ending::Interrupted);
            }
            if let Some(until) = until
                && self.then.is_none()
                && self.next_time(engine).is_some_and(|time| time > until)
            {
                return Turn::Done(Ending::Complete);
            }
            let turn = self.step(engine);
            if matches!(turn, Turn::Ask(_) | Turn::Done(_)) {
                return turn;
            }
        }
    }

    /// The next step: a cycle, or everything at one instant; first what is left of the previous one.
    pub fn step(&mut self, engine: &mut Engine) -> Turn {
        if self.then.is_none() {
            self.then = match self.next(engine) {
                Next::Cycle(time) => {
                    self.clock = time;
                    self.begin_cycle(engine)
                }
                Next::GoOn => self.decide(engine),
                Next::Instant(time) => {
                    self.clock = self.clock.max(time);
                    engine.state.now = self.clock;
                    self.wake(time);
                    self.go_on_with(engine, time, Stage::Happenings)
                }
                Next::End(ending) => {
                    self.clock = if ending == Ending::Complete { self.end() } else { self.clock };
                    return Turn::Done(ending);
                }
            };
        }
        let turn = if matches!(self.then, Some(Then::Cycle)) { Turn::Cycle } else { Turn::Instant };
        self.follow(engine).map_or(turn, Turn::Ask)
    }

    /// Handles the consequences of what has happened, without new events; returns the workloads to ask the controllers
    /// about first.
    pub fn follow(&mut self, engine: &mut Engine) -> Option<Vec<WorkloadId>> {
        while let Some(then) = self.then {
            if let Some(asked) = self.settle(engine) {
                return Some(asked);
            }
            self.then = match then {
                Then::Outside => {
                    self.begin_samples(engine);
                    self.end_instant(engine)
                }
                Then::Instant(time, stage) => self.go_on_with(engine, time, stage),
                Then::Cycle => self.end_cycle(engine),
            };
        }
        self.forget_finished(engine);
        None
    }

    fn next(&self, engine: &Engine) -> Next {
        let is_blocked = !engine.state.pending.unready.is_empty();
        if let Some(underway) = &self.underway {
            // A sleeping scheduler is not woken by its own earlier changes.
            return match self.next_instant(engine, false) {
                _ if underway.is_woken && !is_blocked => Next::GoOn,
                None if is_blocked => Next::End(Ending::Complete),
                None => Next::GoOn,
                Some(END) => Next::End(Ending::OutOfTime),
                Some(time) => Next::Instant(time),
            };
        }
        let wants_cycle = self.n_quiet < self.patience && engine.has_ready_heads();
        let begin = self.next_beat();
        let instant = self.next_instant(engine, wants_cycle);
        let goes_first = |time: Time| self.options.timers == Timers::WhenDue && time <= begin;
        match instant {
            Some(time) if !wants_cycle || goes_first(time) => {
                if time == END {
                    Next::End(Ending::OutOfTime)
                } else {
                    Next::Instant(time)
                }
            }
            _ if !wants_cycle => Next::End(Ending::Complete),
            _ if self.options.max_cycles.is_some_and(|max| self.n_cycles >= max) => Next::End(Ending::CycleLimit),
            _ if begin.0.saturating_add(self.options.cycle_step_ns) == END.0 => Next::End(Ending::OutOfTime),
            _ => Next::Cycle(begin),
        }
    }

    /// When the next cycle can begin.
    fn next_beat(&self) -> Time {
        let begin = self.clock.max(self.free_at);
        let step = self.options.cycle_step_ns;
        if !self.options.keeps_beat || step <= 0 {
            return begin;
        }
        let late = begin.since(self.start) % step;
        Time(begin.0.saturating_add(if late > 0 { step - late } else { 0 }))
    }

    /// When something is due next. Samples alone neither keep a run going nor end it as out of time.
    fn next_instant(&self, engine: &Engine, goes_on: bool) -> Option<Time> {
        let happening = self.happenings.front().map(|it| it.happening.at);
        let alarm = engine.state.feeds.agenda.first_alarm();
        let second_pass = engine.state.pending.second_passes.next_timer();
        let node = engine.state.nodes.node_watch.next(None);
        let leaving = self.leaving.first().map(|it| it.0);
        let experiment = engine.state.pending.experiments.next();
        let due = [happening, self.jobs.next_time(), alarm, self.next_wake(), second_pass, node, leaving, experiment];
        let next = due.into_iter().flatten().min();
        let sample = self.samples.next_time().filter(|_| goes_on || next.is_some_and(|next| next < END));
        [next, sample].into_iter().flatten().min()
    }

    /// Continues the instant `time`: external events, then timers, then waiting cycles.
    fn go_on_with(&mut self, engine: &mut Engine, time: Time, stage: Stage) -> Option<Then> {
        match stage {
            Stage::Happenings if self.happenings.front().is_some_and(|it| it.happening.at == time) => {
                if let Some(Scheduled { happening, number, workload }) = self.happenings.pop_front() {
                    self.happened.push(number);
                    self.ask_anyway();
                    self.change(engine, happening.change, workload);
                }
                Some(Then::Instant(time, stage))
            }
            Stage::Happenings => match self.jobs.take_due(time) {
                Some((kind, workload)) => {
                    if let Some(workload) = workload {
                        self.ring(engine, kind, workload);
                    }
                    Some(Then::Instant(time, stage))
                }
                None => {
                    engine.state.feeds.agenda.ring(time);
                    engine.state.pending.second_passes.ripen(time);
                    self.ring_nodes(&mut engine.state, time);
                    Some(Then::Instant(time, Stage::Rung))
                }
            },
            Stage::Rung => {
                self.take_samples(engine, time);
                self.end_instant(engine)
            }
        }
    }

    fn ring(&mut self, engine: &mut Engine, kind: TimerKind, workload: WorkloadId) {
        match kind {
            TimerKind::Stopped => self.stop(engine, workload),
            TimerKind::Finished => {
                let reason = if self.jobs.ends_failed(workload) { FAILED } else { SUCCEEDED };
                self.finish(engine, workload, reason, "done");
            }
            TimerKind::PodsReady => self.change_pods(engine, workload, true),
            TimerKind::PodFailed => self.change_pods(engine, workload, false),
        }
    }

    /// Drops finished workloads, which have no further effect.
    fn forget_finished(&mut self, engine: &mut Engine) {
        for id in std::mem::take(&mut self.over) {
            let workload = &engine.state.workloads.get(id).workload;
            // The causes of its evictions are read at the end of the run.
            let lost_nodes = workload.status.rare.evictions.iter().any(|it| it.reason == NODE_FAILURES);
            if !lost_nodes && self.jobs.forget(id) {
                if self.options.keeps_log {
                    let number = self.number(engine, id);
                    self.departing.push((id, number));
                    self.numbers.remove(&id);
                    self.evictions.remove(&id.0);
                }
                self.watch.forget(id);
                engine.state.drop_workload(id);
            }
        }
    }

    fn end_instant(&mut self, engine: &mut Engine) -> Option<Then> {
        match &mut self.underway {
            Some(underway) => {
                underway.is_woken = true;
                engine.state.ring_experiments(self.clock);
            }
            None => self.begin_round(engine),
        }
        None
    }

    fn note(&mut self, engine: &Engine, step: Step, id: WorkloadId) {
        self.n_created += u64::from(step == Step::Created);
        self.n_finished += u64::from(step == Step::Finished);
        self.watch.note(step, id, self.clock);
        if !self.options.keeps_log {
            return;
        }
        let number = self.number(engine, id);
        match step {
            Step::Created => self.note_home(engine, id, number),
            Step::Admitted | Step::Replaced => self.note_placement(engine, id, number),
            Step::Deleted => self.departing.push((id, number)),
            Step::Stopped | Step::Finished => {}
        }
        Arc::make_mut(&mut self.log).steps.push((self.clock, step, number));
    }

    /// Records where pods are, if Kueue has placed them.
    fn note_placement(&mut self, engine: &Engine, id: WorkloadId, number: u32) {
        let admission = &engine.state.workloads.get(id).workload.status.admission;
        let assignments = admission.as_ref().map(|admission| &admission.pod_set_assignments);
        if let Some(assignments) = assignments.filter(|it| it.are_placed()) {
            Arc::make_mut(&mut self.log).placements.push(self.clock, number, assignments);
        }
    }

    /// The record so far.
    pub fn record(&self, engine: &Engine) -> Run {
        let mut log = Arc::clone(&self.log);
        if let Some(waiting) = &self.underway {
            Arc::make_mut(&mut log).cycles.extend(self.recorded(engine, Underway::clone(waiting)));
        }
        let ending = match self.next(engine) {
            Next::End(ending) => ending,
            _ => Ending::Complete,
        };
        Run { ending, end: self.end(), n_cycles: self.n_cycles, log }
    }

    /// The end of the last cycle.
    fn end(&self) -> Time {
        let waits_until = self.underway.is_some().then(|| self.after(self.options.cycle_step_ns));
        self.clock.max(self.free_at).max(waits_until.unwrap_or_default())
    }
}
