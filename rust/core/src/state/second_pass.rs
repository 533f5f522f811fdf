//! Workloads with quota that go through another cycle: for a delayed placement, or to replace a failed host (rules/08
//! §11.10).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::changes::Change;
use crate::base::ids::{QueueId, WorkloadId};
use crate::objects::{Time, Workload};
use crate::pods::totals::Totals;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::sites::stands_on_unhealthy_node;
use crate::state::{PendingWork, State};
use crate::status::checks::has_all_checks_ready;
use crate::status::reservation::has_topology_pending;
use crate::status::stage::{has_quota_reservation, is_admitted, is_evicted, is_finished, is_on_hold};
use crate::workloads::{Record, Spec};

const SECOND_NS: i64 = 1_000_000_000;
const MAX_WAIT_NS: i64 = 30 * SECOND_NS;

/// A workload as it was when it was listed: the cycle sees this copy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SecondPass {
    pub id: WorkloadId,
    pub copy: Workload,
    /// Its pod sets.
    pub spec: Arc<Spec>,
    /// How many passes it has had.
    pub iteration: u32,
    /// Has the workload had another version since? Then one that equals the copy is news.
    pub superseded: bool,
}

/// The current state of a workload, and what it holds.
#[derive(Clone, Debug)]
struct SetAside {
    workload: Workload,
    spec: Arc<Spec>,
    totals: Arc<[Totals]>,
}

/// Workloads that need a second pass, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecondPasses {
    /// By due time, then in the order in which they were listed.
    timers: BTreeMap<(Time, u64), SecondPass>,
    n_timers: u64,
    /// The key of each in `timers`.
    listed: BTreeMap<WorkloadId, (Time, u64)>,
    ready: BTreeMap<WorkloadId, SecondPass>,
    /// The copies that are in the current cycle.
    in_cycle: BTreeMap<WorkloadId, SecondPass>,
    /// The current state of workloads whose older copies are in a cycle.
    set_aside: BTreeMap<WorkloadId, SetAside>,
    /// Those of them that had been evicted before the cycle.
    evicted: BTreeSet<WorkloadId>,
}

stored!(struct SecondPass { id, copy, spec, iteration, superseded });

/// Between cycles, no copy is in a cycle.
impl Stored for SecondPasses {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { timers, n_timers, listed: _, ready, in_cycle: _, set_aside: _, evicted: _ } = self;
        timers.write_to(out);
        n_timers.write_to(out);
        ready.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let timers: BTreeMap<(Time, u64), SecondPass> = Stored::read_from(from)?;
        let listed: BTreeMap<_, _> = timers.iter().map(|(timer, pass)| (pass.id, *timer)).collect();
        from.check(listed.len() == timers.len(), "a workload that is listed twice for a second pass")?;
        let (n_timers, ready) = (Stored::read_from(from)?, Stored::read_from(from)?);
        Ok(Self { timers, n_timers, listed, ready, ..Self::default() })
    }
}

impl SecondPass {
    fn shows(&self, workload: &Workload, spec: &Spec) -> bool {
        self.copy == *workload && self.spec.adjusted == spec.adjusted
    }
}

impl SecondPasses {
    /// When the next one is due, including those that are ready.
    fn next_due(&self) -> Option<Time> {
        if self.ready.is_empty() { self.next_timer() } else { Some(Time(i64::MIN)) }
    }

