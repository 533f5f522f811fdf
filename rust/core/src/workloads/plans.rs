//! The plans by which flavors are assigned, by pod sets and rules (rules/03), and what they have come to.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::assign::Assignment;
use crate::assign::plan::{Chosen, Plan, PlanKey};
use crate::base::names::Names;
use crate::workloads::Spec;
use crate::workloads::assigned::Assigned;

/// A plan, and what workloads were assigned by it.
#[derive(Clone, Debug)]
struct Planned {
    /// `None`: there is none for these pod sets and rules.
    plan: Option<Arc<Plan>>,
    /// By the flavors that were chosen; each is worked out once for all workloads that get it.
    assigned: BTreeMap<Chosen, Assigned>,
}

/// The plans that were worked out so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    known: FxHashMap<PlanKey, Planned>,
    /// How many there are, with what they have come to.
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

    /// What an assignment comes to for a workload with these pod sets.
    pub fn assigned(&mut self, names: &mut Names, spec: &Spec, assignment: &Assignment) -> Assigned {
        let by_plan = assignment.by_which_plan();
        // While a cycle waited the pod sets may have changed; or flavors, and all plans are gone.
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

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets those of specs that are not in use, and what no workload has been assigned any more.
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

    /// How many are kept, with what they have come to.
    pub fn len(&self) -> usize {
        self.n_kept
    }
}

#[cfg(test)]
mod tests {
    use crate::objects::Kind;
    use crate::objects::config::Config;
    use crate::testing::{World, flavor, resource_group, workload};

    /// How many are kept, by the count and one by one.
    fn kept(world: &World) -> (usize, usize) {
        let plans = &world.engine.state.workloads.plans;
        (plans.len(), plans.known.values().map(|it| usize::from(it.plan.is_some()) + it.assigned.len()).sum())
    }

    #[test]
    fn what_is_kept_is_counted_until_nobody_uses_it() {
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
