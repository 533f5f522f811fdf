//! What came of a run through time; cycles are converted when somebody looks.

use kueuecore::decision::Key;
use kueuecore::simulate::Run;
use pyo3::prelude::*;

use crate::decision::Decision;

/// A run that is over.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Simulation {
    pub inner: Run,
}

fn text(key: &Key) -> String {
    format!("{}/{}", key.0, key.1)
}

#[pymethods]
impl Simulation {
    /// Why it ended.
    #[getter]
    fn ending(&self) -> &'static str {
        self.inner.ending.name()
    }

    /// The time at its end, in nanoseconds since 1970.
    #[getter]
    fn end(&self) -> i64 {
        self.inner.end.0
    }

    /// Number of cycles, told or not.
    #[getter]
    fn n_cycles(&self) -> u64 {
        self.inner.n_cycles
    }

    /// Number of cycles that are told.
    fn n_told(&self) -> usize {
        self.inner.cycles.len()
    }

    /// One of the cycles that are told: number, time, decision, how many workloads it parked, and their keys.
    fn cycle(&self, index: usize) -> PyResult<(u64, i64, Decision, usize, Vec<String>)> {
        let cycle = self.inner.cycles.get(index);
        let cycle = cycle.ok_or_else(|| pyo3::exceptions::PyIndexError::new_err("no such cycle"))?;
        let decision = Decision { inner: cycle.decision.clone() };
        Ok((cycle.number, cycle.time.0, decision, cycle.n_parked, cycle.parked.iter().map(text).collect()))
    }

    /// What became of the workloads, as columns: times, words, keys.
    fn steps(&self) -> (Vec<i64>, Vec<&'static str>, Vec<String>) {
        let steps = &self.inner.steps;
        let times = steps.iter().map(|(time, ..)| time.0).collect();
        let words = steps.iter().map(|(_, step, _)| step.name()).collect();
        (times, words, steps.iter().map(|(.., key)| text(key)).collect())
    }
}
