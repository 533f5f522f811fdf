//! Kueue's kinds as OpenAPI schemas, and the API server's checks of `metadata` for any kind.

use kueuecore::base::changes::Changes;
use kueuecore_wire::kinds::{Kind, group_of};
use kueuecore_wire::schema;
use kueuecore_wire::validate;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::to_python;
use crate::errors::problem;

/// The OpenAPI schema of one of Kueue's own kinds in a version that it serves; `None` for any other.
#[pyfunction]
pub fn open_api<'py>(py: Python<'py>, api_version: &str, kind: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let open_api = |kind| schema::open_api(kind, api_version, Changes::default());
    let schema = Kind::find(group_of(api_version), kind).and_then(open_api);
    schema.map(|schema| to_python(py, &schema)).transpose()
}

/// Errors in the `metadata` of an object, given as JSON: for each the reason of its cause and a `Problem`.
#[pyfunction]
pub fn metadata_problems<'py>(
    py: Python<'py>,
    is_namespaced: bool,
    metadata: &[u8],
) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
    let metadata = serde_json::from_slice(metadata).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let errors = validate::metadata(is_namespaced, &metadata);
    errors.iter().map(|it| Ok((it.kind.reason(), problem(py, it, None, None)?))).collect()
}

/// Every kind that is read: its name, the versions, the preferred one first, whether its objects live in namespaces, and
/// whether an engine keeps them.
#[pyfunction]
pub fn kinds() -> Vec<(&'static str, Vec<&'static str>, bool, bool)> {
    let row =
        |kind: &Kind| (kind.name(), kind.api_versions().to_vec(), kind.is_namespaced(), Kind::KEPT.contains(kind));
    Kind::ALL.iter().map(row).collect()
}
