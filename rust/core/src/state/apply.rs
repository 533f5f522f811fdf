//! Creates, updates and deletes objects as Kueue's event handlers do in cache and queues (rules/05 §2.1, §3.1).

mod flush;
mod workload;

use std::sync::Arc;

use std::collections::BTreeSet;

use crate::base::changes::Change;
use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::{
    AdmissionCheck, ClusterQueue, Cohort, LimitRange, LocalQueue, Meta, PriorityClass, ResourceFlavor, RuntimeClass,
    StopPolicy, StringMap, Topology,
};
use crate::state::records::StaleDefaults;
use crate::state::{Objects, State};
use crate::status::admissible::is_admissible;
use crate::status::stage::Stage;
use crate::workloads::Record;

/// The label of an object that a MultiKueue manager has created here.
const MULTI_KUEUE_ORIGIN: &str = "kueue.x-k8s.io/multikueue-origin";

impl Objects {
    /// Removes a WorkloadPriorityClass; workloads keep their priority.
    pub(crate) fn remove_priority_class(&mut self, name: &str) -> bool {
        self.workload_priority_classes.remove(name).is_some()
    }

    fn note_limits(&mut self, namespace: String) {
        self.limit_summaries.remove(&namespace);
        self.stale_defaults.namespaces.insert(namespace);
    }

    pub(super) fn put_runtime_class(&mut self, class: RuntimeClass) {
        if self.runtime_classes.get(&class.meta.name) != Some(&class) {
            self.runtime_classes.insert(class.meta.name.clone(), class);
            self.stale_defaults.everywhere = true;
        }
    }
}

impl State {
    // Namespaces, flavors, checks: what ClusterQueues depend on.

    pub(super) fn put_namespace(&mut self, name: &str, labels: StringMap) {
        let id = self.names.namespaces.intern(name);
        let old = self.objects.namespaces.ensure(id).replace(Arc::new(labels));
        let new = self.objects.namespaces[id].clone();
        if new != old {
            self.touch_namespace(name);
        }
        for queue in self.existing_queues() {
            let selector = self.queues[queue].object.as_ref().and_then(|o| o.namespace_selector.clone());
            let selects = |labels: &Option<Arc<StringMap>>| {
                labels.as_ref().is_some_and(|l| crate::objects::selectors::selects(selector.as_ref(), l))
            };
            if selects(&new) && !selects(&old) {
                self.request_flush(queue);
            }
        }
    }

    /// Removes a namespace; its workloads are no longer nominated.
    pub(crate) fn remove_namespace(&mut self, name: &str) -> bool {
        let id = self.names.namespaces.find(name);
        self.touch_namespace(name);
        id.is_some_and(|id| self.objects.namespaces.ensure(id).take().is_some())
    }

    fn existing_queues(&self) -> Vec<QueueId> {
        self.queues.ids().filter(|id| self.queues[*id].object.is_some()).collect()
    }

    pub(super) fn put_flavor(&mut self, flavor: ResourceFlavor) {
        self.workloads.forget_plans();
        let id = self.flavor(&flavor.meta.name);
        let flavor = Arc::new(flavor);
        let old = self.objects.flavors[id].replace(Arc::clone(&flavor));
        if old.as_ref() != Some(&flavor) {
            self.flavor_changed(&flavor.meta.name, old.clone());
        }
        // A ClusterQueue that becomes active retries its workloads.
        let changed = old.is_some_and(|old| {
            old.node_labels != flavor.node_labels
                || old.node_taints != flavor.node_taints
                || old.tolerations != flavor.tolerations
                || old.topology_name != flavor.topology_name
        });
        for queue in self.queues_using_flavor(&flavor.meta.name) {
            let became_active = self.refresh_activeness(queue);
            if became_active || (changed && self.config.changes.has(Change::FlavorEditsRetryWorkloads)) {
                self.request_flush(queue);
            }
        }
    }

    /// Removes a flavor: the ClusterQueues that name it become inactive.
    pub fn remove_flavor(&mut self, name: &str) -> bool {
        let id = self.names.flavors.find(name);
        self.workloads.forget_plans();
        let old = id.and_then(|id| self.objects.flavors.ensure(id).take());
        let found = old.is_some();
        if found {
            self.flavor_changed(name, old);
        }
        for queue in self.queues_using_flavor(name) {
            self.refresh_activeness(queue);
        }
        found
    }

    pub(super) fn queues_using_flavor(&self, name: &str) -> Vec<QueueId> {
        let Some(flavor) = self.names.flavors.find(name) else { return Vec::new() };
        let uses = |id: &QueueId| self.queues[*id].rules.has_flavor(flavor);
        self.existing_queues().into_iter().filter(uses).collect()
    }

