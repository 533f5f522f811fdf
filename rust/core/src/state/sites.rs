//! Keeps trees and usage up to date as nodes, pods and topologies change (rules/08 §4).

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::changes::{Change, Changes};
use crate::base::gates::Gate;
use crate::base::ids::{FlavorId, WorkloadId};
use crate::objects::resource_names::resource_value;
use crate::objects::{Node, Pod, PodSet, PodSetAssignment, ResourceFlavor, TopologyAssignment, Workload};
use crate::pods::totals::effective_count;
use crate::pods::{pod_requests, values};
use crate::state::{Nodes, State};
use crate::status::stage::{has_quota_reservation, is_admitted};
use crate::topology::capacity::{Amounts, PODS};
use crate::topology::sites::{Site, Stand};
use crate::topology::tables::Tables;
use crate::topology::tree::{Offer, Tree, belongs, ends_with_hostname};

impl Nodes {
    /// Something that the trees depend on has changed.
    pub(crate) fn note_sites_changed(&mut self) {
        self.sites.is_stale = true;
    }
}

impl State {
    /// Brings the trees up to date, and clears the preferences that are cached for one cycle.
    pub(super) fn settle_sites(&mut self) {
        self.refresh_sites();
        self.nodes.sites.seen.values_mut().for_each(|seen| seen.scored.clear());
    }

    /// Rebuilds the trees if nodes, flavors or topologies have changed.
    pub fn refresh_sites(&mut self) {
        if !std::mem::take(&mut self.nodes.sites.is_stale) {
            return;
        }
        let mut sites = BTreeMap::new();
        if self.gate(Gate::TopologyAwareScheduling) {
            for (id, flavor) in
                self.objects.flavors.ids().filter_map(|id| Some((id, self.objects.flavors[id].as_ref()?)))
            {
                let Some(levels) = self.objects.levels(&flavor.topology_name) else { continue };
                let nodes = self.nodes.cluster.nodes().filter(|node| self.is_of(node, flavor, levels));
                let offer = |node| Offer { node, taken: self.nodes.sites.taken.get(&Arc::as_ref(node).meta.name) };
                let to_nodes = self.gate(Gate::TASNodeFeasibilityForAllLevels);
                let tree = Tree::new(levels, nodes.map(offer), self.config.changes, to_nodes);
                sites.insert(id, Site { flavor: Arc::clone(flavor), tree });
            }
        }
        self.nodes.sites.by_flavor = sites;
        self.nodes.sites.seen.values_mut().for_each(|seen| seen.tables = Tables::default());
        let pools = self.pools_hosts();
        let standing = self.nodes.sites.standing.clone();
        for id in standing.workloads() {
            if let Some(charge) = self.workloads.get(id).charge.clone() {
                self.nodes.sites.charge(&charge.stands, true, pools);
            }
        }
        self.nodes.sites.try_again();
    }

    /// Does a flavor with these levels place pods on a node?
    pub(super) fn is_of(&self, node: &Node, flavor: &ResourceFlavor, levels: &[String]) -> bool {
        let any_condition = self.gate(Gate::SchedulerLibraryIntegration) && ends_with_hostname(levels);
        belongs(node, &flavor.node_labels, levels, any_condition)
    }

