//! The scheduling core of Kueue as a library: objects in, decisions out, no side effects.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. Every rule cites its text in `docs/rules`.
//!
//! The modules are layers, each of which uses only those before it: [`base`], `snapshot`, [`objects`], [`status`],
//! [`quota`], [`pods`], [`topology`], [`assign`], [`workloads`], [`queue`], [`state`], [`preempt`], [`schedule`],
//! `reconcile`, [`engine`], [`simulate`], [`explore`]. ARCHITECTURE.md describes them.
#![forbid(unsafe_code)]

pub mod assign;
pub mod base;
pub mod engine;
pub mod explore;
pub mod objects;
pub mod pods;
pub mod preempt;
pub mod queue;
pub mod quota;
pub(crate) mod reconcile;
pub mod schedule;
pub mod simulate;
pub(crate) mod snapshot;
pub mod state;
pub mod status;
#[cfg(test)]
pub mod testing;
pub mod topology;
pub mod workloads;
