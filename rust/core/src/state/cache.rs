//! Quota: ClusterQueues and Cohorts in the forest, and the workloads charged to them (rules/02 §4, §5).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::assign::{Fungibility, QueueRules, Usage};
use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{CohortId, QueueId, WorkloadId};
use crate::base::names::Names;
use crate::base::sorted::Sorted;
use crate::objects::conditions::{PODS_READY, is_true};
use crate::objects::variants::is_variant;
use crate::objects::{ClusterQueue, Cohort};
use crate::pods::totals::{self, Totals, intern_totals};
use crate::quota::forest::{NodeId, NodeKind};
use crate::state::records::Owner;
use crate::state::{State, fair_weight};
use crate::status::activeness::{self, Lookup};
use crate::status::stage::{Stage, has_active_quota_reservation, is_admitted};
use crate::workloads::Record;
use crate::workloads::assigned::{Assigned, Charged, charged_usage};
use crate::workloads::charge::{CandidateKey, Charge};
use crate::workloads::row::WorkloadRow;

/// The new ancestry has a cycle; edge and quota are stored, the tree is not recomputed. Kueue logs it and goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cohort has a cycle")]
pub struct CohortHasCycle;

impl State {
    /// The node of a cohort name, created if it is only referenced (rules/02 §4 rule 1).
    fn cohort_node(&mut self, id: CohortId) -> NodeId {
        if let Some(node) = self.cohorts[id].node {
            return node;
        }
        let node = self.ledger.forest.add_node(NodeKind::Cohort);
        self.cohorts[id].node = Some(node);
        *self.ledger.owners.ensure(node) = Some(Owner::Cohort(id));
        node
    }

    /// Drops an implicit cohort without children (rules/02 §4 rule 2).
    fn drop_if_deserted(&mut self, node: NodeId) {
        let Some(Owner::Cohort(id)) = self.ledger.owner(node) else { return };
        if self.cohorts[id].object.is_none() && !self.ledger.forest.has_children(node) {
            self.cohorts[id].node = None;
            self.ledger.owners[node] = None;
            self.ledger.forest.remove_node(node);
        }
    }

    /// Moves a node below the cohort `name` (none if empty). Returns the old parent, if it is another one or existed
    /// only for this node.
    fn move_below(&mut self, node: NodeId, name: &str) -> (Option<NodeId>, bool) {
        let old = self.ledger.forest.parent(node);
        let new = if name.is_empty() {
            None
        } else {
            let id = self.cohort(name);
            Some(self.cohort_node(id))
        };
        // Kueue detaches first, so an implicit cohort whose only child this is gets dropped and created again.
        let implicit =
            |n: NodeId| matches!(self.ledger.owner(n), Some(Owner::Cohort(id)) if self.cohorts[id].object.is_none());
        let only_child = |n: NodeId| {
            self.ledger.forest.child_queues(n).chain(self.ledger.forest.child_cohorts(n)).all(|child| child == node)
        };
        let renewed = old.is_some() && old == new && old.is_some_and(|n| implicit(n) && only_child(n));
        self.ledger.forest.set_parent(node, new, &self.names);
        (old.filter(|_| old != new), old != new || renewed)
    }

