//! The calls that an engine has received. Nothing is random, so replaying them rebuilds the same engine.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A call that is to be done.
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Its arguments but the last, which is the time; `None`: they are not kept.
    pub arguments: Option<Py<PyTuple>>,
}

/// A call that was done: its name, its arguments but the last, and the last, which is the time.
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
    /// One that has no calls yet, of an engine whose last call was at this time.
    pub fn at(now: i64) -> Self {
        Self { now, ..Self::default() }
    }

    /// A call was done at `now`.
    pub fn note(&mut self, call: Call, now: i64) {
        self.now = now;
        self.note_question(call, now);
    }

    /// A question about `now` was answered, which is no time that the engine has come to.
    pub fn note_question(&mut self, call: Call, now: i64) {
        if let Some(arguments) = call.arguments {
            self.calls.push(Arc::new((call.name, arguments, now)));
        }
    }

    /// The calls in the order in which they were done.
    pub fn calls(&self, py: Python<'_>) -> Vec<CallRow> {
        self.calls.iter().map(|call| (call.0, call.1.clone_ref(py), call.2)).collect()
    }
}
