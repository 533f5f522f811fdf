//! The one gate for work on an engine: detached from the interpreter, under its lock, bugs caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use kueuecore::engine::Engine;
use pyo3::prelude::*;

use crate::errors::engine_broken;
use crate::journal::Journal;

/// An engine and its journal. A panic drops the engine; the journal can rebuild it.
pub struct Kept {
    pub engine: Option<Engine>,
    pub journal: Journal,
}

/// Runs `work` on the engine without holding the GIL. Another thread waits for the lock. If the work panics, the engine
/// refuses every further call.
pub fn run<R: Send>(
    py: Python<'_>,
    kept: &Mutex<Kept>,
    work: impl FnOnce(&mut Engine, &mut Journal) -> R + Send,
) -> PyResult<R> {
    let result = py.detach(|| {
        let mut guard = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { engine, journal } = &mut *guard;
        let Some(inner) = engine.as_mut() else { return Err(None) };
        catch_unwind(AssertUnwindSafe(|| work(inner, journal))).map_err(|payload| {
            *engine = None;
            let text = payload.downcast_ref::<String>().cloned();
            Some(text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default())
        })
    });
    result.map_err(|panic| engine_broken(py, panic.as_deref()))
}

/// Looks at what an engine was told; at what it was told before, if it broke.
pub fn read_journal<R: Send>(py: Python<'_>, kept: &Mutex<Kept>, work: impl FnOnce(&Journal) -> R + Send) -> R {
    py.detach(|| work(&kept.lock().unwrap_or_else(PoisonError::into_inner).journal))
}
