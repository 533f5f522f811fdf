//! Elastic workloads: a slice that replaces an older, smaller one (rules/09 §2.3).

use std::collections::BTreeSet;

use crate::assign::ReplacedPodSet;
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{QueueId, WorkloadId};
use crate::objects::message::Message;
use crate::objects::slices::replaced_key;
use crate::objects::{Time, Workload};
use crate::schedule::decision::{Decision, Event, Replaced};
use crate::state::State;
use crate::state::records::ReplacedSlice;
use crate::status::stage::Stage;
use crate::status::{eviction, messages, reasons};
use crate::workloads::charge::Target;

impl State {
    /// The slice that a workload replaces: it holds quota of the same ClusterQueue, is in the same namespace, and does
    /// not count as `gone`.
    pub(crate) fn replaced_slice(
        &self,
        queue: QueueId,
        workload: WorkloadId,
        gone: &BTreeSet<WorkloadId>,
    ) -> Option<WorkloadId> {
        if !self.gate(Gate::ElasticJobsViaWorkloadSlices) {
            return None;
        }
        let workload = &self.workloads.get(workload).workload;
        let (namespace, name) = replaced_key(workload)?;
        let slice = self.workloads.find(namespace, name).filter(|_| namespace == workload.meta.key.namespace())?;
        (self.workloads.get(slice).cached_in() == Some(queue) && !gone.contains(&slice)).then_some(slice)
    }

    /// The totals of a slice, by pod set.
    pub(crate) fn pod_sets_of_slice(&self, slice: WorkloadId) -> Vec<ReplacedPodSet> {
        let record = self.workloads.get(slice);
        let admission = record.workload.status.admission.as_ref();
        let admission = admission.filter(|_| self.config.changes.has(Change::GroupMembersMayBeApart));
        let names: Vec<&String> = match admission {
            // In the order of its totals, which is that of groups.
            Some(admission) => admission.pod_set_assignments.iter().map(|it| &it.name).collect(),
            None => record.spec.adjusted.iter().map(|it| &it.name).collect(),
        };
        let sets = names.into_iter().zip(record.totals.iter());
        sets.map(|(name, totals)| ReplacedPodSet { name: name.clone(), totals: totals.clone() }).collect()
    }

    /// Removes the slice that a workload replaces from its targets: it ends instead of being preempted.
    pub(crate) fn split_off_slice(&self, workload: WorkloadId, targets: &mut Vec<Target>) -> Option<WorkloadId> {
        if !self.gate(Gate::ElasticJobsViaWorkloadSlices) {
            return None;
        }
        let (namespace, name) = replaced_key(&self.workloads.get(workload).workload)?;
        let slice = self.workloads.find(namespace, name)?;
        let at = targets.iter().position(|target| target.workload == slice)?;
        Some(targets.remove(at).workload)
    }

    /// A slice runs on the cluster of its predecessor.
    pub(crate) fn take_over_cluster(&mut self, old: WorkloadId, new: WorkloadId) {
        self.show_newest(old);
        let cluster_name = self.workloads.get(old).workload.status.rare.cluster_name.clone();
        self.workloads.transition(new, |it| it.status.rare.cluster_name = cluster_name);
    }

    /// The replacement has quota: the old slice is finished.
    pub(crate) fn replace_slice(&mut self, old: WorkloadId, new: WorkloadId, now: Time, decision: &mut Decision) {
        let before = self.workloads.get(old).before_status();
        let successor = self.workloads.get(new);
        let message = Message::from(messages::slice_replaced(&successor.workload.meta));
        let new_key = successor.key().clone();
        let finish = |it: &mut Workload| eviction::finish(it, reasons::WORKLOAD_SLICE_REPLACED, message.clone(), now);
        if !self.workloads.transition(old, finish) {
            return;
        }
        let key = self.workloads.get(old).key().clone();
        decision.events.push(Event {
            kind: "Normal",
            reason: reasons::WORKLOAD_SLICE_REPLACED.into(),
            key: key.clone(),
            message: message.clone(),
        });
        self.settle_status_change(old, &before);
        self.ledger.replaced_slices.insert(new, ReplacedSlice { key: key.clone(), status: before.status });
        decision.replaced.push(Replaced { key, successor: new_key, message });
    }

    /// The reservation of the replacement was not written, so the old slice never ended.
    pub(crate) fn restore_slice(&mut self, new: WorkloadId) {
        let Some(ReplacedSlice { key, status }) = self.ledger.replaced_slices.remove(&new) else { return };
        let Some(old) = self.workloads.find(key.namespace(), key.name()) else { return };
        let record = self.workloads.get(old);
        if record.key().is_same(&key) && record.row.stage == Stage::Finished {
            let before = record.before_status();
            self.workloads.transition(old, |it| it.status = status);
            self.settle_status_change(old, &before);
        }
    }
}

#[cfg(test)]
mod tests;