    /// Creates or changes a ClusterQueue (rules/02 §4). Loads its reserving workloads if it is new.
    ///
    /// # Errors
    /// [`CohortHasCycle`]: the quota is stored, the other settings are not applied.
    pub fn put_cluster_queue(&mut self, object: ClusterQueue) -> Result<QueueId, CohortHasCycle> {
        let id = self.queue(&object.meta.name);
        let object = Arc::new(object);
        let is_new = self.queues[id].node.is_none();
        let node = match self.queues[id].node {
            Some(node) => node,
            None => {
                let node = self.ledger.forest.add_node(NodeKind::Queue);
                self.ledger.forest.set_weight(node, 0.0);
                *self.ledger.owners.ensure(node) = Some(Owner::Queue(id));
                node
            }
        };
        self.queues[id].node = Some(node);
        self.queues[id].object = Some(Arc::clone(&object));
        let (left, moved) = self.move_below(node, &object.cohort_name);
        let quotas = self.read_quotas(&object.resource_groups);
        let groups = self.read_groups(&object.resource_groups);
        let changed = self.ledger.forest.generation(node) == 0
            || *self.ledger.forest.quotas(node) != quotas
            || self.queues[id].rules.groups != groups;
        self.ledger.forest.set_quotas(node, quotas);
        let rules = QueueRules { groups, ..QueueRules::clone(&self.queues[id].rules) };
        self.set_rules(id, rules);
        if changed || moved {
            if let Some(left) = left {
                self.ledger.forest.recompute(left);
            }
            if self.ledger.forest.has_cycle(node) {
                if let Some(left) = left {
                    self.drop_if_deserted(left);
                }
                self.ledger.forest.recompute(node);
                self.refresh_activeness(id);
                return Err(CohortHasCycle);
            }
            self.ledger.forest.recompute(node);
        }
        if let Some(left) = left {
            self.drop_if_deserted(left);
        }
        let fungibility = Fungibility::new(object.flavor_fungibility, &self.config);
        let preemption = object.preemption.clone();
        let groups = self.queues[id].rules.groups.clone();
        self.set_rules(id, QueueRules { groups, fungibility, preemption });
        self.ledger.forest.set_weight(node, fair_weight(object.fair_weight.as_ref()));
        self.queues[id].settled = Some(object);
        self.refresh_activeness(id);
        if is_new {
            for workload in std::mem::take(&mut self.queues[id].uncounted).iter() {
                let record = self.workloads.find_by_id(workload);
                let admission = record.and_then(|record| record.workload.status.admission.as_ref());
                if admission.is_some_and(|admission| admission.cluster_queue == self.names.queues[id]) {
                    self.put_cached(workload);
                }
            }
        }
        Ok(id)
    }

    fn set_rules(&mut self, id: QueueId, rules: QueueRules) {
        let (rules, rules_id) = self.objects.rules.share(rules);
        let queue = &mut self.queues[id];
        (queue.rules, queue.rules_id) = (rules, rules_id);
    }

    /// Removes a ClusterQueue; its workloads keep their admission.
    pub(crate) fn remove_cluster_queue(&mut self, id: QueueId) {
        let Some(node) = self.queues[id].node else { return };
        self.touch_tree(node);
        self.touch_statuses_of(id);
        let record = &mut self.queues[id];
        record.node = None;
        record.object = None;
        record.settled = None;
        record.activeness = None;
        record.terminating = false;
        let mut gone = Vec::new();
        for workload in std::mem::take(&mut record.candidates).workloads() {
            self.pending.unready.remove(&workload);
            self.pending.experiments.end_turn(workload, self.config.experiments);
            let charge = self.workloads.get_mut(workload).charge.take();
            if let Some(charge) = &charge {
                self.feeds.charges.note(workload, id, &charge.usage, false);
            }
            gone.extend(charge.map(|charge| Arc::clone(&charge.stands)));
            record.uncounted.insert(workload);
        }
        record.n_reserving = 0;
        record.n_admitted = 0;
        record.admitted_usage = Usage::default();
        record.usage_of = Sorted::default();
        for stands in gone {
            self.charge_stands(&stands, false);
        }
        self.set_rules(id, QueueRules::default());
        self.ledger.owners[node] = None;
        let parent = self.ledger.forest.parent(node);
        self.ledger.forest.remove_node(node);
        if let Some(parent) = parent {
            self.ledger.forest.recompute(parent);
            self.drop_if_deserted(parent);
        }
    }

    /// Creates or changes a Cohort (rules/02 §4).
    ///
    /// # Errors
    /// [`CohortHasCycle`]: edge and quota are stored, its tree is not recomputed.
    pub fn put_cohort(&mut self, object: Cohort) -> Result<CohortId, CohortHasCycle> {
        let id = self.cohort(&object.meta.name);
        let node = self.cohort_node(id);
        let object = Arc::new(object);
        self.cohorts[id].object = Some(Arc::clone(&object));
        let was_cyclic = self.ledger.forest.has_cycle(node);
        self.touch_tree(node);
        let (left, _) = self.move_below(node, &object.parent_name);
        self.touch_tree(node);
        self.ledger.forest.set_weight(node, fair_weight(object.fair_weight.as_ref()));
        let quotas = self.read_quotas(&object.resource_groups);
        self.ledger.forest.set_quotas(node, quotas);
        if let Some(left) = left {
            self.ledger.forest.recompute(left);
            self.drop_if_deserted(left);
        }
        let cyclic = self.ledger.forest.has_cycle(node);
        self.ledger.forest.recompute(node);
        if cyclic != was_cyclic {
            self.refresh_tree_activeness(node);
        }
        if cyclic {
            return Err(CohortHasCycle);
        }
        // Kueue recomputes the tree twice, and each time is a generation of its ClusterQueues (rules/02 §4.1).
        self.ledger.forest.recompute(node);
        Ok(id)
    }

