//! All trees of cohorts: membership, and when a tree's numbers are recomputed (rules/02 §4).
//!
//! Structural changes mark what they touch; [`Forest::flush`] then rebuilds each touched tree once, however many
//! changes there were. A tree with a cycle is not rebuilt: its nodes keep their numbers.

mod components;
mod rebuild;
pub(crate) mod stored;

use std::collections::{BTreeMap, BTreeSet};

use components::Components;
use rustc_hash::FxHashSet;

use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, Id, IdVec};
use crate::base::names::Names;
use crate::quota::share::ResourceColumns;
use crate::quota::tree::{Quota, Row, Tree};

/// A node of the forest: a ClusterQueue or a Cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl Id for NodeId {
    fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 nodes"))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tree of the forest; valid until the next structural change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u32);

/// The kind of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// A ClusterQueue: a leaf.
    #[default]
    Queue,
    /// A Cohort, declared or only referenced.
    Cohort,
}

#[derive(Clone, Debug, Default)]
struct Node {
    kind: NodeKind,
    parent: Option<NodeId>,
    child_cohorts: BTreeSet<NodeId>,
    child_queues: BTreeSet<NodeId>,
    quotas: BTreeMap<FlavorResourceId, Quota>,
    weight: f64,
    /// Only for ClusterQueues: is it in the scheduling snapshot?
    active: bool,
    /// `AllocatableResourceGeneration` (rules/02 §4.1).
    generation: i64,
    tree: Option<(TreeId, Row)>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// `None` while it is lent.
    tree: Option<Box<Tree>>,
    nodes: Vec<NodeId>,
    /// How many of `nodes` are still in it.
    n_members: usize,
    resources: ResourceColumns,
    version: u64,
}

impl Slot {
    fn tree(&self) -> &Tree {
        self.tree.as_deref().expect("a tree is not read where it was while it is lent")
    }
}

/// All ClusterQueues and Cohorts with their quota and usage.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    nodes: IdVec<NodeId, Node>,
    components: Components,
    slots: Vec<Option<Slot>>,
    free_slots: Vec<u32>,
    dirty: BTreeSet<NodeId>,
    heights_dirty: BTreeSet<TreeId>,
    /// Number of versions of all trees so far.
    n_versions: u64,
    /// Nodes whose place, quota or weight has changed since the last call; `None`: not recorded.
    touched: Option<BTreeSet<NodeId>>,
}

impl Forest {
    /// A new node without parent and quota, in a tree of its own.
    pub(crate) fn add_node(&mut self, kind: NodeKind) -> NodeId {
        let id = self.nodes.push(Node { kind, ..Node::default() });
        self.components.add(id, kind);
        self.dirty.insert(id);
        self.touch(id);
        id
    }

    /// Starts recording, for [`Forest::take_touched`], which nodes are created, removed, moved or redeclared.
    pub(crate) fn follow(&mut self) {
        self.touched.get_or_insert_default();
    }

    /// The nodes touched since the last call, if recording.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<NodeId> {
        self.touched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn touch(&mut self, id: NodeId) {
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    /// Removes a node without children from its tree. The id is not reused.
    pub(crate) fn remove_node(&mut self, id: NodeId) {
        assert!(!self.has_children(id), "only a node without children is removed");
        self.link(id, None);
        self.touch(id);
        self.components.remove(id);
        self.leave_tree(id);
        self.dirty.remove(&id);
    }

    /// Has a cohort any child, active or not?
    pub(crate) fn has_children(&self, id: NodeId) -> bool {
        !self.nodes[id].child_cohorts.is_empty() || !self.nodes[id].child_queues.is_empty()
    }

    /// The parent of a node.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.nodes[id].parent
    }

    /// The child cohorts of a cohort.
    pub(crate) fn child_cohorts(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes[id].child_cohorts.iter().copied()
    }

    /// The ClusterQueues directly in a cohort.
    pub fn child_queues(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes[id].child_queues.iter().copied()
    }

    /// Moves a node below another parent, and returns whether the new ancestry has a cycle. Numbers change only when
    /// the trees are recomputed.
    pub(crate) fn set_parent(&mut self, id: NodeId, parent: Option<NodeId>, names: &Names) -> bool {
        let closes_cycle = parent.is_some_and(|p| self.has_cycle(p) || self.is_below(p, id));
        if closes_cycle && self.nodes[id].parent != parent {
            // Nodes below a cycle keep their last numbers, so these must be up to date.
            self.flush(names);
        }
        self.link(id, parent);
        closes_cycle
    }