    /// The same without those that are ready.
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first_key_value().map(|it| it.0.0)
    }

    /// The forms of the pod sets of the copies.
    pub fn forms(&self) -> impl Iterator<Item = u32> {
        self.timers.values().chain(self.ready.values()).map(|pass| pass.spec.form)
    }

    /// The second pass is no longer needed.
    pub fn call_off(&mut self, id: WorkloadId) {
        self.ready.remove(&id);
        self.listed.remove(&id).and_then(|timer| self.timers.remove(&timer));
    }

    /// Notes a version of a workload: a copy that differs from it is not the newest, even if a later version equals it.
    fn note_version(&mut self, id: WorkloadId, workload: &Workload, spec: &Spec) {
        let listed = self.listed.get(&id).and_then(|timer| self.timers.get_mut(timer));
        let passes = listed.into_iter().chain(self.ready.get_mut(&id)).chain(self.in_cycle.get_mut(&id));
        for pass in passes {
            pass.superseded |= !pass.shows(workload, spec);
        }
    }

    /// Moves those that are due to ready.
    pub fn ripen(&mut self, now: Time) {
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            let pass = entry.remove();
            self.listed.remove(&pass.id);
            if needs_second_pass(&pass.copy) {
                self.ready.insert(pass.id, pass);
            }
        }
    }
}

impl PendingWork {
    /// Was a workload evicted when the cycle began? Its own pass may have undone that since.
    pub(crate) fn came_evicted(&self, id: WorkloadId) -> bool {
        self.second_passes.evicted.contains(&id)
    }

    /// Is one ready?
    pub(crate) fn has_second_pass(&self) -> bool {
        !self.second_passes.ready.is_empty()
    }

    /// When the next second pass is due.
    pub fn next_second_pass(&self) -> Option<Time> {
        self.second_passes.next_due()
    }
}

impl State {
    /// Lists a workload for a second pass, if it needs one and is not listed; returns whether it is listed now. One
    /// that is already ready is listed again, with its current state. `iteration`: how many passes it has had. Without
    /// the change, one that is listed is listed again if it is due earlier then.
    pub(crate) fn list_for_second_pass(&mut self, id: WorkloadId, iteration: u32) -> bool {
        if iteration == 0 {
            let Record { workload, spec, .. } = self.workloads.get(id);
            self.pending.second_passes.note_version(id, workload, spec);
        }
        let (copy, spec, superseded) = match self.pending.second_passes.in_cycle.get(&id).filter(|_| iteration > 0) {
            Some(pass) => (&pass.copy, &pass.spec, pass.superseded),
            None => (&self.workloads.get(id).workload, &self.workloads.get(id).spec, false),
        };
        if !needs_second_pass(copy) {
            if iteration > 0 {
                self.pending.second_passes.call_off(id);
            }
            return false;
        }
        let (copy, spec, passes) = (copy.clone(), Arc::clone(spec), &mut self.pending.second_passes);
        // The timer has expired even if no cycle has run since, as in a replica that is not the leader.
        passes.ripen(Time(self.now.0.saturating_sub(1)));
        let listed = passes.listed.get(&id).copied();
        let keeps_first = self.config.changes.has(Change::SecondPassTimersStay);
        // It is already ready in this very state, and was in no other since.
        let is_ready = passes.ready.get(&id).is_some_and(|pass| !pass.superseded && pass.shows(&copy, &spec));
        if (keeps_first && listed.is_some()) || is_ready {
            return false;
        }
        let iteration = iteration + 1;
        let wait = SECOND_NS.checked_shl(iteration - 1).filter(|_| iteration < 6).unwrap_or(MAX_WAIT_NS);
        let due = Time(self.now.0.saturating_add(wait.min(MAX_WAIT_NS)));
        if let Some(first) = listed {
            if first.0 <= due {
                return true;
            }
            passes.timers.remove(&first);
        }
        passes.n_timers += 1;
        passes.listed.insert(id, (due, passes.n_timers));
        let pass = SecondPass { id, copy, spec, iteration, superseded };
        passes.timers.insert((due, passes.n_timers), pass);
        true
    }

