//! Topology-aware placement: which nodes, racks and blocks the pods of a workload get (rules/08).
//!
//! [`tree`] has the domains of a flavor's nodes, [`capacity`] what they have free. [`placement`] places the pod sets of a
//! workload: it asks which leaves suit (`matches`) and what fits (`tables`, which keep it while leaves change), chooses
//! domains ([`search`], [`balanced`]) and goes down to the leaves ([`descend`]). Whoever asks only whether there is a place,
//! while workloads go, keeps [`rooms`]. [`standing`] knows who stands on which host.

pub mod balanced;
pub mod capacity;
pub mod counts;
mod descend;
mod failure;
pub mod filter;
pub mod hosts;
mod matches;
pub mod placement;
pub mod request;
pub(crate) mod rooms;
pub mod search;
pub mod sites;
pub mod standing;
pub(crate) mod tables;
pub mod tree;

#[cfg(test)]
mod tests;