    /// Is a node the other one, or below it? There must be no cycle above it.
    fn is_below(&self, id: NodeId, above: NodeId) -> bool {
        self.root(id) == self.root(above) && self.path(id).any(|node| node == above)
    }

    fn link(&mut self, id: NodeId, parent: Option<NodeId>) {
        let old = self.nodes[id].parent;
        for node in [Some(id), old, parent].into_iter().flatten() {
            self.note_change(node);
        }
        if old == parent {
            return;
        }
        self.touch(id);
        let kind = self.nodes[id].kind;
        if let Some(old) = old {
            let in_cycle = self.has_cycle(id) && self.path(old).any(|node| node == id);
            self.children_mut(old, kind).remove(&id);
            self.nodes[id].parent = None;
            let below = if in_cycle { Vec::new() } else { self.subtree(id) };
            self.components.part(id, &below);
        }
        if let Some(new) = parent {
            self.children_mut(new, kind).insert(id);
            self.nodes[id].parent = parent;
            self.components.join(id, new);
        }
    }

    fn children_mut(&mut self, id: NodeId, kind: NodeKind) -> &mut BTreeSet<NodeId> {
        let node = &mut self.nodes[id];
        match kind {
            NodeKind::Queue => &mut node.child_queues,
            NodeKind::Cohort => &mut node.child_cohorts,
        }
    }

    /// Replaces what a node declares.
    pub(crate) fn set_quotas(&mut self, id: NodeId, quotas: BTreeMap<FlavorResourceId, Quota>) {
        if self.nodes[id].quotas != quotas {
            self.touch(id);
        }
        self.nodes[id].quotas = quotas;
    }

    /// What a node declares.
    pub fn quotas(&self, id: NodeId) -> &BTreeMap<FlavorResourceId, Quota> {
        &self.nodes[id].quotas
    }

    /// Sets `fairSharing.weight`.
    pub(crate) fn set_weight(&mut self, id: NodeId, weight: f64) {
        self.note_change(id);
        if self.nodes[id].weight.to_bits() != weight.to_bits() {
            self.touch(id);
        }
        self.nodes[id].weight = weight;
    }

    /// `fairSharing.weight`.
    pub fn weight(&self, id: NodeId) -> f64 {
        self.nodes[id].weight
    }

    /// Sets whether a ClusterQueue takes part in scheduling; inactive ones still count in quota and usage.
    pub(crate) fn set_active(&mut self, id: NodeId, active: bool) {
        if self.nodes[id].active != active {
            self.nodes[id].active = active;
            if let Some((tree, _)) = self.nodes[id].tree {
                self.heights_dirty.insert(tree);
            }
        }
    }

    /// Does a ClusterQueue take part in scheduling?
    pub fn is_active(&self, id: NodeId) -> bool {
        self.nodes[id].active
    }

    /// `AllocatableResourceGeneration` of a ClusterQueue (rules/02 §4.1).
    pub fn generation(&self, id: NodeId) -> i64 {
        self.nodes[id].generation
    }

    /// Counts a loss of reserved usage, which may make a flavor usable again (rules/02 §4.1).
    pub(crate) fn bump_generation(&mut self, id: NodeId) {
        self.nodes[id].generation += 1;
    }

    /// From a node to its root; stops after one round in a cycle.
    pub fn path(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut seen = self.has_cycle(id).then(FxHashSet::default);
        let is_new = move |node: &NodeId| seen.as_mut().is_none_or(|seen| seen.insert(*node));
        std::iter::successors(Some(id), |&node| self.nodes[node].parent).take_while(is_new)
    }

    /// Is the node on or below a cycle of cohorts (rules/02 §4 rule 4)?
    pub fn has_cycle(&self, id: NodeId) -> bool {
        self.root(id).is_none()
    }

    /// The root above a node; `None` in a cycle.
    pub fn root(&self, id: NodeId) -> Option<NodeId> {
        self.components.root(id)
    }

