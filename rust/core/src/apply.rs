//! Objects come, change and go: what Kueue's event handlers do to cache and queues (rules/05 §2.1, §3.1).

use std::sync::Arc;

use crate::assign::requests_topology;
use crate::conditions::{self, find};
use crate::devices::Devices;
use crate::gates::{Gate, Gates};
use crate::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::{
    Admission, AdmissionCheck, ClusterQueue, Cohort, LimitRange, LocalQueue, Object, PodSet, PriorityClass,
    ResourceFlavor, RuntimeClass, StopPolicy, StringMap, Time, Topology, Workload,
};
use crate::pending::{Item, RequeueReason};
use crate::pods;
use crate::queue_order::{
    backoff_expired, effective_priority, has_quota_reservation, is_active, is_admissible, is_admitted, is_finished,
    is_on_hold, queue_order_timestamp,
};
use crate::slices;
use crate::state::{FlushRequest, Owner, QueueRecord, State};
use crate::totals;
use crate::variants::is_parent;
use crate::workloads::{Prepared, Record, Spec, intern_totals};

/// Where a workload stands, as its status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No reservation.
    Pending,
    /// Quota is reserved.
    QuotaReserved,
    /// All checks are ready, too.
    Admitted,
    /// Finished.
    Finished,
}

impl Stage {
    /// The stage of a workload.
    pub fn of(workload: &Workload) -> Self {
        if is_finished(workload) {
            Stage::Finished
        } else if is_admitted(workload) {
            Stage::Admitted
        } else if has_quota_reservation(workload) {
            Stage::QuotaReserved
        } else {
            Stage::Pending
        }
    }

    fn holds_quota(self) -> bool {
        matches!(self, Stage::QuotaReserved | Stage::Admitted)
    }
}

/// Annotation that limits a variant to some flavors (concurrent admission).
pub const ALLOWED_FLAVORS: &str = "kueue.x-k8s.io/workload-allowed-resource-flavors";

impl State {
    /// Applies one object: creates it or takes over its newer version.
    pub fn apply(&mut self, object: Object) {
        match object {
            Object::Namespace(meta) => self.put_namespace(&meta.name, meta.labels),
            Object::ResourceFlavor(flavor) => self.put_flavor(flavor),
            Object::Topology(topology) => self.put_topology(topology),
            Object::Cohort(cohort) => self.apply_cohort(cohort),
            Object::ClusterQueue(queue) => self.apply_cluster_queue(queue),
            Object::LocalQueue(queue) => self.apply_local_queue(queue),
            Object::AdmissionCheck(check) => self.put_check(check),
            Object::WorkloadPriorityClass(class) => self.put_priority_class(class),
            Object::LimitRange(range) => self.put_limit_range(range),
            Object::RuntimeClass(class) => self.put_runtime_class(class),
            Object::ResourceClaimTemplate(template) => self.put_claim_template(template),
            Object::DeviceClass(class) => self.put_device_class(class),
            Object::Workload(workload) => {
                self.apply_workload(*workload);
            }
            Object::PriorityClass(_) | Object::Other { .. } => {}
        }
    }

    // Namespaces, flavors, checks: what ClusterQueues depend on.

    fn put_namespace(&mut self, name: &str, labels: StringMap) {
        let id = self.names.namespaces.intern(name);
        let old = self.namespaces.ensure(id).replace(Arc::new(labels));
        let new = self.namespaces[id].clone();
        if new != old {
            self.touch_namespace(name);
        }
        for queue in self.existing_queues() {
            let selector = self.queues[queue].object.as_ref().and_then(|o| o.namespace_selector.clone());
            let selects = |labels: &Option<Arc<StringMap>>| {
                labels.as_ref().is_some_and(|l| crate::selectors::selects(selector.as_ref(), l))
            };
            if selects(&new) && !selects(&old) {
                self.request_flush(queue);
            }
        }
    }

    /// Removes a namespace; its workloads are no longer nominated.
    pub fn remove_namespace(&mut self, name: &str) -> bool {
        let id = self.names.namespaces.find(name);
        self.touch_namespace(name);
        id.is_some_and(|id| self.namespaces.ensure(id).take().is_some())
    }

    fn existing_queues(&self) -> Vec<QueueId> {
        self.queues.ids().filter(|id| self.queues[*id].object.is_some()).collect()
    }

