//! Queues and cohorts whose status may have changed since the last call, so that a caller reads no others.

use crate::base::ids::{CohortId, Id, IdSet, LocalQueueId, QueueId};
use crate::quota::forest::NodeId;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::State;
use crate::state::records::Owner;

/// ClusterQueues, LocalQueues and Cohorts whose status may have changed.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// ClusterQueues.
    pub queues: IdSet<QueueId>,
    /// LocalQueues.
    pub local_queues: IdSet<LocalQueueId>,
    pub cohorts: IdSet<CohortId>,
    /// Cohorts in whose trees quotas, weights or edges have changed: that changes the share of every node.
    trees: IdSet<CohortId>,
}

/// What has changed since the last call of [`State::take_changed_queues`]; nothing is recorded before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedQueues(Option<Changed>);

stored!(struct Changed { queues, local_queues, cohorts, trees });

impl Stored for ChangedQueues {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.0.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let changed = Option::<Changed>::read_from(from)?;
        let is_known = |it: &Changed| {
            it.queues.iter().all(|id| id.index() < from.names.queues.len())
                && it.local_queues.iter().all(|id| id.index() < from.names.local_queues.len())
                && it.cohorts.iter().chain(it.trees.iter()).all(|id| id.index() < from.names.cohorts.len())
        };
        from.check(changed.as_ref().is_none_or(is_known), "an unknown queue")?;
        Ok(Self(changed))
    }
}

impl ChangedQueues {
    /// The status of a ClusterQueue may have changed.
    pub(crate) fn touch_queue(&mut self, id: QueueId) {
        if let Some(changed) = &mut self.0 {
            changed.queues.insert(id);
        }
    }

    /// The status of a LocalQueue may have changed.
    pub(crate) fn touch_local_queue(&mut self, id: LocalQueueId) {
        if let Some(changed) = &mut self.0 {
            changed.local_queues.insert(id);
        }
    }
}

impl State {
    /// Takes the objects whose status may have changed since the last call. The first call returns nothing and starts
    /// the recording. The usage of a ClusterQueue changes the shares of the Cohorts above it; quotas, weights and edges
    /// change those of the whole tree.
    pub fn take_changed_queues(&mut self) -> Changed {
        let Some(mut changed) = self.feeds.changed_queues.0.replace(Changed::default()) else {
            return Changed::default();
        };
        if self.config.fair_sharing.is_none() {
            return changed;
        }
        for id in changed.trees.iter() {
            let Some(root) = self.cohorts[id].node.and_then(|node| self.ledger.forest.root(node)) else { continue };
            let Some(Owner::Cohort(root)) = self.ledger.owner(root) else { continue };
            changed.cohorts.insert(root);
        }
        let roots: Vec<NodeId> = changed.cohorts.iter().filter_map(|id| self.cohorts[id].node).collect();
        for node in roots.into_iter().flat_map(|root| self.ledger.forest.subtree(root)) {
            match self.ledger.owner(node) {
                Some(Owner::Queue(id)) => changed.queues.insert(id),
                Some(Owner::Cohort(id)) => changed.cohorts.insert(id),
                None => false,
            };
        }
        let used: Vec<NodeId> = changed.queues.iter().filter_map(|id| self.queues[id].node).collect();
        for node in used.into_iter().flat_map(|node| self.ledger.forest.path(node)) {
            if let Some(Owner::Cohort(id)) = self.ledger.owner(node) {
                changed.cohorts.insert(id);
            }
        }
        changed
    }

    /// Records that a node's quota, weight or parent changes; call it before and after.
    pub(crate) fn touch_tree(&mut self, node: NodeId) {
        let Some(changed) = &mut self.feeds.changed_queues.0 else { return };
        for above in self.ledger.forest.path(node) {
            if let Some(Owner::Cohort(id)) = self.ledger.owners.get(above).copied().flatten() {
                changed.trees.insert(id);
            }
        }
    }

    /// Records that a ClusterQueue was created, deleted, or became active or inactive: its LocalQueues report that.
    pub(crate) fn touch_statuses_of(&mut self, id: QueueId) {
        self.feeds.changed_queues.touch_queue(id);
        for &local_queue in &self.queues[id].local_queues {
            self.feeds.changed_queues.touch_local_queue(local_queue);
        }
    }
}
