//! Quota arithmetic on one tree (rules/02 §2): available quota, adding and removing usage.

use crate::base::amount::Amount;
use crate::base::ids::FlavorResourceId;
use crate::quota::tree::{Cell, Column, Quota, Row, Tree};

impl Tree {
    /// What the node itself declares.
    pub fn quota(&self, row: Row, column: Column) -> Quota {
        self.declared(row, column).quota
    }

    /// `nominalQuota` declared at the node itself.
    pub fn nominal(&self, row: Row, column: Column) -> Amount {
        self.cell(row, column).nominal
    }

    /// `S(n)`, the subtree quota (rules/02 §2).
    pub fn subtree_quota(&self, row: Row, column: Column) -> Amount {
        self.cell(row, column).subtree
    }

    /// `L(n)`, the quota that is not lent to the parent (rules/02 §2).
    pub fn local_quota(&self, row: Row, column: Column) -> Amount {
        self.cell(row, column).local
    }

    /// Is the flavor-resource declared at the node or below it?
    pub fn is_declared(&self, row: Row, column: Column) -> bool {
        self.declared(row, column).here_or_below
    }

    /// `LA(n)`: unused local quota.
    pub(crate) fn local_available(&self, row: Row, column: Column) -> Amount {
        let (cell, usage) = self.cell_and_usage(row, column);
        local_available(cell, usage)
    }

    /// The part of an addition at a node that goes up to its parent (rules/02 §2.1).
    pub(crate) fn past_local(&self, row: Row, column: Column, amount: Amount) -> Option<Amount> {
        let local_available = self.local_available(row, column);
        (amount > local_available).then(|| amount.minus(local_available))
    }

    /// Adds usage at a node; what exceeds its unused local quota goes up to its parent (rules/02 §2.1).
    pub(crate) fn add_usage(&mut self, row: Row, column: Column, amount: Amount) {
        self.note_less_than_nothing(amount);
        let (mut row, mut amount) = (row, amount);
        loop {
            let past_local = self.past_local(row, column, amount);
            self.set_usage(row, column, self.usage(row, column).plus(amount));
            match (self.parent(row), past_local) {
                (Some(parent), Some(rest)) => (row, amount) = (parent, rest),
                _ => return,
            }
        }
    }

    /// Removes usage at a node, and from its ancestors what it stored there (rules/02 §2.1).
    pub(crate) fn remove_usage(&mut self, row: Row, column: Column, amount: Amount) {
        self.note_less_than_nothing(amount);
        let (mut row, mut amount) = (row, amount);
        loop {
            let stored_in_parent = self.usage(row, column).minus(self.local_quota(row, column));
            // No clamp at zero: removing more than there is leaves negative usage, as in Kueue (rules/02 §2.1).
            self.set_usage(row, column, self.usage(row, column).minus(amount));
            match self.parent(row) {
                // Decided by the usage before the removal: a node within its local quota had sent nothing up
                // (rules/02 §2.1).
                Some(parent) if stored_in_parent > Amount::ZERO => {
                    amount = amount.min(stored_in_parent);
                    row = parent;
                }
                _ => return,
            }
        }
    }

    /// Adds amounts at a node, skipping flavor-resources that the tree does not have.
    pub(crate) fn add_all(&mut self, row: Row, usage: &[(FlavorResourceId, Amount)]) {
        for &(fr, amount) in usage {
            if let Some(column) = self.column(fr) {
                self.add_usage(row, column, amount);
            }
        }
    }

    /// Removes amounts at a node, skipping flavor-resources that the tree does not have.
    pub(crate) fn remove_all(&mut self, row: Row, usage: &[(FlavorResourceId, Amount)]) {
        for &(fr, amount) in usage {
            if let Some(column) = self.column(fr) {
                self.remove_usage(row, column, amount);
            }
        }
    }

    /// `avail(n)`, not clamped: negative if usage exceeds the quota (rules/02 §2.2).
    pub fn available_unclamped(&self, row: Row, column: Column) -> Amount {
        // Going from the root down would need the path; recursion is as deep as the cohorts.
        let (cell, usage) = self.cell_and_usage(row, column);
        let Some(parent) = self.parent(row) else { return cell.subtree.minus(usage) };
        available(cell, usage, local_available(cell, usage), self.available_unclamped(parent, column))
    }

