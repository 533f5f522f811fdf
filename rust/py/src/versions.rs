//! Kueue's own kinds in their preferred version.

use kueuecore_wire::convert::to_preferred;
use kueuecore_wire::kinds::{Kind, group_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::convert::to_python;

/// An object, given as JSON, in the preferred version of its kind; `None` for kinds and versions that are not Kueue's.
#[pyfunction]
pub fn in_preferred_version<'py>(
    py: Python<'py>,
    api_version: &str,
    kind: &str,
    data: &[u8],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = Kind::find(group_of(api_version), kind).filter(|kind| kind.is_kueue());
    let Some(kind) = found.filter(|kind| kind.api_versions().contains(&api_version)) else { return Ok(None) };
    let mut value: Value = serde_json::from_slice(data).map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_preferred(kind, api_version, &mut value);
    to_python(py, &value).map(Some)
}
