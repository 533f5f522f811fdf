//! The Kubernetes objects that Kueue's scheduler reads, as plain data.
//!
//! `kueuecore-wire` has decoded them (and, for manifests of users, defaulted and validated). Names are still strings;
//! the engine interns them. An absent field is `None` or empty exactly where Kueue distinguishes absent from empty
//! (rules/01).

mod assignments;
pub mod condition_type;
pub mod conditions;
pub mod config;
pub mod fields;
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
pub mod time;
mod topology;
pub mod variants;
pub mod words;
mod workload;
mod workload_meta;

pub use assignments::{PodSetAssignment, PodSetAssignments};
pub use conditions::{Condition, ConditionStatus, Conditions};
pub use kind::{KUEUE_GROUP, Kind, Object, group_of};
pub use kinds::*;
pub use nodes::*;
pub use pod_set::*;
pub use time::Time;
pub use topology::*;
pub use workload::*;
pub use workload_meta::*;