    pub(super) fn put_topology(&mut self, topology: Topology) {
        let (name, topology) = (topology.meta.name.clone(), Arc::new(topology));
        let old = self.objects.topologies.insert(name.clone(), Arc::clone(&topology));
        if old.as_ref() != Some(&topology) {
            self.topology_changed(&name, old);
        }
        self.refresh_all();
    }

    /// Removes a Topology.
    pub(crate) fn remove_topology(&mut self, name: &str) -> bool {
        let old = self.objects.topologies.remove(name);
        let found = old.is_some();
        if found {
            self.topology_changed(name, old);
        }
        self.refresh_all();
        found
    }

    pub(super) fn put_check(&mut self, check: AdmissionCheck) {
        let name = check.meta.name.clone();
        if self.objects.checks.get(&name) != Some(&check) {
            self.objects.checks.insert(name.clone(), check);
            self.refresh_users_of_check(&name);
        }
    }

    /// Removes an AdmissionCheck: the ClusterQueues that need it become inactive.
    pub fn remove_check(&mut self, name: &str) -> bool {
        let found = self.objects.checks.remove(name).is_some();
        self.refresh_users_of_check(name);
        found
    }

    fn refresh_users_of_check(&mut self, name: &str) {
        for queue in self.existing_queues() {
            let uses = self.queues[queue]
                .object
                .as_ref()
                .is_some_and(|o| o.admission_checks.iter().any(|rule| rule.name == name));
            if uses && self.refresh_activeness(queue) {
                self.request_flush(queue);
            }
        }
    }

    fn refresh_all(&mut self) {
        for queue in self.existing_queues() {
            if self.refresh_activeness(queue) {
                self.request_flush(queue);
            }
        }
    }

    /// A new class or a new value sets the priority of every workload that names the class, finished ones included;
    /// those of a MultiKueue manager have what that resolved (rules/11 §5).
    pub(super) fn put_priority_class(&mut self, class: PriorityClass) {
        let spares_remote = self.config.changes.has(Change::RemotePrioritiesStay);
        let users: Vec<WorkloadId> = self
            .workloads
            .iter()
            .filter(|(_, r)| {
                r.workload.priority_class.as_ref().is_some_and(|reference| {
                    reference.kind == "WorkloadPriorityClass" && reference.name == class.meta.name
                }) && r.workload.priority != Some(class.value)
                    && !(spares_remote && r.workload.meta.details.labels.contains_key(MULTI_KUEUE_ORIGIN))
            })
            .map(|(id, _)| id)
            .collect();
        let value = class.value;
        let old = self.objects.workload_priority_classes.insert(class.meta.name.clone(), class);
        if old.is_none_or(|old| old.value != value) {
            for id in users {
                let mut workload = self.workload_object(id);
                workload.priority = Some(value);
                workload.meta.generation = workload.meta.generation.saturating_add(1);
                self.apply_workload(workload);
            }
        }
    }

    pub(super) fn put_limit_range(&mut self, range: LimitRange) {
        let namespace = range.meta.namespace.clone();
        let ranges = self.objects.limit_ranges.entry(namespace.clone()).or_default();
        if ranges.get(&range.meta.name) != Some(&range) {
            let is_retried = match ranges.get(&range.meta.name) {
                Some(old) => !old.constraints().eq(range.constraints()),
                None => range.constrains(),
            };
            ranges.insert(range.meta.name.clone(), range);
            self.retry_pending_in(&namespace, is_retried);
            self.objects.note_limits(namespace);
        }
    }

    /// Removes a LimitRange.
    pub(crate) fn remove_limit_range(&mut self, namespace: &str, name: &str) -> bool {
        let old = self.objects.limit_ranges.get_mut(namespace).and_then(|ranges| ranges.remove(name));
        if let Some(old) = &old {
            self.retry_pending_in(namespace, old.constrains());
            self.objects.note_limits(namespace.to_owned());
        }
        self.adjust_pending();
        old.is_some()
    }

    /// Retries what waits in the queues of a namespace: other constraints may let a rejected workload in (rules/05
    /// §3.1).
    fn retry_pending_in(&mut self, namespace: &str, is_wanted: bool) {
        if !is_wanted || !self.config.changes.has(Change::LimitRangeEditsRetryWorkloads) {
            return;
        }
        let is_pending = |record: &Record| {
            record.workload.meta.key.namespace() == namespace && Stage::of(&record.workload) == Stage::Pending
        };
        let pending = self.workloads.iter().filter(|(_, record)| is_pending(record));
        let queues: BTreeSet<QueueId> = pending.filter_map(|(id, _)| self.queue_of(id)).collect();
        queues.into_iter().for_each(|queue| self.request_flush(queue));
    }

