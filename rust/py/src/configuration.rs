//! Kueue's Configuration, read once.

use std::collections::BTreeMap;

use kueuecore_wire::configuration as wire;
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
    /// Kueue's settings without a file.
    #[new]
    fn new() -> Self {
        Self { inner: wire::Configuration::default() }
    }

    /// Reads a file given as JSON.
    #[staticmethod]
    fn read(py: Python<'_>, data: &[u8], feature_gates: BTreeMap<String, bool>) -> PyResult<Self> {
        let inner = wire::Configuration::read(data, &feature_gates).map_err(|e| configuration_error(py, &e))?;
        Ok(Self { inner })
    }

    /// Takes settings as they are, without validation.
    #[staticmethod]
    fn trusted(py: Python<'_>, data: &[u8], feature_gates: &[u8]) -> PyResult<Self> {
        let parse = |bytes: &[u8]| {
            serde_json::from_slice::<Value>(bytes).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
        };
        let inner = wire::Configuration::trusted(&parse(data)?, &parse(feature_gates)?)
            .map_err(|e| configuration_error(py, &e))?;
        Ok(Self { inner })
    }

    /// The file in v1beta2 with its defaults.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.to_json())
    }

    /// Is a feature gate on? `None` for a gate that Kueue does not have.
    fn gate(&self, name: &str) -> Option<bool> {
        kueuecore::base::gates::Gate::from_name(name).map(|gate| self.inner.scheduling.gates.enabled(gate))
    }

    /// Did the file name `waitForPodsReady` itself?
    #[getter]
    fn names_wait_for_pods_ready(&self) -> bool {
        self.inner.names_wait_for_pods_ready
    }
}
