//! Creates, updates and deletes workloads, with the effects on cache and queues (rules/05 §2.1, §3.1).

use std::sync::Arc;

use crate::base::gates::{Gate, Gates};
use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::base::shared::Shared;
use crate::objects::conditions::{self, find};
use crate::objects::priority::effective_priority;
use crate::objects::variants::{ALLOWED_FLAVORS, is_parent, is_variant};
use crate::objects::{PodSet, Workload, WorkloadStatus, slices};
use crate::pods;
use crate::pods::devices::Devices;
use crate::pods::totals::{self, intern_totals};
use crate::queue::Item;
use crate::state::second_pass::needs_second_pass;
use crate::state::{Feeds, Ledger, Objects, PendingWork, State};
use crate::status::admissible::{backoff_expired, has_closed_preemption_gate, is_admissible, requeue_at};
use crate::status::stage::{Stage, has_quota_reservation, is_active, is_on_hold};
use crate::workloads::before::Before;
use crate::workloads::row::WorkloadRow;
use crate::workloads::{Prepared, Record, Spec};

impl State {
    /// Stores the newest version of a workload and computes what follows from it, without queueing or charging it.
    pub fn store_workload(&mut self, mut workload: Workload) -> WorkloadId {
        let pod_sets = std::mem::take(&mut workload.pod_sets);
        let spec = self.share_spec(workload.meta.key.namespace(), pod_sets);
        let existing = self.workloads.find(workload.meta.key.namespace(), workload.meta.key.name());
        let local_queue = self.local_queue(workload.meta.key.namespace(), &workload.queue_name);
        self.store_workload_in(existing, workload, spec, local_queue)
    }

    /// [`State::store_workload`] for pod sets that are already shared and a workload already looked up.
    pub(crate) fn store_workload_in(
        &mut self,
        existing: Option<WorkloadId>,
        mut workload: Workload,
        spec: Arc<Spec>,
        local_queue: LocalQueueId,
    ) -> WorkloadId {
        self.forget_unused_shapes();
        workload.queue_name = self.names.local_queues[local_queue].1.clone();
        let id = match existing {
            Some(id) => {
                let old = self.workloads.get(id);
                let old_local_queue = old.row.local_queue;
                if old_local_queue != local_queue {
                    let n_queued = usize::from(old.row.queued_in.is_some());
                    self.local_queues[old_local_queue].workloads.remove(id);
                    self.local_queues[old_local_queue].n_queued -= n_queued;
                    self.local_queues[local_queue].n_queued += n_queued;
                    self.feeds.changed_queues.touch_local_queue(old_local_queue);
                }
                let record = self.workloads.get_mut(id);
                if record.key().is_same(&workload.meta.key) {
                    workload.meta.key = record.key().clone();
                }
                record.spec = spec;
                record.row.local_queue = local_queue;
                self.workloads.transition(id, |it| *it = workload);
                id
            }
            None => {
                let record = Record {
                    row: self.workloads.new_row(&workload, local_queue),
                    workload,
                    totals: Arc::clone(&spec.totals),
                    spec,
                    devices: None,
                    charge: None,
                    resume: None,
                    evaluated_generation: 0,
                    assigned: None,
                };
                // A waiting cycle refers to its workloads by slot, so no slot is reused meanwhile.
                self.workloads.insert(record, self.pending.has_waiting_cycle)
            }
        };
        self.feeds.agenda.touch(id);
        self.feeds.changed_queues.touch_local_queue(local_queue);
        self.local_queues[local_queue].workloads.insert(id);
        if !has_reserved_totals(&self.workloads.get(id).workload) {
            self.refresh_totals(id);
        }
        id
    }

