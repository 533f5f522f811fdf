//! Kubernetes JSON in and out of kueuecore.
#![forbid(unsafe_code)]

pub mod configuration;
pub mod decode;
pub mod defaults;
pub mod encode;
pub mod field_error;
pub mod names;
pub mod seam;
pub mod validate;
