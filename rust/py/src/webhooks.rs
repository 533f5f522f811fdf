//! One object on its way into an API server with Kueue's webhooks.

use kueuecore_wire::kinds::{Kind, group_of, is_served};
use kueuecore_wire::webhooks::{self, Refused};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::configuration::Configuration;
use crate::convert::to_python;
use crate::errors::problem;

/// The stored object, if any; whether a webhook refuses it; for each error the reason of its cause and a `Problem`; and
/// ignored fields, with the reasons.
type Answer<'py> = (Option<Bound<'py, PyAny>>, bool, Vec<(&'static str, Bound<'py, PyAny>)>, Vec<(String, String)>);

/// Admits or refuses an object of Kueue's own kinds that is created, or replaces an old one; `None` if Kueue does not
/// serve the kind or version. Objects are given as JSON, the old one with its version.
#[pyfunction]
pub fn admit<'py>(
    py: Python<'py>,
    api_version: &str,
    kind: &str,
    new: &[u8],
    old: Option<(&str, &[u8])>,
    configuration: &Configuration,
) -> PyResult<Option<Answer<'py>>> {
    let found = Kind::find(group_of(api_version), kind).filter(|kind| kind.is_kueue());
    let changes = configuration.inner.scheduling.changes;
    let is_served = |kind: &Kind| kind.api_versions().contains(&api_version) && is_served(*kind, api_version, changes);
    let Some(kind) = found.filter(is_served) else { return Ok(None) };
    let new = text(new)?;
    let old = old.map(|(api_version, old)| text(old).map(|old| (api_version, old))).transpose()?;
    let config = &configuration.inner.scheduling;
    let answer = py.detach(|| webhooks::admit(kind, (api_version, new), old, config));
    Ok(Some(match answer {
        Ok(stored) => (Some(to_python(py, &stored.object)?), false, Vec::new(), stored.warnings),
        Err(Refused { by_webhook, errors, warnings }) => {
            let problems: PyResult<_> =
                errors.iter().map(|it| Ok((it.kind.reason(), problem(py, it, None, None)?))).collect();
            (None, by_webhook, problems?, warnings)
        }
    }))
}

fn text(data: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(data).map_err(|error| PyValueError::new_err(error.to_string()))
}
