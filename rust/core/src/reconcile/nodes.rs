//! The effect of failed and recovered nodes on their workloads (rules/08 §13.1 to §13.4).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::base::text::Text;
use crate::objects::selectors::tolerated;
use crate::objects::{Condition, ConditionStatus, Node, Pod, Taint, Time, Toleration, Workload};
use crate::schedule::decision::Event;
use crate::state::State;
use crate::state::node_watch::{is_ready, keeps_away};
use crate::status::eviction::{event_reason, evict};
use crate::status::messages;
use crate::status::reasons::NODE_FAILURES;
use crate::status::stage::{is_admitted, is_evicted, is_finished};
use crate::topology::hosts::{assigned_hosts, hosts_of, used_hosts};

const PATIENCE_NS: i64 = 30_000_000_000;
/// How many failed nodes of a workload are recorded, with the gate for several.
const MAX_FAILED: usize = 8;
const WORKLOAD: &str = "kueue.x-k8s.io/workload";
const TOPOLOGY_GATE: &str = "kueue.x-k8s.io/topology";

/// The condition of a failed pod, besides its phase (rules/08 §13.4).
pub(crate) fn terminated_by_kueue(at: Time) -> Condition {
    Condition {
        kind: "TerminatedByKueue".into(),
        status: ConditionStatus::True,
        reason: "UnschedulableOnAssignedNode".into(),
        message: Text::from("Pod terminated by Kueue NodeController due to node taint").into(),
        last_transition: at,
        observed_generation: 0,
    }
}

/// Are there pods on the node that were never applied as objects, and keep it from failing for a workload? Takes the node
/// and the workload.
pub(crate) type HasUnseenPods<'a> = &'a dyn Fn(&State, &str, WorkloadId) -> bool;

/// Does a workload's assignment place pods on a node (rules/08 §13.1)?
pub(crate) fn stands_on(workload: &Workload, node: &str) -> bool {
    assigned_hosts(workload).any(|host| **host == *node)
}

impl State {
    /// Checks the nodes that changed, by name.
    pub(super) fn look_at_nodes(&mut self, now: Time) -> Vec<Event> {
        self.now = now;
        self.nodes.node_watch.ring(now);
        let mut events = Vec::new();
        while let Some(name) = self.nodes.node_watch.take_due() {
            events.append(&mut self.look_at_node(&name, &|_, _, _| false));
        }
        events
    }

    /// Marks or unmarks a node for its workloads, and sets when to check it again.
    pub(crate) fn look_at_node(&mut self, name: &str, has_unseen_pods: HasUnseenPods<'_>) -> Vec<Event> {
        let by_host = self.config.changes.has(Change::FailuresByHostname);
        let node = if by_host { self.nodes.cluster.node_of_host(name) } else { self.nodes.cluster.node(name) }.cloned();
        let pinned = self.nodes.cluster.pods_pinned_to(name).iter();
        let pinned = pinned.filter(|pod| owner_of(pod).is_some()).cloned().collect();
        let on_node = self.workloads_on(name).filter(|id| !is_out(&self.workloads.get(*id).workload)).collect();
        let mut look = Look { state: self, name, node, pinned, has_unseen_pods, events: Vec::new() };
        let again = look.run(look.by_key(on_node));
        let events = look.events;
        self.nodes.node_watch.settled(name, again);
        events
    }

    /// The Admitted workloads with pods on a node.
    pub(crate) fn workloads_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = WorkloadId> {
        let workload = |id| &self.workloads.get(id).workload;
        let is_on = |id: &WorkloadId| used_hosts(workload(*id)).any(|host| **host == *node);
        let on = || self.nodes.sites.standing.on(node).filter(move |id| is_admitted(workload(*id)));
        debug_assert!(
            self.nodes.sites.standing.workloads().filter(is_on).eq(on()),
            "who stands on {node} is kept up to date"
        );
        on()
    }
}

/// One check of one node.
struct Look<'a> {
    state: &'a mut State,
    name: &'a str,
    node: Option<Arc<Node>>,
    /// Pods whose node selector names the node, which may have come too late (rules/08 §13.4).
    pinned: Vec<Arc<Pod>>,
    has_unseen_pods: HasUnseenPods<'a>,
    events: Vec<Event>,
}

