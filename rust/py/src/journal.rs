//! The calls that an engine has received. Nothing is random, so replaying them rebuilds the same engine.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A call that is about to run.
pub struct Call {
    pub name: &'static str,
    /// Its arguments without the last, the time; `None`: they are not kept.
    pub arguments: Option<Py<PyTuple>>,
}

/// A call that has run: name, arguments without the last, and the last, the time.
pub type CallRow = (&'static str, Py<PyTuple>, i64);

/// The time of an engine, and its calls if they are kept. It shares the engine's lock, so the two always match.
#[derive(Clone, Default)]
pub struct Journal {
    /// The latest time that any call named, in nanoseconds since 1970.
    pub now: i64,
    // `Arc`, not `Py::clone_ref`: forks are made without the GIL.
    calls: Vec<Arc<CallRow>>,
}

impl Journal {
    /// A journal without calls, for an engine whose last call was at this time.
    pub fn at(now: i64) -> Self {
        Self { now, ..Self::default() }
    }

    /// Records a call that ran at `now`. An event may be reported late; time does not go back.
    pub fn note(&mut self, call: Call, now: i64) {
        self.now = self.now.max(now);
        self.note_question(call, now);
    }

    /// Records a question about `now`; the engine's clock does not move.
    pub fn note_question(&mut self, call: Call, now: i64) {
        if let Some(arguments) = call.arguments {
            self.calls.push(Arc::new((call.name, arguments, now)));
        }
    }

    /// The calls in the order in which they ran.
    pub fn calls(&self, py: Python<'_>) -> Vec<CallRow> {
        self.calls.iter().map(|call| (call.0, call.1.clone_ref(py), call.2)).collect()
    }
}