    /// From time to time forgets shapes without workloads, so that short-lived workloads leave nothing behind.
    fn forget_unused_shapes(&mut self) {
        // The entries of a waiting cycle have shapes of their own.
        if self.pending.has_waiting_cycle || !self.workloads.is_worth_a_sweep() {
            return;
        }
        let State {
            workloads,
            queues,
            feeds: Feeds { agenda, .. },
            ledger: Ledger { unconfirmed, .. },
            pending: PendingWork { second_passes, .. },
            ..
        } = self;
        let marked = queues.iter().flat_map(|queue| queue.pending.shapes()).chain(agenda.parked_shapes());
        let resumed = unconfirmed.values().filter_map(|before| before.resume.as_ref()?.shape);
        workloads.sweep(marked.chain(resumed), second_passes.forms());
    }

    /// Totals and shape of a pending workload (rules/01 §7.3, rules/05 §4).
    pub(crate) fn refresh_totals(&mut self, id: WorkloadId) {
        let reclaimable = self.gate(Gate::ReclaimablePods);
        let devices = self.resolve_devices(id);
        let record = self.workloads.get(id);
        let charged = devices.as_deref().and_then(Devices::charged);
        let has_fewer_pods = reclaimable && !record.workload.status.rare.reclaimable_pods.is_empty();
        let totals = if charged.is_none() && !has_fewer_pods {
            Arc::clone(&record.spec.totals)
        } else {
            let status = &record.workload.status;
            let totals = totals::pending_totals(&record.spec.adjusted, status, &self.config, reclaimable, charged);
            intern_totals(&mut self.names, &totals)
        };
        let record = self.workloads.get(id);
        let shape = self.gate(Gate::SchedulingEquivalenceHashing).then(|| {
            let priority = record.row.priority;
            let allowed = self
                .config
                .gates
                .enabled(Gate::ConcurrentAdmission)
                .then(|| record.workload.meta.details.annotations.get(ALLOWED_FLAVORS).cloned())
                .flatten();
            (Arc::clone(&record.spec), priority, allowed)
        });
        let shape = shape.map(|(spec, priority, allowed)| match allowed {
            None if Arc::ptr_eq(&totals, &spec.totals) => self.workloads.usual_shape(&spec, priority),
            allowed => self.workloads.shape(&spec, priority, &totals, allowed),
        });
        let record = self.workloads.get_mut(id);
        record.totals = totals;
        record.devices = devices;
        record.row.shape = shape;
    }

    pub(crate) fn share_spec(&mut self, namespace: &str, pod_sets: Shared<Vec<PodSet>>) -> Arc<Spec> {
        let limited = self.objects.limit_ranges.get(namespace).is_some_and(|r| !r.is_empty());
        let class = if limited { self.names.namespaces.intern(namespace).0 as u64 + 1 } else { 0 };
        let summary = if limited { self.objects.limit_summary(namespace) } else { Arc::default() };
        let State { workloads, names, config, objects: Objects { runtime_classes, .. }, .. } = self;
        workloads.share(class, pod_sets, |original| {
            let mut adjusted = original.to_vec();
            for pod_set in &mut adjusted {
                let overhead_of = |name: &str| runtime_classes.get(name).map(|class| &class.overhead);
                pods::adjust(&mut pod_set.template.spec, overhead_of, &summary, config.changes);
            }
            let status = crate::objects::WorkloadStatus::default();
            let totals = totals::pending_totals(&adjusted, &status, config, false, None);
            let totals = intern_totals(names, &totals);
            let misfit = |pod_sets: &[PodSet]| {
                pods::check_resources(pod_sets, &summary, config.changes).err().map(|e| e.to_string())
            };
            Prepared { misfit: misfit(&adjusted), original_misfit: misfit(original), adjusted, totals }
        })
    }

    /// The whole object of a workload in its current state.
    pub fn workload_object(&self, id: WorkloadId) -> Workload {
        let record = self.workloads.get(id);
        Workload { pod_sets: record.spec.original.clone(), ..record.workload.clone() }
    }

