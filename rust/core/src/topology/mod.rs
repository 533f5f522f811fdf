//! Topology-aware placement: which nodes, racks and blocks the pods of a workload get (rules/08).
//!
//! [`tree`] has the domains of a flavor's nodes, [`capacity`] their free capacity. [`placement`] places the pod sets of
//! a workload: it finds which leaves match (`matches`) and how much fits (`tables`, which cache that while leaves
//! change), chooses domains ([`search`], [`balanced`], `tails`) and descends to the leaves ([`descend`]). A search for victims,
//! which only needs to know whether there is a place, uses [`rooms`]. [`standing`] knows which workloads are on which
//! host.

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
mod tails;
pub mod tree;

#[cfg(test)]
mod tests;
