//! The Python extension module `kueuecore._core`: conversions, and nothing else.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_init]
    fn init(_m: &Bound<'_, PyModule>) -> PyResult<()> {
        Ok(())
    }
}