    fn put_flavor(&mut self, flavor: ResourceFlavor) {
        let id = self.flavor(&flavor.meta.name);
        let flavor = Arc::new(flavor);
        let old = self.flavors[id].replace(Arc::clone(&flavor));
        let changed = old.is_none_or(|old| {
            old.node_labels != flavor.node_labels
                || old.node_taints != flavor.node_taints
                || old.tolerations != flavor.tolerations
                || old.topology_name != flavor.topology_name
        });
        for queue in self.queues_using_flavor(&flavor.meta.name) {
            let became_active = self.refresh_activeness(queue);
            if became_active || changed {
                self.request_flush(queue);
            }
        }
    }

    /// Removes a flavor: the ClusterQueues that name it become inactive.
    pub fn remove_flavor(&mut self, name: &str) -> bool {
        let id = self.names.flavors.find(name);
        let found = id.is_some_and(|id| self.flavors.ensure(id).take().is_some());
        for queue in self.queues_using_flavor(name) {
            self.refresh_activeness(queue);
        }
        found
    }

    fn queues_using_flavor(&self, name: &str) -> Vec<QueueId> {
        let Some(flavor) = self.names.flavors.find(name) else { return Vec::new() };
        let uses = |id: &QueueId| self.queues[*id].rules.groups.iter().any(|g| g.flavors.contains(&flavor));
        self.existing_queues().into_iter().filter(uses).collect()
    }

    fn put_topology(&mut self, topology: Topology) {
        self.topologies.insert(topology.meta.name.clone(), topology);
        self.refresh_all();
    }

    /// Removes a Topology.
    pub fn remove_topology(&mut self, name: &str) -> bool {
        let found = self.topologies.remove(name).is_some();
        self.refresh_all();
        found
    }

    fn put_check(&mut self, check: AdmissionCheck) {
        let name = check.meta.name.clone();
        self.checks.insert(name.clone(), check);
        self.refresh_users_of_check(&name);
    }

