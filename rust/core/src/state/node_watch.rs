//! Which nodes the controller of failed nodes is to look at, and when again (rules/08 §13).

use std::collections::{BTreeMap, BTreeSet};

use crate::base::gates::Gate;
use crate::objects::{ConditionStatus, Node, Pod, Taint, Time};
use crate::snapshot::stored;
use crate::state::State;
use crate::state::sites::is_placed_by_kueue;
use crate::topology::tree::HOSTNAME;

/// What has happened to nodes since they were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeWatch {
    /// To look at now.
    due: BTreeSet<String>,
    /// To look at later: those that are not ready get some time.
    later: BTreeMap<String, Time>,
    /// Since when nodes are not ready, or keep pods away.
    bad_since: BTreeMap<String, Time>,
    /// The pods that were failed, by namespace and name, and when: nobody has asked for them yet.
    failed_pods: BTreeMap<(String, String), Time>,
}

stored!(struct NodeWatch { due, later, bad_since, failed_pods });

impl NodeWatch {
    /// Takes out the next node to look at now, by name.
    pub fn take_due(&mut self) -> Option<String> {
        self.due.pop_first()
    }

    /// It is to be looked at now.
    pub fn touch(&mut self, name: &str) {
        self.due.insert(name.to_owned());
    }

    /// It is looked at; `again`: once more then.
    pub fn settled(&mut self, name: &str, again: Option<Time>) {
        self.due.remove(name);
        self.later.remove(name);
        if let Some(at) = again {
            self.later.insert(name.to_owned(), at);
        }
    }

    /// Time has come for what was put off up to `now`.
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

    /// The first time after `now` for which one was put off; `None` of `now`: whenever that is.
    pub fn next(&self, now: Option<Time>) -> Option<Time> {
        self.later.values().copied().filter(|at| now.is_none_or(|now| *at > now)).min()
    }

    /// A pod was failed: that is to be written.
    pub fn note_failed(&mut self, namespace: &str, name: &str, now: Time) {
        self.failed_pods.insert((namespace.to_owned(), name.to_owned()), now);
    }

    /// The pods that were failed since the last call, by namespace and name, and when.
    pub fn take_failed_pods(&mut self) -> BTreeMap<(String, String), Time> {
        std::mem::take(&mut self.failed_pods)
    }

    /// Since when a node is not ready, or keeps pods away; `None`: it is well, or gone.
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

/// Does a taint keep pods away that do not tolerate it?
pub(crate) fn keeps_away(taint: &Taint) -> bool {
    matches!(&*taint.effect, "NoSchedule" | "NoExecute")
}

impl State {
    /// A pod of a workload that Kueue places came, changed or went; `None` of `new`: it went. Its node is looked at if it
    /// waits for that node, or has left it (rules/08 §13.1).
    pub(super) fn watch_pod(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        let Some(pod) = new.or(old).filter(|pod| is_placed_by_kueue(pod)) else { return };
        if new.is_none() {
            self.node_watch.failed_pods.remove(&(pod.meta.namespace.clone(), pod.meta.name.clone()));
        }
        if !self.gate(Gate::TASFailedNodeReplacement) {
            return;
        }
        let has_left = new.is_none() || pod.meta.deleting || matches!(&*pod.phase, "Succeeded" | "Failed");
        let node = if pod.node_name.is_empty() {
            pod.spec.node_selector.get(HOSTNAME)
        } else {
            Some(&pod.node_name).filter(|_| has_left)
        };
        if let Some(node) = node {
            self.node_watch.touch(node);
        }
    }

    /// A node came, changed or went: it is looked at if that may mean something to the workloads on it.
    pub(super) fn watch_node(&mut self, name: &str, old: Option<&Node>, new: Option<&Node>) {
        if new.is_none_or(is_well) {
            self.node_watch.bad_since.remove(name);
            self.node_watch.later.remove(name);
        } else {
            self.node_watch.bad_since.entry(name.to_owned()).or_insert(self.now);
        }
        let is_other = match (old, new) {
            (Some(old), Some(new)) => {
                let by_taints = self.gate(Gate::TASReplaceNodeOnNodeTaints);
                is_ready(old) != is_ready(new) || (by_taints && old.taints != new.taints)
            }
            _ => true,
        };
        if is_other && self.gate(Gate::TASFailedNodeReplacement) {
            self.node_watch.touch(name);
        }
    }
}
