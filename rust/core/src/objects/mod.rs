//! The Kubernetes objects that Kueue's scheduler reads, as plain data.
//!
//! What stands here has been decoded (and, at the door for people, defaulted and validated) by
//! `kueuecore-wire`. Names are still strings: they meet the engine once, in its interners. An absent field is
//! `None` or empty exactly where Kueue tells absent and empty apart (rules/01).

mod assignments;
pub mod condition_type;
pub mod conditions;
pub mod config;
mod kind;
mod kinds;
pub mod message;
mod nodes;
mod pod_set;
pub mod priority;
pub mod resource_names;
pub(crate) mod selectors;
pub(crate) mod slices;
mod stored;
mod topology;
pub mod variants;
mod workload;
mod workload_meta;

pub use assignments::{PodSetAssignment, PodSetAssignments};
pub use conditions::{Condition, ConditionStatus, Conditions};
pub use kind::{KUEUE_GROUP, Kind, Object, group_of};
pub use kinds::*;
pub use nodes::*;
pub use pod_set::*;
pub use topology::*;
pub use workload::*;
pub use workload_meta::*;
