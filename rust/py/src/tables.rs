//! Decisions as rows of little-endian bytes, for arrays of numpy: ids and numbers, no text.

use std::cell::Cell;

use kueuecore::decision::{Admitted, AssignedFlavor, Kept, Preempted};
use kueuecore::ids::QueueId;
use kueuecore::reasons;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Stands for no ClusterQueue.
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

/// Fields of a row, one behind the other.
struct Row<const SIZE: usize> {
    bytes: [u8; SIZE],
    end: usize,
}

impl<const SIZE: usize> Row<SIZE> {
    #[inline(always)]
    fn new() -> Self {
        Self { bytes: [0; SIZE], end: 0 }
    }

    #[inline(always)]
    fn put<const N: usize>(mut self, field: [u8; N]) -> Self {
        self.bytes[self.end..self.end + N].copy_from_slice(&field);
        self.end += N;
        self
    }
}

/// Codes of reasons; most often it is the one before.
struct Codes(Cell<(&'static str, u8)>);

impl Codes {
    fn new() -> Self {
        Self(Cell::new(("", reasons::code(""))))
    }

    fn of(&self, reason: &'static str) -> [u8; 1] {
        if !std::ptr::eq(self.0.get().0, reason) {
            self.0.set((reason, reasons::code(reason)));
        }
        [self.0.get().1]
    }
}

/// Workload and ClusterQueue (u32), is it Admitted (u8), when (i64).
pub fn admissions<'py>(py: Python<'py>, rows: &[Admitted]) -> PyResult<Bound<'py, PyBytes>> {
    table(py, rows, |it| {
        let row = Row::<17>::new().put(it.workload.0.to_le_bytes()).put(it.queue.0.to_le_bytes());
        row.put([u8::from(it.is_admitted)]).put(it.at.0.to_le_bytes()).bytes
    })
}

/// Index of the admission and of the pod set (u32), pods (i32), resource and flavor (u32), amount (i64).
pub fn flavors<'py>(py: Python<'py>, rows: &[AssignedFlavor]) -> PyResult<Bound<'py, PyBytes>> {
    table(py, rows, |it| {
        let row = Row::<28>::new().put(it.admission.to_le_bytes()).put(it.pod_set.to_le_bytes());
        let row = row.put(it.count.to_le_bytes()).put(it.resource.0.to_le_bytes());
        row.put(it.flavor.0.to_le_bytes()).put(it.amount.to_le_bytes()).bytes
    })
}

/// Workload, ClusterQueue and preemptor (u32), reason (u8).
pub fn preemptions<'py>(py: Python<'py>, rows: &[Preempted]) -> PyResult<Bound<'py, PyBytes>> {
    let codes = Codes::new();
    let queue = |id: Option<QueueId>| id.map_or(NONE, |id| id.0).to_le_bytes();
    table(py, rows, |it| {
        let row = Row::<13>::new().put(it.workload.0.to_le_bytes()).put(queue(it.queue_id));
        row.put(it.preemptor_id.0.to_le_bytes()).put(codes.of(it.reason)).bytes
    })
}

/// Workload and ClusterQueue (u32), reason (u8), is it parked (u8).
pub fn pending<'py>(py: Python<'py>, rows: &[Kept]) -> PyResult<Bound<'py, PyBytes>> {
    let codes = Codes::new();
    table(py, rows, |it| {
        let row = Row::<10>::new().put(it.workload.0.to_le_bytes()).put(it.queue_id.0.to_le_bytes());
        row.put(codes.of(it.reason)).put([u8::from(it.parked)]).bytes
    })
}