    /// Takes those that are ready, as they were when listed, with the number of their passes.
    pub(crate) fn take_second_passes(&mut self) -> Vec<(QueueId, WorkloadId, u32)> {
        let mut passes = Vec::new();
        for (id, pass) in std::mem::take(&mut self.pending.second_passes.ready) {
            let Some(admission) = &pass.copy.status.admission else { continue };
            let queue = self.names.queue(admission.cluster_queue.as_str());
            let record = self.workloads.get(id);
            if record.workload != pass.copy || !Arc::ptr_eq(&record.spec, &pass.spec) {
                let workload = self.workloads.transition(id, |it| std::mem::replace(it, pass.copy.clone()));
                if is_evicted(&workload) {
                    self.pending.second_passes.evicted.insert(id);
                }
                let record = self.workloads.get_mut(id);
                let spec = std::mem::replace(&mut record.spec, Arc::clone(&pass.spec));
                let now = SetAside { workload, spec, totals: Arc::clone(&record.totals) };
                self.pending.second_passes.set_aside.insert(id, now);
                // Pods that have finished since count again.
                self.workloads.get_mut(id).totals = self.reserved_totals(id);
            }
            passes.push((queue, id, pass.iteration));
            self.pending.second_passes.in_cycle.insert(id, pass);
        }
        // By name, since Kueue's order is not defined.
        passes.sort_by(|a, b| self.workloads.get(a.1).key().cmp(self.workloads.get(b.1).key()));
        passes
    }

    /// A workload in its cycle: as it was when listed, whatever has changed since.
    pub(crate) fn as_it_came(&self, id: WorkloadId) -> &Workload {
        self.pending.second_passes.in_cycle.get(&id).map_or(&self.workloads.get(id).workload, |pass| &pass.copy)
    }

    /// A workload as it was when the cycle began, even if it came as an older copy.
    pub(crate) fn as_it_was(&self, id: WorkloadId) -> &Workload {
        self.pending.second_passes.set_aside.get(&id).map_or(&self.workloads.get(id).workload, |aside| &aside.workload)
    }

    /// Before the cycle writes to a workload, replaces it by its older copy, if it came as one. Returns its current
    /// state then.
    pub(crate) fn overwrite_with_copy(&mut self, id: WorkloadId) -> Option<Workload> {
        let copy = self.pending.second_passes.in_cycle.get(&id)?.copy.clone();
        let seen = self.workloads.transition(id, |it| std::mem::replace(it, copy));
        let Some(SetAside { workload, spec, totals }) = self.pending.second_passes.set_aside.remove(&id) else {
            return Some(seen);
        };
        let record = self.workloads.get_mut(id);
        (record.spec, record.totals) = (spec, totals);
        Some(workload)
    }

    /// The cycle writes to the current state of a workload, even if it came as an older copy.
    pub(crate) fn show_newest(&mut self, id: WorkloadId) {
        if let Some(SetAside { workload, spec, totals }) = self.pending.second_passes.set_aside.remove(&id) {
            self.workloads.transition(id, |it| *it = workload);
            let record = self.workloads.get_mut(id);
            (record.spec, record.totals) = (spec, totals);
        }
    }

    /// The older copy was written: applies its status to the current state, except for the pods that are done.
    pub(crate) fn take_over_status(&mut self, id: WorkloadId, now: &Workload) {
        self.workloads.transition(id, |it| {
            let written = std::mem::replace(it, now.clone());
            it.status = written.status;
            if it.status.rare.reclaimable_pods != now.status.rare.reclaimable_pods {
                it.status.rare.reclaimable_pods.clone_from(&now.status.rare.reclaimable_pods);
            }
        });
    }

    /// Restores the current state of workloads that the cycle has not written to.
    pub(crate) fn put_copies_away(&mut self) {
        self.pending.second_passes.in_cycle.clear();
        self.pending.second_passes.evicted.clear();
        while let Some((&id, _)) = self.pending.second_passes.set_aside.first_key_value() {
            self.show_newest(id);
        }
    }
}

/// Does a workload with quota need another cycle?
pub fn needs_second_pass(workload: &Workload) -> bool {
    if is_finished(workload) || is_evicted(workload) || !has_quota_reservation(workload) || is_on_hold(workload) {
        return false;
    }
    let waits_for_place = !workload.status.rare.admission_checks.is_empty()
        && has_all_checks_ready(workload)
        && has_topology_pending(workload)
        && !is_admitted(workload);
    waits_for_place || stands_on_unhealthy_node(workload)
}
