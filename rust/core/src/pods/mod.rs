//! The requests of a pod: their defaults, totals, and validation (rules/01 §7.3, §7.6; rules/10 §4.6).

mod adjust;
pub(crate) mod devices;
mod limit_range;
pub(crate) mod lists;
mod requests;
mod stored;
pub mod totals;
mod validate;

pub(crate) use adjust::adjust;
pub use limit_range::{LimitRangeSummary, summarize};
pub use lists::values;
pub(crate) use requests::{container_requests, pod_requests};
pub(crate) use validate::check_resources;
pub use validate::{FieldError, limit_range_errors, pod_limit_range_errors, resource_errors};

#[cfg(test)]
mod tests;
