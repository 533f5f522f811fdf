//! Recomputes trees whose structure has changed (rules/02 §4).

use std::collections::{BTreeMap, BTreeSet};

use super::{Forest, NodeId, NodeKind, Slot, TreeId};
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, ResourceId};
use crate::base::names::Names;
use crate::quota::share::ResourceColumns;
use crate::quota::tree::{Column, Row, Tree};

impl Forest {
    /// Rebuilds every tree that changed since the last flush.
    pub fn flush(&mut self, names: &Names) {
        if !self.dirty.is_empty() {
            let dirty: Vec<_> = std::mem::take(&mut self.dirty).into_iter().collect();
            self.rebuild(&dirty, &[], names);
        }
        if !self.heights_dirty.is_empty() {
            for tree in std::mem::take(&mut self.heights_dirty) {
                self.compute_heights(tree);
            }
        }
    }

    pub(super) fn rebuild(&mut self, touched: &[NodeId], extra_columns: &[FlavorResourceId], names: &Names) {
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        let mut roots = BTreeSet::new();
        let mut cyclic = BTreeSet::new();
        for &id in touched {
            match self.root(id) {
                Some(root) => {
                    if roots.insert(root) {
                        groups.push(self.subtree(root));
                    }
                }
                None if cyclic.contains(&id) => {}
                None => cyclic.extend(self.components.members(id)),
            }
        }
        // On or below a cycle, each node is alone and keeps its numbers.
        groups.extend(cyclic.into_iter().map(|n| vec![n]));
        // Read all old numbers before dropping any old tree.
        let mut built = Vec::with_capacity(groups.len());
        for nodes in groups {
            let keep_numbers = self.has_cycle(nodes[0]);
            built.push(self.build(nodes, extra_columns, keep_numbers, names));
        }
        for (slot, nodes) in built {
            for &node in &nodes {
                self.leave_tree(node);
            }
            let id = self.store_slot(Slot { nodes: nodes.clone(), n_members: nodes.len(), ..slot });
            for (row, &node) in nodes.iter().enumerate() {
                self.nodes[node].tree = Some((id, row));
            }
            self.compute_heights(id);
        }
    }

    fn build(
        &self,
        nodes: Vec<NodeId>,
        extra_columns: &[FlavorResourceId],
        keep_numbers: bool,
        names: &Names,
    ) -> (Slot, Vec<NodeId>) {
        let mut columns: BTreeSet<FlavorResourceId> = extra_columns.iter().copied().collect();
        for &node in &nodes {
            columns.extend(self.nodes[node].quotas.keys());
            if let Some((tree, row)) = self.nodes[node].tree {
                let old = self.tree(tree);
                let used = |c: Column| old.usage(row, c) != Amount::ZERO || (keep_numbers && old.is_declared(row, c));
                columns.extend(old.columns().iter().enumerate().filter(|(c, _)| used(*c)).map(|(_, fr)| *fr));
            }
        }
        let columns: Vec<_> = columns.into_iter().collect();
        let row_of: BTreeMap<NodeId, Row> = nodes.iter().enumerate().map(|(row, &n)| (n, row)).collect();
        let parents: Vec<Option<Row>> =
            nodes.iter().map(|&n| self.nodes[n].parent.and_then(|p| row_of.get(&p).copied())).collect();
        let parents = if keep_numbers { vec![None; nodes.len()] } else { parents };
        let mut tree = Tree::new(&parents, columns.clone());
        let mut is_leaf = Vec::with_capacity(nodes.len());
        for (row, &id) in nodes.iter().enumerate() {
            let node = &self.nodes[id];
            is_leaf.push(node.kind == NodeKind::Queue);
            for (column, fr) in columns.iter().enumerate() {
                let old = node.tree.and_then(|(tree, row)| Some((self.tree(tree), row, self.tree(tree).column(*fr)?)));
                if let Some((old, old_row, old_column)) = old {
                    tree.set_usage(row, column, old.usage(old_row, old_column));
                    if keep_numbers {
                        let declared = *old.declared(old_row, old_column);
                        tree.put_cell(row, column, declared, *old.cell(old_row, old_column));
                    }
                }
                if let Some(&quota) = node.quotas.get(fr).filter(|_| !keep_numbers) {
                    tree.declare(row, column, quota);
                }
            }
        }
        if keep_numbers {
            // Each is alone now.
            tree.set_potentials();
        } else {
            tree.aggregate(&is_leaf);
        }
        let resources = resource_columns(&columns, names);
        (Slot { tree: Some(Box::new(tree)), nodes: Vec::new(), n_members: 0, resources, version: 0 }, nodes)
    }

    pub(super) fn store_slot(&mut self, slot: Slot) -> TreeId {
        if let Some(free) = self.free_slots.pop() {
            self.slots[free as usize] = Some(slot);
            TreeId(free)
        } else {
            self.slots.push(Some(slot));
            TreeId(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 trees"))
        }
    }

    /// Forgets where a node was, and its old tree once that is empty.
    pub(super) fn leave_tree(&mut self, id: NodeId) {
        let Some((tree, _)) = self.nodes[id].tree.take() else { return };
        let slot = self.slots[tree.0 as usize].as_mut().expect("a tree id in use");
        slot.n_members -= 1;
        if slot.n_members == 0 {
            self.slots[tree.0 as usize] = None;
            self.free_slots.push(tree.0);
            self.heights_dirty.remove(&tree);
        }
    }

    /// Heights count only active ClusterQueues (rules/02 §2.5, §5).
    pub(super) fn compute_heights(&mut self, id: TreeId) {
        let slot = self.slot(id);
        let mut heights = vec![0u32; slot.nodes.len()];
        let mut has_child = vec![false; slot.nodes.len()];
        for row in (0..slot.nodes.len()).rev() {
            let node = &self.nodes[slot.nodes[row]];
            let is_cohort = node.kind == NodeKind::Cohort;
            if is_cohort && has_child[row] {
                heights[row] = heights[row].max(1);
            }
            if let Some(parent) = slot.tree().parent(row) {
                if is_cohort {
                    has_child[parent] = true;
                    heights[parent] = heights[parent].max(heights[row] + 1);
                } else if node.active {
                    has_child[parent] = true;
                }
            }
        }
        self.tree_mut(id).set_heights(heights);
        self.renew(id);
    }
}

pub(super) fn resource_columns(columns: &[FlavorResourceId], names: &Names) -> ResourceColumns {
    let mut by_name: BTreeMap<&str, (ResourceId, Vec<Column>)> = BTreeMap::new();
    for (column, &fr) in columns.iter().enumerate() {
        let resource = names.parts(fr).1;
        by_name.entry(names.resource_text(resource)).or_insert_with(|| (resource, Vec::new())).1.push(column);
    }
    ResourceColumns(by_name.into_values().collect())
}