    /// Removes an AdmissionCheck: the ClusterQueues that need it become inactive.
    pub fn remove_check(&mut self, name: &str) -> bool {
        let found = self.checks.remove(name).is_some();
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

    /// A new class, or a new value of one, changes the priority of every workload that names it (rules/11 §5).
    fn put_priority_class(&mut self, class: PriorityClass) {
        let users: Vec<WorkloadId> = self
            .workloads
            .iter()
            .filter(|(_, r)| {
                r.workload.priority_class.as_ref().is_some_and(|reference| {
                    reference.kind == "WorkloadPriorityClass" && reference.name == class.meta.name
                }) && r.workload.priority != Some(class.value)
                    && !is_finished(&r.workload)
            })
            .map(|(id, _)| id)
            .collect();
        let value = class.value;
        let old = self.workload_priority_classes.insert(class.meta.name.clone(), class);
        if old.is_none_or(|old| old.value != value) {
            for id in users {
                let mut workload = self.workload_object(id);
                workload.priority = Some(value);
                let meta = workload.meta_mut();
                meta.generation = meta.generation.saturating_add(1);
                self.apply_workload(workload);
            }
        }
    }

    /// Removes a WorkloadPriorityClass; workloads keep the priority that they have.
    pub fn remove_priority_class(&mut self, name: &str) -> bool {
        self.workload_priority_classes.remove(name).is_some()
    }

    fn put_limit_range(&mut self, range: LimitRange) {
        let namespace = range.meta.namespace.clone();
        self.limit_ranges.entry(namespace.clone()).or_default().insert(range.meta.name.clone(), range);
        self.adjust_pending_again(Some(&namespace));
    }

    /// Removes a LimitRange.
    pub fn remove_limit_range(&mut self, namespace: &str, name: &str) -> bool {
        let found = self.limit_ranges.get_mut(namespace).is_some_and(|ranges| ranges.remove(name).is_some());
        self.adjust_pending_again(Some(namespace));
        found
    }

    fn put_runtime_class(&mut self, class: RuntimeClass) {
        self.runtime_classes.insert(class.meta.name.clone(), class);
        self.adjust_pending_again(None);
    }

    /// Removes a RuntimeClass.
    pub fn remove_runtime_class(&mut self, name: &str) -> bool {
        let found = self.runtime_classes.remove(name).is_some();
        self.adjust_pending_again(None);
        found
    }

    /// What LimitRanges and RuntimeClasses fill in is worked out again for workloads that are not reserved yet.
    fn adjust_pending_again(&mut self, namespace: Option<&str>) {
        self.workloads.forget_specs();
        let pending: Vec<WorkloadId> = self
            .workloads
            .iter()
            .filter(|(_, r)| namespace.is_none_or(|n| r.workload.meta.namespace == n))
            .filter(|(_, r)| Stage::of(&r.workload) == Stage::Pending)
            .map(|(id, _)| id)
            .collect();
        for id in pending {
            let workload = self.workload_object(id);
            self.apply_workload(workload);
        }
    }

    /// The same for one workload that is pending again: LimitRanges may have changed while it held quota.
    fn adjust_again(&mut self, id: WorkloadId) {
        let record = self.workloads.get(id);
        let namespace = record.workload.meta.namespace.clone();
        let spec = self.share_spec(&namespace, record.spec.original.clone());
        self.workloads.get_mut(id).spec = spec;
    }

    // Cohorts, ClusterQueues and LocalQueues.

    fn apply_cohort(&mut self, cohort: Cohort) {
        let id = self.cohort(&cohort.meta.name);
        let entry = &self.cohorts[id];
        let is_same =
            entry.object.as_deref().is_some_and(|old| Cohort { meta: cohort.meta.clone(), ..old.clone() } == cohort);
        // Kueue does not look at a Cohort again that says the same; but it tries one in a cycle until that is broken.
        if is_same && entry.node.is_some_and(|node| !self.forest.has_cycle(node)) {
            self.cohorts[id].object = Some(Arc::new(cohort));
            return;
        }
        // Kueue logs a cycle and goes on: the tree simply does not take part until it is broken.
        let result = self.put_cohort(cohort);
        if let Ok(id) = result {
            let node = self.cohorts[id].node.expect("it was just stored");
            self.request_flush_of_tree(node);
        }
    }

    fn apply_cluster_queue(&mut self, object: ClusterQueue) {
        let name = object.meta.name.clone();
        let id = self.queue(&name);
        let is_new = self.queues[id].object.is_none();
        let changed = self.queues[id].object.as_deref().is_none_or(|old| !same_spec(old, &object));
        self.queues[id].pending.strategy = object.queueing_strategy;
        if is_new {
            // Kueue does not look at it again.
            self.queues[id].pending.is_usage_based =
                object.usage_based_admission && self.admission_fair_sharing().is_some();
        }
        // A cycle is no reason to forget the object: it is settled once the cycle is broken.
        let deleting = object.meta.deleting;
        let _ = self.put_cluster_queue(object);
        if deleting {
            self.terminate_cluster_queue(id);
        }
        if is_new {
            for queue in self.queues[id].local_queues.clone() {
                self.queue_workloads_of(queue);
            }
        }
        if is_new || changed || self.queues[id].terminating {
            self.touch_cluster_queue(id);
        }
        if is_new || changed {
            self.request_flush(id);
        }
    }

    /// Deletes a ClusterQueue: its pending workloads wait for one of that name.
    pub fn delete_cluster_queue(&mut self, name: &str) -> bool {
        let Some(id) = self.find_queue(name) else { return false };
        self.remove_cluster_queue(id);
        self.touch_cluster_queue(id);
        let pending = std::mem::take(&mut self.queues[id].pending);
        for workload in pending.active().chain(pending.inadmissible()) {
            self.workloads.get_mut(workload).queued_in = None;
        }
        self.note_waiting(id);
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

    fn apply_local_queue(&mut self, object: LocalQueue) {
        let id = self.local_queue(&object.meta.namespace, &object.meta.name);
        let old = self.local_queues[id].object.clone();
        let queue = self.queue(&object.cluster_queue);
        if let Some(old) = &old {
            let leaves = old.cluster_queue != object.cluster_queue;
            if leaves || object.stop_policy != StopPolicy::None {
                self.unqueue_workloads_of(id);
            }
            if leaves && let Some(old_queue) = self.names.queues.find(&old.cluster_queue) {
                self.queues[old_queue].local_queues.remove(&id);
            }
        }
        self.queues[queue].local_queues.insert(id);
        let has_history = object.consumed_resources.is_some();
        self.local_queues[id].object = Some(Arc::new(object));
        if has_history {
            self.open_account(id, self.now);
        }
        self.touch_local_queue(id);
        self.queue_workloads_of(id);
    }

    /// Deletes a LocalQueue: its pending workloads leave their queue.
    pub fn delete_local_queue(&mut self, namespace: &str, name: &str) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(id) = self.names.local_queues.find(&key).filter(|id| self.local_queues[*id].object.is_some()) else {
            return false;
        };
        self.unqueue_workloads_of(id);
        self.touch_local_queue(id);
        let object = self.local_queues[id].object.take().expect("looked up above");
        self.local_queues[id].account = None;
        if let Some(queue) = self.names.queues.find(&object.cluster_queue) {
            self.queues[queue].local_queues.remove(&id);
        }
        true
    }

    fn queue_workloads_of(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.clone() {
            self.assign_queue(workload);
            let object = &self.workloads.get(workload).workload;
            if is_admissible(object, self.config.gates)
                && !is_parent(object, self.config.gates)
                && !self.is_refused(workload)
                && let Some(queue) = self.queue_of(workload)
            {
                let item = self.item(workload);
                self.queues[queue].pending.push_if_absent(&item);
                self.workloads.get_mut(workload).queued_in = Some(queue);
                self.note_waiting(queue);
            }
        }
    }

    fn unqueue_workloads_of(&mut self, id: LocalQueueId) {
        for workload in self.local_queues[id].workloads.clone() {
            self.unqueue(workload);
        }
    }

    /// The ClusterQueue in which a workload is to wait: both queues exist, and the LocalQueue is not stopped.
    pub fn queue_of(&self, workload: WorkloadId) -> Option<QueueId> {
        let local_queue = self.local_queues[self.workloads.get(workload).local_queue].running()?;
        self.find_queue(&local_queue.cluster_queue)
    }

    // Workloads.

    /// Stores the newest version of a workload and works out what follows from it, without queueing or charging it.
    pub fn store_workload(&mut self, mut workload: Workload) -> WorkloadId {
        let pod_sets = std::mem::take(&mut workload.pod_sets);
        let namespace = workload.meta.namespace.clone();
        let spec = self.share_spec(&namespace, pod_sets);
        let local_queue = self.local_queue(&namespace, &workload.queue_name);
        let uid: Arc<str> = Arc::from(workload.meta.uid.as_str());
        let named = workload.status.admission.as_ref().map(|a| a.cluster_queue.clone());
        let id = match self.workloads.find(&namespace, &workload.meta.name) {
            Some(id) => {
                let old = self.workloads.get(id);
                let (old_local_queue, old_named) =
                    (old.local_queue, old.workload.status.admission.as_ref().map(|a| a.cluster_queue.clone()));
                if old_local_queue != local_queue {
                    self.local_queues[old_local_queue].workloads.remove(&id);
                }
                if let Some(old_named) = old_named.filter(|old| Some(old) != named.as_ref()) {
                    let queue = self.queue(&old_named);
                    self.queues[queue].named_by.remove(&id);
                }
                let record = self.workloads.get_mut(id);
                record.workload = workload;
                record.spec = spec;
                record.local_queue = local_queue;
                record.uid = uid;
                id
            }
            None => self.workloads.insert(Record {
                key: Arc::new((namespace, workload.meta.name.clone())),
                workload,
                totals: Arc::clone(&spec.totals),
                spec,
                devices: None,
                shape: None,
                uid,
                local_queue,
                queued_in: None,
                cached_in: None,
                resume: None,
                queue_time: Time::ABSENT,
                evaluated_generation: None,
                assigned: None,
            }),
        };
        self.agenda.touch(id);
        self.local_queues[local_queue].workloads.insert(id);
        if let Some(named) = named {
            let queue = self.queue(&named);
            self.queues[queue].named_by.insert(id);
        }
        if !has_reserved_totals(&self.workloads.get(id).workload) {
            self.refresh_totals(id);
        }
        id
    }

    /// Totals and shape of a pending workload (rules/01 §7.3, rules/05 §4).
    pub fn refresh_totals(&mut self, id: WorkloadId) {
        let reclaimable = self.gate(Gate::ReclaimablePods);
        let devices = self.resolve_devices(id);
        let record = self.workloads.get(id);
        let charged = devices.as_deref().and_then(Devices::charged);
        let has_fewer_pods = reclaimable && !record.workload.status.reclaimable_pods.is_empty();
        let totals = if charged.is_none() && !has_fewer_pods {
            Arc::clone(&record.spec.totals)
        } else {
            let status = &record.workload.status;
            let totals =
                totals::pending_totals(&record.spec.adjusted, status, &self.config.resources, reclaimable, charged);
            intern_totals(&mut self.names, &totals)
        };
        let record = self.workloads.get(id);
        let shape = self.gate(Gate::SchedulingEquivalenceHashing).then(|| {
            let priority = effective_priority(&record.workload, self.config.gates);
            let allowed = self
                .config
                .gates
                .enabled(Gate::ConcurrentAdmission)
                .then(|| record.workload.meta.annotations.get(ALLOWED_FLAVORS).cloned())
                .flatten();
            (Arc::clone(&record.spec), priority, allowed)
        });
        let shape = shape.map(|(spec, priority, allowed)| self.workloads.shape(&spec, priority, &totals, allowed));
        let record = self.workloads.get_mut(id);
        record.totals = totals;
        record.devices = devices;
        record.shape = shape;
    }

    fn share_spec(&mut self, namespace: &str, pod_sets: Vec<PodSet>) -> Arc<Spec> {
        let limited = self.limit_ranges.get(namespace).is_some_and(|r| !r.is_empty());
        let class = if limited { self.names.namespaces.intern(namespace).0 as u64 + 1 } else { 0 };
        let summary = if limited { self.limit_summary(namespace) } else { pods::LimitRangeSummary::default() };
        let State { workloads, names, config, runtime_classes, .. } = self;
        workloads.share(class, pod_sets, |original| {
            let mut adjusted = original.to_vec();
            for pod_set in &mut adjusted {
                let overhead_of = |name: &str| runtime_classes.get(name).map(|class| &class.overhead);
                pods::adjust(&mut pod_set.template.spec, overhead_of, &summary);
            }
            let status = crate::objects::WorkloadStatus::default();
            let totals = totals::pending_totals(&adjusted, &status, &config.resources, false, None);
            let totals = intern_totals(names, &totals);
            let misfit = |pod_sets: &[PodSet]| pods::check_resources(pod_sets, &summary).err().map(|e| e.to_string());
            Prepared { misfit: misfit(&adjusted), original_misfit: misfit(original), adjusted, totals }
        })
    }

    /// The whole object of a workload, as it stands.
    pub fn workload_object(&self, id: WorkloadId) -> Workload {
        let record = self.workloads.get(id);
        Workload { pod_sets: record.spec.original.clone(), ..record.workload.clone() }
    }

    /// Takes over a new or changed workload, as Kueue's handlers of create and update events do.
    pub fn apply_workload(&mut self, workload: Workload) -> WorkloadId {
        let existing = self.workloads.find(&workload.meta.namespace, &workload.meta.name);
        let Some(id) = existing else {
            let id = self.store_workload(workload);
            let record = self.workloads.get(id);
            if Stage::of(&record.workload) == Stage::Finished {
                return id;
            }
            if is_admissible(&record.workload, self.config.gates) {
                self.enqueue(id, true);
            } else {
                self.put_cached(id);
                if has_quota_reservation(&self.workloads.get(id).workload) {
                    // It was there before, and its LocalQueue was asked for all that it has.
                    self.assign_queue(id);
                }
            }
            return id;
        };
        // What the API server says now stands, whether it has the reservation or not.
        self.unconfirmed.remove(&id);
        let old = self.workloads.get(id).clone();
        self.store_workload(workload);
        self.settle_change(id, &old);
        id
    }

    /// The same after its status alone was changed in place.
    pub fn settle_status_change(&mut self, id: WorkloadId, old: &Record) {
        self.agenda.touch(id);
        self.follow_admission(id, old.workload.status.admission.as_ref());
        if !has_reserved_totals(&self.workloads.get(id).workload) {
            if has_reserved_totals(&old.workload) {
                self.adjust_again(id);
            }
            self.refresh_totals(id);
        }
        self.settle_change(id, old);
    }

    /// Tells ClusterQueues which workloads' admissions name them, after one changed from `old`.
    pub(crate) fn follow_admission(&mut self, id: WorkloadId, old: Option<&Admission>) {
        let now = self.workloads.get(id).workload.status.admission.as_ref().map(|a| a.cluster_queue.clone());
        let before = old.map(|a| &a.cluster_queue);
        if before == now.as_ref() {
            return;
        }
        if let Some(before) = before {
            let queue = self.queue(before);
            self.queues[queue].named_by.remove(&id);
        }
        if let Some(now) = now {
            let queue = self.queue(&now);
            self.queues[queue].named_by.insert(id);
        }
    }

    /// Takes a reservation back that was not written: the workload is as `before`, and queued again unless it is gone.
    pub fn forget_reservation(&mut self, id: WorkloadId, before: Record, gone: bool, now: Time) {
        self.now = now;
        self.restore_slice(id);
        self.request_flush_for(id);
        let _ = self.delete_cached(id);
        if !has_quota_reservation(&before.workload) {
            self.drop_penalty(before.local_queue, id);
        }
        let written = self.workloads.get(id).workload.status.admission.clone();
        *self.workloads.get_mut(id) = Record { queued_in: None, cached_in: None, ..before };
        self.follow_admission(id, written.as_ref());
        self.agenda.touch(id);
        if gone {
            return;
        }
        self.adjust_again(id);
        self.refresh_totals(id);
        if let Some(queue) = self.queue_of(id).filter(|_| !self.is_refused(id)) {
            let item = self.item(id);
            let pending = &mut self.queues[queue].pending;
            pending.requeue(&item, RequeueReason::FailedAfterNomination, "", false, 0, false);
            self.workloads.get_mut(id).queued_in = Some(queue);
            self.note_waiting(queue);
        }
    }

    /// Moves a workload between queue and cache after its object changed from `old` (rules/05 §2.1, §3.1).
    pub fn settle_change(&mut self, id: WorkloadId, old: &Record) {
        let record = self.workloads.get(id);
        let (before, now) = (Stage::of(&old.workload), Stage::of(&record.workload));
        let relevant = self.is_relevant_change(old, record);
        if old.local_queue != record.local_queue {
            self.unqueue(id);
        }
        if !self.gate(Gate::FlavorFungibilityPreserveScanProgress) || !same_shape(old, self.workloads.get(id)) {
            self.workloads.get_mut(id).resume = None;
        }
        if now == Stage::Finished || !is_active(&self.workloads.get(id).workload) {
            self.unqueue(id);
            // What comes back into a queue is new there, and begins with the first flavor.
            self.workloads.get_mut(id).resume = None;
            self.request_flush_for(id);
            // Kueue only logs that the ClusterQueue of such a workload is gone.
            let _ = self.delete_cached(id);
        } else if before == Stage::Pending && now == Stage::Pending {
            if is_on_hold(&self.workloads.get(id).workload) {
                self.unqueue(id);
            } else {
                self.enqueue(id, relevant);
            }
        } else if before == Stage::Pending {
            self.unqueue(id);
            self.put_cached(id);
        } else if now == Stage::Pending {
            self.request_flush_for(id);
            let _ = self.delete_cached(id);
            if !is_on_hold(&self.workloads.get(id).workload) {
                self.enqueue(id, relevant);
            }
        } else {
            let record = self.workloads.get(id);
            let reclaimed = before == Stage::Admitted
                && old.workload.status.reclaimable_pods != record.workload.status.reclaimable_pods;
            let gates = self.config.gates;
            let priority_changed = has_changed_priority(&old.workload, &record.workload, gates);
            let shrunk = self.gate(Gate::ElasticJobsViaWorkloadSlices)
                && slices::scaled_down(&old.spec.original, &record.spec.original);
            if now.holds_quota() && (reclaimed || shrunk || priority_changed) {
                self.request_flush_for(id);
            }
            self.put_cached(id);
        }
        self.advance_penalty(id, old);
    }

    /// May the change make a parked workload admissible (rules/05 §2.1 rule 2)?
    pub fn is_relevant_change(&self, old: &Record, new: &Record) -> bool {
        let condition = |r: &Record, kind: &str| find(&r.workload.status.conditions, kind).cloned();
        let changed = |kind: &str| condition(old, kind) != condition(new, kind);
        let (a, b) = (&old.workload, &new.workload);
        old.evaluated_generation.is_some_and(|generation| generation != 0 && generation != b.meta.generation)
            || old.spec.original != new.spec.original
            || (&a.queue_name, &a.priority_class, a.priority, a.active, a.maximum_execution_time_seconds)
                != (&b.queue_name, &b.priority_class, b.priority, b.active, b.maximum_execution_time_seconds)
            || a.preemption_gates != b.preemption_gates
            || effective_priority(a, self.config.gates) != effective_priority(b, self.config.gates)
            || a.status.reclaimable_pods != b.status.reclaimable_pods
            || changed(conditions::EVICTED)
            || changed(conditions::REQUEUED)
            || has_closed_preemption_gate(a) != has_closed_preemption_gate(b)
            || (self.gate(Gate::KueueDRAIntegration) && old.totals != new.totals)
    }

    /// Puts an admissible workload into the queue of its LocalQueue, or updates it there.
    fn enqueue(&mut self, id: WorkloadId, relevant: bool) {
        if self.is_refused(id) {
            self.unqueue(id);
            return;
        }
        let workload = &self.workloads.get(id).workload;
        if !is_admissible(workload, self.config.gates) || is_parent(workload, self.config.gates) {
            return;
        }
        self.assign_queue(id);
        let Some(queue) = self.queue_of(id) else { return };
        let item = self.item(id);
        self.queues[queue].pending.push_or_update(&item, relevant);
        self.workloads.get_mut(id).queued_in = Some(queue);
        self.note_waiting(queue);
    }

    /// Remembers the LocalQueue of a workload, if it runs, as the one in which it was last.
    fn assign_queue(&mut self, id: WorkloadId) {
        let local_queue = self.workloads.get(id).local_queue;
        if self.local_queues[local_queue].running().is_some() {
            self.workloads.get_mut(id).assigned = Some(local_queue);
        }
    }

    /// Takes a workload out of its queue.
    pub fn unqueue(&mut self, id: WorkloadId) {
        if let Some(queue) = self.workloads.get_mut(id).queued_in.take() {
            self.queues[queue].pending.delete(id);
            self.note_waiting(queue);
        }
    }

    /// What a queue has to know of a workload.
    pub fn item(&self, id: WorkloadId) -> Item {
        let record = self.workloads.get(id);
        let gates = self.config.gates;
        Item {
            id,
            local_queue: record.local_queue,
            shape: record.shape,
            priority: effective_priority(&record.workload, gates),
            time: queue_order_timestamp(&record.workload, self.config.requeuing_timestamp, gates),
            uid: Arc::clone(&record.uid),
            key: Arc::clone(&record.key),
            backoff_expired: backoff_expired(&record.workload, self.now),
        }
    }

    /// Deletes a workload; what it held is free again.
    pub fn delete_workload(&mut self, namespace: &str, name: &str) -> bool {
        let Some(id) = self.workloads.find(namespace, name) else { return false };
        self.request_flush_for(id);
        let _ = self.delete_cached(id);
        self.unqueue(id);
        let record = self.workloads.remove(id);
        self.agenda.forget(id);
        // Its slot may soon be another's.
        self.unconfirmed.remove(&id);
        self.undelivered.retain(|written| *written != id);
        self.local_queues[record.local_queue].workloads.remove(&id);
        self.drop_penalty(record.local_queue, id);
        if let Some(admission) = &record.workload.status.admission {
            let queue = self.queue(&admission.cluster_queue);
            self.queues[queue].named_by.remove(&id);
        }
        true
    }

    // Flushes.

    /// Asks that the parked workloads of the tree of the queue be tried again in which a workload was last; nobody is
    /// asked for one that never was in a queue.
    pub fn request_flush_for(&mut self, workload: WorkloadId) {
        let assigned = self.workloads.get(workload).assigned;
        let local_queue = assigned.and_then(|id| self.local_queues[id].running());
        if let Some(queue) = local_queue.and_then(|object| self.find_queue(&object.cluster_queue)) {
            self.request_flush(queue);
        }
    }

    /// Asks that the parked workloads of the whole tree of a ClusterQueue be tried again (rules/05 §3.1).
    pub fn request_flush(&mut self, queue: QueueId) {
        let Some(node) = self.queues[queue].node else { return };
        match self.forest.parent(node) {
            None => {
                self.flush_requests.insert(FlushRequest::Queue(queue));
            }
            Some(parent) => self.request_flush_of_tree(parent),
        }
    }

    /// The same for the tree of a cohort; trees with a cycle are ignored.
    fn request_flush_of_tree(&mut self, cohort: crate::forest::NodeId) {
        if let Some(root) = self.forest.root(cohort)
            && let Some(Owner::Cohort(id)) = self.owners.get(&root)
        {
            self.flush_requests.insert(FlushRequest::Tree(*id));
        }
    }

    /// Does what was asked for: parked workloads go back to their heaps. Returns how many moved.
    pub fn flush(&mut self) -> usize {
        let mut moved = 0;
        for request in std::mem::take(&mut self.flush_requests) {
            match request {
                FlushRequest::Queue(queue) => moved += self.flush_queue(queue),
                FlushRequest::Tree(cohort) => {
                    let Some(node) = self.cohorts[cohort].node.filter(|n| !self.forest.has_cycle(*n)) else { continue };
                    for queue in self.forest.queues_below(node) {
                        if let Some(Owner::Queue(queue)) = self.owners.get(&queue).copied() {
                            moved += self.flush_queue(queue);
                        }
                    }
                }
            }
        }
        moved
    }

    fn flush_queue(&mut self, queue: QueueId) -> usize {
        if self.queues[queue].object.is_none() {
            return 0;
        }
        let State { queues, names, namespaces, .. } = self;
        let QueueRecord { pending, object, .. } = &mut queues[queue];
        let selector = object.as_ref().and_then(|object| object.namespace_selector.as_ref());
        let selected = |local_queue: LocalQueueId| {
            let namespace = names.namespaces.find(&names.local_queues[local_queue].0);
            let labels = namespace.and_then(|id| namespaces.get(id)).and_then(Option::as_ref);
            labels.is_some_and(|labels| crate::selectors::selects(selector, labels))
        };
        pending.begin_flush();
        let mut moved = pending.unpark_buckets(selected);
        let held: Vec<WorkloadId> = pending.held().filter(|&id| selected(self.workloads.get(id).local_queue)).collect();
        for workload in held {
            if backoff_expired(&self.workloads.get(workload).workload, self.now) {
                let item = self.item(workload);
                self.queues[queue].pending.unpark(&item);
                moved += 1;
            }
        }
        self.note_waiting(queue);
        moved
    }
}

/// Are its totals those of its admission? An admission that is left over without a reservation says nothing.
fn has_reserved_totals(workload: &Workload) -> bool {
    has_quota_reservation(workload) && workload.status.admission.is_some()
}

/// Has the priority changed in a way that others are told of? Only that of a WorkloadPriorityClass counts (rules/05 §3.1).
fn has_changed_priority(old: &Workload, new: &Workload, gates: Gates) -> bool {
    let class = |workload: &Workload, kind: &str| {
        workload.priority_class.as_ref().filter(|class| class.kind == kind).map(|class| class.name.clone())
    };
    if class(old, "PriorityClass").is_some() {
        return false;
    }
    let Some(name) = class(new, "WorkloadPriorityClass") else { return false };
    let old_name = old.priority_class.as_ref().map_or("", |class| class.name.as_str());
    (!name.is_empty() && name != old_name) || effective_priority(old, gates) != effective_priority(new, gates)
}

fn same_shape(old: &Record, new: &Record) -> bool {
    old.shape.is_none() || new.shape.is_none() || old.shape == new.shape
}

/// Do two versions of a ClusterQueue say the same, metadata aside?
fn same_spec(a: &ClusterQueue, b: &ClusterQueue) -> bool {
    ClusterQueue { meta: b.meta.clone(), ..a.clone() } == *b
}

/// Is any preemption gate of the workload closed (rules/05 §6.4 step 5)?
pub fn has_closed_preemption_gate(workload: &Workload) -> bool {
    workload
        .preemption_gates
        .iter()
        .any(|name| !workload.status.preemption_gates.iter().any(|g| g.name == *name && g.position == "Open"))
}

/// Does any pod set ask for topology-aware placement?
pub fn asks_for_topology(spec: &Spec) -> bool {
    spec.original.iter().any(requests_topology)
}