    /// Applies a new or changed workload, as Kueue's handlers of create and update events do.
    pub(crate) fn apply_workload(&mut self, mut workload: Workload) -> WorkloadId {
        let pod_sets = std::mem::take(&mut workload.pod_sets);
        let spec = self.share_spec(workload.meta.key.namespace(), pod_sets);
        let local_queue = self.local_queue(workload.meta.key.namespace(), &workload.queue_name);
        let existing = self.workloads.find(workload.meta.key.namespace(), workload.meta.key.name());
        let Some(id) = existing else {
            let id = self.store_workload_in(None, workload, spec, local_queue);
            let record = self.workloads.get(id);
            if Stage::of(&record.workload) == Stage::Finished {
                return id;
            }
            if is_admissible(&record.workload, self.config.gates) {
                self.enqueue(id, true);
            } else {
                self.put_cached(id);
                if has_quota_reservation(&self.workloads.get(id).workload) {
                    // Its LocalQueue may have changed since it got quota.
                    self.assign_queue(id);
                }
                self.list_for_second_pass(id, 0);
            }
            return id;
        };
        // The API server's version counts now, with or without the reservation.
        self.ledger.unconfirmed.remove(&id);
        let old = self.workloads.get(id).before();
        keep_places(&mut workload, &old.status);
        self.store_workload_in(Some(id), workload, spec, local_queue);
        self.settle_change(id, &old);
        id
    }

    /// Changes the status of a workload; `write` returns whether it did.
    pub(crate) fn change(&mut self, id: WorkloadId, write: impl FnOnce(&mut Workload) -> bool) -> bool {
        let old = self.workloads.get(id).before_status();
        let changed = self.workloads.transition(id, write);
        if changed {
            self.settle_status_change(id, &old);
        }
        changed
    }

    /// Settles a change of only the status, made in place.
    pub(crate) fn settle_status_change(&mut self, id: WorkloadId, old: &Before) {
        self.feeds.agenda.touch(id);
        if !has_reserved_totals(&self.workloads.get(id).workload) {
            if old.row.has_reservation && old.status.admission.is_some() {
                self.adjust_again(id);
            }
            self.refresh_totals(id);
        }
        self.settle_change(id, old);
    }

    /// Moves a workload between queue and cache after its object changed from `old` (rules/05 §2.1, §3.1).
    pub(crate) fn settle_change(&mut self, id: WorkloadId, old: &Before) {
        let record = self.workloads.get(id);
        let (before, now) = (old.row.stage, record.row.stage);
        let relevant = self.is_relevant_change(old, record);
        let has_moved = old.row.local_queue != record.row.local_queue;
        let was_queued = record.row.queued_in.is_some();
        // With another UID it is another workload, not the one in a waiting cycle (rules/07 §6).
        let is_another = self.pending.has_waiting_cycle
            && old.object.as_ref().is_some_and(|it| !record.key().is_copy(&it.0.meta.key));
        if has_moved || is_another {
            self.unqueue(id);
        }
        // Kueue keeps the progress in the queue: a workload in none, as without a ClusterQueue, starts with the first
        // flavor.
        let keeps_progress = was_queued && !has_moved && self.gate(Gate::FlavorFungibilityPreserveScanProgress);
        if !keeps_progress || !same_shape(old, self.workloads.get(id)) {
            self.workloads.get_mut(id).resume = None;
        }
        if now == Stage::Finished || !is_active(&self.workloads.get(id).workload) {
            self.pending.second_passes.call_off(id);
            self.unqueue(id);
            self.request_flush_for(id);
            self.uncache(id);
        } else if before == Stage::Pending && now == Stage::Pending {
            if is_on_hold(&self.workloads.get(id).workload) {
                self.pending.second_passes.call_off(id);
                self.unqueue(id);
            } else {
                self.enqueue(id, relevant);
            }
        } else if before == Stage::Pending {
            self.pending.second_passes.call_off(id);
            self.unqueue(id);
            self.put_cached(id);
        } else if now == Stage::Pending {
            self.request_flush_for(id);
            self.uncache(id);
            let workload = &self.workloads.get(id).workload;
            // During a backoff it is in no queue until something else is written to it.
            let is_held = requeue_at(workload).is_some_and(|at| at > self.now);
            let needs_pass = needs_second_pass(workload);
            if !is_held && !is_on_hold(workload) {
                self.enqueue(id, relevant);
                self.pending.second_passes.call_off(id);
            }
            if !needs_pass {
                self.pending.second_passes.call_off(id);
            }
        } else {
            let record = self.workloads.get(id);
            let reclaimed = before == Stage::Admitted
                && old.status.rare.reclaimable_pods != record.workload.status.rare.reclaimable_pods;
            let gates = self.config.gates;
            let object = old.object.as_ref();
            let priority_changed = object.is_some_and(|it| has_changed_priority(&it.0, &record.workload, gates));
            let shrunk = self.gate(Gate::ElasticJobsViaWorkloadSlices)
                && object.is_some_and(|it| slices::scaled_down(&it.1.original, &record.spec.original));
            if now.holds_quota() && (reclaimed || shrunk || priority_changed) {
                self.request_flush_for(id);
            }
            self.put_cached(id);
            if self.workloads.get(id).charge.is_some() {
                // It was Admitted without a reservation, and waited until now.
                self.unqueue(id);
            }
        }
        self.advance_penalty(id, old);
        self.list_for_second_pass(id, 0);
    }

