//! Columns of workloads as bytes of numpy arrays.

use std::sync::Arc;

use kueuecore::engine::columns::{Columns, ColumnsError};
use kueuecore::simulate::{Copies, CopiesError, Submissions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// LocalQueues, queue, priority, created, count, resources, requests: the columns as little-endian bytes.
pub type ColumnBytes =
    (Vec<String>, PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes, Vec<String>, PyBackedBytes);

/// Namespace, name prefix, number of the first, columns, when they appear and how long they run (nanoseconds, i64), and
/// whether they then fail (u8).
pub type SubmissionBytes = (String, String, u64, ColumnBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);

/// Copies of workloads: template (u32), concatenated names, where each ends (u64), number in the UID of the first, and
/// when they appear and how long they run (nanoseconds, i64).
pub type CopyBytes = (PyBackedBytes, PyBackedBytes, PyBackedBytes, u64, PyBackedBytes, PyBackedBytes);

/// Decodes the values of a column.
pub fn decode_column<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|chunk| value(chunk.try_into().expect("chunks have this length"))).collect()
}

pub fn decode_columns(namespace: String, prefix: String, first: u64, columns: ColumnBytes) -> Columns {
    let (local_queues, queue, priority, created, count, resources, requests) = columns;
    Columns {
        namespace,
        prefix,
        first,
        local_queues: local_queues.into_iter().map(Into::into).collect(),
        queue: decode_column(&queue, u32::from_le_bytes),
        priority: decode_column(&priority, i32::from_le_bytes),
        created: decode_column(&created, i64::from_le_bytes),
        count: decode_column(&count, i32::from_le_bytes),
        resources,
        requests: decode_column(&requests, i64::from_le_bytes),
    }
}

pub fn decode_submissions(rows: SubmissionBytes) -> Submissions {
    let (namespace, prefix, first, columns, at, run_ns, ends_failed) = rows;
    Submissions {
        columns: decode_columns(namespace, prefix, first, columns),
        at: decode_column(&at, i64::from_le_bytes),
        run_ns: decode_column(&run_ns, i64::from_le_bytes),
        ends_failed: ends_failed.iter().map(|it| *it != 0).collect(),
    }
}

/// Decodes copies; their templates are added later.
pub fn decode_copies((template, names, ends, first_uid, at, run_ns): CopyBytes) -> PyResult<Copies> {
    let names = String::from_utf8(names.to_vec()).map_err(|_| PyValueError::new_err("names: must be UTF-8"))?;
    Ok(Copies {
        templates: Arc::default(),
        template: decode_column(&template, u32::from_le_bytes),
        names,
        ends: decode_column(&ends, u64::from_le_bytes),
        first_uid,
        at: decode_column(&at, i64::from_le_bytes),
        run_ns: decode_column(&run_ns, i64::from_le_bytes),
    })
}

/// Converts to `ValueError`.
pub fn copies_error(error: &CopiesError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts to `ValueError`.
pub fn columns_error(error: &ColumnsError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