    /// Deletes a Cohort object; one with children remains as an implicit root (rules/02 §4 rule 2).
    pub(crate) fn remove_cohort(&mut self, id: CohortId) {
        let Some(node) = self.cohorts[id].node else { return };
        if self.cohorts[id].object.take().is_none() {
            return;
        }
        let parent = self.ledger.forest.parent(node);
        let was_cyclic = self.ledger.forest.has_cycle(node);
        self.touch_tree(node);
        self.ledger.forest.set_parent(node, None, &self.names);
        self.ledger.forest.set_quotas(node, BTreeMap::new());
        self.ledger.forest.set_weight(node, 0.0);
        if self.ledger.forest.has_children(node) {
            self.ledger.forest.recompute(node);
        }
        if let Some(parent) = parent {
            self.ledger.forest.recompute(parent);
            if was_cyclic {
                self.refresh_tree_activeness(parent);
            }
            self.drop_if_deserted(parent);
        }
        if was_cyclic {
            self.refresh_tree_activeness(node);
        }
        self.drop_if_deserted(node);
    }

    /// Begins the deletion of a ClusterQueue: it admits nothing more (rules/02 §5).
    pub fn terminate_cluster_queue(&mut self, id: QueueId) {
        if self.queues[id].node.is_some() {
            self.queues[id].terminating = true;
            self.refresh_activeness(id);
        }
    }

    /// Recomputes whether a ClusterQueue may admit. Returns whether it has become active.
    pub(crate) fn refresh_activeness(&mut self, id: QueueId) -> bool {
        let record = &self.queues[id];
        let (Some(object), Some(node)) = (&record.settled, record.node) else { return false };
        let flavor = |name: &str| self.names.flavors.find(name).and_then(|id| self.objects.flavors[id].as_deref());
        let check = |name: &str| self.objects.checks.get(name);
        let has_topology = |name: &str| self.objects.levels(name).is_some();
        let is_cyclic = self.ledger.forest.has_cycle(node);
        let cohort = record.object.as_deref().map(|object| object.cohort_name.as_str());
        let cyclic_cohort = cohort.filter(|_| is_cyclic && self.config.changes.has(Change::CohortCycleIsShown));
        let lookup = Lookup { flavor: &flavor, check: &check, has_topology: &has_topology, cyclic_cohort };
        let activeness = activeness::activeness(object, record.terminating, &lookup, self.config.gates);
        let was_active = record.is_active();
        let is_active = activeness.is_active();
        let in_snapshot = is_active && !is_cyclic;
        self.ledger.forest.set_active(node, in_snapshot);
        let old = self.queues[id].activeness.replace(activeness);
        if old != self.queues[id].activeness {
            self.feeds.changed_queues.touch_queue(id);
        }
        if is_active != was_active {
            self.touch_cluster_queue(id);
            self.touch_statuses_of(id);
        }
        is_active && !was_active
    }

    /// After a change of edges: nodes below a cycle take no part in scheduling (rules/02 §4 rule 6).
    fn refresh_tree_activeness(&mut self, node: NodeId) {
        let below: Vec<NodeId> = self.ledger.forest.queues_below(node);
        for queue in below {
            if let Some(Owner::Queue(id)) = self.ledger.owner(queue) {
                self.refresh_activeness(id);
            }
        }
    }

    /// The ClusterQueue, existing or not, whose quota the workload's status claims.
    fn reserved_in(&mut self, id: WorkloadId) -> Option<QueueId> {
        let workload = &self.workloads.get(id).workload;
        let admission = workload.status.admission.as_ref().filter(|_| has_active_quota_reservation(workload))?;
        let name = admission.cluster_queue.clone();
        Some(self.queue(&name))
    }

    /// Do the workloads of a ClusterQueue have variants?
    pub(crate) fn has_variants(&self, queue: QueueId) -> bool {
        let object = self.queues[queue].object.as_ref().filter(|_| self.gate(Gate::ConcurrentAdmission));
        object.is_some_and(|object| !object.concurrent_admission_policy.is_empty())
    }