    /// Removes a RuntimeClass.
    pub(crate) fn remove_runtime_class(&mut self, name: &str) -> bool {
        let found = self.objects.runtime_classes.remove(name).is_some();
        self.objects.stale_defaults.everywhere |= found;
        self.adjust_pending();
        found
    }

    /// Recomputes the defaults from LimitRanges and RuntimeClasses for workloads without a reservation.
    pub(super) fn adjust_pending(&mut self) {
        let StaleDefaults { everywhere, namespaces } = std::mem::take(&mut self.objects.stale_defaults);
        if !everywhere && namespaces.is_empty() {
            return;
        }
        self.workloads.forget_specs();
        let pending: Vec<WorkloadId> = self
            .workloads
            .iter()
            .filter(|(_, r)| everywhere || namespaces.contains(r.workload.meta.key.namespace()))
            .filter(|(_, r)| Stage::of(&r.workload) == Stage::Pending)
            .map(|(id, _)| id)
            .collect();
        for id in pending {
            let workload = self.workload_object(id);
            self.apply_workload(workload);
        }
    }

    /// Does so for one workload that is pending again: LimitRanges may have changed while it held quota.
    pub(crate) fn adjust_again(&mut self, id: WorkloadId) {
        let record = self.workloads.get(id);
        let namespace = record.workload.meta.key.namespace().to_owned();
        let spec = self.share_spec(&namespace, record.spec.original.clone());
        self.workloads.get_mut(id).spec = spec;
    }

    // Cohorts, ClusterQueues and LocalQueues.

    pub(super) fn apply_cohort(&mut self, cohort: Cohort) {
        let id = self.cohort(&cohort.meta.name);
        let entry = &self.cohorts[id];
        let is_same =
            entry.object.as_deref().is_some_and(|old| Cohort { meta: cohort.meta.clone(), ..old.clone() } == cohort);
        // Kueue ignores an unchanged Cohort, except one on a cycle of cohorts: it is retried until the cycle is broken.
        if is_same && entry.node.is_some_and(|node| !self.ledger.forest.has_cycle(node)) {
            self.cohorts[id].object = Some(Arc::new(cohort));
            return;
        }
        // Kueue only logs a cycle of cohorts; the tree is not scheduled until the cycle is broken.
        let result = self.put_cohort(cohort);
        if let Ok(id) = result {
            let node = self.cohorts[id].node.expect("it was just stored");
            self.request_flush_of_tree(node);
        }
    }

    pub(super) fn apply_cluster_queue(&mut self, object: ClusterQueue) {
        let name = object.meta.name.clone();
        let id = self.queue(&name);
        let is_new = self.queues[id].object.is_none();
        let changed = self.queues[id].object.as_deref().is_none_or(|old| !same_spec(old, &object));
        self.queues[id].pending.strategy = object.queueing_strategy;
        if is_new {
            // Kueue does not update this later.
            self.queues[id].pending.is_usage_based =
                object.usage_based_admission && self.admission_fair_sharing().is_some();
        }
        // Despite a cycle of cohorts the object is stored; it takes effect once the cycle is broken.
        let deleting = object.meta.deleting;
        let was_terminating = self.queues[id].terminating;
        if changed && let Some(node) = self.queues[id].node {
            self.touch_tree(node);
        }
        let _ = self.put_cluster_queue(object);
        if changed {
            self.touch_statuses_of(id);
            self.queues[id].node.into_iter().for_each(|node| self.touch_tree(node));
        }
        if deleting {
            self.terminate_cluster_queue(id);
        }
        if is_new {
            for queue in self.queues[id].local_queues.clone() {
                self.queue_workloads_of(queue);
            }
        }
        if is_new || changed || self.queues[id].terminating != was_terminating {
            self.touch_cluster_queue(id);
        }
        if is_new || changed {
            self.request_flush(id);
        }
    }

    /// Deletes a ClusterQueue; its pending workloads wait until one with that name exists.
    pub fn delete_cluster_queue(&mut self, name: &str) -> bool {
        let Some(id) = self.find_queue(name) else { return false };
        self.remove_cluster_queue(id);
        self.touch_cluster_queue(id);
        let pending = std::mem::take(&mut self.queues[id].pending);
        for workload in pending.active().chain(pending.inadmissible()).chain(pending.inflight()) {
            self.set_queued_in(workload, None);
            self.pending.places.clear(workload);
        }
        self.note_left(id);
        true
    }

