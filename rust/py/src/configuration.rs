//! Kueue's Configuration, read once.

use std::collections::BTreeMap;

use kueuecore::base::changes::Change;
use kueuecore::base::gates::Gate;
use kueuecore::base::releases::Release;
use kueuecore::objects::config::Experiments;
use kueuecore_wire::configuration as wire;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::convert::to_python;
use crate::errors::configuration_error;

/// A Configuration with all defaults filled in.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Configuration {
    pub inner: wire::Configuration,
}

#[pymethods]
impl Configuration {
    /// A release's settings without a file.
    #[new]
    fn new(release: &str) -> PyResult<Self> {
        Ok(Self { inner: wire::Configuration::of(release_of(release)?) })
    }

    /// Reads a file given as JSON.
    #[staticmethod]
    fn read(py: Python<'_>, data: &[u8], feature_gates: BTreeMap<String, bool>, release: &str) -> PyResult<Self> {
        let inner = wire::Configuration::read(data, &feature_gates, release_of(release)?)
            .map_err(|e| configuration_error(py, &e))?;
        Ok(Self { inner })
    }

    /// Takes settings as they are, without validation.
    #[staticmethod]
    fn trusted(py: Python<'_>, data: &[u8], feature_gates: &[u8], release: &str) -> PyResult<Self> {
        let parse =
            |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|e| PyValueError::new_err(e.to_string()));
        let inner = wire::Configuration::trusted(&parse(data)?, &parse(feature_gates)?, release_of(release)?)
            .map_err(|e| configuration_error(py, &e))?;
        Ok(Self { inner })
    }

    /// A copy with gates and changes switched, without validation.
    fn switched(&self, switches: BTreeMap<String, bool>) -> PyResult<Self> {
        let switches = switches.iter().map(|(name, on)| (name.as_str(), *on));
        let inner = self.inner.switched(switches).map_err(PyKeyError::new_err)?;
        Ok(Self { inner })
    }

    /// A copy with these experiments, in seconds; `None` is off.
    fn with_experiments(&self, min_run: Option<i64>, reclaim_backoff: Option<i64>, time_share: Option<i64>) -> Self {
        let ns = |seconds: Option<i64>| seconds.map(|it| it.saturating_mul(1_000_000_000));
        let (min_run_ns, reclaim_backoff_ns, time_share_ns) = (ns(min_run), ns(reclaim_backoff), ns(time_share));
        let experiments = Experiments { min_run_ns, reclaim_backoff_ns, time_share_ns };
        Self { inner: self.inner.with_experiments(experiments) }
    }

    /// The release whose decisions these settings make.
    #[getter]
    fn release(&self) -> String {
        self.inner.scheduling.release.to_string()
    }

    /// Is a change without a gate in effect? `None` for a name that is no change.
    fn change(&self, name: &str) -> Option<bool> {
        Change::from_name(name).map(|change| self.inner.scheduling.changes.has(change))
    }

    /// The file in v1beta2 with its defaults.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.to_json())
    }

    /// Is a feature gate on? `None` for a gate that Kueue does not have.
    fn gate(&self, name: &str) -> Option<bool> {
        Gate::from_name(name).map(|gate| self.inner.scheduling.gates.enabled(gate))
    }

    /// Did the file name `waitForPodsReady` itself?
    #[getter]
    fn names_wait_for_pods_ready(&self) -> bool {
        self.inner.names_wait_for_pods_ready
    }
}

fn release_of(name: &str) -> PyResult<Release> {
    Release::from_name(name).ok_or_else(|| PyValueError::new_err(format!("no release of Kueue: {name}")))
}
