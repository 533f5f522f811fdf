//! The pod sets of a head, in the order of its spec.

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::objects::{PodSet, WorkloadStatus};
use crate::pods::devices::Devices;
use crate::pods::totals::{PodSetTotals, Totals, pending_totals};
use crate::state::State;

impl State {
    /// For each pod set of the spec, its place in the admission, which lists groups together; `None`: it is the same.
    pub(super) fn spec_order(&self, id: WorkloadId) -> Option<Vec<usize>> {
        let record = self.workloads.get(id);
        let assigned = &record.workload.status.admission.as_ref()?.pod_set_assignments;
        if assigned.len() != record.spec.adjusted.len() || !self.config.changes.has(Change::GroupMembersMayBeApart) {
            return None;
        }
        let place = |pod_set: &PodSet| assigned.iter().position(|it| it.name == pod_set.name);
        let order: Vec<usize> = record.spec.adjusted.iter().map(place).collect::<Option<_>>()?;
        (!order.is_sorted()).then_some(order)
    }

    /// What one pod of each pod set requests, if some pod set has none and that matters (rules/03 §4 rule 3d).
    pub fn of_one_pod(&self, id: WorkloadId) -> Vec<Totals> {
        let record = self.workloads.get(id);
        let matters = self.config.changes.has(Change::ZeroPodsNeedRoomForOne);
        if !matters || record.totals.iter().all(|totals| totals.count != 0) {
            return Vec::new();
        }
        let alone = |pod_set: &PodSet| PodSet { count: 1, ..pod_set.clone() };
        let pod_sets: Vec<PodSet> = record.spec.adjusted.iter().map(alone).collect();
        let charged = record.devices.as_deref().and_then(Devices::charged);
        let reclaimable = self.gate(Gate::ReclaimablePods);
        let totals = pending_totals(&pod_sets, &WorkloadStatus::default(), &self.config, reclaimable, charged);
        totals.iter().map(|totals| self.by_ids(totals)).collect()
    }

    /// Totals with the resources that are known by now: those that the workload requests are.
    fn by_ids(&self, totals: &PodSetTotals) -> Totals {
        let requests = totals.requests.iter();
        let mut requests: Vec<_> =
            requests.filter_map(|(name, value)| Some((self.names.find_resource(name)?, *value))).collect();
        requests.sort_by(|a, b| self.names.canonical_key(a.0).cmp(&self.names.canonical_key(b.0)));
        Totals { count: totals.count, requests, ..Totals::default() }
    }
}
