//! How calls reach the engine behind its lock, and which of them are recorded.

use std::convert::Infallible;

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine as core;
use kueuecore::objects::Time;
use kueuecore_wire::time::format_time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::engine::Engine;
use crate::errors::unknown_object;
use crate::journal::{Call, Journal};
use crate::run::run;

/// There is no such workload.
struct Unknown;

impl Engine {
    /// A call, ready for the journal.
    pub(crate) fn call<'py, A>(&self, py: Python<'py>, name: &'static str, arguments: A) -> PyResult<Call>
    where
        A: IntoPyObject<'py, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
    {
        let arguments = self.keeps_calls.then(|| arguments.into_pyobject(py)).transpose().map_err(Into::into)?;
        Ok(Call { name, arguments: arguments.map(Bound::unbind) })
    }

    /// Runs work that the journal leaves out.
    pub fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut core::Engine, &mut Journal) -> R + Send,
    ) -> PyResult<R> {
        run(py, &self.inner, work)
    }

    pub(crate) fn read<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut core::Engine) -> R + Send,
    ) -> PyResult<R> {
        run(py, &self.inner, |engine, _| work(engine))
    }

    /// Runs a call at `now`, or at the time of the call before, and records it in the journal: no signal and no thread
    /// comes in between. A refused call is not recorded.
    pub(crate) fn change<R: Send, E: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        now: Option<i64>,
        work: impl FnOnce(&mut core::Engine, Time) -> Result<R, E> + Send,
    ) -> PyResult<Result<R, E>> {
        run(py, &self.inner, |engine, journal| {
            let at = now.unwrap_or(journal.now);
            let result = work(engine, Time(at))?;
            journal.note(call, at);
            Ok(result)
        })
    }

    /// What acts on all that has happened until `now`, and so cannot act at an earlier time afterwards.
    pub(crate) fn advance<R: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        now: Option<i64>,
        work: impl FnOnce(&mut core::Engine, Time) -> R + Send,
    ) -> PyResult<R> {
        let advanced = run(py, &self.inner, |engine, journal| {
            let (at, latest) = (now.unwrap_or(journal.now), journal.now);
            if at < latest {
                return Err((Time(at), Time(latest)));
            }
            let result = work(engine, Time(at));
            journal.note(call, at);
            Ok(result)
        })?;
        advanced.map_err(|(at, latest)| {
            let (at, latest) = (format_time(at), format_time(latest));
            PyValueError::new_err(format!(
                "now: {at} is before {latest}, the latest time that a call named: time does not go back; for an \
                 earlier state, fork() or save() the engine before"
            ))
        })
    }

    /// Answers a question and records it: it neither moves the time nor decides anything, but the names and slots that
    /// first occur in it stay in the engine.
    pub(crate) fn ask<R: Send, E: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        now: i64,
        work: impl FnOnce(&mut core::Engine, Time) -> Result<R, E> + Send,
    ) -> PyResult<Result<R, E>> {
        run(py, &self.inner, |engine, journal| {
            let answer = work(engine, Time(now))?;
            journal.note_question(call, now);
            Ok(answer)
        })
    }

    /// A change that cannot be refused.
    pub(crate) fn change_always<R: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        now: Option<i64>,
        work: impl FnOnce(&mut core::Engine, Time) -> R + Send,
    ) -> PyResult<R> {
        let Ok(result) = self.change(py, call, now, |engine, at| Ok::<R, Infallible>(work(engine, at)))?;
        Ok(result)
    }

    pub(crate) fn change_workload<R: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        (namespace, name): (&str, &str),
        now: Option<i64>,
        work: impl FnOnce(&mut core::Engine, WorkloadId, Time) -> R + Send,
    ) -> PyResult<R> {
        let changed = self.change(py, call, now, |engine, at| {
            let id = engine.state.workloads.find(namespace, name).ok_or(Unknown)?;
            Ok(work(engine, id, at))
        })?;
        changed.map_err(|Unknown| unknown_object(py, "Workload", namespace, name))
    }
}