    /// Recomputes what follows from nodes, pods and charges.
    pub(crate) fn restore_sites(&mut self) {
        let ids: Vec<WorkloadId> = self.workloads.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.note_placed(id));
        let pods: Vec<Arc<Pod>> = self.nodes.cluster.pods().cloned().collect();
        pods.iter().for_each(|pod| _ = self.change_taken(None, Some(pod)));
        self.nodes.sites.is_stale = true;
        self.refresh_sites();
    }

    fn pools_hosts(&self) -> bool {
        self.gate(Gate::TASHandleOverlappingFlavors)
    }

    /// Do flavors that share hosts see what a cycle tries on the nodes of one of them?
    pub(crate) fn pools_trials(&self) -> bool {
        self.pools_hosts() && self.config.changes.has(Change::CycleUsageReachesAllFlavors)
    }

    /// Records the placement of a workload from its admission, whether or not its ClusterQueue exists.
    pub(crate) fn note_placed(&mut self, id: WorkloadId) {
        let workload = &self.workloads.get(id).workload;
        let admission = workload.status.admission.as_ref().filter(|_| has_quota_reservation(workload));
        let assignments = admission.map(|admission| &admission.pod_set_assignments);
        self.nodes.sites.standing.note(id, assignments.filter(|it| it.are_placed()));
    }

    /// Adds the usage of a workload's pods to their nodes, or subtracts it.
    pub(crate) fn charge_stands(&mut self, stands: &[Stand], adds: bool) {
        if !stands.is_empty() && !self.nodes.sites.is_stale {
            let pools = self.pools_hosts();
            self.nodes.sites.charge(stands, adds, pools);
        }
    }

    /// The placement of a workload's pods by its admission.
    pub(crate) fn stands_of(&mut self, id: WorkloadId) -> Arc<[Stand]> {
        if !self.gate(Gate::TopologyAwareScheduling) {
            return Arc::default();
        }
        let State { workloads, names, config, .. } = self;
        let by_pods = config.changes.has(Change::NodeUsageIsThatOfPods);
        let done_leave =
            config.gates.enabled(Gate::ReclaimablePods) && config.changes.has(Change::DonePodSetsLeaveNodes);
        let record = workloads.get(id);
        let status = &record.workload.status;
        let Some(admission) =
            record.workload.status.admission.as_ref().filter(|it| it.pod_set_assignments.are_placed())
        else {
            return Arc::default();
        };
        let mut stands = Vec::new();
        for assigned in admission.pod_set_assignments.iter() {
            let Some(place) = &assigned.topology_assignment else { continue };
            let pod_set = record.spec.adjusted.iter().find(|pod_set| pod_set.name == assigned.name);
            let n_left = || effective_count(&record.spec.adjusted, status, &assigned.name, true);
            if done_leave && pod_set.is_some() && n_left() == 0 {
                continue;
            }
            let pod_set = pod_set.filter(|_| by_pods);
            let per_pod = pod_set
                .map_or_else(|| share_of_pod(assigned), |pod_set| with_pod(&requests_of(pod_set, config.changes)));
            let mut flavors: SmallVec<[FlavorId; 1]> =
                assigned.flavors.values().map(|name| names.flavors.intern(name)).collect();
            flavors.sort_unstable();
            flavors.dedup();
            stands.push(Stand { flavors, per_pod: Arc::new(per_pod), place: place.clone() });
        }
        stands.into()
    }

    /// A pod was created, removed or moved, which changes the free capacity of its nodes. Returns the node on which it
    /// freed something.
    pub(crate) fn change_taken(&mut self, old: Option<&Pod>, new: Option<&Pod>) -> Option<String> {
        let changes = self.config.changes;
        let takes = |pod: Option<&Pod>| {
            let pod = pod.filter(|pod| takes_room(pod, changes))?;
            Some((pod.node_name.clone(), with_pod(&values(&pod_requests(&pod.spec, changes)))))
        };
        let (before, now) = (takes(old), takes(new));
        if before == now {
            return None;
        }
        for (used, sign) in before.iter().map(|used| (used, -1)).chain(now.iter().map(|used| (used, 1))) {
            let taken = self.nodes.sites.taken.entry(used.0.clone()).or_default();
            for (resource, value) in &used.1 {
                let sum = taken.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(sign));
            }
            taken.retain(|_, value| *value != 0);
            if taken.is_empty() {
                self.nodes.sites.taken.remove(&used.0);
            }
            self.take_outside(&used.0, &used.1, sign);
        }
        let (node, had) = before?;
        let is_less = match now {
            Some((same, has)) if same == node => {
                had.iter().any(|(resource, value)| has.get(resource).copied().unwrap_or(0) < *value)
            }
            _ => true,
        };
        is_less.then_some(node)
    }

    /// Subtracts the usage of a pod outside Kueue from its node, in all flavors of the node.
    fn take_outside(&mut self, node: &str, amounts: &Amounts, n_pods: i64) {
        let Some(node) = self.nodes.cluster.node(node).filter(|_| !self.nodes.sites.is_stale) else { return };
        let has = |(_, site): &(&FlavorId, &Site)| self.is_of(node, &site.flavor, &site.tree.keys);
        let flavors: SmallVec<[FlavorId; 4]> = self.nodes.sites.by_flavor.iter().filter(has).map(|it| *it.0).collect();
        for flavor in flavors {
            let tree = &mut self.nodes.sites.by_flavor.get_mut(&flavor).expect("it has the node").tree;
            let leaf = tree.leaf_of(node).expect("the tree has all nodes of its flavor");
            if !tree.take_outside(leaf, amounts, n_pods) {
                // The tree has no column for a resource that no node offers.
                self.nodes.sites.is_stale = true;
            }
        }
    }
}

