//! `podSetAssignments` of an admission, built when read.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::{always, resources};
use super::kinds::{ResourceList, StringMap};
use super::topology::TopologyAssignment;
use crate::base::shared::Shared;
use crate::base::when_read::WhenRead;

/// One entry of `status.admission.podSetAssignments`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// Name of the pod set.
    #[serde(serialize_with = "always")]
    pub name: String,
    /// Resource to flavor.
    pub flavors: StringMap,
    /// Resource to the total of the pod set.
    #[serde(deserialize_with = "resources")]
    pub resource_usage: ResourceList,
    /// If absent: the count of the spec.
    pub count: Option<i32>,
    /// The placement of its pods. How it is written depends on feature gates.
    #[serde(skip_serializing)]
    pub topology_assignment: Option<Shared<TopologyAssignment>>,
    /// `delayedTopologyRequest`: `Pending` or `Ready`; empty when absent.
    pub delayed_topology_request: String,
}

/// The assignments of all pod sets. Copies share them.
#[derive(Clone)]
pub struct PodSetAssignments(Arc<Assignments>);

struct Assignments {
    waits_for_topology: bool,
    is_placed: bool,
    list: WhenRead<Vec<PodSetAssignment>>,
}

impl PodSetAssignments {
    /// Assignments that `make` builds on demand; none is placed or waits for a placement.
    pub(crate) fn when_read(make: impl FnOnce() -> Vec<PodSetAssignment> + Send + Sync + 'static) -> Self {
        let list = WhenRead::new(Box::new(make));
        Self(Arc::new(Assignments { waits_for_topology: false, is_placed: false, list }))
    }

    /// Does any of them wait for its delayed topology assignment?
    pub(crate) fn wait_for_topology(&self) -> bool {
        self.0.waits_for_topology
    }

    /// Does any of them have a topology assignment?
    pub(crate) fn are_placed(&self) -> bool {
        self.0.is_placed
    }

    /// Do other copies share it?
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Are both copies of the same assignments, not just equal?
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<Vec<PodSetAssignment>> for PodSetAssignments {
    fn from(list: Vec<PodSetAssignment>) -> Self {
        let waits =
            |it: &PodSetAssignment| it.topology_assignment.is_none() && it.delayed_topology_request == "Pending";
        let waits_for_topology = list.iter().any(waits);
        let is_placed = list.iter().any(|it| it.topology_assignment.is_some());
        Self(Arc::new(Assignments { waits_for_topology, is_placed, list: WhenRead::new(Box::new(|| list)) }))
    }
}

impl Serialize for PodSetAssignments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for PodSetAssignments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl Default for PodSetAssignments {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl Deref for PodSetAssignments {
    type Target = [PodSetAssignment];
    fn deref(&self) -> &[PodSetAssignment] {
        &self.0.list
    }
}

impl PartialEq for PodSetAssignments {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for PodSetAssignments {}

impl fmt::Debug for PodSetAssignments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
