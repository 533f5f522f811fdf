//! Connected components of the forest, updated edge by edge: finds a node's root, and the ClusterQueues connected to
//! it, without walking the tree.
//!
//! Every node has at most one parent, so a component has either one root or one cycle.

use super::{NodeId, NodeKind};
use crate::base::ids::IdVec;

/// Connected nodes.
#[derive(Clone, Debug, Default)]
struct Component {
    /// `None` if there is a cycle (rules/02 §4 rule 4).
    root: Option<NodeId>,
    queues: Vec<NodeId>,
    cohorts: Vec<NodeId>,
}

impl Component {
    fn members(&mut self, kind: NodeKind) -> &mut Vec<NodeId> {
        match kind {
            NodeKind::Queue => &mut self.queues,
            NodeKind::Cohort => &mut self.cohorts,
        }
    }

    fn len(&self) -> usize {
        self.queues.len() + self.cohorts.len()
    }
}

/// Where a node is: its component, and its position among the members of its kind.
#[derive(Clone, Copy, Debug)]
struct Place {
    component: usize,
    position: usize,
    kind: NodeKind,
}

/// All components of a forest.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    places: IdVec<NodeId, Place>,
    components: Vec<Component>,
    free: Vec<usize>,
}

impl Components {
    /// Adds a new node, unconnected.
    pub(super) fn add(&mut self, id: NodeId, kind: NodeKind) {
        let component = self.new_component(Some(id));
        let added = self.places.push(Place { component, position: 0, kind });
        debug_assert!(added == id, "nodes are added in the order of their ids");
        self.components[component].members(kind).push(id);
    }

    /// The root above a node; `None` if there is a cycle.
    pub(super) fn root(&self, id: NodeId) -> Option<NodeId> {
        self.component(id).root
    }

    /// The ClusterQueues connected to a node, in no particular order.
    pub(super) fn queues(&self, id: NodeId) -> &[NodeId] {
        &self.component(id).queues
    }

    /// All nodes connected to a node, in no particular order.
    pub(super) fn members(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let component = self.component(id);
        component.queues.iter().chain(&component.cohorts).copied()
    }

    /// Gives a root a parent. If that is already below it, this closes a cycle.
    pub(super) fn join(&mut self, root: NodeId, parent: NodeId) {
        let (lower, upper) = (self.places[root].component, self.places[parent].component);
        debug_assert!(self.components[lower].root == Some(root), "only a root gets a parent");
        if lower == upper {
            self.components[lower].root = None;
            return;
        }
        let top = self.components[upper].root;
        // Move the smaller one: each move at least doubles a node's component, so it moves O(log n) times.
        let (small, large) =
            if self.components[lower].len() < self.components[upper].len() { (lower, upper) } else { (upper, lower) };
        let Component { queues, cohorts, .. } = std::mem::take(&mut self.components[small]);
        self.free.push(small);
        for node in queues.into_iter().chain(cohorts) {
            self.put(node, large);
        }
        self.components[large].root = top;
    }

    /// A node has lost its parent: it and everything below become a component of their own. `below` is empty if the
    /// node was part of a cycle: then all stay connected, below it.
    pub(super) fn part(&mut self, id: NodeId, below: &[NodeId]) {
        if below.is_empty() {
            let component = self.places[id].component;
            self.components[component].root = Some(id);
            return;
        }
        let component = self.new_component(Some(id));
        for &node in below {
            self.take(node);
            self.put(node, component);
        }
    }

    /// Removes a node without parent and children.
    pub(super) fn remove(&mut self, id: NodeId) {
        let component = self.places[id].component;
        debug_assert!(self.components[component].len() == 1, "it stands alone");
        self.components[component] = Component::default();
        self.free.push(component);
    }

    fn component(&self, id: NodeId) -> &Component {
        &self.components[self.places[id].component]
    }

    fn new_component(&mut self, root: Option<NodeId>) -> usize {
        let component = self.free.pop().unwrap_or_else(|| {
            self.components.push(Component::default());
            self.components.len() - 1
        });
        self.components[component].root = root;
        component
    }

    fn put(&mut self, id: NodeId, component: usize) {
        let kind = self.places[id].kind;
        let members = self.components[component].members(kind);
        self.places[id] = Place { component, position: members.len(), kind };
        members.push(id);
    }

    fn take(&mut self, id: NodeId) {
        let Place { component, position, kind } = self.places[id];
        let members = self.components[component].members(kind);
        members.swap_remove(position);
        if let Some(&moved) = members.get(position) {
            self.places[moved].position = position;
        }
    }
}
