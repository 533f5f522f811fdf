//! The scheduling core of Kueue as a library: objects in, decisions out, nothing done.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. `objects` are what comes in,
//! `engine` is the front, `cycle` is one scheduling cycle, and everything else is a rule.
#![forbid(unsafe_code)]

pub mod activeness;
pub mod amount;
pub mod checks;
pub mod conditions;
pub mod config;
pub mod eviction;
pub mod gates;
pub mod ids;
pub mod objects;
pub mod pods;
pub mod quantity;
pub mod queue_order;
pub mod reasons;
pub mod reservation;
pub mod resource_names;
pub mod totals;
pub mod usage_report;
