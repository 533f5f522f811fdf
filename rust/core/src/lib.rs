//! The scheduling core of Kueue as a library: objects in, decisions out, nothing done.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. `objects` are what comes in,
//! `engine` is the front, `cycle` is one scheduling cycle, and everything else is a rule.
#![forbid(unsafe_code)]

pub mod activeness;
pub mod amount;
pub mod apply;
pub mod assign;
pub mod cache;
pub mod checks;
pub mod conditions;
pub mod config;
pub mod cycle;
pub mod decision;
pub mod engine;
pub mod entry;
pub mod eviction;
pub mod forest;
pub mod gates;
pub mod ids;
pub mod messages;
pub mod names;
pub mod nominate;
pub mod objects;
mod outcome;
pub mod pending;
pub mod pods;
pub mod preempt;
pub mod quantity;
pub mod queue_order;
pub mod quota;
pub mod reasons;
pub mod reconcile;
pub mod reservation;
pub mod resource_names;
pub mod selectors;
pub mod share;
pub mod state;
#[cfg(test)]
pub mod testing;
pub mod totals;
pub mod tree;
pub mod usage_report;
pub mod workloads;
