//! Decisions as rows of little-endian bytes for numpy arrays: ids and numbers, no text.

use std::cell::Cell;

use kueuecore::schedule::decision::{Admitted, AssignedFlavor, Kept, Preempted};
use kueuecore::status::reasons;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Marks "no ClusterQueue".
const NONE: u32 = u32::MAX;

/// `SIZE` bytes for each item.
fn table<'py, const SIZE: usize, T>(
    py: Python<'py>,
    items: &[T],
    row: impl Fn(&T) -> [u8; SIZE],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, items.len() * SIZE, |bytes| {
        for (place, item) in bytes.chunks_exact_mut(SIZE).zip(items) {
            place.copy_from_slice(&row(item));
        }
        Ok(())
    })
}

/// Codes of reasons; caches the last one, since it mostly repeats.
struct Codes(Cell<(&'static str, u8)>);

impl Codes {
    fn new() -> Self {
        Self(Cell::new(("", reasons::code(""))))
    }

    fn of(&self, reason: &'static str) -> u8 {
        if !std::ptr::eq(self.0.get().0, reason) {
            self.0.set((reason, reasons::code(reason)));
        }
        self.0.get().1
    }
}

/// Workload and ClusterQueue (u32), is it Admitted (u8), when (i64).
pub fn admissions<'py>(py: Python<'py>, rows: &[Admitted]) -> PyResult<Bound<'py, PyBytes>> {
    table(py, rows, |it| {
        let mut row = [0; 17];
        row[..4].copy_from_slice(&it.workload.0.to_le_bytes());
        row[4..8].copy_from_slice(&it.queue.0.to_le_bytes());
        row[8] = u8::from(it.is_admitted);
        row[9..].copy_from_slice(&it.at.0.to_le_bytes());
        row
    })
}

/// Index of the admission and of the pod set (u32), pods (i32), resource and flavor (u32), amount (i64).
pub fn flavors<'py>(py: Python<'py>, rows: &[AssignedFlavor]) -> PyResult<Bound<'py, PyBytes>> {
    table(py, rows, |it| {
        let mut row = [0; 28];
        row[..4].copy_from_slice(&it.admission.to_le_bytes());
        row[4..8].copy_from_slice(&it.pod_set.to_le_bytes());
        row[8..12].copy_from_slice(&it.count.to_le_bytes());
        row[12..16].copy_from_slice(&it.resource.0.to_le_bytes());
        row[16..20].copy_from_slice(&it.flavor.0.to_le_bytes());
        row[20..].copy_from_slice(&it.amount.to_le_bytes());
        row
    })
}

/// Workload, ClusterQueue and preemptor (u32), reason (u8).
pub fn preemptions<'py>(py: Python<'py>, rows: &[Preempted]) -> PyResult<Bound<'py, PyBytes>> {
    let codes = Codes::new();
    table(py, rows, |it| {
        let mut row = [0; 13];
        row[..4].copy_from_slice(&it.workload.0.to_le_bytes());
        row[4..8].copy_from_slice(&it.queue_id.map_or(NONE, |id| id.0).to_le_bytes());
        row[8..12].copy_from_slice(&it.preemptor_id.0.to_le_bytes());
        row[12] = codes.of(it.reason);
        row
    })
}

/// Workload and ClusterQueue (u32), reason (u8), is it parked (u8).
pub fn pending<'py>(py: Python<'py>, rows: &[Kept]) -> PyResult<Bound<'py, PyBytes>> {
    let codes = Codes::new();
    table(py, rows, |it| {
        let mut row = [0; 10];
        row[..4].copy_from_slice(&it.workload.0.to_le_bytes());
        row[4..8].copy_from_slice(&it.queue_id.0.to_le_bytes());
        row[8] = codes.of(it.reason);
        row[9] = u8::from(it.parked);
        row
    })
}
