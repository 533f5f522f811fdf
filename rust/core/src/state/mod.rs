//! Everything an engine knows: the objects by id, the quota forest, the queues and the table of workloads.
//!
//! `Engine` owns one [`State`] and changes it by three calls: objects come in or go (`apply`), a cycle decides
//! (`crate::schedule`), and a reconciler follows (`crate::reconcile`). Whoever decides has an `impl State` block in its own
//! folder; this folder has what keeps the tables consistent, and decides nothing.
//!
//! Objects stay as they were applied (`held`); what cycles read is derived from them, kept beside them, and brought up to
//! date where it is changed, so that no cycle starts with work for the whole cluster. Two similar ideas differ: *touched*
//! workloads (`agenda`) may need another status, *changed* queues (`changed_queues`) may need another one written; and
//! `saved` writes the state for a later process, whereas the journal of a what-if question (`crate::engine`) only undoes.

pub mod admission_fair_sharing;
pub(crate) mod agenda;
pub(crate) mod apply;
mod by_kind;
pub(crate) mod cache;
pub mod changed_queues;
pub mod charges;
pub mod cluster;
mod devices;
pub(crate) mod experiments;
pub mod held;
pub mod node_changes;
pub(crate) mod node_watch;
pub mod queue_counts;
pub mod records;
mod saved;
pub mod searches;
pub(crate) mod second_pass;
pub mod site_report;
pub mod sites;
mod standings;
mod topology;
pub(crate) mod verdicts;

pub use cache::CohortHasCycle;
pub use second_pass::needs_second_pass;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::assign::ResourceGroup;
use crate::assign::rules::RulesTable;
use crate::base::gates::Gate;
use crate::base::ids::{CohortId, FlavorId, FlavorResourceId, IdVec, LocalQueueId, NamespaceId, QueueId, WorkloadId};
use crate::base::names::Names;
use crate::base::quantity::Quantity;
use crate::base::sorted::Sorted;
use crate::base::text::Text;
use crate::objects::config::Config;
use crate::objects::resource_names::amount_from_quantity;
use crate::objects::{
    AdmissionCheck, DeviceClass, LimitRange, PriorityClass, ResourceClaimTemplate, ResourceFlavor,
    ResourceGroup as Groups, RuntimeClass, StringMap, Time, Topology,
};
use crate::pods::LimitRangeSummary;
use crate::queue::Places;
use crate::quota::forest::{Forest, NodeId};
use crate::quota::tree::Quota;
use crate::state::agenda::Agenda;
use crate::state::changed_queues::ChangedQueues;
use crate::state::charges::ChargeLog;
use crate::state::cluster::Cluster;
use crate::state::experiments::ExperimentWaits;
use crate::state::node_changes::NodeChanges;
use crate::state::node_watch::NodeWatch;
use crate::state::records::{
    CohortRecord, FlushRequest, LocalQueueRecord, Owner, QueueRecord, ReplacedSlice, StaleDefaults,
};
use crate::state::searches::Recorder;
use crate::state::second_pass::SecondPasses;
use crate::topology::sites::Sites;
use crate::workloads::Workloads;
use crate::workloads::before::Unconfirmed;

/// All state of an engine. Copies are independent.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub config: Config,
    /// Names and ids.
    pub names: Names,
    /// What queues and workloads refer to.
    pub objects: Objects,
    /// Who holds how much of which quota.
    pub ledger: Ledger,
    /// ClusterQueues.
    pub queues: IdVec<QueueId, QueueRecord>,
    pub cohorts: IdVec<CohortId, CohortRecord>,
    /// LocalQueues.
    pub local_queues: IdVec<LocalQueueId, LocalQueueRecord>,
    pub workloads: Workloads,
    /// Who waits for what.
    pub pending: PendingWork,
    /// Where pods run.
    pub nodes: Nodes,
    /// What has happened since somebody last asked.
    pub feeds: Feeds,
    /// Evaluate every head of every cycle, even if nothing has changed since the last time? The decisions are the same,
    /// but slower: for tests.
    pub evaluates_always: bool,
    /// Number of cycles so far.
    pub cycle: u64,
    /// Time of the last call that had one.
    pub now: crate::objects::Time,
}

/// What queues and workloads refer to.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// ResourceFlavors.
    pub flavors: IdVec<FlavorId, Option<Arc<ResourceFlavor>>>,
    /// Topologies by name.
    pub(crate) topologies: BTreeMap<String, Arc<Topology>>,
    /// AdmissionChecks by name.
    pub(crate) checks: BTreeMap<String, AdmissionCheck>,
    /// WorkloadPriorityClasses by name.
    workload_priority_classes: BTreeMap<String, PriorityClass>,
    /// Labels of the namespaces that exist.
    namespaces: IdVec<NamespaceId, Option<Arc<StringMap>>>,
    /// LimitRanges by namespace and name.
    limit_ranges: BTreeMap<String, BTreeMap<String, LimitRange>>,
    /// The merged LimitRanges of a namespace, if computed since they changed.
    limit_summaries: BTreeMap<String, Arc<LimitRangeSummary>>,
    /// Where the defaults of pods may have changed.
    stale_defaults: StaleDefaults,
    /// RuntimeClasses by name.
    runtime_classes: BTreeMap<String, RuntimeClass>,
    /// ResourceClaimTemplates by namespace and name.
    claim_templates: BTreeMap<String, BTreeMap<String, ResourceClaimTemplate>>,
    /// DeviceClasses by name.
    device_classes: BTreeMap<String, DeviceClass>,
    /// The rules of ClusterQueues.
    pub(crate) rules: RulesTable,
}

