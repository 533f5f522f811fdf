//! `podSetAssignments` of an admission: put into words when somebody reads them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use crate::objects::PodSetAssignment;

type Make = Box<dyn FnOnce() -> Vec<PodSetAssignment> + Send + Sync>;

/// What pod sets were assigned. Copies share it.
#[derive(Clone)]
pub struct PodSetAssignments(Arc<Assignments>);

struct Assignments {
    waits_for_topology: bool,
    list: LazyLock<Vec<PodSetAssignment>, Make>,
}

impl PodSetAssignments {
    /// Assignments that `make` words, none of which waits for its topology.
    pub(crate) fn when_read(make: impl FnOnce() -> Vec<PodSetAssignment> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Assignments { waits_for_topology: false, list: LazyLock::new(Box::new(make)) }))
    }

    /// Does one of them wait for its delayed topology assignment?
    pub(crate) fn wait_for_topology(&self) -> bool {
        self.0.waits_for_topology
    }

    /// Is there another copy?
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Are both the same, not only equal?
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<Vec<PodSetAssignment>> for PodSetAssignments {
    fn from(list: Vec<PodSetAssignment>) -> Self {
        let waits =
            |it: &PodSetAssignment| it.topology_assignment.is_empty() && it.delayed_topology_request == "Pending";
        let waits_for_topology = list.iter().any(waits);
        Self(Arc::new(Assignments { waits_for_topology, list: LazyLock::new(Box::new(|| list)) }))
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
