//! The Python extension module `kueuecore._core`: only conversions.
#![forbid(unsafe_code)]

mod calls;
mod columns;
mod configuration;
mod convert;
mod decision;
mod engine;
mod errors;
mod explore;
mod intake_report;
mod journal;
mod look_ahead;
mod record;
mod run;
mod schemas;
mod simulation;
mod tables;
mod versions;
mod webhooks;

use pyo3::prelude::*;

/// A cycle allocates and frees many small pieces, which mimalloc does fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Objects in, decisions out; `kueuecore.engine` is the public API.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::configuration::Configuration;
    #[pymodule_export]
    use super::decision::Decision;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::explore::Explorer;
    #[pymodule_export]
    use super::look_ahead::CopyTemplates;
    #[pymodule_export]
    use super::look_ahead::LookAhead;
    #[pymodule_export]
    use super::record::Record;
    #[pymodule_export]
    use super::schemas::kinds;
    #[pymodule_export]
    use super::schemas::metadata_problems;
    #[pymodule_export]
    use super::schemas::open_api;
    #[pymodule_export]
    use super::simulation::Simulation;
    #[pymodule_export]
    use super::versions::in_preferred_version;
    #[pymodule_export]
    use super::webhooks::admit;
}
