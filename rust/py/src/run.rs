//! Every call on an engine goes through here: detached from the interpreter, under the engine's lock, panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use kueuecore::engine::Engine;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::engine_broken;
use crate::journal::Journal;

/// An engine and its journal. A panic drops the engine; the journal can rebuild it.
pub struct Kept {
    pub engine: Option<Engine>,
    pub journal: Journal,
}

/// Runs `work` on the engine without holding the GIL; other threads wait for the lock. If `work` panics, the engine
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

/// Loads a saved engine without holding the GIL; also returns the note that was saved with it.
pub fn load(py: Python<'_>, saved: &[u8]) -> PyResult<(Kept, Vec<u8>)> {
    let loaded = py.detach(|| catch_unwind(|| Engine::load(saved)));
    let loaded = loaded.map_err(|_| engine_broken(py, Some("a save was read")))?;
    let (engine, note) = loaded.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let Some((now, note)) = note.split_first_chunk() else {
        return Err(PyValueError::new_err("this is not a valid save: it has no time of the last call"));
    };
    let journal = Journal::at(i64::from_le_bytes(*now));
    Ok((Kept { engine: Some(engine), journal }, note.to_vec()))
}

/// Reads an engine's journal; of a broken engine, the calls before the panic.
pub fn read_journal<R: Send>(py: Python<'_>, kept: &Mutex<Kept>, work: impl FnOnce(&Journal) -> R + Send) -> R {
    py.detach(|| work(&kept.lock().unwrap_or_else(PoisonError::into_inner).journal))
}
