//! The scheduling core of Kueue as a library: objects in, decisions out, nothing done.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. `objects` are what comes in,
//! `engine` is the front, `cycle` is one scheduling cycle, and everything else is a rule.
#![forbid(unsafe_code)]

pub mod amount;
pub mod config;
pub mod gates;
pub mod ids;
pub mod objects;
pub mod pods;
pub mod quantity;
pub mod resource_names;
pub mod totals;
