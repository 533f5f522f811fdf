//! What topology-aware scheduling recomputes when its inputs change (rules/08 §1, §4, §11.11).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::QueueId;
use crate::objects::{Node, Pod, ResourceFlavor, Topology};
use crate::state::{Objects, State};
use crate::topology::tree::belongs;

impl Objects {
    /// The levels of a Topology. Without a spec it has none, and counts as missing (rules/08 §1).
    pub(super) fn levels(&self, topology: &str) -> Option<&[String]> {
        let levels = &self.topologies.get(topology)?.levels;
        (!levels.is_empty()).then_some(levels)
    }
}

impl State {
    /// A node was created, changed or removed; `old` is its last state. If that may free capacity, parked workloads are
    /// retried.
    pub(super) fn node_changed(&mut self, name: &str, old: Option<Arc<Node>>) {
        if !self.gate(Gate::TopologyAwareScheduling) {
            return;
        }
        let new = self.nodes.cluster.node(name).cloned();
        self.watch_node(old.as_deref(), new.as_deref());
        self.feeds.node_changes.note(name, old.as_deref(), new.as_deref());
        let is_relevant = match (&old, &new) {
            (Some(old), Some(new)) => differ(old, new),
            _ => true,
        };
        if !is_relevant {
            return;
        }
        let flavors: BTreeSet<String> = old.iter().chain(&new).flat_map(|node| self.flavors_of(node)).collect();
        if flavors.is_empty() {
            return;
        }
        self.nodes.note_sites_changed();
        self.retry_for(flavors);
    }

    /// The flavors with a topology to which a node belongs by its labels.
    fn flavors_of(&self, node: &Node) -> Vec<String> {
        let is_of = |flavor: &&Arc<ResourceFlavor>| {
            self.objects
                .levels(&flavor.topology_name)
                .is_some_and(|levels| belongs(node, &flavor.node_labels, levels, true))
        };
        self.objects.flavors.iter().flatten().filter(is_of).map(|flavor| flavor.meta.name.clone()).collect()
    }

    /// Retries the parked workloads that nodes or a change of these flavors may let in (rules/08 §11.11).
    fn retry_for(&mut self, flavors: BTreeSet<String>) {
        let queues: Vec<QueueId> = if self.config.changes.has(Change::NodeChangesRetryTheirQueues) {
            flavors.iter().flat_map(|flavor| self.queues_using_flavor(flavor)).collect()
        } else {
            self.queues.ids().filter(|id| self.queues[*id].is_active()).collect()
        };
        queues.into_iter().for_each(|queue| self.request_flush(queue));
    }

    /// A pod was created, changed or removed; `old` is its last state. If it frees capacity, parked workloads are
    /// retried.
    pub(super) fn pod_changed(&mut self, namespace: &str, name: &str, old: Option<Arc<Pod>>) {
        let new = self.nodes.cluster.pod(namespace, name).cloned();
        self.watch_pod(old.as_deref(), new.as_deref());
        let freed = self.change_taken(old.as_deref(), new.as_deref());
        let freed = freed.filter(|_| self.config.changes.has(Change::FreedNodesRetryWorkloads));
        let Some(node) = freed.and_then(|node| self.nodes.cluster.node(&node).cloned()) else { return };
        for flavor in self.flavors_of(&node) {
            self.queues_using_flavor(&flavor).into_iter().for_each(|queue| self.request_flush(queue));
        }
    }

    /// A Topology was created, changed or removed; `old` is its last state.
    pub(super) fn topology_changed(&mut self, name: &str, old: Option<Arc<Topology>>) {
        self.nodes.note_sites_changed();
        let levels_changed = match (&old, self.objects.topologies.get(name)) {
            (Some(old), Some(new)) => old.levels != new.levels,
            _ => false,
        };
        if levels_changed {
            let flavors = self.objects.flavors.iter().flatten().filter(|flavor| flavor.topology_name == name);
            let flavors: Vec<String> = flavors.map(|flavor| flavor.meta.name.clone()).collect();
            for flavor in flavors {
                self.queues_using_flavor(&flavor).into_iter().for_each(|queue| self.request_flush(queue));
            }
        }
    }

    /// A ResourceFlavor was created, changed or removed; `old` is its last state.
    pub(super) fn flavor_changed(&mut self, name: &str, old: Option<Arc<ResourceFlavor>>) {
        let new = self.names.flavors.find(name).and_then(|id| self.objects.flavors[id].clone());
        let places = |flavor: &Arc<ResourceFlavor>| !flavor.topology_name.is_empty();
        if !old.iter().chain(&new).any(places) {
            return;
        }
        self.nodes.note_sites_changed();
        let Some(new) = new.filter(places) else { return };
        let edits_count = self.config.changes.has(Change::FlavorEditsRetryWorkloads);
        let is_same = |old: &Arc<ResourceFlavor>| {
            let is_unedited = old.node_labels == new.node_labels
                && old.node_taints == new.node_taints
                && old.tolerations == new.tolerations;
            old.topology_name == new.topology_name && (is_unedited || !edits_count)
        };
        if !old.as_ref().is_some_and(is_same) {
            self.retry_for([new.meta.name.clone()].into());
        }
    }
}

/// Do two versions of a node differ in anything that placement reads? Heartbeats, which only renew times, do not count.
fn differ(old: &Node, new: &Node) -> bool {
    let readiness = |node: &Node| node.ready.map(|ready| ready.status);
    old.unschedulable != new.unschedulable
        || readiness(old) != readiness(new)
        || old.allocatable != new.allocatable
        || old.meta.labels != new.meta.labels
        || old.taints != new.taints
        || old.condition_statuses != new.condition_statuses
        || old.meta.annotations != new.meta.annotations
}
