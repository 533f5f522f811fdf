//! The workloads that have a place, and those on each host (rules/08 §13.1).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::ids::WorkloadId;
use crate::base::sorted::Sorted;
use crate::objects::PodSetAssignments;
use crate::topology::hosts::hosts_of;

/// The workloads with a place by their admission, by id. Copies share what has not changed.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Each with its recorded assignment: it leaves those hosts when it gets others.
    placed: Sorted<(WorkloadId, PodSetAssignments)>,
    /// Host and workload, each pair once.
    on_hosts: Sorted<(Arc<str>, WorkloadId)>,
}

impl Standing {
    /// Records the placement of a workload; without assignments it has none.
    pub fn note(&mut self, id: WorkloadId, assignments: Option<&PodSetAssignments>) {
        let is_it = |it: &(WorkloadId, PodSetAssignments)| it.0.cmp(&id);
        let before = self.placed.find(is_it).map(|it| &it.1);
        if before.zip(assignments).map_or(before.is_none() && assignments.is_none(), |(a, b)| a.is_same(b)) {
            return;
        }
        if let Some((_, before)) = self.placed.take(is_it) {
            for host in before.iter().flat_map(hosts_of) {
                self.on_hosts.take(|it| order(it, host, id));
            }
        }
        let Some(assignments) = assignments else { return };
        for host in assignments.iter().flat_map(hosts_of) {
            self.on_hosts.insert((Arc::clone(host), id));
        }
        self.placed.insert_by((id, assignments.clone()), |a, b| a.0.cmp(&b.0));
    }

    /// All workloads with a place.
    pub fn workloads(&self) -> impl Iterator<Item = WorkloadId> {
        self.placed.iter().map(|it| it.0)
    }

    /// The workloads on a host, whether or not such a node exists.
    pub fn on<'a>(&'a self, host: &'a str) -> impl Iterator<Item = WorkloadId> + 'a {
        let rest = self.on_hosts.iter_from(move |it| &*it.0 < host);
        rest.take_while(move |it| &*it.0 == host).map(|it| it.1)
    }
}

fn order((host, id): &(Arc<str>, WorkloadId), of_host: &str, of_id: WorkloadId) -> Ordering {
    (&**host, *id).cmp(&(of_host, of_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{PodSetAssignment, TopologyAssignment, TopologyDomain};
    use crate::topology::tree::HOSTNAME;

    fn on(standing: &Standing, host: &str) -> Vec<u32> {
        standing.on(host).map(|id| id.0).collect()
    }

    fn assigned(level: &str, domains: &[(&str, i32)]) -> PodSetAssignment {
        let domain = |&(host, count): &(&str, i32)| TopologyDomain::new([host], count);
        let place =
            TopologyAssignment { levels: vec![level.to_owned()], domains: domains.iter().map(domain).collect() };
        PodSetAssignment { topology_assignment: Some(place.into()), ..PodSetAssignment::default() }
    }

    #[test]
    fn a_workload_is_on_the_hosts_of_its_last_assignments() {
        let mut standing = Standing::default();
        let first = || vec![assigned(HOSTNAME, &[("a", 1), ("b", 2)]), assigned(HOSTNAME, &[("b", 1), ("c", 0)])];
        standing.note(WorkloadId(2), Some(&first().into()));
        standing.note(WorkloadId(1), Some(&first().into()));
        assert_eq!([on(&standing, "a"), on(&standing, "b")], [[1, 2], [1, 2]]);
        assert_eq!([on(&standing, "c"), on(&standing, "")], [[0; 0], [0; 0]], "no pods, and no host");
        standing.note(WorkloadId(1), Some(&vec![assigned(HOSTNAME, &[("c", 1)])].into()));
        standing.note(WorkloadId(2), None);
        assert_eq!(["a", "b", "c"].map(|host| on(&standing, host)), [vec![], vec![], vec![1]]);
        assert!(standing.workloads().eq([WorkloadId(1)]));
    }

    #[test]
    fn a_workload_placed_on_a_rack_is_on_no_host() {
        let mut standing = Standing::default();
        standing.note(WorkloadId(1), Some(&vec![assigned("rack", &[("a", 1)])].into()));
        assert!(on(&standing, "a").is_empty());
        assert!(standing.workloads().eq([WorkloadId(1)]));
    }
}
