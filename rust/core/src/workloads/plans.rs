//! The plans by which flavors are assigned, by pod sets and rules (rules/03).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::assign::plan::Plan;
use crate::assign::rules::RulesId;

/// Number of a spec, and the rules of a ClusterQueue.
pub(crate) type PlanKey = (u64, RulesId);

/// The plans that were worked out so far; `None`: there is none for these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    known: FxHashMap<PlanKey, Option<Arc<Plan>>>,
}

impl Plans {
    /// The plan for pod sets under some rules.
    pub fn get(&mut self, key: PlanKey, make: impl FnOnce() -> Option<Plan>) -> Option<Arc<Plan>> {
        self.known.entry(key).or_insert_with(|| make().map(Arc::new)).clone()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Forgets those of specs that are not in use.
    pub fn retain(&mut self, is_used: impl Fn(u64) -> bool) {
        self.known.retain(|(spec, _), _| is_used(*spec));
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.known.len()
    }
}
