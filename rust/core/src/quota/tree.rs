//! The quota of one tree of cohorts, in dense columns (rules/02 §2).
//!
//! Rows are nodes, parents before their children; columns are the flavor-resources that any node of the tree declares
//! or uses. There are no names or pointers here: `parent` is a row number. Every write to usage is journalled, so that
//! a cycle can try admissions and undo them exactly.

use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, Id};

/// What a node declares for one flavor-resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// `nominalQuota`.
    pub nominal: Amount,
    /// `borrowingLimit`; `None`: no limit.
    pub borrowing_limit: Option<Amount>,
    /// `lendingLimit`; `None`: everything is lent.
    pub lending_limit: Option<Amount>,
}

/// What is declared in one cell; read where a tree is built or reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared {
    pub quota: Quota,
    /// Does the node or any descendant declare this flavor-resource?
    pub here_or_below: bool,
}

/// The usage-independent numbers of one cell that cycles read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// `nominalQuota`.
    pub nominal: Amount,
    /// `borrowingLimit`; unlimited if absent, which gives the same sums (rules/02 §1).
    pub borrowing_limit: Amount,
    /// `S(n)`: own quota and what the children lend.
    pub subtree: Amount,
    /// `L(n)`: the part of `S` that is not lent to the parent.
    pub local: Amount,
    /// `pot(n)`: what the node could use if everything were idle.
    pub potential: Amount,
}

const _: () = assert!(size_of::<Cell>() == 40, "cycles read cells by the thousand");

impl Cell {
    /// Nothing is declared.
    const EMPTY: Cell = Cell {
        nominal: Amount::ZERO,
        borrowing_limit: Amount::UNLIMITED,
        subtree: Amount::ZERO,
        local: Amount::ZERO,
        potential: Amount::ZERO,
    };
}

/// A row of a [`Tree`].
pub type Row = usize;
/// A column of a [`Tree`].
pub type Column = usize;
/// The parent row of a root.
const NO_ROW: u32 = u32::MAX;

/// A position in a tree's journal, to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Mark {
    length: usize,
    depth: u32,
}

/// One tree of cohorts with its ClusterQueues, or a single ClusterQueue without a cohort.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    parent: Vec<u32>,
    heights: Vec<u32>,
    /// In the order of their ids, each once.
    columns: Vec<FlavorResourceId>,
    cells: Vec<Cell>,
    declared: Vec<Declared>,
    ledger: Ledger,
}

/// The usage of a tree, with the journal of trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    usage: Vec<Amount>,
    journal: Vec<(u32, Amount)>,
    /// Number of open marks; writes are recorded while there are any.
    depth: u32,
    /// Has any usage saturated since the last rebuild?
    has_saturated: bool,
    /// Was any usage so large that adding two may saturate?
    may_saturate: bool,
}

impl Ledger {
    /// May a sum have lost something if each trial was evaluated on its own? While `false`, an amount that was added to
    /// less usage can also be added to the current usage and removed again without a trace.
    pub fn may_saturate(&self) -> bool {
        self.may_saturate || self.has_saturated
    }

    /// Usage, whether any has saturated, and whether any was huge.
    pub(crate) fn parts(&self) -> (&[Amount], bool, bool) {
        (&self.usage, self.has_saturated, self.may_saturate)
    }

    /// A ledger of these [parts](Ledger::parts), with no trial open.
    pub(crate) fn from_parts(usage: Vec<Amount>, has_saturated: bool, may_saturate: bool) -> Self {
        Self { usage, has_saturated, may_saturate, ..Self::default() }
    }

    /// Does its size match a tree?
    pub(crate) fn is_of(&self, tree: &Tree) -> bool {
        self.usage.len() == tree.cells.len()
    }
}

impl Tree {
    /// A tree with these rows (parents first, as row numbers) and columns (in the order of their ids), without quota and
    /// usage.
    pub(crate) fn new(parent: &[Option<Row>], columns: Vec<FlavorResourceId>) -> Self {
        debug_assert!(columns.is_sorted_by(|a, b| a < b));
        let n_cells = parent.len() * columns.len();
        Self {
            parent: parent
                .iter()
                .map(|p| p.map_or(NO_ROW, |row| u32::try_from(row).expect("fewer than 2^32 rows")))
                .collect(),
            heights: vec![0; parent.len()],
            columns,
            cells: vec![Cell::EMPTY; n_cells],
            declared: vec![Declared::default(); n_cells],
            ledger: Ledger { usage: vec![Amount::ZERO; n_cells], ..Ledger::default() },
        }
    }

