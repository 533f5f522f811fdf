//! Rules of ClusterQueues; equal ones are stored once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::QueueRules;

/// The id of rules, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RulesId(u64);

/// All rules in use.
#[derive(Clone, Debug, Default)]
pub struct RulesTable {
    known: FxHashMap<Arc<QueueRules>, RulesId>,
    n_ids: u64,
}

impl RulesTable {
    /// The stored rules equal to these.
    pub(crate) fn share(&mut self, rules: QueueRules) -> (Arc<QueueRules>, RulesId) {
        if let Some((rules, id)) = self.known.get_key_value(&rules) {
            return (Arc::clone(rules), *id);
        }
        // Adding rules also drops unused ones.
        self.known.retain(|rules, _| Arc::strong_count(rules) > 1);
        self.n_ids += 1;
        let (rules, id) = (Arc::new(rules), RulesId(self.n_ids));
        self.known.insert(Arc::clone(&rules), id);
        (rules, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Preemption;

    #[test]
    fn equal_rules_are_shared_and_unused_ones_forgotten() {
        let other = || QueueRules { preemption: Some(Preemption::default()), ..QueueRules::default() };
        let mut table = RulesTable::default();
        let (rules, id) = table.share(QueueRules::default());
        let (again, same) = table.share(QueueRules::default());
        assert!(Arc::ptr_eq(&rules, &again) && id == same);
        let (others, first) = table.share(other());
        assert_ne!(first, id);
        drop((rules, again, others));
        let (_, second) = table.share(other());
        assert_eq!(first, second, "nothing is cleared up before there are new ones");
        let repeats =
            QueueRules { fungibility: Default::default(), groups: vec![Default::default()], preemption: None };
        table.share(repeats);
        assert_eq!(table.known.len(), 1);
    }
}
