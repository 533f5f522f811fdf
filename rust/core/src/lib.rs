//! The scheduling core of Kueue as a library: objects in, decisions out, nothing done.
//!
//! The crate knows no Python, no JSON, no clock and no randomness. Every rule cites its text in `docs/rules`.
//!
//! | read | for |
//! |---|---|
//! | [`objects`], [`config`], [`gates`] | what comes in |
//! | [`engine`], [`columns`], [`decision`] | the front, many workloads at once, and what comes out |
//! | [`state`] | all tables: names to ids, the quota forest, queues, workloads |
//! | [`apply`], [`cache`], [`reconcile`] | what events do, what holds quota, what is written outside of cycles |
//! | [`cycle`], [`nominate`], [`entry`], [`tournament`], `outcome` | one scheduling cycle: its steps, its heads, their order, what becomes of them |
//! | [`assign`], [`verdicts`] | which flavors a workload would use, and how long that answer holds |
//! | [`preempt`], [`slices`], [`variants`] | who gives way: victims, replaced slices, variants for less preferred flavors |
//! | [`pending`] | the queue of one ClusterQueue |
//! | [`forest`], [`tree`], [`quota`], [`share`] | who belongs to whom, quota in dense columns, its mathematics, fair shares |
//! | [`pods`], [`devices`], [`totals`], [`quantity`], [`amount`] | what pods ask for, in Kubernetes' numbers |
//! | [`reservation`], [`eviction`], [`conditions`], [`messages`] | what is written into a status, word for word |
#![forbid(unsafe_code)]

pub mod activeness;
pub mod admission_fair_sharing;
pub mod amount;
pub mod apply;
pub mod assign;
mod assigned;
pub mod cache;
pub mod checks;
pub mod columns;
pub mod condition_type;
pub mod conditions;
pub mod config;
pub mod cycle;
pub mod decision;
pub mod devices;
pub mod engine;
pub mod entry;
pub mod eviction;
pub mod forest;
pub mod gates;
pub mod ids;
mod key;
pub mod messages;
pub mod names;
pub mod nominate;
pub mod objects;
mod outcome;
mod pair;
pub mod pending;
pub mod pods;
pub mod preempt;
pub mod quantity;
pub mod queue_order;
pub mod quota;
pub mod readiness;
pub mod reasons;
pub mod reconcile;
pub mod reservation;
pub mod resource_names;
pub mod selectors;
pub mod share;
pub mod shared;
pub mod simulate;
pub mod slices;
pub mod state;
#[cfg(test)]
pub mod testing;
pub mod text;
pub mod totals;
pub mod tournament;
pub mod tree;
pub mod usage_report;
pub mod variants;
pub mod verdicts;
pub mod waiting;
pub mod what_if;
pub mod workloads;