    /// May the change make a parked workload admissible (rules/05 §2.1 rule 2)?
    pub fn is_relevant_change(&self, old: &Before, new: &Record) -> bool {
        let (was, is) = (&old.status, &new.workload.status);
        let changed = |kind| find(&was.conditions, kind) != find(&is.conditions, kind);
        let has_closed_gate = |status| has_closed_preemption_gate(&new.workload.preemption_gates, status);
        (new.evaluated_generation != 0 && new.evaluated_generation != new.row.generation)
            || old.object.as_ref().is_some_and(|(object, spec)| has_another_spec((object, spec), new))
            || old.row.priority != new.row.priority
            || was.rare.reclaimable_pods != is.rare.reclaimable_pods
            || changed(conditions::EVICTED)
            || changed(conditions::REQUEUED)
            || has_closed_gate(was) != has_closed_gate(is)
            || (self.gate(Gate::KueueDRAIntegration) && old.totals != new.totals)
    }

    /// Puts an admissible workload into the queue of its LocalQueue, or updates it there.
    fn enqueue(&mut self, id: WorkloadId, relevant: bool) {
        let Some(queue) = self.enters(id) else { return };
        let item = self.item(id);
        self.queues[queue].pending.push_or_update(&mut self.pending.places, &item, relevant);
        self.set_queued_in(id, Some(queue));
        self.note_waiting(queue);
    }

    /// Queues many workloads of one LocalQueue, none of which is in a queue.
    pub(crate) fn enqueue_new(&mut self, ids: &[WorkloadId]) {
        let mut entered = None;
        let mut items = Vec::with_capacity(ids.len());
        for &id in ids {
            if let Some(queue) = self.enters(id) {
                self.set_queued_in(id, Some(queue));
                items.push(self.item(id));
                entered = Some(queue);
            }
        }
        if let Some(queue) = entered {
            self.queues[queue].pending.push_new(&mut self.pending.places, &items);
            self.note_waiting(queue);
        }
    }

    /// The ClusterQueue in which a workload may wait now.
    fn enters(&mut self, id: WorkloadId) -> Option<QueueId> {
        if self.is_refused(id) {
            self.unqueue(id);
            return None;
        }
        let workload = &self.workloads.get(id).workload;
        if !is_admissible(workload, self.config.gates) || self.is_left_to_variants(id) {
            return None;
        }
        self.assign_queue(id);
        self.queue_of(id)
    }

