//! Plans for assigning flavors, by pod sets and rules (rules/03), and their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::assign::Assignment;
use crate::assign::plan::{Chosen, Plan, PlanKey};
use crate::base::names::Names;
use crate::workloads::Spec;
use crate::workloads::assigned::Assigned;

/// A plan, and the assignments made with it.
#[derive(Clone, Debug)]
struct Planned {
    /// `None`: there is no plan for these pod sets and rules.
    plan: Option<Arc<Plan>>,
    /// By chosen flavors; computed once for all workloads that get them.
    assigned: BTreeMap<Chosen, Assigned>,
}

/// The plans computed so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    known: FxHashMap<PlanKey, Planned>,
    /// Number of plans and results.
    n_kept: usize,
}

impl Plans {
    /// The plan for pod sets under some rules.
    pub fn get(&mut self, key: PlanKey, make: impl FnOnce() -> Option<Plan>) -> Option<Arc<Plan>> {
        let n_new = &mut self.n_kept;
        let new = || {
            *n_new += 1;
            Planned { plan: make().map(Arc::new), assigned: BTreeMap::new() }
        };
        self.known.entry(key).or_insert_with(new).plan.clone()
    }

    /// Computes what an assignment gives a workload with these pod sets.
    pub fn assigned(&mut self, names: &mut Names, spec: &Spec, assignment: &Assignment) -> Assigned {
        let by_plan = assignment.by_which_plan();
        // While a cycle waited, the pod sets may have changed; or flavors, and all plans are gone.
        let planned = by_plan.filter(|(key, _)| key.spec == spec.number());
        let Some((planned, chosen)) = planned.and_then(|(key, chosen)| Some((self.known.get_mut(&key)?, chosen)))
        else {
            return Assigned::new(names, spec, assignment);
        };
        let n_new = &mut self.n_kept;
        let new = || {
            *n_new += 1;
            Assigned::new(names, spec, assignment)
        };
        planned.assigned.entry(chosen).or_insert_with(new).clone()
    }

    /// Drops all plans.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Drops plans of unused specs, and results without a workload.
    pub fn retain(&mut self, is_used: impl Fn(u64) -> bool) {
        let mut n_kept = 0;
        self.known.retain(|key, planned| {
            planned.assigned.retain(|_, assigned| !assigned.is_unused());
            let keeps = is_used(key.spec);
            n_kept += if keeps { 1 + planned.assigned.len() } else { 0 };
            keeps
        });
        self.n_kept = n_kept;
    }

    /// Number of plans and results.
    pub fn len(&self) -> usize {
        self.n_kept
    }
}

#[cfg(test)]
mod tests {
    use crate::objects::Kind;
    use crate::objects::config::Config;
    use crate::testing::{World, flavor, resource_group, workload};

    /// Number of plans and results, by the counter and counted.
    fn kept(world: &World) -> (usize, usize) {
        let plans = &world.engine.state.workloads.plans;
        (plans.len(), plans.known.values().map(|it| usize::from(it.plan.is_some()) + it.assigned.len()).sum())
    }

    #[test]
    fn plans_are_counted_until_unused() {
        let mut world = World::new(Config::default());
        let groups = vec![resource_group(&["cpu"], &[("default", "1"), ("other", "1")])];
        world.apply([flavor("other")]);
        world.change_cluster_queue(|queue| queue.resource_groups = groups);
        for name in ["a", "b"] {
            world.submit(workload(name, "1"));
            assert_eq!(world.cycle().admissions.len(), 1);
        }
        assert_eq!(kept(&world), (3, 3), "a plan, and what it comes to in either flavor");
        world.delete(Kind::Workload, "b");
        world.engine.state.workloads.plans.retain(|_| true);
        assert_eq!(kept(&world), (2, 2));
        world.engine.state.workloads.plans.retain(|_| false);
        assert_eq!(kept(&world), (0, 0));
    }
}
