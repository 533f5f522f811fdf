//! The scheduling core of Kueue as a library: objects in, decisions out, nothing done.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. Every rule cites its text in `docs/rules`.
//!
//! | read | for |
//! |---|---|
//! | [`base`] | amounts, quantities, names and ids, feature gates |
//! | [`objects`] | what comes in: the fields that scheduling reads, and the configuration |
//! | [`status`] | what a status says and what is written into it, word for word |
//! | [`quota`] | who belongs to whom, quota in dense columns, its arithmetic, fair shares |
//! | [`pods`] | what pods ask for, in Kubernetes' numbers |
//! | [`assign`] | which flavors a workload would use |
//! | [`workloads`] | the table of workloads, and what they have in common |
//! | [`queue`] | the pending workloads of one ClusterQueue |
//! | [`state`] | all tables, what events do to them, and what holds quota |
//! | [`preempt`] | who gives way |
//! | [`schedule`] | one cycle, and the decision that comes out |
//! | [`reconcile`] | what is written outside of cycles |
//! | [`engine`] | the front; many workloads at once; what-if questions |
//! | [`simulate`] | runs through virtual time |
#![forbid(unsafe_code)]

pub mod assign;
pub mod base;
pub mod engine;
pub mod objects;
pub mod pods;
pub mod preempt;
pub mod queue;
pub mod quota;
pub mod reconcile;
pub mod schedule;
pub mod simulate;
pub mod state;
pub mod status;
#[cfg(test)]
pub mod testing;
pub mod workloads;