    /// Do its variants queue in its place? A parent is recognized by its ClusterQueue before it is labelled (rules/09
    /// §4.2).
    pub(super) fn is_left_to_variants(&self, id: WorkloadId) -> bool {
        let workload = &self.workloads.get(id).workload;
        let has_policy = || self.queue_of(id).is_some_and(|queue| self.has_variants(queue));
        is_parent(workload, self.config.gates) || (!is_variant(workload) && has_policy())
    }

    /// Remembers the LocalQueue of a workload as its last one, unless that is stopped.
    pub(super) fn assign_queue(&mut self, id: WorkloadId) {
        let local_queue = self.workloads.row(id).local_queue;
        if self.local_queues[local_queue].running().is_some() {
            self.workloads.get_mut(id).assigned = Some(local_queue);
        }
    }

    /// Removes a workload from its queue.
    pub(crate) fn unqueue(&mut self, id: WorkloadId) {
        if let Some(queue) = self.workloads.row(id).queued_in {
            self.set_queued_in(id, None);
            if self.queues[queue].pending.delete(&mut self.pending.places, id) {
                self.note_left(queue);
            }
        }
    }

    /// What a queue needs of a workload.
    pub fn item(&self, id: WorkloadId) -> Item {
        let record = self.workloads.get(id);
        let WorkloadRow { local_queue, shape, priority, time, is_held, .. } = record.row;
        let backoff_expired = !is_held || backoff_expired(&record.workload, self.now);
        Item { id, local_queue, shape, priority, time, key: record.key().clone(), backoff_expired }
    }

    /// Deletes a workload and releases its quota.
    pub fn delete_workload(&mut self, namespace: &str, name: &str) -> bool {
        let Some(id) = self.workloads.find(namespace, name) else { return false };
        self.request_flush_for(id);
        self.drop_workload(id);
        true
    }

    /// Drops a finished workload without further effects.
    pub(crate) fn drop_workload(&mut self, id: WorkloadId) {
        self.uncache(id);
        self.unqueue(id);
        let record = self.workloads.remove(id);
        self.feeds.agenda.forget(id);
        // Another workload may soon get its slot.
        self.nodes.sites.standing.note(id, None);
        self.ledger.unconfirmed.remove(&id);
        self.pending.second_passes.call_off(id);
        self.ledger.undelivered.retain(|written| *written != id);
        let local_queue = record.row.local_queue;
        self.local_queues[local_queue].workloads.remove(id);
        self.feeds.changed_queues.touch_local_queue(local_queue);
        self.drop_penalty(local_queue, id);
    }
}

/// Keeps the stored placement if it comes back unchanged: its strings are shared with the nodes.
fn keep_places(new: &mut Workload, old: &WorkloadStatus) {
    let has_places = old.admission.as_ref().is_some_and(|admission| admission.pod_set_assignments.are_placed());
    if has_places && new.status.admission == old.admission {
        new.status.admission.clone_from(&old.admission);
    }
}

/// Are its totals those of its admission? An admission left over without a reservation does not count.
fn has_reserved_totals(workload: &Workload) -> bool {
    has_quota_reservation(workload) && workload.status.admission.is_some()
}

/// Has the priority changed in a way that affects others? Only that of a WorkloadPriorityClass counts (rules/05 §3.1).
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

/// Did the spec change in a way that may make a parked workload admissible?
fn has_another_spec((a, spec): (&Workload, &Arc<Spec>), new: &Record) -> bool {
    let b = &new.workload;
    (!Arc::ptr_eq(spec, &new.spec) && spec.original != new.spec.original)
        || (&a.queue_name, &a.priority_class, a.priority, a.active, a.maximum_execution_time_seconds)
            != (&b.queue_name, &b.priority_class, b.priority, b.active, b.maximum_execution_time_seconds)
        || a.preemption_gates != b.preemption_gates
}

fn same_shape(old: &Before, new: &Record) -> bool {
    old.row.shape.is_none() || new.row.shape.is_none() || old.row.shape == new.row.shape
}