    fn at(&self, row: Row, column: Column) -> usize {
        row * self.columns.len() + column
    }

    pub(crate) fn cell(&self, row: Row, column: Column) -> &Cell {
        &self.cells[self.at(row, column)]
    }

    /// The declaration of a cell.
    pub(crate) fn declared(&self, row: Row, column: Column) -> &Declared {
        &self.declared[self.at(row, column)]
    }

    /// Declares a quota of a node. [`Tree::aggregate`] computes the numbers that follow.
    pub(crate) fn declare(&mut self, row: Row, column: Column, quota: Quota) {
        let Quota { nominal, borrowing_limit, .. } = quota;
        let borrowing_limit = borrowing_limit.unwrap_or(Amount::UNLIMITED);
        self.put_cell(
            row,
            column,
            Declared { quota, here_or_below: true },
            Cell { nominal, borrowing_limit, ..Cell::EMPTY },
        );
    }

    /// Copies a cell of another tree.
    pub(crate) fn put_cell(&mut self, row: Row, column: Column, declared: Declared, cell: Cell) {
        let at = self.at(row, column);
        (self.declared[at], self.cells[at]) = (declared, cell);
    }

    /// The flavor-resources, in column order.
    pub fn columns(&self) -> &[FlavorResourceId] {
        &self.columns
    }

    /// The column of a flavor-resource, if the tree knows it.
    pub fn column(&self, fr: FlavorResourceId) -> Option<Column> {
        // No later than this, and exactly here if no id in between is missing, as is usual.
        let latest = fr.index().checked_sub(self.columns.first()?.index())?;
        if self.columns.get(latest) == Some(&fr) {
            return Some(latest);
        }
        self.columns.binary_search(&fr).ok()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.parent.len()
    }

    /// The parent row, unless this is the root.
    pub fn parent(&self, row: Row) -> Option<Row> {
        let parent = self.parent[row];
        (parent != NO_ROW).then_some(parent as usize)
    }

    /// The height of a node over the active ClusterQueues below it (rules/02 §2.5).
    pub(crate) fn height(&self, row: Row) -> u32 {
        self.heights[row]
    }

    pub(crate) fn set_heights(&mut self, heights: Vec<u32>) {
        debug_assert_eq!(heights.len(), self.parent.len());
        self.heights = heights;
    }

    /// Usage stored at a node.
    pub fn usage(&self, row: Row, column: Column) -> Amount {
        self.ledger.usage[self.at(row, column)]
    }

    /// A cell with the usage stored there.
    pub(crate) fn cell_and_usage(&self, row: Row, column: Column) -> (&Cell, Amount) {
        let at = self.at(row, column);
        (&self.cells[at], self.ledger.usage[at])
    }

    /// The only place that writes usage.
    pub(crate) fn set_usage(&mut self, row: Row, column: Column, value: Amount) {
        let at = self.at(row, column);
        if self.ledger.depth > 0 {
            self.ledger.journal.push((at as u32, self.ledger.usage[at]));
        }
        self.ledger.has_saturated |= value.is_at_an_end();
        self.ledger.may_saturate |= value.is_huge();
        self.ledger.usage[at] = value;
    }

    /// May a sum have lost something, so that adding does not undo a removal, or the other way round? While `false`,
    /// adding everything back equals `Tree::rollback`.
    pub fn has_saturated(&self) -> bool {
        self.ledger.has_saturated
    }

