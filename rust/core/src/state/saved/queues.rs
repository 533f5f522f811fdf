//! ClusterQueues, Cohorts and LocalQueues with their forest, and the workloads that wait or hold quota there.

use crate::assign::{Fungibility, QueueRules};
use crate::base::ids::{CohortId, Id, LocalQueueId, QueueId, WorkloadId};
use crate::base::sorted::Sorted;
use crate::objects::ClusterQueue;
use crate::queue::Pending;
use crate::quota::forest::stored::Declared;
use crate::quota::forest::{Forest, NodeId, NodeKind};
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::queue_counts::LocalUsage;
use crate::state::records::{CohortRecord, LocalQueueRecord, Owner, QueueRecord};
use crate::state::{State, fair_weight};

stored!(enum Owner { 0 = Queue(queue), 1 = Cohort(cohort) });

impl State {
    pub(super) fn store_queues(&self, out: &mut Writer<'_>) {
        let (no_queue, no_cohort, no_local) = <(QueueRecord, CohortRecord, LocalQueueRecord)>::default();
        for (index, _) in self.names.cohorts.iter().enumerate() {
            self.cohorts.get(CohortId::from_index(index)).unwrap_or(&no_cohort).object.write_to(out);
        }
        for (index, _) in self.names.local_queues.iter().enumerate() {
            let record = self.local_queues.get(LocalQueueId::from_index(index)).unwrap_or(&no_local);
            record.object.write_to(out);
            record.account.write_to(out);
        }
        let queues = || (0..self.names.queues.len()).map(|index| self.queues.get(QueueId::from_index(index)));
        for record in queues() {
            record.unwrap_or(&no_queue).store_object(out);
        }
        let nodes: Vec<(NodeId, Owner)> = self.ledger.owned_nodes().collect();
        out.count(nodes.len());
        nodes.iter().for_each(|(_, owner)| owner.write_to(out));
        let ids: Vec<NodeId> = nodes.into_iter().map(|(id, _)| id).collect();
        self.ledger.forest.store(&ids, out);
        for record in queues().flatten().filter(|record| record.object.is_some()) {
            record.pending.store(&self.pending.places, |id| self.item(id), out);
            record.admitted_usage.write_to(out);
            out.count(record.usage_of.len());
            for (id, LocalUsage { reserved, admitted, n_reserving: _, n_admitted: _ }) in &record.usage_of {
                id.write_to(out);
                reserved.write_to(out);
                admitted.write_to(out);
            }
            out.list(record.candidates.hidden().iter());
        }
    }

    pub(super) fn restore_queues(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        for _ in 0..self.names.cohorts.len() {
            self.cohorts.push(CohortRecord { object: Stored::read_from(from)?, node: None });
        }
        for _ in 0..self.names.local_queues.len() {
            let (object, account) = (Stored::read_from(from)?, Stored::read_from(from)?);
            self.local_queues.push(LocalQueueRecord { object, account, ..LocalQueueRecord::default() });
        }
        for _ in 0..self.names.queues.len() {
            self.queues.push(QueueRecord::restore_object(from)?);
        }
        self.join_local_queues(from)?;
        self.restore_forest(from)?;
        self.share_rules();
        self.join_workloads(from)?;
        for id in self.queues.ids() {
            if self.queues[id].object.is_some() {
                self.restore_members(id, from)?;
            }
        }
        self.count_charges(from)
    }

    /// Adds LocalQueues to the ClusterQueues that they name.
    fn join_local_queues(&mut self, from: &Reader<'_>) -> Result<(), Damage> {
        for id in self.local_queues.ids() {
            let Some(object) = &self.local_queues[id].object else { continue };
            let queue = self.names.queues.find(object.cluster_queue.as_str());
            from.check(queue.is_some(), "a LocalQueue of an unknown ClusterQueue")?;
            self.local_queues[id].queue = queue;
            queue.into_iter().for_each(|queue| _ = self.queues[queue].local_queues.insert(id));
        }
        Ok(())
    }

    fn restore_forest(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        let owners = from.list(Owner::read_from)?;
        for (index, owner) in owners.iter().enumerate() {
            let id = NodeId::from_index(index);
            let node = match *owner {
                Owner::Queue(queue) => &mut self.queues[queue].node,
                Owner::Cohort(cohort) => &mut self.cohorts[cohort].node,
            };
            from.check(node.replace(id).is_none(), "a queue with two nodes")?;
            self.ledger.owners.push(Some(*owner));
        }
        let is_whole = self.queues.iter().all(|queue| queue.object.is_some() == queue.node.is_some())
            && self.cohorts.iter().all(|cohort| cohort.object.is_none() || cohort.node.is_some());
        from.check(is_whole, "a queue without a node, or a node without a queue")?;
        let mut declared = Vec::with_capacity(owners.len());
        for owner in owners {
            declared.push(self.declared(owner, from)?);
        }
        self.ledger.forest = Forest::restore(declared, &self.names, from)?;
        Ok(())
    }

    /// The quota that a node's object declares. A ClusterQueue on or below a cycle of cohorts keeps the weight of the
    /// previous object (rules/02 §4 rule 5).
    fn declared(&mut self, owner: Owner, from: &Reader<'_>) -> Result<Declared, Damage> {
        let (kind, parent, groups, weight) = match owner {
            Owner::Queue(id) => {
                let QueueRecord { object, settled, .. } = &self.queues[id];
                let object = object.clone().expect("whoever has a node has an object");
                let weight = settled.as_ref().map_or(0.0, |settled| fair_weight(settled.fair_weight.as_ref()));
                (NodeKind::Queue, object.cohort_name.clone(), object.resource_groups.clone(), weight)
            }
            Owner::Cohort(id) => match &self.cohorts[id].object {
                Some(object) => {
                    let weight = fair_weight(object.fair_weight.as_ref());
                    (NodeKind::Cohort, object.parent_name.clone(), object.resource_groups.clone(), weight)
                }
                None => (NodeKind::Cohort, String::new(), Vec::new(), 0.0),
            },
        };
        let parent = if parent.is_empty() {
            None
        } else {
            let node = self.names.cohorts.find(&parent).and_then(|id| self.cohorts[id].node);
            from.check(node.is_some(), "a cohort without a node")?;
            node
        };
        Ok(Declared { kind, parent, quotas: self.read_quotas(&groups), weight })
    }