    /// What a ClusterQueue can still use: `max(0, avail)` (rules/02 §2.2).
    pub fn available(&self, row: Row, column: Column) -> Amount {
        // Clamped here alone: on the way down, over-use in one branch must reach its siblings as a negative amount
        // (rules/02 §2.2).
        self.available_unclamped(row, column).max(Amount::ZERO)
    }

    /// What a node could use if everything were idle (rules/02 §2.3).
    pub fn potential_available(&self, row: Row, column: Column) -> Amount {
        self.cell(row, column).potential
    }

    /// The most that a node may borrow from its parent, whatever that has; unlimited without a borrowing limit.
    pub(crate) fn most_from_parent(&self, row: Row, column: Column) -> Amount {
        let (cell, usage) = self.cell_and_usage(row, column);
        if cell.borrowing_limit.is_unlimited() { Amount::UNLIMITED } else { most_from_parent(cell, usage) }
    }

    /// Would adding `amount` make the node borrow? For a ClusterQueue, `S` is its nominal quota (rules/02 §2.4).
    pub(crate) fn borrowing_with(&self, row: Row, column: Column, amount: Amount) -> bool {
        let (cell, usage) = self.cell_and_usage(row, column);
        // Strict: usage equal to the quota borrows nothing (rules/02 §2.4).
        cell.subtree < usage.plus(amount)
    }

    /// What is available to a node, and how far up it would borrow for `amount` (rules/02 §2.2, §2.5).
    pub fn room(&self, row: Row, column: Column, amount: Amount) -> Room {
        let (cell, usage) = self.cell_and_usage(row, column);
        // A fit at the root looks like no fit at all: Kueue answers `false` to both (rules/02 §2.5).
        let Some(parent) = self.parent(row) else {
            return Room { available: cell.subtree.minus(usage), level: self.height(row), is_inside: false };
        };
        let local = local_available(cell, usage);
        let mut room = self.room(parent, column, amount.minus(local));
        room.available = available(cell, usage, local, room.available);
        if cell.subtree >= usage.plus(amount) {
            room.level = self.height(row);
            room.is_inside = true;
        }
        room
    }
}

/// What the tree offers a node for an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// `avail(n)`, not clamped.
    pub available: Amount,
    /// Height of the lowest subtree that holds the amount, else of the whole tree; 0: no borrowing.
    pub level: u32,
    /// Is there a subtree smaller than the whole tree that holds it?
    pub is_inside: bool,
}

fn local_available(cell: &Cell, usage: Amount) -> Amount {
    cell.local.minus(usage).max(Amount::ZERO)
}

/// `avail(n)` of a node with this `LA(n)` and this much available from its parent.
fn available(cell: &Cell, usage: Amount, local: Amount, mut from_parent: Amount) -> Amount {
    if !cell.borrowing_limit.is_unlimited() {
        from_parent = from_parent.min(most_from_parent(cell, usage));
    }
    local.plus(from_parent)
}

