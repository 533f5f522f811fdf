//! The numbers of trees as bytes ([`crate::snapshot`]). Membership follows from the objects, and is rebuilt.
//!
//! Nodes and trees are numbered in the order of their ids, skipping removed ones: rules depend only on that order.

use std::collections::BTreeMap;

use super::{Forest, NodeId, NodeKind, Slot, TreeId};
use crate::base::amount::Amount;
use crate::base::ids::FlavorResourceId;
use crate::base::names::Names;
use crate::quota::forest::rebuild::resource_columns;
use crate::quota::tree::{Cell, Declared as CellDeclared, Ledger, Quota, Row, Tree};
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};

stored!(struct Quota { nominal, borrowing_limit, lending_limit });
stored!(struct Cell { nominal, borrowing_limit, subtree, local, potential });
stored!(struct CellDeclared { quota, here_or_below });

/// More changes than any ClusterQueue sees.
const MAX_GENERATION: i64 = 1 << 62;

/// What objects declare about a node.
pub(crate) struct Declared {
    pub kind: NodeKind,
    pub parent: Option<NodeId>,
    pub quotas: BTreeMap<FlavorResourceId, Quota>,
    pub weight: f64,
}

impl Forest {
    /// Writes what is not declared about the existing nodes, given in id order. The forest is flushed.
    pub(crate) fn store(&self, nodes: &[NodeId], out: &mut Writer<'_>) {
        debug_assert!(self.dirty.is_empty() && self.heights_dirty.is_empty(), "the forest is flushed");
        for &id in nodes {
            let node = &self.nodes[id];
            node.generation.write_to(out);
            node.active.write_to(out);
        }
        for &id in nodes {
            let (tree, row) = self.locate(id);
            // Each tree is written at its root.
            if row == 0 {
                debug_assert_eq!(self.slot(tree).nodes, self.nodes_of_tree_at(id), "nodes of a tree");
                let number = u32::try_from(out.trees.len()).expect("fewer than 2^32 trees");
                out.trees.insert(tree.0, number);
                self.tree(tree).store(out);
            }
        }
    }

    /// Rebuilds a forest from the declarations of its nodes, in id order, and from what was written.
    ///
    /// # Errors
    /// The numbers do not fit such trees.
    pub(crate) fn restore(declared: Vec<Declared>, names: &Names, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut forest = Self::default();
        let mut parents = Vec::with_capacity(declared.len());
        for Declared { kind, parent, quotas, weight } in declared {
            let id = forest.add_node(kind);
            forest.set_quotas(id, quotas);
            forest.set_weight(id, weight);
            let node = &mut forest.nodes[id];
            node.generation = i64::read_from(from)?;
            from.check((0..=MAX_GENERATION).contains(&node.generation), "an impossible generation")?;
            node.active = bool::read_from(from)?;
            parents.push(parent);
        }
        forest.dirty.clear();
        let ids: Vec<NodeId> = forest.nodes.ids().collect();
        for (&id, parent) in ids.iter().zip(parents) {
            if let Some(parent) = parent {
                let kind = forest.nodes[id].kind;
                forest.children_mut(parent, kind).insert(id);
                forest.nodes[id].parent = Some(parent);
                forest.components.join(id, parent);
            }
        }
        for id in ids {
            let nodes = forest.nodes_of_tree_at(id);
            if nodes.is_empty() {
                continue;
            }
            let parents = forest.parents_in_tree(&nodes);
            let tree = Tree::restore(&parents, from)?;
            let resources = resource_columns(tree.columns(), names);
            let slot = Slot {
                tree: Some(Box::new(tree)),
                n_members: nodes.len(),
                nodes: nodes.clone(),
                resources,
                version: 0,
            };
            let tree = forest.store_slot(slot);
            for (row, node) in nodes.into_iter().enumerate() {
                forest.nodes[node].tree = Some((tree, row));
            }
            forest.compute_heights(tree);
        }
        Ok(forest)
    }

    /// The nodes of the tree with this root, row by row; none if it is not a root. On or below a cycle each node is
    /// alone.
    fn nodes_of_tree_at(&self, id: NodeId) -> Vec<NodeId> {
        match self.root(id) {
            None => vec![id],
            Some(root) if root == id => self.subtree(root),
            Some(_) => Vec::new(),
        }
    }

    fn parents_in_tree(&self, nodes: &[NodeId]) -> Vec<Option<Row>> {
        if nodes.first().is_some_and(|&first| self.has_cycle(first)) {
            return vec![None; nodes.len()];
        }
        let row_of: BTreeMap<NodeId, Row> = nodes.iter().enumerate().map(|(row, &node)| (node, row)).collect();
        nodes.iter().map(|&node| self.nodes[node].parent.and_then(|parent| row_of.get(&parent).copied())).collect()
    }

    /// The tree with this number in the save.
    pub(crate) fn tree_of_number(&self, number: usize) -> Option<TreeId> {
        (number < self.slots.len()).then_some(TreeId(number as u32))
    }
}

impl Tree {
    fn store(&self, out: &mut Writer<'_>) {
        out.list(self.columns().iter());
        for row in 0..self.n_rows() {
            for column in 0..self.columns().len() {
                self.declared(row, column).write_to(out);
                self.cell(row, column).write_to(out);
            }
        }
        self.ledger().write_to(out);
    }

    fn restore(parents: &[Option<Row>], from: &mut Reader<'_>) -> Result<Self, Damage> {
        let columns = from.list(FlavorResourceId::read_from)?;
        from.check(columns.is_sorted_by(|a, b| a < b), "columns that are not in order")?;
        let (n_rows, n_columns) = (parents.len(), columns.len());
        let n_cells = n_rows.checked_mul(n_columns).filter(|&n| n <= from.n_left());
        from.check(n_cells.is_some(), "more cells than bytes")?;
        let mut tree = Tree::new(parents, columns);
        for row in 0..n_rows {
            for column in 0..n_columns {
                let declared = CellDeclared::read_from(from)?;
                tree.put_cell(row, column, declared, Cell::read_from(from)?);
            }
        }
        let mut ledger = Ledger::read_from(from)?;
        from.check(ledger.is_of(&tree), "usage of another tree")?;
        tree.exchange_ledger(&mut ledger);
        Ok(tree)
    }
}

/// Without trials: nothing before a snapshot can be rolled back.
impl Stored for Ledger {
    fn write_to(&self, out: &mut Writer<'_>) {
        let (usage, has_saturated, may_saturate) = self.parts();
        out.list(usage.iter());
        has_saturated.write_to(out);
        may_saturate.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let usage = Vec::<Amount>::read_from(from)?;
        Ok(Ledger::from_parts(usage, bool::read_from(from)?, bool::read_from(from)?))
    }
}
