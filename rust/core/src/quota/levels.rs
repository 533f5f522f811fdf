//! Which limit on the way up the cohort tree an amount hits (rules/02 §2.2).

use crate::base::amount::Amount;
use crate::quota::tree::{Column, Quota, Row, Tree};

/// A node's view of an amount that it, or a ClusterQueue below it, wants to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub row: Row,
    /// What it declares.
    pub quota: Quota,
    /// Own quota, and what the children lend.
    pub subtree: Amount,
    /// Usage of that.
    pub usage: Amount,
    /// The part of the amount that reaches this node.
    pub needed: Amount,
    /// What it can provide, including everything above.
    pub available: Amount,
    /// By how much the part that reaches it exceeds what this node allows, whatever is above.
    pub missing: Amount,
    /// Is this a limit that the amount hits?
    pub binds: Option<Bound>,
}

/// The limit that an amount hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// All quota of the tree is in use.
    Quota,
    /// The node has reached its borrowing limit.
    BorrowingLimit,
}

impl Bound {
    pub fn name(self) -> &'static str {
        match self {
            Bound::Quota => "Quota",
            Bound::BorrowingLimit => "BorrowingLimit",
        }
    }
}

impl Tree {
    /// The nodes that an amount reaches: the ClusterQueue, and each one above it that must lend some.
    pub fn levels(&self, row: Row, column: Column, amount: Amount) -> Vec<Level> {
        let mut levels = Vec::new();
        let mut next = Some((row, amount));
        while let Some((row, needed)) = next {
            let local = self.local_available(row, column);
            let parent = self.parent(row);
            let most = match parent {
                None => self.subtree_quota(row, column).minus(self.usage(row, column)),
                Some(_) => local.plus(self.most_from_parent(row, column)),
            };
            let bound = if parent.is_none() { Bound::Quota } else { Bound::BorrowingLimit };
            levels.push(Level {
                row,
                quota: self.quota(row, column),
                subtree: self.subtree_quota(row, column),
                usage: self.usage(row, column),
                needed,
                available: self.available_unclamped(row, column).max(Amount::ZERO),
                missing: needed.minus(most).max(Amount::ZERO),
                binds: (needed > most).then_some(bound),
            });
            next = parent.map(|parent| (parent, needed.minus(local))).filter(|(_, rest)| *rest > Amount::ZERO);
        }
        levels
    }

    /// Unused quota that nodes keep from these ancestors because of lending limits.
    pub fn kept(&self, row: Row, column: Column) -> Vec<(Row, Amount)> {
        let path: Vec<Row> = std::iter::successors(Some(row), |&row| self.parent(row)).collect();
        let root = path.last().copied();
        let is_below_root = |row| std::iter::successors(Some(row), |&row| self.parent(row)).last() == root;
        let others = (0..self.n_rows()).filter(|row| !path.contains(row) && is_below_root(*row));
        others.map(|row| (row, self.local_available(row, column))).filter(|(_, free)| *free > Amount::ZERO).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::FlavorResourceId;

    fn quota(nominal: i64, borrowing: Option<i64>, lending: Option<i64>) -> Quota {
        Quota {
            nominal: Amount::new(nominal),
            borrowing_limit: borrowing.map(Amount::new),
            lending_limit: lending.map(Amount::new),
        }
    }

    /// A root, a cohort with borrowing limit 3, two ClusterQueues in it, and one outside that lends 4 of 10.
    fn tree() -> Tree {
        let rows = [
            (None, quota(2, None, None), false),
            (Some(0), quota(0, Some(3), None), false),
            (Some(1), quota(5, None, None), true),
            (Some(1), quota(5, None, None), true),
            (Some(0), quota(10, None, Some(4)), true),
        ];
        let parents: Vec<_> = rows.iter().map(|row| row.0).collect();
        let mut tree = Tree::new(&parents, vec![FlavorResourceId(0)]);
        for (row, (_, quota, _)) in rows.iter().enumerate() {
            tree.declare(row, 0, *quota);
        }
        tree.set_heights(vec![2, 1, 0, 0, 0]);
        tree.aggregate(&rows.map(|row| row.2));
        tree
    }

    #[test]
    fn only_an_amount_that_does_not_fit_has_a_binding_limit() {
        let mut tree = tree();
        tree.add_usage(3, 0, Amount::new(5));
        let bounds = |amount| {
            let levels = tree.levels(2, 0, Amount::new(amount));
            let fits = Amount::new(amount) <= tree.available(2, 0);
            assert_eq!(levels.iter().all(|level| level.binds.is_none()), fits);
            levels.into_iter().filter_map(|level| Some((level.row, level.binds?))).collect::<Vec<_>>()
        };
        assert_eq!(bounds(8), []);
        assert_eq!(bounds(9), [(1, Bound::BorrowingLimit)]);
        assert_eq!(bounds(12), [(1, Bound::BorrowingLimit), (0, Bound::Quota)]);
    }

    #[test]
    fn quota_that_is_not_lent_is_listed() {
        let mut tree = tree();
        assert_eq!(tree.kept(2, 0), [(4, Amount::new(6))]);
        tree.add_usage(4, 0, Amount::new(2));
        assert_eq!(tree.kept(2, 0), [(4, Amount::new(4))]);
    }
}