impl Objects {
    /// The LimitRanges of a namespace, merged in the order of their names.
    pub fn limit_summary(&mut self, namespace: &str) -> Arc<LimitRangeSummary> {
        if let Some(found) = self.limit_summaries.get(namespace) {
            return Arc::clone(found);
        }
        let ranges: Vec<&LimitRange> = self.limit_ranges.get(namespace).into_iter().flat_map(|r| r.values()).collect();
        let summary = Arc::new(crate::pods::summarize(&ranges));
        self.limit_summaries.insert(namespace.to_owned(), Arc::clone(&summary));
        summary
    }
}

/// Who holds how much of which quota, and which reservations are still to be confirmed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Quota and usage.
    pub forest: Forest,
    /// The ClusterQueue or Cohort of each node.
    pub(crate) owners: IdVec<NodeId, Option<Owner>>,
    /// The state of workloads before the last cycle reserved quota for them, until the write is confirmed.
    pub(crate) unconfirmed: FxHashMap<WorkloadId, Unconfirmed>,
    /// The workloads that cycles wrote to, until the updates come back.
    pub(crate) undelivered: Vec<WorkloadId>,
    /// The slices that the last cycle replaced, by replacement.
    pub(crate) replaced_slices: BTreeMap<WorkloadId, ReplacedSlice>,
}

impl Ledger {
    /// The ClusterQueue or Cohort of a node; `None`: it was removed.
    pub fn owner(&self, node: NodeId) -> Option<Owner> {
        self.owners.get(node).copied().flatten()
    }

    /// The nodes in use.
    pub fn owned_nodes(&self) -> impl Iterator<Item = (NodeId, Owner)> + '_ {
        self.owners.ids().zip(self.owners.iter()).filter_map(|(node, owner)| owner.map(|owner| (node, owner)))
    }
}

/// Who waits for what.
#[derive(Clone, Debug, Default)]
pub struct PendingWork {
    /// The places of workloads in the queues.
    pub places: Places,
    /// Requested flushes that have not been done yet, and when they are due.
    pub flush_requests: BTreeMap<FlushRequest, Time>,
    /// The ClusterQueues with a non-empty heap, by name: a cycle visits no others. During a cycle, heads may have left
    /// empty heaps behind.
    pub waiting: Sorted<(Text, QueueId)>,
    /// The workloads with quota whose pods are not ready, if admissions wait for them.
    pub(crate) unready: BTreeSet<WorkloadId>,
    /// Is a cycle waiting for them? It refers to its workloads by slot, and to their shapes.
    pub has_waiting_cycle: bool,
    /// Workloads that need a second pass.
    pub(crate) second_passes: SecondPasses,
    /// What waits for the time of an experiment.
    pub(crate) experiments: ExperimentWaits,
}

/// Where pods run.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The nodes of topology-aware flavors.
    pub sites: Sites,
    /// Nodes and pods.
    pub cluster: Cluster,
    /// Nodes that the controller of failed nodes must check.
    pub(crate) node_watch: NodeWatch,
}

/// What has happened since somebody last asked.
#[derive(Clone, Debug, Default)]
pub struct Feeds {
    /// The workloads to reconcile.
    pub(crate) agenda: Agenda,
    /// Queues and cohorts whose status may have changed.
    pub(crate) changed_queues: ChangedQueues,
    /// Charges taken and released since the last call; not saved.
    pub charges: ChargeLog,
    /// Nodes that were lost or came back since the last call; not saved.
    pub node_changes: NodeChanges,
    /// The preemption searches, while an explanation is asked for; not saved.
    pub(crate) recorder: Option<Recorder>,
}

impl State {
    /// An empty state.
    pub(crate) fn new(config: Config) -> Self {
        let mut state = Self { config, ..Self::default() };
        state.workloads.follow(&state.config);
        state
    }

    /// Brings up to date what follows from objects and is computed only when somebody looks: before a cycle, and before
    /// a question about one.
    pub(crate) fn settle_before_look(&mut self) {
        self.names.renew_lexicon();
        self.ledger.forest.flush(&self.names);
        self.settle_sites();
    }

    /// A copy that shares unchanged parts.
    pub(crate) fn fork(&mut self) -> Self {
        self.workloads.share_pieces();
        self.pending.places.share_pieces();
        self.clone()
    }

    /// The record of a ClusterQueue name, created if new.
    pub fn queue(&mut self, name: &str) -> QueueId {
        let id = self.names.queue(name);
        self.queues.ensure(id);
        id
    }

