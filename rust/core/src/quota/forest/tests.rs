//! Connected components, compared with following the parents.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The root above a node: `None` if following the parents never ends.
fn root_of(parents: &BTreeMap<NodeId, NodeId>, id: NodeId) -> Option<NodeId> {
    let mut at = id;
    for _ in 0..=parents.len() {
        match parents.get(&at) {
            Some(&parent) => at = parent,
            None => return Some(at),
        }
    }
    None
}

proptest! {
    #[test]
    fn roots_and_cycles_are_those_that_the_parents_lead_to(
        moves in prop::collection::vec((0..9u32, prop::option::of(0..6u32)), 1..60)
    ) {
        let mut forest = Forest::default();
        for i in 0..9 {
            forest.add_node(if i < 6 { NodeKind::Cohort } else { NodeKind::Queue });
        }
        let mut parents: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for (child, parent) in moves {
            let (child, parent) = (NodeId(child), parent.map(NodeId));
            let closes_cycle = forest.set_parent(child, parent, &Names::default());
            match parent {
                Some(parent) => parents.insert(child, parent),
                None => parents.remove(&child),
            };
            prop_assert_eq!(closes_cycle, root_of(&parents, child).is_none());
            for id in (0..9).map(NodeId) {
                prop_assert_eq!(forest.root(id), root_of(&parents, id));
                prop_assert_eq!(forest.has_cycle(id), root_of(&parents, id).is_none());
            }
            forest.flush(&Names::default());
        }
        // Only an acyclic tree counts a recomputation, for all of its ClusterQueues.
        let before: Vec<i64> = (6..9).map(|i| forest.generation(NodeId(i))).collect();
        forest.recompute(NodeId(0));
        for (i, before) in (6..9).zip(before) {
            let queue = NodeId(i);
            let together = forest.root(queue).is_some() && forest.root(queue) == forest.root(NodeId(0));
            prop_assert_eq!(forest.generation(queue), before + i64::from(together));
        }
    }
}

#[test]
fn a_long_chain_is_linked_from_either_end() {
    let n = 100_000;
    for from_the_top in [false, true] {
        let mut forest = Forest::default();
        let nodes: Vec<NodeId> = (0..n).map(|_| forest.add_node(NodeKind::Cohort)).collect();
        let mut links: Vec<_> = nodes.windows(2).map(|pair| (pair[0], pair[1])).collect();
        if from_the_top {
            links.reverse();
        }
        for (child, parent) in links {
            assert!(!forest.set_parent(child, Some(parent), &Names::default()));
            forest.recompute(child);
        }
        assert_eq!(forest.root(nodes[0]), Some(nodes[n - 1]));
        assert!(forest.set_parent(nodes[n - 1], Some(nodes[0]), &Names::default()));
        assert!(forest.has_cycle(nodes[n / 2]));
    }
}