    /// Deletes a Cohort object.
    pub fn delete_cohort(&mut self, name: &str) -> bool {
        let Some(id) = self.names.cohorts.find(name).filter(|id| self.cohorts[*id].object.is_some()) else {
            return false;
        };
        self.remove_cohort(id);
        true
    }

    pub(super) fn apply_local_queue(&mut self, object: LocalQueue) {
        let id = self.local_queue(&object.meta.namespace, &object.meta.name);
        let old = self.local_queues[id].object.clone();
        let changed = old.as_deref().is_none_or(|old| !same_local_queue(old, &object));
        // Kueue looks at its workloads again for this alone: those with quota stay if it moves to a stopped ClusterQueue.
        let concerns_workloads =
            object.meta.deleting || old.as_ref().is_none_or(|it| it.stop_policy != object.stop_policy);
        let queue = self.queue(&object.cluster_queue);
        if let Some(old) = &old {
            let leaves = old.cluster_queue != object.cluster_queue;
            let stops = object.stop_policy != StopPolicy::None;
            if leaves || stops {
                self.unqueue_workloads_of(id);
            }
            if stops {
                self.forget_progress_of(id);
            }
            if leaves && let Some(old_queue) = self.local_queues[id].queue {
                self.queues[old_queue].local_queues.remove(&id);
            }
        }
        self.queues[queue].local_queues.insert(id);
        self.local_queues[id].queue = Some(queue);
        let runs = object.stop_policy == StopPolicy::None;
        let ran =
            old.is_some_and(|old| old.stop_policy == StopPolicy::None && old.cluster_queue == object.cluster_queue);
        let has_history = object.consumed_resources.is_some();
        self.local_queues[id].object = Some(Arc::new(object));
        if has_history {
            self.open_account(id, self.now);
        }
        if changed {
            self.feeds.changed_queues.touch_local_queue(id);
        }
        if changed && concerns_workloads {
            self.touch_local_queue(id);
        }
        if runs && !ran {
            self.queue_workloads_of(id);
        }
    }

    /// Deletes a LocalQueue: its pending workloads leave their queue.
    pub(crate) fn delete_local_queue(&mut self, namespace: &str, name: &str) -> bool {
        let known = self.names.find_local_queue(namespace, name);
        let Some(id) = known.filter(|id| self.local_queues[*id].object.is_some()) else {
            return false;
        };
        self.unqueue_workloads_of(id);
        self.forget_progress_of(id);
        self.touch_local_queue(id);
        self.local_queues[id].object = None;
        self.local_queues[id].account = None;
        if let Some(queue) = self.local_queues[id].queue.take() {
            self.queues[queue].local_queues.remove(&id);
        }
        true
    }

    fn queue_workloads_of(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.clone().iter() {
            self.assign_queue(workload);
            if is_admissible(&self.workloads.get(workload).workload, self.config.gates)
                && !self.is_left_to_variants(workload)
                && !self.is_refused(workload)
                && let Some(queue) = self.queue_of(workload)
            {
                let item = self.item(workload);
                self.queues[queue].pending.push_if_absent(&mut self.pending.places, &item);
                self.set_queued_in(workload, Some(queue));
                self.note_waiting(queue);
            }
        }
    }

    fn unqueue_workloads_of(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.clone().iter() {
            self.unqueue(workload);
        }
    }

    /// Kueue treats a stopped LocalQueue as deleted: later its workloads start again with the first flavor.
    fn forget_progress_of(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.clone().iter() {
            self.workloads.get_mut(workload).resume = None;
        }
    }

    /// The ClusterQueue in which a workload would wait.
    pub(crate) fn queue_of(&self, workload: WorkloadId) -> Option<QueueId> {
        self.target_of(self.workloads.row(workload).local_queue)
    }
}

/// Are two versions of a ClusterQueue equal, except for metadata?
pub(super) fn same_spec(a: &ClusterQueue, b: &ClusterQueue) -> bool {
    ClusterQueue { meta: b.meta.clone(), ..a.clone() } == *b
}

/// The same for a LocalQueue, except for its usage.
fn same_local_queue(a: &LocalQueue, b: &LocalQueue) -> bool {
    let meta = Meta { deleting: a.meta.deleting, ..b.meta.clone() };
    LocalQueue { meta, consumed_resources: b.consumed_resources.clone(), ..a.clone() } == *b
}