    /// Do admissions wait until the pods of this workload are ready, once it has quota?
    pub(crate) fn blocks_admission(&self, id: WorkloadId) -> bool {
        self.config.wait_for_pods_ready.as_ref().is_some_and(|config| config.block_admission)
            && !is_true(&self.workloads.get(id).workload.status.conditions, PODS_READY)
    }

    /// Charges a workload's reservation, or releases it, as its status now says (rules/01 §7.4).
    pub fn put_cached(&mut self, workload: WorkloadId) {
        self.put_cached_as(workload, None);
    }

    /// The same if it is known what the admission says of this ClusterQueue.
    pub(crate) fn put_cached_as(&mut self, workload: WorkloadId, reserved: Option<(QueueId, Assigned)>) {
        self.note_placed(workload);
        let (known, assigned) = reserved.unzip();
        // A workload deactivated while a cycle waited holds nothing, whatever the cycle wrote.
        let holds = has_active_quota_reservation(&self.workloads.get(workload).workload);
        let Some(queue) = known.filter(|_| holds).or_else(|| self.reserved_in(workload)) else {
            self.uncache(workload);
            return;
        };
        if self.queues[queue].object.is_none() {
            // It stays counted where it was (rules/02 §4.1).
            self.queues[queue].uncounted.insert(workload);
            return;
        }
        self.uncache(workload);
        if self.has_variants(queue) && !is_variant(&self.workloads.get(workload).workload) {
            self.queues[queue].uncounted.insert(workload);
            return;
        }
        let record = self.workloads.get(workload);
        // While a cycle waited, the pod sets may have changed, and with them what the admission charges (rules/07 §6).
        let holds = |it: &Assigned| {
            it.pod_sets == record.spec.original && record.workload.status.rare.reclaimable_pods.is_empty()
        };
        let (totals, usage) = match assigned.filter(holds) {
            Some(Assigned { totals, charged, .. }) => {
                debug_assert_eq!(totals, self.reserved_totals(workload));
                (totals, charged)
            }
            None => {
                let totals = self.reserved_totals(workload);
                let charged = charged_usage(&mut self.names, &totals);
                (totals, charged)
            }
        };
        let record = self.workloads.get_mut(workload);
        record.totals = totals;
        let admitted = is_admitted(&record.workload);
        let node = self.queues[queue].node.expect("a ClusterQueue with an object has a node");
        self.ledger.forest.charge(node, &usage, true, &self.names);
        let local_queue = record.row.local_queue;
        let uses = uses(&mut self.names, &self.workloads.get(workload).totals, &usage);
        let key = self.candidate_key(workload, uses);
        self.queues[queue].candidates.insert(&self.names, &key);
        let stands = self.stands_of(workload);
        self.charge_stands(&stands, true);
        let charge = Charge { queue, usage, admitted, local_queue, candidate: key, stands };
        self.feeds.charges.note(workload, queue, &charge.usage, true);
        self.queues[queue].count_charge(&charge, true);
        self.feeds.changed_queues.touch_queue(queue);
        self.feeds.changed_queues.touch_local_queue(local_queue);
        self.workloads.get_mut(workload).charge = Some(Arc::new(charge));
        self.note_turn(workload);
        if self.blocks_admission(workload) {
            self.pending.unready.insert(workload);
        }
    }

    /// Cycles see their own writes as updates: a workload with quota is removed and added again, which counts as a
    /// generation (rules/02 §4.1).
    pub(crate) fn deliver_writes(&mut self) {
        for workload in std::mem::take(&mut self.ledger.undelivered) {
            if let Some(node) = self.workloads.get(workload).cached_in().and_then(|queue| self.queues[queue].node) {
                self.ledger.forest.bump_generation(node);
            }
        }
    }

    /// Controllers see the writes of a cycle, too: they queue a head again that waits, which loses its progress
    /// (rules/05 §2.1).
    pub(crate) fn requeue_written(&mut self) {
        if self.gate(Gate::FlavorFungibilityPreserveScanProgress) {
            return;
        }
        for &workload in &self.ledger.undelivered {
            if self.workloads.get(workload).row.stage == Stage::Pending {
                self.workloads.get_mut(workload).resume = None;
            }
        }
    }