    /// See [`Ledger::may_saturate`].
    pub(crate) fn may_saturate(&self) -> bool {
        self.ledger.may_saturate()
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A copy of the usage, with no trial open.
    pub(crate) fn copy_ledger(&self) -> Ledger {
        let Ledger { usage, has_saturated, may_saturate, .. } = &self.ledger;
        let usage = usage.clone();
        Ledger { usage, has_saturated: *has_saturated, may_saturate: *may_saturate, ..Ledger::default() }
    }

    /// Does the usage equal that of another ledger of this tree?
    pub(crate) fn uses_as_much_as(&self, other: &Ledger) -> bool {
        self.ledger.usage == other.usage
    }

    /// Swaps its ledger with another one of this tree.
    pub(crate) fn exchange_ledger(&mut self, other: &mut Ledger) {
        std::mem::swap(&mut self.ledger, other);
    }

    /// A negative amount is about to be added or removed, such as the difference to a larger slice that is replaced:
    /// the opposite operation does not undo it, since ancestors see only one of the two.
    pub(crate) fn note_less_than_nothing(&mut self, amount: Amount) {
        self.ledger.has_saturated |= amount < Amount::ZERO;
    }

    /// Starts (or continues) recording writes; [`Tree::rollback`] undoes what follows.
    pub(crate) fn mark(&mut self) -> Mark {
        let mark = Mark { length: self.ledger.journal.len(), depth: self.ledger.depth };
        self.ledger.depth += 1;
        mark
    }

    /// Undoes every write since `mark`, exactly, latest first.
    pub(crate) fn rollback(&mut self, mark: Mark) {
        while self.ledger.journal.len() > mark.length {
            let (at, old) = self.ledger.journal.pop().expect("longer than the mark");
            self.ledger.usage[at as usize] = old;
        }
        self.ledger.depth = mark.depth;
    }

    /// Keeps what was written since `mark`; a rollback to an earlier mark still undoes it.
    pub fn keep(&mut self, mark: Mark) {
        self.ledger.depth = mark.depth;
        if self.ledger.depth == 0 {
            self.ledger.journal.clear();
        }
    }

    /// Sums up quota and usage from the leaves to the root: `S`, `L` and the usage of cohorts, from the declared quotas
    /// and the usage of the rows in `leaves` (rules/02 §2).
    pub(crate) fn aggregate(&mut self, is_leaf: &[bool]) {
        debug_assert!(self.ledger.depth == 0, "no rebuild inside a what-if");
        let n_columns = self.columns.len();
        for (row, &leaf) in is_leaf.iter().enumerate() {
            for column in 0..n_columns {
                let at = row * n_columns + column;
                self.cells[at].subtree = self.cells[at].nominal;
                if !leaf {
                    self.ledger.usage[at] = Amount::ZERO;
                }
            }
        }
        for row in (0..is_leaf.len()).rev() {
            for column in 0..n_columns {
                let at = row * n_columns + column;
                let (cell, Declared { quota, here_or_below }) = (&mut self.cells[at], self.declared[at]);
                cell.local = match quota.lending_limit {
                    Some(limit) => cell.subtree.minus(limit).max(Amount::ZERO),
                    None => Amount::ZERO,
                };
                let (subtree, local) = (cell.subtree, cell.local);
                if let Some(parent) = self.parent(row) {
                    let up = self.at(parent, column);
                    self.cells[up].subtree = self.cells[up].subtree.plus(subtree.minus(local));
                    self.declared[up].here_or_below |= here_or_below;
                    let past_local = self.ledger.usage[at].minus(local).max(Amount::ZERO);
                    self.ledger.usage[up] = self.ledger.usage[up].plus(past_local);
                }
            }
        }
        self.set_potentials();
        self.ledger.has_saturated = self.ledger.usage.iter().any(|usage| usage.is_at_an_end());
        self.ledger.may_saturate = self.ledger.usage.iter().any(|usage| usage.is_huge());
    }

    /// Computes from the root to the leaves what each node could use if everything were idle (rules/02 §2.3).
    pub(crate) fn set_potentials(&mut self) {
        for row in 0..self.n_rows() {
            let parent = self.parent(row);
            for column in 0..self.columns.len() {
                let cell = *self.cell(row, column);
                let mut potential = cell.subtree;
                if let Some(parent) = parent {
                    potential = cell.local.plus(self.cell(parent, column).potential);
                    potential = potential.min(cell.subtree.plus(cell.borrowing_limit));
                }
                let at = self.at(row, column);
                self.cells[at].potential = potential;
            }
        }
    }
}
