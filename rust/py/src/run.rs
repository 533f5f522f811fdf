//! The one gate for work on an engine: detached from the interpreter, under its lock, bugs caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::errors::engine_broken;

/// Runs `work` on the engine without holding the GIL. Another thread waits for the lock. If the work panics, the engine
/// refuses every further call.
pub fn run<T: Send, R: Send>(
    py: Python<'_>,
    engine: &Mutex<Option<T>>,
    work: impl FnOnce(&mut T) -> R + Send,
) -> PyResult<R> {
    let result = py.detach(|| {
        let mut guard = engine.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(inner) = guard.as_mut() else { return Err(None) };
        catch_unwind(AssertUnwindSafe(|| work(inner))).map_err(|payload| {
            *guard = None;
            let text = payload.downcast_ref::<String>().cloned();
            Some(text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default())
        })
    });
    result.map_err(|panic| engine_broken(py, panic.as_deref()))
}
