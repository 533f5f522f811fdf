//! The hosts of a workload's pods, from its assignment (rules/08 §13.1).

use std::sync::Arc;

use crate::objects::{PodSetAssignment, Workload};
use crate::status::stage::is_admitted;
use crate::topology::tree::ends_with_hostname;

/// The hosts assigned to a pod set; none if leaves are not hosts.
pub fn hosts_of(assigned: &PodSetAssignment) -> impl Iterator<Item = &Arc<str>> {
    let place = assigned.topology_assignment.as_deref().filter(|place| ends_with_hostname(&place.levels));
    let taken = place.into_iter().flat_map(|place| &place.domains).filter(|domain| domain.count > 0);
    taken.filter_map(|domain| domain.values.last())
}

/// The hosts assigned to a workload, Admitted or not. Hosts that several pod sets share occur several times.
pub fn assigned_hosts(workload: &Workload) -> impl Iterator<Item = &Arc<str>> {
    let admission = workload.status.admission.iter();
    admission.flat_map(|admission| admission.pod_set_assignments.iter()).flat_map(hosts_of)
}

/// The same for an Admitted workload; none for others.
pub fn used_hosts(workload: &Workload) -> impl Iterator<Item = &Arc<str>> {
    Some(workload).filter(|workload| is_admitted(workload)).into_iter().flat_map(assigned_hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::conditions::{ADMITTED, condition};
    use crate::objects::{Admission, ConditionStatus, TopologyAssignment, TopologyDomain};
    use crate::testing::{at, workload};
    use crate::topology::tree::HOSTNAME;

    fn assigned(level: &str, domains: &[(&str, i32)]) -> PodSetAssignment {
        let domain = |&(name, count): &(&str, i32)| TopologyDomain::new([name], count);
        let domains = domains.iter().map(domain).collect();
        let place = TopologyAssignment { levels: vec![level.to_owned()], domains };
        PodSetAssignment { topology_assignment: Some(place.into()), ..PodSetAssignment::default() }
    }

    fn names<'a>(hosts: impl Iterator<Item = &'a Arc<str>>) -> Vec<&'a str> {
        hosts.map(|host| &**host).collect()
    }

    #[test]
    fn a_workload_uses_the_hosts_of_its_assignments_once_it_is_admitted() {
        let list = vec![
            assigned(HOSTNAME, &[("a", 1), ("b", 2), ("gone", 0)]),
            assigned("rack", &[("r", 1)]),
            PodSetAssignment::default(),
            assigned(HOSTNAME, &[("b", 1)]),
        ];
        let mut placed = workload("w", "1");
        placed.status.admission =
            Some(Admission { cluster_queue: "q".into(), pod_set_assignments: list.into() }.into());
        assert_eq!(names(assigned_hosts(&placed)), ["a", "b", "b"]);
        assert_eq!(used_hosts(&placed).count(), 0);
        placed.status.conditions.set(condition(ADMITTED, ConditionStatus::True, "Admitted", "", at(0), 1));
        assert_eq!(names(used_hosts(&placed)), ["a", "b", "b"]);
    }
}