    /// The nodes at and below a node, parents first.
    pub(crate) fn subtree(&self, root: NodeId) -> Vec<NodeId> {
        let mut found = vec![root];
        let mut next = 0;
        while next < found.len() {
            let node = &self.nodes[found[next]];
            // Every node has one parent, so only the start itself could occur again.
            found.extend(node.child_cohorts.iter().filter(|&&child| child != root));
            found.extend(&node.child_queues);
            next += 1;
        }
        found
    }

    /// The ClusterQueues at and below a node.
    pub(crate) fn queues_below(&self, id: NodeId) -> Vec<NodeId> {
        self.subtree(id).into_iter().filter(|&n| self.nodes[n].kind == NodeKind::Queue).collect()
    }

    /// Recomputes the tree of a node: counts a generation for each of its ClusterQueues now, while the numbers follow
    /// at the next flush. Does nothing in a cycle (rules/02 §4 rule 5).
    pub fn recompute(&mut self, id: NodeId) {
        self.dirty.insert(id);
        if !self.has_cycle(id) {
            for &queue in self.components.queues(id) {
                self.nodes[queue].generation += 1;
            }
        }
    }

    /// The tree and row of a node; the forest must be flushed.
    pub fn locate(&self, id: NodeId) -> (TreeId, Row) {
        self.nodes[id].tree.expect("every node has a tree once the forest is flushed")
    }

    /// A tree.
    pub fn tree(&self, id: TreeId) -> &Tree {
        self.slot(id).tree()
    }

    /// A tree, for changes of usage.
    pub fn tree_mut(&mut self, id: TreeId) -> &mut Tree {
        self.slot_mut(id).tree.as_deref_mut().expect("a tree is not changed where it was while it is lent")
    }

    /// Takes a tree out for trials while the forest is read; [`Forest::return_tree`] puts it back.
    pub fn lend_tree(&mut self, id: TreeId) -> Box<Tree> {
        self.slot_mut(id).tree.take().expect("a tree is lent once at a time")
    }

    /// Puts a tree back.
    pub fn return_tree(&mut self, id: TreeId, tree: Box<Tree>) {
        self.slot_mut(id).tree = Some(tree);
    }

    /// The version of a tree: while it stays the same, so does everything that a search for flavors and victims reads
    /// of it, trial usage aside. Versions of all trees are distinct.
    pub fn version(&self, id: TreeId) -> u64 {
        self.slot(id).version
    }

    /// Invalidates what was derived from this node's tree.
    pub(crate) fn note_change(&mut self, id: NodeId) {
        if let Some((tree, _)) = self.nodes[id].tree {
            self.renew(tree);
        }
    }

    fn renew(&mut self, id: TreeId) {
        self.n_versions += 1;
        self.slot_mut(id).version = self.n_versions;
    }

    /// The node of each row of a tree.
    pub fn nodes_of(&self, id: TreeId) -> &[NodeId] {
        &self.slot(id).nodes
    }

    /// The resources of a tree by name, with their columns.
    pub fn resources_of(&self, id: TreeId) -> &ResourceColumns {
        &self.slot(id).resources
    }

    fn slot_mut(&mut self, id: TreeId) -> &mut Slot {
        self.slots[id.0 as usize].as_mut().expect("a tree id in use")
    }

    fn slot(&self, id: TreeId) -> &Slot {
        self.slots[id.0 as usize].as_ref().expect("a tree id in use")
    }

    /// Adds or removes usage of a ClusterQueue for good.
    pub fn charge(&mut self, id: NodeId, usage: &[(FlavorResourceId, Amount)], add: bool, names: &Names) {
        self.flush(names);
        let (tree, _) = self.locate(id);
        if usage.iter().any(|(fr, _)| self.tree(tree).column(*fr).is_none()) {
            // All of them: a column without usage may disappear in a rebuild.
            let columns: Vec<_> = usage.iter().map(|u| u.0).collect();
            self.rebuild(&[id], &columns, names);
        }
        self.note_change(id);
        let (tree, row) = self.locate(id);
        let tree = self.tree_mut(tree);
        for &(fr, amount) in usage {
            let column = tree.column(fr).expect("there, or added above");
            if add {
                tree.add_usage(row, column, amount);
            } else {
                tree.remove_usage(row, column, amount);
            }
        }
    }
}

#[cfg(test)]
mod tests;