impl Look<'_> {
    /// Returns when to check again, if at all.
    fn run(&mut self, mut on_node: Vec<WorkloadId>) -> Option<Time> {
        let Some((node, ready)) = self.node.clone().and_then(|node| node.ready.map(|ready| (node, ready))) else {
            self.mark(&on_node);
            return None;
        };
        if !is_ready(&node) {
            let lost_at = Time(ready.since.0.saturating_add(PATIENCE_NS));
            // With that gate the node counts as lost once its last pod has ended, without a wait (rules/08 §13.2).
            if lost_at > self.state.now && !self.gate(Gate::TASReplaceNodeOnPodTermination) {
                return Some(lost_at);
            }
            if lost_at <= self.state.now && self.gate(Gate::TASReplaceNodeDueToNotReadyOverFixedTime) {
                on_node = self.mark(&on_node);
            }
        }
        on_node.extend(self.late(&on_node));
        let stuck: Vec<Vec<Arc<Pod>>> = on_node.iter().map(|id| self.stuck_pods(&node, *id)).collect();
        let has_failed: Vec<bool> = on_node.iter().map(|id| self.has_failed(&node, *id)).collect();
        let of = |is: bool| on_node.iter().zip(&has_failed).filter(move |it| *it.1 == is).map(|it| *it.0);
        of(false).for_each(|id| self.unmark(id));
        let left_over = self.mark(&of(true).collect::<Vec<_>>());
        for ((id, has_failed), pods) in on_node.iter().zip(has_failed).zip(stuck) {
            if !has_failed || left_over.contains(id) {
                pods.iter().for_each(|pod| self.fail(pod));
            }
        }
        None
    }

    fn gate(&self, gate: Gate) -> bool {
        self.state.gate(gate)
    }

    fn workload(&self, id: WorkloadId) -> &Workload {
        &self.state.workloads.get(id).workload
    }

    /// In the order of namespace and name; Kueue has no fixed order.
    fn by_key(&self, mut ids: Vec<WorkloadId>) -> Vec<WorkloadId> {
        ids.sort_by(|a, b| self.state.workloads.get(*a).key().cmp(self.state.workloads.get(*b).key()));
        ids
    }

    /// The workloads whose pods select the node, though they are not assigned to it any more.
    fn late(&self, known: &[WorkloadId]) -> Vec<WorkloadId> {
        let owners =
            self.pinned.iter().filter_map(|pod| self.state.workloads.find(&pod.meta.namespace, owner_of(pod)?));
        let late: BTreeSet<WorkloadId> =
            owners.filter(|id| !known.contains(id) && !is_out(self.workload(*id))).collect();
        self.by_key(late.into_iter().collect())
    }

    /// Do the pods matter (rules/08 §13.2)?
    fn asks_for_pods(&self, node: &Node, id: WorkloadId) -> bool {
        if !stands_on(self.workload(id), self.name) {
            return true;
        }
        let on_termination = self.gate(Gate::TASReplaceNodeOnPodTermination);
        if !is_ready(node) {
            return on_termination;
        }
        let (hostile, temporary) = self.taints(node, id);
        if hostile { on_termination } else { temporary }
    }

    /// Has the node failed for a workload (rules/08 §13.2)?
    fn has_failed(&self, node: &Node, id: WorkloadId) -> bool {
        if !stands_on(self.workload(id), self.name) {
            return false;
        }
        if self.asks_for_pods(node, id) {
            return !self.has_progressing_pods(id);
        }
        !is_ready(node) || self.taints(node, id).0
    }

    /// Does a pod of it run there, or in older releases any of its namespace (rules/08 §13.2)?
    fn has_progressing_pods(&self, id: WorkloadId) -> bool {
        let key = self.state.workloads.get(id).key();
        let any = !self.state.config.changes.has(Change::OwnPodsProgress);
        let runs = |pod: &Arc<Pod>| {
            pod.meta.namespace == key.namespace()
                && (any || owner_of(pod) == Some(key.name()))
                && !pod.meta.deleting
                && !matches!(&*pod.phase, "Succeeded" | "Failed")
        };
        let name = self.node.as_deref().map_or(self.name, |node| &node.meta.name);
        self.state.nodes.cluster.pods_on(name).iter().any(runs) || (self.has_unseen_pods)(self.state, self.name, id)
    }

    /// Is there a taint that pods there do not tolerate, or only for a while (rules/08 §13.2)?
    fn taints(&self, node: &Node, id: WorkloadId) -> (bool, bool) {
        // Taints then are none of its business, and a Ready node is unmarked whatever it repels (rules/08 §13.2).
        if !self.gate(Gate::TASReplaceNodeOnNodeTaints) {
            return (false, false);
        }
        let taints: Vec<&Taint> = node.taints.iter().filter(|taint| keeps_away(taint)).collect();
        let (mut hostile, mut temporary) = (false, false);
        for tolerations in self.tolerations(id) {
            let lasting = || tolerations.iter().copied().filter(|it| it.toleration_seconds.is_none());
            hostile |= taints.iter().any(|taint| !tolerated(taint, tolerations.iter().copied()));
            temporary |= taints.iter().any(|taint| !tolerated(taint, lasting()));
        }
        (hostile, temporary)
    }

    /// The tolerations of each pod set on the node: from its template, its flavors and all checks (rules/08 §13.2).
    fn tolerations(&self, id: WorkloadId) -> Vec<Vec<&Toleration>> {
        let record = self.state.workloads.get(id);
        let status = &record.workload.status;
        let Some(admission) = &status.admission else { return Vec::new() };
        let mut found = Vec::new();
        for assigned in admission.pod_set_assignments.iter().filter(|it| hosts_of(it).any(|host| **host == *self.name))
        {
            let Some(pod_set) = record.spec.original.iter().find(|pod_set| pod_set.name == assigned.name) else {
                continue;
            };
            let flavors: BTreeSet<&String> = assigned.flavors.values().collect();
            let flavors = flavors.into_iter().filter_map(|name| {
                let id = self.state.names.flavors.find(name)?;
                self.state.objects.flavors.get(id)?.as_deref()
            });
            let checks = status.rare.admission_checks.iter();
            let updates = checks.filter_map(|check| check.updates.iter().find(|it| it.name == assigned.name));
            let added = flavors
                .flat_map(|flavor| &flavor.tolerations)
                .chain(updates.flat_map(|update| &update.tolerations))
                .filter(|_| self.state.config.changes.has(Change::TaintsMeetAllTolerations));
            let all = pod_set.template.spec.tolerations.iter().chain(added);
            found.push(all.filter(|it| !matches!(&*it.operator, "Lt" | "Gt")).collect());
        }
        found
    }

    /// Records that the node failed; at a second failed node, or with a gate at a ninth, the workload is evicted (rules/08
    /// §13.3). Returns the others.
    fn mark(&mut self, ids: &[WorkloadId]) -> Vec<WorkloadId> {
        let (name, now) = (self.name, self.state.now);
        let mut kept = Vec::new();
        for &id in ids {
            let workload = self.workload(id);
            let failed = &workload.status.rare.unhealthy_nodes;
            if is_evicted(workload) {
                continue;
            }
            let takes_more = self.gate(Gate::TASReplaceMultipleFailedNodes) && failed.len() < MAX_FAILED;
            let is_known = failed.iter().any(|node| node == name);
            if failed.is_empty() || (takes_more && !is_known) {
                self.state.change(id, |workload| {
                    workload.status.rare.unhealthy_nodes.push(name.to_owned());
                    true
                });
            } else if !is_known {
                let message = messages::several_nodes_failed(failed, name);
                let key = self.state.workloads.get(id).key().clone();
                self.state.change(id, |workload| {
                    evict(workload, NODE_FAILURES, "", Text::copied(&message), now);
                    true
                });
                let reason = event_reason(NODE_FAILURES, "").into();
                self.events.push(Event { kind: "Normal", reason, key, message: Text::copied(&message).into() });
                continue;
            }
            kept.push(id);
        }
        kept
    }

    fn unmark(&mut self, id: WorkloadId) {
        let name = self.name;
        if self.workload(id).status.rare.unhealthy_nodes.iter().any(|node| node == name) {
            self.state.change(id, |workload| {
                workload.status.rare.unhealthy_nodes.retain(|node| node != name);
                true
            });
        }
    }

    /// Pods that wait for the node and will never start there (rules/08 §13.4).
    fn stuck_pods(&self, node: &Node, id: WorkloadId) -> Vec<Arc<Pod>> {
        if !self.asks_for_pods(node, id) {
            return Vec::new();
        }
        let key: &Key = self.state.workloads.get(id).key();
        let waits = |pod: &&Arc<Pod>| {
            owner_of(pod) == Some(key.name())
                && pod.meta.namespace == key.namespace()
                && pod.node_name.is_empty()
                && pod.phase == "Pending"
                && pod.scheduling_gates.iter().all(|gate| gate != TOPOLOGY_GATE)
        };
        self.pinned.iter().filter(waits).cloned().collect()
    }

    fn fail(&mut self, pod: &Pod) {
        self.state.put_pod(Pod { phase: "Failed".to_owned(), ..pod.clone() });
        let now = self.state.now;
        self.state.nodes.node_watch.note_failed(&pod.meta.namespace, &pod.meta.name, now);
    }
}

fn is_out(workload: &Workload) -> bool {
    is_finished(workload) || is_evicted(workload)
}

/// The name of the Workload that a pod belongs to.
fn owner_of(pod: &Pod) -> Option<&str> {
    pod.meta.annotations.get(WORKLOAD).map(String::as_str).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
