//! A simulation in virtual time that advances step by step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine as core;
use kueuecore::objects::{Object, Time, Workload};
use kueuecore::simulate::{self, Change, JobPlan, Options, Timers, Turn};
use kueuecore_wire::field_error::Rejection;
use kueuecore_wire::scenario::{created, happenings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::{CopyBytes, SubmissionBytes, columns_error, copies_error, decode_copies, decode_submissions};
use crate::decision::{EventRow, event_row};
use crate::engine::Engine;
use crate::errors::{manifest_error, unknown_object};
use crate::intake_report::door;
use crate::record::Record;

/// What a step was (`Cycle`, `Instant`, `Ask`, `Paused`, or why there was none), and the workloads to ask the
/// controllers about.
pub type TurnRow = (&'static str, Vec<(String, String)>);

/// Few enough to show progress, enough that reporting costs nothing.
const STEPS_BETWEEN_REPORTS: u64 = 64;

/// The clock of a run; calls that need the engine take it as an argument.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Simulation {
    inner: Mutex<simulate::Simulation>,
    start: Time,
}

impl Simulation {
    /// Releases the GIL before waiting for the lock: a run that holds the lock may need the GIL.
    pub(crate) fn look<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut simulate::Simulation) -> R + Send) -> R {
        py.detach(|| work(&mut self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, simulate::Simulation> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on both, then moves the engine's time up to that of the run.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        engine: &Engine,
        work: impl FnOnce(&mut simulate::Simulation, &mut core::Engine) -> R + Send,
    ) -> PyResult<R> {
        engine.run(py, |engine, journal| {
            let mut simulation = self.lock();
            let result = work(&mut simulation, engine);
            journal.now = journal.now.max(simulation.now().0);
            result
        })
    }

    fn run_on_workload<R: Send>(
        &self,
        py: Python<'_>,
        engine: &Engine,
        (namespace, name): (&str, &str),
        work: impl FnOnce(&mut simulate::Simulation, &mut core::Engine, WorkloadId) -> R + Send,
    ) -> PyResult<Option<R>> {
        self.run(py, engine, |simulation, engine| {
            let id = engine.state.workloads.find(namespace, name)?;
            Some(work(simulation, engine, id))
        })
    }
}

impl Simulation {
    /// The templates of copies, given as events that create them.
    pub(crate) fn read_templates(
        &self,
        py: Python<'_>,
        engine: &Engine,
        templates: &[u8],
        trusted: bool,
    ) -> PyResult<Vec<(Workload, JobPlan)>> {
        let read = self
            .run(py, engine, |_, engine| happenings(templates, door(trusted), &engine.state.config, self.start, &[]))?;
        let mut found = Vec::new();
        for happening in read.map_err(|rejections| manifest_error(py, &rejections))? {
            match happening.change {
                Change::Create { object, job } if matches!(*object, Object::Workload(_)) => {
                    let Object::Workload(workload) = *object else { continue };
                    found.push((*workload, job));
                }
                _ => return Err(PyValueError::new_err("a template must create a Workload")),
            }
        }
        Ok(found)
    }
}

pub fn row(engine: &core::Engine, turn: Turn) -> TurnRow {
    let key = |id: WorkloadId| {
        let key = engine.state.workloads.get(id).key();
        (key.namespace().to_owned(), key.name().to_owned())
    };
    match turn {
        Turn::Cycle => ("Cycle", Vec::new()),
        Turn::Instant => ("Instant", Vec::new()),
        Turn::Ask(asked) => ("Ask", asked.into_iter().map(key).collect()),
        Turn::Done(ending) => (ending.name(), Vec::new()),
    }
}

#[pymethods]
impl Simulation {
    /// A run from `now` (nanoseconds since 1970). `options`: nanoseconds of a cycle, most cycles, nanoseconds of an
    /// eviction, and whether messages, cycles, finished workloads, the log and the beat of cycles are kept.
    /// `controllers`: who decides on AdmissionChecks and is asked; `None`: nobody. `recorded`: as Kueue's recorded runs
    /// went, how many quiet cycles end a round (`None`: as ever), and whether timers wait for its end.
    #[new]
    #[pyo3(signature = (now, options, controllers, recorded=None))]
    fn new(
        now: i64,
        options: (i64, Option<u64>, i64, [bool; 5]),
        controllers: Option<Vec<String>>,
        recorded: Option<(Option<usize>, bool)>,
    ) -> Self {
        let (
            cycle_step_ns,
            max_cycles,
            eviction_ns,
            [keeps_messages, keeps_cycles, keeps_finished, keeps_log, keeps_beat],
        ) = options;
        let options = Options {
            cycle_step_ns,
            quiet_cycles: recorded.and_then(|(quiet_cycles, _)| quiet_cycles),
            max_cycles,
            eviction_ns,
            keeps_messages,
            keeps_cycles,
            keeps_finished,
            keeps_log,
            keeps_beat,
            timers: if recorded.is_some_and(|(_, waits)| waits) { Timers::AfterRound } else { Timers::WhenDue },
        };
        let mut inner = simulate::Simulation::new(options, Time(now));
        if let Some(controllers) = controllers {
            inner.ask(controllers);
        }
        Self { inner: Mutex::new(inner), start: Time(now) }
    }

    /// An independent copy; its engine is a fork of this one's.
    fn fork(&self, py: Python<'_>) -> Self {
        Self { inner: Mutex::new(self.look(py, |simulation| simulation.clone())), start: self.start }
    }

    /// Schedules events. `events`: JSON, one per line; they come after the `submissions`. `watched`: the kinds besides
    /// Kueue's that the caller uses. All or nothing.
    fn schedule(
        &self,
        py: Python<'_>,
        engine: &Engine,
        submissions: Vec<SubmissionBytes>,
        events: &[u8],
        trusted: bool,
        watched: Vec<String>,
    ) -> PyResult<()> {
        let mut scheduled = Vec::new();
        for rows in submissions {
            scheduled.extend(decode_submissions(rows).happenings().map_err(|error| columns_error(&error))?);
        }
        let refused = self.run(py, engine, |simulation, engine| {
            let config = &engine.state.config;
            scheduled.extend(happenings(events, door(trusted), config, self.start, &watched)?);
            simulation.schedule(scheduled);
            Ok(())
        })?;
        refused.map_err(|rejections: Vec<Rejection>| manifest_error(py, &rejections))
    }

    /// Schedules copies of workloads. `templates`: JSON, one per line, as events that create them. All or nothing.
    fn schedule_copies(
        &self,
        py: Python<'_>,
        engine: &Engine,
        templates: &[u8],
        rows: CopyBytes,
        trusted: bool,
    ) -> PyResult<()> {
        let mut copies = decode_copies(rows)?;
        copies.templates = Arc::new(self.read_templates(py, engine, templates, trusted)?);
        let scheduled = copies.happenings().map_err(|error| copies_error(&error))?;
        self.look(py, |simulation| simulation.schedule(scheduled));
        Ok(())
    }

    /// The engine was changed from outside: the next cycle may have something to do.
    fn happened(&self, py: Python<'_>, engine: &Engine) -> PyResult<()> {
        self.run(py, engine, simulate::Simulation::happened)
    }

    /// Handles the consequences of what has happened, without new events: `Instant`, or `Ask`.
    fn follow(&self, py: Python<'_>, engine: &Engine) -> PyResult<TurnRow> {
        self.run(py, engine, |simulation, engine| {
            let turn = simulation.follow(engine).map_or(Turn::Instant, Turn::Ask);
            row(engine, turn)
        })
    }

    /// The next step: a cycle, or all that happens at one instant.
    fn step(&self, py: Python<'_>, engine: &Engine) -> PyResult<TurnRow> {
        self.run(py, engine, |simulation, engine| {
            let turn = simulation.step(engine);
            row(engine, turn)
        })
    }

    /// Runs step by step up to a time, or until a controller must be asked. `progress` is called every few steps with
    /// the time, and how many workloads have come and how many jobs have ended; it must not use the run. Once it has
    /// returned `True`, the run pauses (`Paused`) as soon as a checkpoint can be made; with `pauses`, from the first
    /// step on.
    fn advance(
        &self,
        py: Python<'_>,
        engine: &Engine,
        until: Option<i64>,
        progress: Option<Py<PyAny>>,
        pauses: bool,
    ) -> PyResult<TurnRow> {
        let (mut raised, mut n_steps, mut pauses, mut is_paused) = (None, 0u64, pauses, false);
        let turn = self.run(py, engine, |simulation, engine| {
            let turn = simulation.advance(engine, until.map(Time), |simulation| {
                n_steps += 1;
                is_paused = pauses && simulation.is_between_cycles();
                if is_paused {
                    return true;
                }
                // Ctrl-C ends the run between two steps.
                raised = Python::attach(|py| {
                    py.check_signals()?;
                    match &progress {
                        Some(progress) if n_steps % STEPS_BETWEEN_REPORTS == 0 => {
                            let (n_created, n_finished) = simulation.progress();
                            let answer = progress.call1(py, (simulation.now().0, n_created, n_finished))?;
                            pauses |= answer.is_truthy(py)?;
                            Ok(())
                        }
                        _ => Ok(()),
                    }
                })
                .err();
                raised.is_some()
            });
            row(engine, turn)
        })?;
        let turn = if is_paused { ("Paused", Vec::new()) } else { turn };
        raised.map_or(Ok(turn), Err)
    }

    /// What has happened since the last checkpoint that was kept, to be appended to the earlier parts.
    fn log_part<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.look(py, |simulation| simulation.log_part()))
    }

    /// A checkpoint of the run and the engine, with a note; `None`: it can't be saved now, or never.
    fn checkpoint<'py>(&self, py: Python<'py>, engine: &Engine, note: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let saved = self.run(py, engine, |simulation, engine| simulation.checkpoint(engine, note))?;
        Ok(saved.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// The last checkpoint, and all parts of the log up to it, have been stored.
    fn kept(&self, py: Python<'_>) {
        self.look(py, simulate::Simulation::kept);
    }

    /// The note in a checkpoint.
    #[staticmethod]
    fn note_of<'py>(py: Python<'py>, checkpoint: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let note = simulate::Simulation::note_of(checkpoint);
        note.map(|note| PyBytes::new(py, &note)).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Resumes a run, and its engine, from a checkpoint. All or nothing.
    fn resume(&self, py: Python<'_>, engine: &Engine, checkpoint: &[u8], log: &[u8]) -> PyResult<()> {
        let resumed = self.run(py, engine, |simulation, engine| simulation.resume(engine, checkpoint, log))?;
        resumed.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The controllers have answered; `wake`: when time alone gives them something to say; `again`: whether they have
    /// more to say.
    fn answered(&self, py: Python<'_>, wake: Option<i64>, again: bool) {
        self.look(py, |simulation| simulation.answered(wake.map(Time), again));
    }

    /// When the controllers asked to be asked again; `None`: never, or that time has come.
    #[getter]
    fn wake(&self, py: Python<'_>) -> Option<i64> {
        self.look(py, |simulation| simulation.next_wake().map(|time| time.0))
    }

    /// The time, in nanoseconds since 1970.
    #[getter]
    fn now(&self, py: Python<'_>) -> i64 {
        self.look(py, |simulation| simulation.now().0)
    }

    /// Moves the time to `now`; it never goes back.
    fn go_to(&self, py: Python<'_>, now: i64) {
        self.look(py, |simulation| simulation.go_to(Time(now)));
    }

    /// When the next step is due; `None`: nothing is left to do.
    fn next_time(&self, py: Python<'_>, engine: &Engine) -> PyResult<Option<i64>> {
        self.run(py, engine, |simulation, engine| simulation.next_time(engine).map(|time| time.0))
    }

    /// Has it reached its limit of cycles?
    fn is_cut(&self, py: Python<'_>, engine: &Engine) -> PyResult<bool> {
        self.run(py, engine, |simulation, engine| simulation.is_cut(engine))
    }

    /// Number of cycles so far.
    #[getter]
    fn n_cycles(&self, py: Python<'_>) -> u64 {
        self.look(py, |simulation| simulation.n_cycles())
    }

    /// Which of the scheduled events have happened since the last call, by number in the order in which they were
    /// given.
    fn take_happened(&self, py: Python<'_>) -> Vec<u32> {
        self.look(py, simulate::Simulation::take_happened)
    }

    /// Sets the job of a workload that has just appeared. `event`: what could have created it, with its key for the
    /// object.
    fn created(&self, py: Python<'_>, engine: &Engine, event: &[u8]) -> PyResult<()> {
        let (key, plan) = created(event, self.start).map_err(|rejections| manifest_error(py, &rejections))?;
        let (namespace, name) = (key.namespace(), key.name());
        let found = self.run_on_workload(py, engine, (namespace, name), |simulation, engine, id| {
            simulation.created(engine, id, plan);
        })?;
        found.ok_or_else(|| unknown_object(py, "Workload", namespace, name))
    }

    /// Deletes a workload and its job; `False` if there is none.
    fn delete(&self, py: Python<'_>, engine: &Engine, namespace: &str, name: &str) -> PyResult<bool> {
        let found = self.run_on_workload(py, engine, (namespace, name), simulate::Simulation::delete)?;
        Ok(found.is_some())
    }

    /// Ends the job of a workload; `False` if it had ended before, or there is none.
    fn finish(
        &self,
        py: Python<'_>,
        engine: &Engine,
        namespace: &str,
        name: &str,
        reason: &str,
        message: &str,
    ) -> PyResult<bool> {
        let ended = self.run_on_workload(py, engine, (namespace, name), |simulation, engine, id| {
            simulation.finish(engine, id, reason, message)
        })?;
        Ok(ended.unwrap_or_default())
    }

    /// May the job of a workload run?
    fn is_running(&self, py: Python<'_>, engine: &Engine, namespace: &str, name: &str) -> PyResult<bool> {
        let runs =
            self.run_on_workload(py, engine, (namespace, name), |simulation, _, id| simulation.is_running(id))?;
        Ok(runs.unwrap_or_default())
    }

    /// Number of steps so far.
    #[getter]
    fn n_steps(&self, py: Python<'_>) -> usize {
        self.look(py, |simulation| simulation.log().steps.len())
    }

    /// The steps from a number on: time, word, key.
    fn steps_since(&self, py: Python<'_>, index: usize) -> Vec<(i64, &'static str, String)> {
        self.look(py, |simulation| {
            let log = simulation.log();
            let steps = log.steps.iter().skip(index);
            steps.map(|(time, step, number)| (time.0, step.name(), log.key(*number).to_string())).collect()
        })
    }

    /// The events from a number on, with their times.
    fn events_since(&self, py: Python<'_>, index: usize) -> Vec<(i64, EventRow)> {
        self.look(py, |simulation| {
            let events = simulation.log().events.iter().skip(index);
            events.map(|(time, event)| (time.0, event_row(event))).collect()
        })
    }

    /// The record so far.
    fn record(&self, py: Python<'_>, engine: &Engine) -> PyResult<Record> {
        self.run(py, engine, |simulation, engine| Record {
            inner: simulation.record(engine),
            gates: engine.state.config.gates,
        })
    }
}
