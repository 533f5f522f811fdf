//! One scheduling cycle: its heads, their flavors and victims, their order, and what becomes of them (rules/05 §6).

pub mod cycle;
pub mod decision;
pub mod entry;
pub mod nominate;
pub(crate) mod outcome;
mod process;
pub(crate) mod round;
pub mod slices;
pub mod tournament;
pub mod variants;
pub mod verdicts;
pub mod waiting;
