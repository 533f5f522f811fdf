//! Whose unused quota others use (docs/simulate.md, "What is lent").

use rustc_hash::FxHashMap;

use crate::quota::forest::{Forest, NodeId, TreeId};
use crate::quota::tree::{Column, Row, Tree};

/// What nodes lend at one time, by the columns of their trees; computed on demand for all children of a cohort.
#[derive(Debug, Default)]
pub(super) struct Lending {
    by_node: FxHashMap<NodeId, Vec<i64>>,
}

impl Lending {
    /// How much of a node's unused quota others use. The forest is flushed.
    pub(super) fn of(&mut self, forest: &Forest, node: NodeId) -> &[i64] {
        let (id, row) = forest.locate(node);
        let (tree, nodes) = (forest.tree(id), forest.nodes_of(id));
        let path = std::iter::successors(Some(row), |row| tree.parent(*row));
        let unknown: Vec<Row> = path.take_while(|row| !self.by_node.contains_key(&nodes[*row])).collect();
        // From the root down: what a cohort lends comes from its children.
        for row in unknown.into_iter().rev() {
            match tree.parent(row) {
                Some(parent) => self.add_family(forest, id, parent),
                None => {
                    self.by_node.insert(nodes[row], vec![0; tree.columns().len()]);
                }
            }
        }
        &self.by_node[&node]
    }

    /// Computes the children of a cohort.
    fn add_family(&mut self, forest: &Forest, id: TreeId, cohort: Row) {
        let (tree, nodes) = (forest.tree(id), forest.nodes_of(id));
        let above = self.by_node[&nodes[cohort]].clone();
        let children = forest.child_cohorts(nodes[cohort]).chain(forest.child_queues(nodes[cohort]));
        let children: Vec<(NodeId, Row)> = children.map(|child| (child, forest.locate(child).1)).collect();
        let mut lent = vec![vec![0; above.len()]; children.len()];
        for (column, above) in above.into_iter().enumerate() {
            let over = children.iter().map(|(_, row)| over(tree, *row, column).max(0));
            let asked = over.fold(i128::from(above), i128::saturating_add);
            if asked == 0 {
                continue;
            }
            let own = i128::from(tree.nominal(cohort, column).get());
            let idle = children.iter().map(|(_, row)| idle(tree, *row, column));
            for (lent, part) in lent.iter_mut().zip(parts(asked, std::iter::once(own).chain(idle)).into_iter().skip(1))
            {
                lent[column] = i64::try_from(part).unwrap_or(i64::MAX);
            }
        }
        self.by_node.extend(children.into_iter().map(|(child, _)| child).zip(lent));
    }
}

/// Divides an amount among the idle quotas, in proportion. Whole units that add up to the amount, or to all idle quota.
fn parts(asked: i128, idle: impl Iterator<Item = i128> + Clone) -> Vec<i128> {
    let pool = idle.clone().fold(0, i128::saturating_add);
    let asked = asked.min(pool);
    let up_to = |sum: i128| asked.saturating_mul(sum).checked_div(pool).unwrap_or(0);
    let mut sum = 0i128;
    idle.map(|idle| {
        let before = up_to(sum);
        sum = sum.saturating_add(idle);
        up_to(sum) - before
    })
    .collect()
}

/// How much a node uses beyond its quota; negative if it uses less.
fn over(tree: &Tree, row: Row, column: Column) -> i128 {
    i128::from(tree.usage(row, column).get()) - i128::from(tree.subtree_quota(row, column).get())
}

/// How much of its lendable quota a node does not use itself.
fn idle(tree: &Tree, row: Row, column: Column) -> i128 {
    let lends = i128::from(tree.subtree_quota(row, column).get()) - i128::from(tree.local_quota(row, column).get());
    lends.min(-over(tree, row, column)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_request_or_to_all_idle_quota() {
        for (asked, idle, expected) in [
            (5, &[5, 3][..], &[3, 2][..]),
            (1, &[1, 1, 1], &[0, 0, 1]),
            (9, &[4, 0, 2], &[4, 0, 2]),
            (7, &[], &[]),
            (7, &[0], &[0]),
            (2, &[i128::from(i64::MAX), i128::from(i64::MAX)], &[1, 1]),
        ] {
            assert_eq!(parts(asked, idle.iter().copied()), expected, "{asked} of {idle:?}");
        }
    }
}