    /// Records a workload whose rolled-back reservation is charged once its ClusterQueue exists.
    pub(crate) fn note_uncounted(&mut self, id: WorkloadId) {
        if let Some(queue) = self.reserved_in(id) {
            self.queues[queue].uncounted.insert(id);
        }
    }

    /// Releases a workload's charge, which counts as a generation (rules/02 §4.1).
    pub fn uncache(&mut self, workload: WorkloadId) {
        self.note_placed(workload);
        let Some(charge) = self.workloads.get_mut(workload).charge.take() else { return };
        self.pending.unready.remove(&workload);
        self.pending.experiments.end_turn(workload, self.config.experiments);
        let queue = charge.queue;
        self.queues[queue].candidates.remove(&self.names, &charge.candidate);
        let node = self.queues[queue].node.expect("a ClusterQueue with workloads has a node");
        self.ledger.forest.charge(node, &charge.usage, false, &self.names);
        self.ledger.forest.bump_generation(node);
        self.feeds.charges.note(workload, queue, &charge.usage, false);
        self.queues[queue].count_charge(&charge, false);
        self.charge_stands(&charge.stands, false);
        self.feeds.changed_queues.touch_queue(queue);
        self.feeds.changed_queues.touch_local_queue(charge.local_queue);
    }

    /// Re-sorts a reserving workload among the candidates after its conditions changed.
    pub(crate) fn rank_candidate(&mut self, workload: WorkloadId) {
        let Some(charge) = self.workloads.get(workload).charge.clone() else { return };
        let queue = charge.queue;
        let candidate = self.candidate_key(workload, Arc::clone(&charge.candidate.uses));
        let record = &mut self.queues[queue];
        record.candidates.rank(&self.names, &charge.candidate, &candidate);
        self.workloads.get_mut(workload).charge = Some(Arc::new(Charge { candidate, ..Charge::clone(&charge) }));
        self.note_turn(workload);
        if let Some(node) = self.queues[queue].node {
            self.ledger.forest.note_change(node);
        }
    }

    /// The sort key of a reserving workload among the candidates for preemption (rules/04 §3).
    fn candidate_key(&self, id: WorkloadId, uses: Charged) -> CandidateKey {
        let record = self.workloads.get(id);
        let WorkloadRow { is_evicted, priority, reserved, uid_prefix, time, .. } = record.row;
        CandidateKey {
            not_evicted: !is_evicted,
            priority,
            reserved: Reverse(reserved),
            uid_prefix,
            key: record.key().clone(),
            id,
            queue_time: time,
            uses,
        }
    }

    /// Do the workload's own requests count its pods, because its ClusterQueue has quota for them?
    pub(crate) fn counts_pods(&self, workload: WorkloadId) -> bool {
        !self.config.changes.has(Change::PodsAreNotInTotals)
            && self
                .names
                .pods()
                .zip(self.queue_of(workload))
                .is_some_and(|(pods, queue)| self.queues[queue].rules.group_of(pods).is_some())
    }

    /// The totals of a reserved workload, from its admission.
    pub fn reserved_totals(&mut self, workload: WorkloadId) -> Arc<[Totals]> {
        let reclaimable = self.gate(Gate::ReclaimablePods);
        let State { workloads, names, config, .. } = self;
        let Record { spec, workload, .. } = workloads.get(workload);
        let status = &workload.status;
        let Some(admission) = &status.admission else {
            let totals = totals::pending_totals(&spec.adjusted, status, config, reclaimable, None);
            return intern_totals(names, &totals);
        };
        totals::reserved_totals(names, &spec.adjusted, status, admission, reclaimable)
    }
}

/// The charge, limited to what was assigned: only those workloads are candidates for it (rules/04 §2).
fn uses(names: &mut Names, totals: &[Totals], charged: &Charged) -> Charged {
    let mut uses = Cow::Borrowed(&charged[..]);
    for &(resource, flavor) in totals.iter().flat_map(|totals| &totals.flavors) {
        let fr = names.flavor_resource(flavor, resource);
        if !uses.iter().any(|(known, _)| *known == fr) {
            uses.to_mut().push((fr, Amount::ZERO));
        }
    }
    match uses {
        Cow::Borrowed(_) => Arc::clone(charged),
        Cow::Owned(uses) => uses.into(),
    }
}