/// Annotations of pods that Kueue places.
const PLACED_BY_KUEUE: [&str; 5] = [
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
];

/// Is a pod placed by Kueue, or waiting to be?
pub(crate) fn is_placed_by_kueue(pod: &Pod, changes: Changes) -> bool {
    PLACED_BY_KUEUE.iter().any(|key| pod.meta.annotations.contains_key(*key))
        || (!changes.has(Change::TasLabelHasNoMeaning) && pod.meta.labels.contains_key("kueue.x-k8s.io/tas"))
}

/// Does a pod take room on a node without Kueue (rules/08 §4.4)?
pub(crate) fn takes_room(pod: &Pod, changes: Changes) -> bool {
    !pod.node_name.is_empty() && pod.phase != "Succeeded" && pod.phase != "Failed" && !is_placed_by_kueue(pod, changes)
}

/// Requests of one pod of a pod set, by its template.
pub fn requests_of(pod_set: &PodSet, changes: Changes) -> Amounts {
    values(&pod_requests(&pod_set.template.spec, changes))
}

/// The same, including the pod itself.
pub(crate) fn with_pod(requests: &Amounts) -> Amounts {
    let mut amounts = requests.clone();
    *amounts.entry(PODS.to_owned()).or_default() += 1;
    amounts
}

/// For a pod set that the workload no longer has, or in an older release: the usage of one pod by its admission.
fn share_of_pod(assigned: &PodSetAssignment) -> Amounts {
    let count = i64::from(assigned.count.unwrap_or(0));
    let share =
        |(name, quantity): (&String, _)| (name.clone(), resource_value(name, quantity).checked_div(count).unwrap_or(0));
    with_pod(&assigned.resource_usage.iter().map(share).collect())
}

/// Does a pod set of this workload have pods on a failed host?
pub(crate) fn is_on_unhealthy_node(workload: &Workload, place: &TopologyAssignment) -> bool {
    let unhealthy = &workload.status.rare.unhealthy_nodes;
    place
        .domains
        .iter()
        .any(|domain| domain.values.last().is_some_and(|host| unhealthy.iter().any(|it| **it == **host)))
}

/// Is a workload Admitted, with pods on a failed host?
pub(crate) fn stands_on_unhealthy_node(workload: &Workload) -> bool {
    !workload.status.rare.unhealthy_nodes.is_empty()
        && is_admitted(workload)
        && workload.status.admission.as_ref().is_some_and(|admission| {
            let mut places = admission.pod_set_assignments.iter().filter_map(|it| it.topology_assignment.as_ref());
            places.any(|place| is_on_unhealthy_node(workload, place))
        })
}
