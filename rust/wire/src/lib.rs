//! Kubernetes JSON in and out of kueuecore.
//!
//! `decode` reads, `encode` writes; `defaults` and `validate` do what an API server and Kueue's webhooks do in between.
#![forbid(unsafe_code)]

pub mod configuration;
pub mod convert;
pub mod decode;
pub mod defaults;
mod duplicates;
pub mod duration;
pub mod encode;
pub mod explain;
pub mod field_error;
pub mod gauges;
mod go_json;
pub mod held;
pub mod intake;
pub mod kinds;
pub mod names;
pub mod report;
pub mod scenario;
pub mod schema;
mod shaped;
mod suggest;
pub mod validate;
pub mod webhooks;
mod written;

pub use kueuecore::objects::time;