    /// Resource groups come from the object, everything else from the settled one.
    fn share_rules(&mut self) {
        for id in self.queues.ids() {
            let Some(object) = self.queues[id].object.clone() else { continue };
            let settled = self.queues[id].settled.clone();
            let groups = self.read_groups(&object.resource_groups);
            let rules = match settled.as_deref() {
                Some(ClusterQueue { flavor_fungibility: fungibility, preemption, .. }) => {
                    let fungibility = Fungibility::new(*fungibility, &self.config);
                    QueueRules { groups, fungibility, preemption: preemption.clone() }
                }
                None => QueueRules { groups, ..QueueRules::default() },
            };
            let (rules, rules_id) = self.objects.rules.share(rules);
            let queue = &mut self.queues[id];
            (queue.rules, queue.rules_id) = (rules, rules_id);
        }
    }

    /// Adds workloads to the LocalQueues that they name, and to the candidates where they hold quota.
    fn join_workloads(&mut self, from: &Reader<'_>) -> Result<(), Damage> {
        let Self { workloads, local_queues, queues, names, .. } = self;
        for (id, record) in workloads.iter() {
            let local_queue = &mut local_queues[record.row.local_queue];
            local_queue.workloads.insert(id);
            local_queue.n_queued += usize::from(record.row.queued_in.is_some());
            let Some(charge) = &record.charge else { continue };
            let queue = &mut queues[charge.queue];
            from.check(queue.object.is_some() && record.row.queued_in.is_none(), "a workload that cannot hold quota")?;
            queue.candidates.insert(names, &charge.candidate);
        }
        Ok(())
    }

    /// The workloads that wait for a ClusterQueue, and the sums of those that hold its quota.
    fn restore_members(&mut self, id: QueueId, from: &mut Reader<'_>) -> Result<(), Damage> {
        let strategy = self.queues[id].object.as_ref().map(|object| object.queueing_strategy).unwrap_or_default();
        let mut places = std::mem::take(&mut self.pending.places);
        let waits = |workload| self.workloads.row(workload).queued_in == Some(id);
        let pending = Pending::restore(strategy, &mut places, |workload| self.item(workload), waits, from);
        self.pending.places = places;
        self.queues[id].pending = pending?;
        self.note_waiting(id);
        self.queues[id].admitted_usage = Stored::read_from(from)?;
        let mut usage_of = Vec::new();
        for _ in 0..from.count()? {
            let (local_queue, reserved, admitted) =
                (LocalQueueId::read_from(from)?, Stored::read_from(from)?, Stored::read_from(from)?);
            usage_of.push((local_queue, LocalUsage { reserved, admitted, ..LocalUsage::default() }));
        }
        from.check(usage_of.is_sorted_by(|a, b| a.0 < b.0), "LocalQueues that are not in order")?;
        self.queues[id].usage_of = Sorted::from_sorted(usage_of);
        for workload in from.list(WorkloadId::read_from)? {
            let charge = self.workloads.get(workload).charge.as_ref().filter(|charge| charge.queue == id);
            let Some(charge) = charge else { return Err(from.damage("a victim that holds no quota")) };
            from.check(!self.queues[id].candidates.hidden().contains(&workload), "a victim twice")?;
            self.queues[id].candidates.hide(&self.names, &charge.candidate);
        }
        Ok(())
    }

    /// Counts the workloads that hold quota.
    fn count_charges(&mut self, from: &Reader<'_>) -> Result<(), Damage> {
        let Self { workloads, queues, .. } = self;
        for charge in workloads.iter().filter_map(|(_, record)| record.charge.as_ref()) {
            let queue = &mut queues[charge.queue];
            queue.n_reserving += 1;
            queue.n_admitted += usize::from(charge.admitted);
            let usage = queue.usage_of.find_mut(|it| it.0.cmp(&charge.local_queue));
            let Some((_, usage)) = usage else { return Err(from.damage("a LocalQueue without a sum")) };
            usage.n_reserving += 1;
            usage.n_admitted += usize::from(charge.admitted);
        }
        Ok(())
    }
}

impl QueueRecord {
    fn store_object(&self, out: &mut Writer<'_>) {
        self.uncounted.write_to(out);
        self.object.write_to(out);
        if self.object.is_none() {
            return;
        }
        let others = (self.settled != self.object).then_some(&self.settled);
        others.is_some().write_to(out);
        others.into_iter().for_each(|settled| settled.write_to(out));
        self.activeness.write_to(out);
        self.terminating.write_to(out);
    }

    fn restore_object(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut record = Self { uncounted: Stored::read_from(from)?, ..Self::default() };
        record.object = Stored::read_from(from)?;
        if record.object.is_some() {
            let is_other = bool::read_from(from)?;
            record.settled = if is_other { Stored::read_from(from)? } else { record.object.clone() };
            record.activeness = Stored::read_from(from)?;
            record.terminating = Stored::read_from(from)?;
            from.check(
                record.settled.is_some() || record.activeness.is_none(),
                "a ClusterQueue that was never settled",
            )?;
        }
        Ok(record)
    }
}
