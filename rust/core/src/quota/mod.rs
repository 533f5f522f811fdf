//! Quota and usage: cohort trees, their numbers and arithmetic, fair shares (rules/02).

pub(crate) mod arithmetic;
pub mod forest;
pub mod levels;
pub mod share;
pub mod tree;
pub mod usage_report;
