//! Any bytes in, and what must hold whatever they are.
//!
//! A trial takes bytes, makes something of them, and panics where a promise is broken. `fuzz/` looks for such bytes;
//! `tests/corpora.rs` tries those again that were found before.
//!
//! | trial | reads the bytes as |
//! |---|---|
//! | [`manifests::manifests`] | JSON manifests, at both doors, into an engine |
//! | [`quantities::quantities`] | two quantities, one a line |
//! | [`histories::histories`] | a small world and what happens in it, the engine saved and loaded on the way |
//! | [`snapshots::snapshots`] | a history, and what is damaged in the save that it leads to |
#![forbid(unsafe_code)]

pub mod audit;
pub mod exact;
pub mod histories;
pub mod manifests;
pub mod observe;
pub mod quantities;
pub mod snapshots;
