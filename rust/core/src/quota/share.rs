//! The dominant resource share of a node, and how shares compare (rules/02 §6).

use std::cmp::Ordering;

use crate::base::amount::Amount;
use crate::base::ids::ResourceId;
use crate::quota::tree::{Column, Row, Tree};

/// How much of its parent's lendable quota a node borrows, for the resource with the highest ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// `fairSharing.weight` of the node.
    pub weight: f64,
    /// Borrowed per mille of the lendable quota; also 0 if nothing is lendable.
    pub ratio: f64,
    /// The resource that gives `ratio`.
    pub dominant: Option<ResourceId>,
    /// The columns in which the node is above its subtree quota.
    pub borrowed: Vec<Column>,
}

impl Share {
    /// Is the node above its subtree quota in any column?
    pub fn is_borrowing(&self) -> bool {
        !self.borrowed.is_empty()
    }

    /// Is the node above its subtree quota in any of these columns?
    pub fn borrows_any_of(&self, columns: &[Column]) -> bool {
        self.borrowed.iter().any(|column| columns.contains(column))
    }

    /// `ratio / weight`; infinite for a borrower of weight 0.
    pub fn weighted(&self) -> f64 {
        // Comes first: a node of weight 0 that is over on nothing lendable has share 0, not infinity (rules/04 §5.6).
        if self.ratio == 0.0 {
            0.0
        } else if self.weight == 0.0 {
            f64::INFINITY
        } else {
            self.ratio / self.weight
        }
    }

    /// The integer that `status.fairSharing.weightedShare` shows: rounded up, `i64::MAX` if infinite.
    pub fn rounded(&self) -> i64 {
        // `as` saturates, so infinity becomes i64::MAX.
        self.weighted().ceil() as i64
    }

    /// The order of shares: smaller is scheduled first, larger is preempted first.
    pub fn compare(&self, other: &Share) -> Ordering {
        let infinite = |s: &Share| s.weight == 0.0 && s.ratio != 0.0;
        match (infinite(self), infinite(other)) {
            // Both shares are infinite, and only the ratio before weighting can tell them apart (rules/02 §6).
            (true, true) => self.ratio.total_cmp(&other.ratio),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.weighted().total_cmp(&other.weighted()),
        }
    }
}

impl Tree {
    /// The share of a node with `extra` added to its own usage, column by column (rules/02 §6).
    ///
    /// `resources` lists the tree's resources by name with their columns.
    pub fn share(&self, row: Row, weight: f64, resources: &ResourceColumns, extra: &[(Column, Amount)]) -> Share {
        let mut share = Share { weight, ratio: 0.0, dominant: None, borrowed: Vec::new() };
        let Some(parent) = self.parent(row) else { return share };
        for (resource, columns) in &resources.0 {
            let mut borrowed = Amount::ZERO;
            for &column in columns {
                // What is used but declared nowhere at or below the node does not count, zero quotas do (rules/02 §6
                // rule 2).
                if !self.is_declared(row, column) {
                    continue;
                }
                let requested = extra.iter().find(|(c, _)| *c == column).map_or(Amount::ZERO, |(_, v)| *v);
                let over = requested.plus(self.usage(row, column)).minus(self.subtree_quota(row, column));
                // A flavor with room to spare does not make up for another that is over (rules/02 §6 rule 2).
                if over > Amount::ZERO {
                    borrowed = borrowed.plus(over);
                    share.borrowed.push(column);
                }
            }
            if borrowed > Amount::ZERO {
                let lendable = self.lendable(parent, columns);
                // With nothing to lend the ratio stays 0, yet the node counts as borrowing (rules/02 §6 rule 6).
                if lendable > Amount::ZERO {
                    // In this order of operations, as the last bit of the quotient can decide a tie (rules/02 §6 rule
                    // 5).
                    let ratio = borrowed.get() as f64 * 1000.0 / lendable.get() as f64;
                    if ratio > share.ratio {
                        share.ratio = ratio;
                        share.dominant = Some(*resource);
                    }
                }
            }
        }
        share
    }

    /// What a cohort could lend of one resource: the sum of potentially available quota over its flavors.
    pub fn lendable(&self, row: Row, columns_of_resource: &[Column]) -> Amount {
        columns_of_resource
            .iter()
            .filter(|&&column| self.is_declared(0, column))
            .fold(Amount::ZERO, |sum, &column| sum.plus(self.potential_available(row, column)))
    }
}

/// The resources of a tree sorted by name, each with its columns.
#[derive(Clone, Debug, Default)]
pub struct ResourceColumns(pub Vec<(ResourceId, Vec<Column>)>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::FlavorResourceId;
    use crate::quota::tree::Quota;

    /// A cohort with a ClusterQueue that uses 5 more than its quota, which is all there is.
    fn share(quota: i64) -> Share {
        let mut tree = Tree::new(&[None, Some(0)], vec![FlavorResourceId(0)]);
        let quota = Quota { nominal: Amount::new(quota), ..Quota::default() };
        tree.declare(1, 0, quota);
        tree.aggregate(&[false, true]);
        tree.add_usage(1, 0, quota.nominal.plus_units(5));
        tree.share(1, 1.0, &ResourceColumns(vec![(ResourceId(0), vec![0])]), &[])
    }

    #[test]
    fn a_share_is_what_is_borrowed_in_thousandths_of_what_the_cohort_could_lend() {
        assert_eq!((share(20).ratio, share(20).dominant), (250.0, Some(ResourceId(0))));
    }

    #[test]
    fn where_the_cohort_has_nothing_to_lend_no_share_is_too_large() {
        assert_eq!((share(0).ratio, share(0).dominant), (0.0, None));
        assert_eq!(share(0).borrowed, [0], "it borrows all the same");
    }
}
