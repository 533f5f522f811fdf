//! Kubernetes JSON in and out of kueuecore.
//!
//! The bindings call this crate with bytes and get objects of `kueuecore`, or errors with field paths; nothing here
//! schedules. There are two doors. What a watch delivers has passed an API server, and is only decoded (`decode`, with
//! `convert` for older versions). What a file holds has not: for that, `webhooks` does what an API server with Kueue's
//! webhooks does, that is `defaults` and `validate`.
//!
//! `schema` says which fields a kind has: validation reads all of them, decoding only those that decisions read. `encode`
//! writes what the engine has decided, as patches of a status; `report` and `explain` write what people read.
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