    /// The record of a Cohort name, created if new.
    pub fn cohort(&mut self, name: &str) -> CohortId {
        let id = self.names.cohorts.intern(name);
        self.cohorts.ensure(id);
        id
    }

    /// The record of a LocalQueue name, created if new.
    pub fn local_queue(&mut self, namespace: &str, name: &str) -> LocalQueueId {
        let id = self.names.local_queue(namespace, name);
        self.local_queues.ensure(id);
        id
    }

    /// The record of a flavor name, created if new.
    pub fn flavor(&mut self, name: &str) -> FlavorId {
        let id = self.names.flavors.intern(name);
        self.objects.flavors.ensure(id);
        id
    }

    /// The ClusterQueue that a LocalQueue points to, if both exist and the LocalQueue is not stopped.
    pub(crate) fn target_of(&self, local_queue: LocalQueueId) -> Option<QueueId> {
        let local_queue = &self.local_queues[local_queue];
        local_queue.queue.filter(|&queue| local_queue.running().is_some() && self.queues[queue].object.is_some())
    }

    /// The ClusterQueue with this name, if it exists.
    pub fn find_queue(&self, name: &str) -> Option<QueueId> {
        self.names.queues.find(name).filter(|id| self.queues[*id].object.is_some())
    }

    /// Is a gate on?
    pub fn gate(&self, gate: Gate) -> bool {
        self.config.gates.enabled(gate)
    }

    /// The labels of a namespace, if it exists.
    pub(crate) fn namespace_labels(&self, name: &str) -> Option<&Arc<StringMap>> {
        self.names.namespaces.find(name).and_then(|id| self.objects.namespaces.get(id)).and_then(Option::as_ref)
    }

    /// Records that the heap of a ClusterQueue is not empty, if a workload has entered it.
    pub(crate) fn note_waiting(&mut self, queue: QueueId) {
        let record = &mut self.queues[queue];
        if record.pending.has_active() && !std::mem::replace(&mut record.is_waiting, true) {
            self.pending.waiting.insert((self.names.queues[queue].clone(), queue));
        }
    }

    /// Records that the heap of a ClusterQueue is empty, if the last workload has left it outside of a cycle.
    pub(crate) fn note_left(&mut self, queue: QueueId) {
        let record = &mut self.queues[queue];
        if !record.pending.has_active() && std::mem::take(&mut record.is_waiting) {
            let name = &self.names.queues[queue];
            self.pending.waiting.take(|(other, _)| other.cmp(name));
        }
    }

    /// The same for all heaps that the heads of a cycle have left.
    pub(crate) fn note_all_left(&mut self) {
        let queues = &mut self.queues;
        self.pending.waiting.retain(|&(_, queue)| {
            let record = &mut queues[queue];
            record.is_waiting = record.pending.has_active();
            record.is_waiting
        });
    }

    /// Declared quotas by flavor-resource.
    pub(crate) fn read_quotas(&mut self, groups: &[Groups]) -> BTreeMap<FlavorResourceId, Quota> {
        let mut quotas = BTreeMap::new();
        for group in groups {
            for flavor in &group.flavors {
                let flavor_id = self.flavor(&flavor.name);
                for resource in &flavor.resources {
                    let resource_id = self.names.resource(&resource.name);
                    let fr = self.names.flavor_resource(flavor_id, resource_id);
                    let amount = |q: &Quantity| amount_from_quantity(&resource.name, q);
                    quotas.insert(
                        fr,
                        Quota {
                            nominal: amount(&resource.nominal_quota),
                            borrowing_limit: resource.borrowing_limit.as_ref().map(amount),
                            lending_limit: resource.lending_limit.as_ref().map(amount),
                        },
                    );
                }
            }
        }
        quotas
    }

    /// Resource groups by ids; every flavor gets a pair with every resource of its group.
    pub(crate) fn read_groups(&mut self, groups: &[Groups]) -> Vec<ResourceGroup> {
        let mut read: Vec<ResourceGroup> = groups
            .iter()
            .map(|group| {
                let covered: Vec<_> = group.covered_resources.iter().map(|r| self.names.resource(r)).collect();
                let flavors: Vec<_> = group.flavors.iter().map(|f| self.flavor(&f.name)).collect();
                let pairs = flavors.iter().flat_map(|&flavor| covered.iter().map(move |&resource| (flavor, resource)));
                let pairs = pairs.map(|(flavor, resource)| self.names.flavor_resource(flavor, resource)).collect();
                ResourceGroup { covered, flavors, pairs, repeats: false }
            })
            .collect();
        let mut n_uses: BTreeMap<FlavorId, usize> = BTreeMap::new();
        read.iter().flat_map(|group| &group.flavors).for_each(|&flavor| *n_uses.entry(flavor).or_default() += 1);
        for group in &mut read {
            group.repeats = group.flavors.iter().any(|flavor| n_uses[flavor] > 1);
        }
        read
    }
}

/// `fairSharing.weight` as a number; 1 if absent.
pub fn fair_weight(weight: Option<&Quantity>) -> f64 {
    weight.map_or(1.0, Quantity::as_f64)
}
