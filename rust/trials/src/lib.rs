//! Trials: properties that hold for any bytes.
//!
//! A trial builds something from bytes, and panics if a property does not hold. `fuzz/` searches for such bytes;
//! `tests/corpora.rs` replays those found before.
//!
//! | trial | reads the bytes as |
//! |---|---|
//! | [`manifests::manifests`] | JSON manifests, at both doors, into an engine |
//! | [`quantities::quantities`] | two quantities, one per line |
//! | [`histories::histories`] | a small world and its events; the engine is saved and loaded on the way |
//! | [`snapshots::snapshots`] | a history, and damage to the save at its end |
#![forbid(unsafe_code)]

pub mod audit;
pub mod exact;
pub mod histories;
pub mod manifests;
pub mod observe;
pub mod quantities;
pub mod snapshots;
