//! What a workload is assigned (rules/01 §7.4, rules/05 §6.4 step 12).

use std::sync::Arc;

use smallvec::SmallVec;

use crate::assign::{Assignment, Delay, Grant};
use crate::base::amount::Amount;
use crate::base::ids::FlavorResourceId;
use crate::base::names::{Lexicon, Names};
use crate::base::shared::Shared;
use crate::objects::resource_names::quantity_from_value;
use crate::objects::{PodSet, PodSetAssignment, PodSetAssignments};
use crate::pods::totals::Totals;
use crate::workloads::Spec;

/// Amounts by flavor-resource, in the order of their ids.
pub type Charged = Arc<[(FlavorResourceId, Amount)]>;

/// The assignment of a workload.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// The pod sets for which it was computed. The number of the spec is not enough: a waiting cycle has its own table
    /// after loading, with its own numbers.
    pub pod_sets: Shared<Vec<PodSet>>,
    /// The assignments in its status.
    pub pod_set_assignments: PodSetAssignments,
    /// The same by ids.
    pub totals: Arc<[Totals]>,
    /// The part that is charged.
    pub charged: Charged,
}

impl Assigned {
    /// Computes an assignment for a workload with these pod sets.
    pub(crate) fn new(names: &mut Names, spec: &Spec, assignment: &Assignment) -> Self {
        let grants = assignment.grants();
        let totals: Arc<[Totals]> = grants.iter().map(|grant| totals(names, grant)).collect();
        let charged = charged_usage(names, &totals);
        let order: SmallVec<[usize; 4]> = grants.iter().map(|grant| grant.index).collect();
        let (lexicon, pod_sets, by_id) = (names.lexicon(), spec.original.clone(), Arc::clone(&totals));
        let named = move || {
            let pod_sets = order.iter().map(|&index| &pod_sets[index]).zip(by_id.iter());
            pod_sets.map(|(pod_set, totals)| assignment_of(&lexicon, &pod_set.name, totals)).collect::<Vec<_>>()
        };
        let pod_set_assignments = if grants.iter().any(|grant| grant.place.is_some() || grant.delayed.is_some()) {
            let placed = |(assignment, grant): (PodSetAssignment, Grant)| PodSetAssignment {
                topology_assignment: grant.place,
                delayed_topology_request: grant.delayed.map_or("", Delay::as_str).to_owned(),
                ..assignment
            };
            named().into_iter().zip(grants).map(placed).collect::<Vec<_>>().into()
        } else {
            PodSetAssignments::when_read(named)
        };
        Self { pod_sets: spec.original.clone(), pod_set_assignments, totals, charged }
    }

    /// Is it no longer used by any workload?
    pub(crate) fn is_unused(&self) -> bool {
        !self.pod_set_assignments.is_shared()
    }
}

fn assignment_of(lexicon: &Lexicon, name: &str, totals: &Totals) -> PodSetAssignment {
    let (name, count) = (name.to_owned(), Some(totals.count));
    let mut assignment = PodSetAssignment { name, count, ..PodSetAssignment::default() };
    for &(resource, flavor) in &totals.flavors {
        let resource_name = lexicon.resource(resource).to_owned();
        let amount = quantity_from_value(&resource_name, totals.request(resource), false);
        assignment.resource_usage.insert(resource_name.clone(), amount);
        assignment.flavors.insert(resource_name, lexicon.flavor(flavor).to_owned());
    }
    assignment
}

/// What [`crate::pods::totals::reserved_totals`] would read in the admission, without its names.
fn totals(names: &Names, grant: &Grant) -> Totals {
    let mut requests: Vec<_> = grant.choices.iter().map(|&(resource, _, units)| (resource, units)).collect();
    requests.sort_by(|a, b| names.canonical_key(a.0).cmp(&names.canonical_key(b.0)));
    let mut flavors: Vec<_> = grant.choices.iter().map(|&(resource, flavor, _)| (resource, flavor)).collect();
    flavors.sort_by(|a, b| names.resource_text(a.0).cmp(names.resource_text(b.0)));
    Totals { count: grant.count, requests, flavors }
}

/// The charges of totals: the resources that have a flavor (rules/01 §7.4).
pub(crate) fn charged_usage(names: &mut Names, totals: &[Totals]) -> Charged {
    let mut usage: Vec<(FlavorResourceId, Amount)> = Vec::new();
    for pod_set in totals {
        for &(resource, flavor) in &pod_set.flavors {
            let Some(&(_, value)) = pod_set.requests.iter().find(|r| r.0 == resource) else { continue };
            let fr = names.flavor_resource(flavor, resource);
            match usage.iter_mut().find(|(known, _)| *known == fr) {
                Some((_, total)) => *total = total.plus_units(value),
                None => usage.push((fr, Amount::ZERO.plus_units(value))),
            }
        }
    }
    usage.sort_unstable_by_key(|(fr, _)| *fr);
    usage.into()
}

#[cfg(test)]
mod tests {
    use crate::objects::Kind;
    use crate::objects::config::Config;
    use crate::testing::{World, quantity, resource_group, workload};

    #[test]
    fn equal_requests_and_flavors_share_their_assignment() {
        let mut world = World::new(Config::default());
        let mut admitted = |name: &str, cpu: &str| {
            world.submit(workload(name, cpu));
            world.cycle().admissions.remove(0).admission.pod_set_assignments.clone()
        };
        let (a, b, other) = (admitted("a", "2"), admitted("b", "2"), admitted("c", "3"));
        assert!(a.is_same(&b));
        assert!(!a.is_same(&other));
        assert_eq!(other[0].resource_usage["cpu"].text(), "3");
    }

    #[test]
    fn only_byte_resources_are_written_in_kibibytes() {
        let mut world = World::new(Config::default());
        let names = ["cpu", "memory", "example.com/gpu"];
        world.change_cluster_queue(|queue| queue.resource_groups = vec![resource_group(&names, &[("default", "4Ki")])]);
        let mut asks = workload("w", "1");
        let requests = &mut asks.pod_sets[0].template.spec.containers[0].resources.requests;
        requests.extend(names.map(|name| (name.to_owned(), quantity("1024"))));
        world.submit(asks);
        let usage = world.cycle().admissions.remove(0).admission.pod_set_assignments[0].resource_usage.clone();
        assert_eq!(names.map(|name| usage[name].text().into_owned()), ["1024", "1Ki", "1024"]);
    }

    #[test]
    fn unused_assignments_are_dropped() {
        let mut world = World::new(Config::default());
        for n in 0..3000 {
            let name = format!("w{n}");
            world.submit(workload(&name, &format!("{}m", 1000 + n)));
            assert_eq!(world.cycle().admissions.len(), 1);
            world.delete(Kind::Workload, &name);
        }
        let n_kept = world.engine.state.workloads.n_kept();
        assert!(n_kept < 3000, "{n_kept}");
    }
}
