//! One scheduling cycle: its heads, their flavors and victims, their order, and their outcomes (rules/05 §6).

pub(crate) mod back;
pub(crate) mod cycle;
pub mod decision;
pub(crate) mod entry;
pub(crate) mod nominate;
mod order;
pub(crate) mod outcome;
pub(crate) mod placing;
mod pod_sets;
mod process;
mod refill;
pub(crate) mod round;
pub(crate) mod slices;
pub(crate) mod tournament;
pub(crate) mod variants;
pub(crate) mod verdicts;
pub(crate) mod victims;
pub(crate) mod waiting;
