//! Which nodes the controller of failed nodes must check, and when to check again (rules/08 §13).

use std::collections::{BTreeMap, BTreeSet};

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::objects::{ConditionStatus, Node, Pod, Taint, Time};
use crate::snapshot::stored;
use crate::state::State;
use crate::state::cluster::hostname;
use crate::state::sites::is_placed_by_kueue;
use crate::topology::tree::HOSTNAME;

/// Events of nodes since their last check.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeWatch {
    /// To check now.
    due: BTreeSet<String>,
    /// To check later: a node that is not ready gets some time.
    later: BTreeMap<String, Time>,
    /// Since when nodes are not ready, or have taints that keep pods away.
    bad_since: BTreeMap<String, Time>,
    /// Failed pods by namespace and name, and when, until the caller takes them.
    failed_pods: BTreeMap<(String, String), Time>,
}

stored!(struct NodeWatch { due, later, bad_since, failed_pods });

impl NodeWatch {
    /// Takes the next node to check now, by name.
    pub fn take_due(&mut self) -> Option<String> {
        self.due.pop_first()
    }

    /// The node must be checked now.
    pub fn touch(&mut self, name: &str) {
        self.due.insert(name.to_owned());
    }

    /// The node was checked; `again`: when to check it next.
    pub fn settled(&mut self, name: &str, again: Option<Time>) {
        self.due.remove(name);
        self.later.remove(name);
        if let Some(at) = again {
            self.later.insert(name.to_owned(), at);
        }
    }

    /// Makes the nodes due that were put off until `now` or earlier.
    pub fn ring(&mut self, now: Time) {
        let due = &mut self.due;
        self.later.retain(|name, at| {
            let waits = *at > now;
            if !waits {
                due.insert(name.clone());
            }
            waits
        });
    }

    /// The first time after `now` at which a node is due; `None` of `now`: the first time at all.
    pub fn next(&self, now: Option<Time>) -> Option<Time> {
        self.later.values().copied().filter(|at| now.is_none_or(|now| *at > now)).min()
    }

    /// A pod was failed, which the caller must write.
    pub fn note_failed(&mut self, namespace: &str, name: &str, now: Time) {
        self.failed_pods.insert((namespace.to_owned(), name.to_owned()), now);
    }

    /// Takes the pods that were failed since the last call, by namespace and name, and when.
    pub fn take_failed_pods(&mut self) -> BTreeMap<(String, String), Time> {
        std::mem::take(&mut self.failed_pods)
    }

    /// Since when a node is not ready, or has a taint that keeps pods away; `None`: it is healthy, or gone.
    pub fn bad_since(&self, name: &str) -> Option<Time> {
        self.bad_since.get(name).copied()
    }
}

/// Is its condition Ready True?
pub(crate) fn is_ready(node: &Node) -> bool {
    node.ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Is it ready, without a taint that keeps pods away?
fn is_well(node: &Node) -> bool {
    is_ready(node) && !node.taints.iter().any(keeps_away)
}

/// Does a taint keep out pods that do not tolerate it?
pub(crate) fn keeps_away(taint: &Taint) -> bool {
    matches!(&*taint.effect, "NoSchedule" | "NoExecute")
}

impl State {
    /// A pod of a workload that Kueue places was created, changed or removed (`new` is `None`). Its node is checked if
    /// the pod waits for it, or has left it (rules/08 §13.1).
    pub(super) fn watch_pod(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        let Some(pod) = new.or(old).filter(|pod| is_placed_by_kueue(pod, self.config.changes)) else { return };
        if new.is_none() {
            self.nodes.node_watch.failed_pods.remove(&(pod.meta.namespace.clone(), pod.meta.name.clone()));
        }
        if !self.gate(Gate::TASFailedNodeReplacement) {
            return;
        }
        let has_left = new.is_none() || pod.meta.deleting || matches!(&*pod.phase, "Succeeded" | "Failed");
        let by_host = self.config.changes.has(Change::FailuresByHostname);
        let node = if pod.node_name.is_empty() {
            pod.spec.node_selector.get(HOSTNAME)
        } else if by_host {
            pod.spec.node_selector.get(HOSTNAME).filter(|_| has_left)
        } else {
            Some(&pod.node_name).filter(|_| has_left)
        };
        if let Some(node) = node {
            self.nodes.node_watch.touch(node);
        }
    }

    /// The name by which failures know a node; `None`: they do not.
    pub(crate) fn watched_name<'a>(&self, node: &'a Node) -> Option<&'a str> {
        if self.config.changes.has(Change::FailuresByHostname) { hostname(node) } else { Some(&node.meta.name) }
    }

    /// A node was created, changed or removed: it is checked if that may affect its workloads.
    pub(super) fn watch_node(&mut self, old: Option<&Node>, new: Option<&Node>) {
        let names = [old, new].map(|node| node.and_then(|node| self.watched_name(node)));
        let Some(name) = names[1].or(names[0]) else { return };
        if let Some(before) = names[0].filter(|before| *before != name) {
            // It has another hostname now.
            self.nodes.node_watch.bad_since.remove(before);
            if self.gate(Gate::TASFailedNodeReplacement) {
                self.nodes.node_watch.touch(before);
            }
        }
        if new.is_none_or(is_well) {
            self.nodes.node_watch.bad_since.remove(name);
            self.nodes.node_watch.later.remove(name);
        } else {
            self.nodes.node_watch.bad_since.entry(name.to_owned()).or_insert(self.now);
        }
        let is_other = match (old, new) {
            (Some(old), Some(new)) => {
                let by_taints = self.gate(Gate::TASReplaceNodeOnNodeTaints);
                is_ready(old) != is_ready(new) || (by_taints && old.taints != new.taints)
            }
            _ => true,
        };
        if is_other && self.gate(Gate::TASFailedNodeReplacement) {
            self.nodes.node_watch.touch(name);
        }
    }
}
