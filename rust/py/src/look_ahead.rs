//! Looks ahead: forks of a simulation, each with its own run times and arrivals, that stop once what they are played for
//! has been admitted.

use std::sync::Arc;

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine as core;
use kueuecore::objects::{Time, Workload};
use kueuecore::simulate::{JobPlan, Turn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::{CopyBytes, copies_error, decode_column, decode_copies};
use crate::engine::Engine;
use crate::simulation::{Simulation, TurnRow, row};

/// What stands for a workload that is gone.
const GONE: u32 = u32::MAX;

/// So many steps cost more than asking for Ctrl-C, for which threads wait for each other.
const STEPS_BETWEEN_SIGNALS: u32 = 64;

/// Workloads to copy, and what their jobs do; read once for many forks.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct CopyTemplates {
    inner: Arc<Vec<(Workload, JobPlan)>>,
}

/// The ids of workloads that still exist.
fn ids(engine: &core::Engine, bytes: &[u8]) -> Vec<Option<WorkloadId>> {
    let ids = decode_column(bytes, u32::from_le_bytes).into_iter();
    ids.map(|id| Some(WorkloadId(id)).filter(|id| engine.state.workloads.find_by_id(*id).is_some())).collect()
}

/// What a run that looks ahead can do besides.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct LookAhead {
    simulation: Py<Simulation>,
}

#[pymethods]
impl LookAhead {
    /// For a run.
    #[new]
    fn new(simulation: Py<Simulation>) -> Self {
        Self { simulation }
    }

    /// The numbers (u32) of workloads in the engine and its forks, given namespace and name. One that is gone gets the
    /// greatest number, which is ignored everywhere.
    fn numbers_of<'py>(
        &self,
        py: Python<'py>,
        engine: &Engine,
        keys: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let numbers = self.simulation.get().run(py, engine, |_, engine| {
            let find = |(namespace, name): &(String, String)| engine.state.workloads.find(namespace, name);
            keys.iter().flat_map(|key| find(key).map_or(GONE, |id| id.0).to_le_bytes()).collect::<Vec<u8>>()
        })?;
        Ok(PyBytes::new(py, &numbers))
    }

    /// Sets how long the jobs of workloads run in total (nanoseconds, i64; negative: forever), and how much of that is
    /// done by now.
    fn set_runs(&self, py: Python<'_>, engine: &Engine, numbers: &[u8], run_ns: &[u8], done_ns: &[u8]) -> PyResult<()> {
        let (run_ns, done_ns) = (decode_column(run_ns, i64::from_le_bytes), decode_column(done_ns, i64::from_le_bytes));
        let n = numbers.len() / size_of::<u32>();
        if [run_ns.len(), done_ns.len()] != [n; 2] {
            return Err(PyValueError::new_err(format!("run_seconds, done_seconds: must have {n} values")));
        }
        self.simulation.get().run(py, engine, |simulation, engine| {
            for ((id, run_ns), done_ns) in ids(engine, numbers).into_iter().zip(run_ns).zip(done_ns) {
                if let Some(id) = id {
                    simulation.set_run(engine, id, Some(run_ns).filter(|ns| *ns >= 0), done_ns);
                }
            }
        })
    }

    /// From now on watches these workloads.
    fn watch(&self, py: Python<'_>, engine: &Engine, numbers: &[u8]) -> PyResult<()> {
        self.simulation.get().run(py, engine, |simulation, engine| {
            let ids: Vec<_> = ids(engine, numbers).into_iter().map(|id| id.unwrap_or(WorkloadId(GONE))).collect();
            simulation.watch(&ids);
        })
    }

    /// When each watched workload was first admitted.
    #[getter]
    fn admitted(&self, py: Python<'_>) -> Vec<Option<i64>> {
        self.simulation
            .get()
            .look(py, |simulation| simulation.admitted().iter().map(|time| time.map(|time| time.0)).collect())
    }

    /// Have all watched workloads been admitted?
    #[getter]
    fn has_seen_all(&self, py: Python<'_>) -> bool {
        self.simulation.get().look(py, |simulation| simulation.has_seen_all())
    }

    /// How many arrivals, admissions, evictions and ends there were; an eviction counts as five.
    #[getter]
    fn n_counted(&self, py: Python<'_>) -> u64 {
        self.simulation.get().look(py, |simulation| simulation.n_counted())
    }

    /// Does everything that happens now, before the next cycle.
    fn arrive(&self, py: Python<'_>, engine: &Engine) -> PyResult<TurnRow> {
        self.simulation.get().run(py, engine, |simulation, engine| {
            let turn = simulation.arrive(engine).map_or(Turn::Instant, Turn::Ask);
            row(engine, turn)
        })
    }

    /// Runs step by step up to a time, until all watched workloads have been admitted, until so much has been counted,
    /// or until a controller must be asked.
    fn look_ahead(&self, py: Python<'_>, engine: &Engine, until: i64, most: Option<u64>) -> PyResult<TurnRow> {
        let (mut raised, mut n_steps) = (None, 0u32);
        let turn = self.simulation.get().run(py, engine, |simulation, engine| {
            let turn = simulation.look_ahead(engine, Time(until), most, |_| {
                n_steps = n_steps.wrapping_add(1);
                if n_steps % STEPS_BETWEEN_SIGNALS == 0 {
                    raised = Python::attach(|py| py.check_signals()).err();
                }
                raised.is_some()
            });
            row(engine, turn)
        })?;
        raised.map_or(Ok(turn), Err)
    }

    /// The templates of copies, for this run and its forks. `templates`: JSON, one per line, as events that create them.
    fn copy_templates(
        &self,
        py: Python<'_>,
        engine: &Engine,
        templates: &[u8],
        trusted: bool,
    ) -> PyResult<CopyTemplates> {
        Ok(CopyTemplates { inner: Arc::new(self.simulation.get().read_templates(py, engine, templates, trusted)?) })
    }

    /// Schedules copies of templates that have been read. All or nothing.
    fn schedule_read_copies(&self, py: Python<'_>, templates: &CopyTemplates, rows: CopyBytes) -> PyResult<()> {
        let mut copies = decode_copies(rows)?;
        copies.templates = Arc::clone(&templates.inner);
        let scheduled = copies.happenings().map_err(|error| copies_error(&error))?;
        self.simulation.get().look(py, |simulation| simulation.schedule(scheduled));
        Ok(())
    }
}
