//! What an assignment comes to, worked out once for all workloads with the same pod sets that get the same (rules/01
//! §7.4, rules/05 §6.4 step 12).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::assign::Assignment;
use crate::base::amount::Amount;
use crate::base::ids::{FlavorId, FlavorResourceId, ResourceId};
use crate::base::names::Names;
use crate::base::shared::Shared;
use crate::objects::PodSetAssignment;
use crate::objects::resource_names::quantity_from_value;
use crate::pods::totals::Totals;
use crate::workloads::Spec;

/// Amounts by flavor-resource, in the order of their ids.
pub type Charged = Arc<[(FlavorResourceId, Amount)]>;

/// What a workload gets.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// Number of the spec that it was worked out for.
    pub spec: u64,
    /// As its status tells it.
    pub told: Shared<Vec<PodSetAssignment>>,
    /// The same by ids.
    pub totals: Arc<[Totals]>,
    /// What of it is charged.
    pub charged: Charged,
}

/// All of an assignment that makes a difference here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AssignmentKey {
    /// Number of the spec.
    spec: u64,
    pod_sets: SmallVec<[PodSetKey; 1]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PodSetKey {
    index: usize,
    count: i32,
    flavors: SmallVec<[(ResourceId, FlavorId, i64); 4]>,
}

/// What was worked out so far and is still in use.
#[derive(Clone, Debug, Default)]
pub struct AssignedTable {
    known: FxHashMap<AssignmentKey, Assigned>,
}

impl AssignedTable {
    /// What an assignment comes to for a workload with these pod sets.
    pub fn of(&mut self, names: &mut Names, spec: &Spec, assignment: &Assignment) -> Assigned {
        let assigned = assignment.pod_sets();
        let pod_sets = assigned.iter().map(|pod_set| {
            let amount = |resource| pod_set.requests.iter().find(|r| r.0 == resource).map_or(0, |r| r.1);
            let flavors = pod_set.flavors.iter().map(|it| (it.resource, it.flavor, amount(it.resource))).collect();
            PodSetKey { index: pod_set.index, count: pod_set.count, flavors }
        });
        let key = AssignmentKey { spec: spec.number(), pod_sets: pod_sets.collect() };
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let told: Vec<_> = key.pod_sets.iter().map(|key| tell(names, &spec.adjusted[key.index].name, key)).collect();
        let totals: Arc<[Totals]> = key.pod_sets.iter().map(|key| totals(names, key)).collect();
        let charged = charged_usage(names, &totals);
        let assigned = Assigned { spec: key.spec, told: told.into(), totals, charged };
        self.known.insert(key, assigned.clone());
        assigned
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Forgets what no workload has any more.
    pub(crate) fn sweep(&mut self) {
        self.known.retain(|_, assigned| Arc::strong_count(&assigned.totals) > 1);
    }
}

fn tell(names: &Names, name: &str, key: &PodSetKey) -> PodSetAssignment {
    let mut told = PodSetAssignment { name: name.to_owned(), count: Some(key.count), ..PodSetAssignment::default() };
    for &(resource, flavor, amount) in &key.flavors {
        let resource = names.resource_text(resource).to_owned();
        told.resource_usage.insert(resource.clone(), quantity_from_value(&resource, amount, false));
        told.flavors.insert(resource, names.flavors[flavor].clone());
    }
    told
}

/// What [`crate::pods::totals::reserved_totals`] would read in the admission, without its names.
fn totals(names: &Names, key: &PodSetKey) -> Totals {
    let mut requests: Vec<_> = key.flavors.iter().map(|&(resource, _, amount)| (resource, amount)).collect();
    requests.sort_by(|a, b| names.canonical_key(a.0).cmp(&names.canonical_key(b.0)));
    let mut flavors: Vec<_> = key.flavors.iter().map(|&(resource, flavor, _)| (resource, flavor)).collect();
    flavors.sort_by(|a, b| names.resource_text(a.0).cmp(names.resource_text(b.0)));
    Totals { count: key.count, requests, flavors }
}

/// What totals charge: the resources that have a flavor (rules/01 §7.4).
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
    use crate::engine::Kind;
    use crate::objects::config::Config;
    use crate::testing::{World, workload};

    #[test]
    fn who_asks_for_the_same_and_gets_the_same_shares_what_is_told_of_it() {
        let mut world = World::new(Config::default());
        let mut told = |name: &str, cpu: &str| {
            world.submit(workload(name, cpu));
            world.cycle().admissions.remove(0).admission.pod_set_assignments.clone()
        };
        let (a, b, other) = (told("a", "2"), told("b", "2"), told("c", "3"));
        assert!(a.is_same(&b));
        assert!(!a.is_same(&other));
        assert_eq!(other[0].resource_usage["cpu"].text(), "3");
    }

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
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