/// The most that a node with this borrowing limit may borrow from its parent.
fn most_from_parent(cell: &Cell, usage: Amount) -> Amount {
    let stored = cell.subtree.minus(cell.local);
    let used = usage.minus(cell.local).max(Amount::ZERO);
    stored.minus(used).plus(cell.borrowing_limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(nominal: i64, borrowing: Option<i64>, lending: Option<i64>) -> Quota {
        Quota {
            nominal: Amount::new(nominal),
            borrowing_limit: borrowing.map(Amount::new),
            lending_limit: lending.map(Amount::new),
        }
    }

    /// One column; rows given as (parent, quota, is a ClusterQueue).
    fn tree(rows: &[(Option<Row>, Quota, bool)], heights: &[u32]) -> Tree {
        let parents: Vec<_> = rows.iter().map(|r| r.0).collect();
        let mut tree = Tree::new(&parents, vec![FlavorResourceId(0)]);
        for (row, &(_, quota, _)) in rows.iter().enumerate() {
            tree.declare(row, 0, quota);
        }
        tree.set_heights(heights.to_vec());
        tree.aggregate(&rows.iter().map(|r| r.2).collect::<Vec<_>>());
        tree
    }

    const ROOT: Row = 0;
    const LEFT: Row = 1;
    const RIGHT: Row = 2;
    const A: Row = 3;
    const B: Row = 4;
    const C: Row = 5;

    /// The worked example A of rules/02 §3.
    fn example() -> Tree {
        tree(
            &[
                (None, quota(0, None, None), false),
                (Some(ROOT), quota(0, None, Some(5)), false),
                (Some(ROOT), quota(10, Some(5), None), false),
                (Some(LEFT), quota(10, None, Some(6)), true),
                (Some(LEFT), quota(10, Some(4), None), true),
                (Some(RIGHT), quota(0, None, None), true),
            ],
            &[2, 1, 1, 0, 0, 0],
        )
    }

    fn column_of(tree: &Tree, read: impl Fn(&Tree, Row) -> Amount) -> Vec<i64> {
        (0..tree.n_rows()).map(|row| read(tree, row).get()).collect()
    }

    #[test]
    fn subtree_local_and_potential_quota_follow_the_worked_example() {
        let tree = example();
        assert_eq!(column_of(&tree, |t, r| t.subtree_quota(r, 0)), [15, 16, 10, 10, 10, 0]);
        assert_eq!(column_of(&tree, |t, r| t.local_quota(r, 0)), [0, 11, 0, 4, 0, 0]);
        assert_eq!(column_of(&tree, |t, r| t.potential_available(r, 0)), [15, 26, 15, 30, 14, 15]);
    }

    #[test]
    fn usage_bubbles_up_and_back_as_in_the_worked_example() {
        let mut tree = example();
        let free = |t: &Tree| [A, B, C].map(|row| t.available(row, 0).get());
        assert_eq!(free(&tree), [30, 14, 15]);
        tree.add_usage(A, 0, Amount::new(9));
        assert_eq!(column_of(&tree, |t, r| t.usage(r, 0)), [0, 5, 0, 9, 0, 0]);
        assert_eq!(free(&tree), [21, 14, 15]);
        tree.add_usage(B, 0, Amount::new(8));
        assert_eq!(column_of(&tree, |t, r| t.usage(r, 0)), [2, 13, 0, 9, 8, 0]);
        assert_eq!(free(&tree), [13, 6, 13]);
        tree.add_usage(C, 0, Amount::new(12));
        assert_eq!(free(&tree), [1, 1, 1]);
        let level = |row, v| {
            let room = tree.room(row, 0, Amount::new(v));
            assert_eq!(room.available, tree.available_unclamped(row, 0));
            (room.level, room.is_inside)
        };
        assert_eq!([level(A, 1), level(A, 2), level(A, 6)], [(0, true), (1, true), (2, false)]);
        assert_eq!([level(B, 2), level(C, 1)], [(0, true), (2, false)]);
        tree.remove_usage(A, 0, Amount::new(9));
        assert_eq!(column_of(&tree, |t, r| t.usage(r, 0)), [12, 8, 12, 0, 8, 12]);
        assert_eq!(free(&tree), [10, 6, 3]);
    }

    #[test]
    fn overuse_anywhere_eats_what_a_queue_without_limits_to_lend_keeps() {
        let mut tree = tree(
            &[
                (None, quota(10, None, None), false),
                (Some(0), quota(10, None, None), true),
                (Some(0), quota(10, Some(0), Some(0)), true),
            ],
            &[1, 0, 0],
        );
        tree.add_usage(1, 0, Amount::new(31));
        assert_eq!(tree.available_unclamped(2, 0).get(), -1);
        assert_eq!(tree.available(2, 0), Amount::ZERO);
    }

    #[test]
    fn kept_writes_are_undone_with_the_enclosing_what_if() {
        let mut tree = example();
        let usage = |t: &Tree| column_of(t, |t, r| t.usage(r, 0));
        let outer = tree.mark();
        let inner = tree.mark();
        assert!(!tree.has_saturated());
        tree.add_usage(C, 0, Amount::UNLIMITED);
        tree.keep(inner);
        tree.remove_usage(C, 0, Amount::UNLIMITED);
        assert!(tree.has_saturated());
        tree.rollback(outer);
        assert_eq!(usage(&tree), [0; 6]);
    }

    #[test]
    fn rollback_restores_usage_that_had_saturated() {
        let mut tree = example();
        tree.add_usage(A, 0, Amount::new(i64::MAX - 1));
        let before = column_of(&tree, |t, r| t.usage(r, 0));
        let mark = tree.mark();
        tree.add_usage(A, 0, Amount::new(5));
        assert_eq!(tree.usage(A, 0), Amount::UNLIMITED);
        tree.remove_usage(B, 0, Amount::new(3));
        tree.rollback(mark);
        assert_eq!(column_of(&tree, |t, r| t.usage(r, 0)), before);
    }
}
