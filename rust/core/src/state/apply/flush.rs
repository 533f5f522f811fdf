//! Retries parked workloads (rules/05 §3.1).

use crate::base::ids::{LocalQueueId, QueueId, WorkloadId};
use crate::objects::Time;
use crate::quota::forest::NodeId;
use crate::state::records::{FlushRequest, Owner, QueueRecord};
use crate::state::{Objects, PendingWork, State};
use crate::status::admissible::backoff_expired;

impl State {
    /// Requests a retry of parked workloads in the tree of the queue in which a workload last was; none if it never was
    /// in a queue.
    pub(crate) fn request_flush_for(&mut self, workload: WorkloadId) {
        if let Some(queue) = self.workloads.get(workload).assigned.and_then(|id| self.target_of(id)) {
            self.request_flush(queue);
        }
    }

    /// Requests a retry of parked workloads in the whole tree of a ClusterQueue (rules/05 §3.1).
    pub(crate) fn request_flush(&mut self, queue: QueueId) {
        let Some(node) = self.queues[queue].node else { return };
        match self.ledger.forest.parent(node) {
            None => self.note_request(FlushRequest::Queue(queue)),
            Some(parent) => self.request_flush_of_tree(parent),
        }
    }

    /// The same for the tree of a cohort; trees with a cycle are ignored.
    pub(super) fn request_flush_of_tree(&mut self, cohort: NodeId) {
        if let Some(root) = self.ledger.forest.root(cohort)
            && let Some(Owner::Cohort(id)) = self.ledger.owner(root)
        {
            self.note_request(FlushRequest::Tree(id));
        }
    }

    /// A request that waits already keeps its time.
    fn note_request(&mut self, request: FlushRequest) {
        let due = self.config.retry_delay_ns().map_or(Time::ABSENT, |delay| Time(self.now.0.saturating_add(delay)));
        self.pending.flush_requests.entry(request).or_insert(due);
    }

    /// Lets no requested retry wait for others any longer.
    pub fn retry_at_once(&mut self) {
        self.pending.flush_requests.values_mut().for_each(|due| *due = Time::ABSENT);
    }

    /// When the next requested retry is due.
    pub(crate) fn next_flush(&self) -> Option<Time> {
        self.pending.flush_requests.values().min().copied()
    }

    /// Does the requested retries that are due: parked workloads go back to their heaps. Returns how many moved.
    pub fn flush(&mut self) -> usize {
        self.ring_experiments(self.now);
        let mut moved = 0;
        let requests = self.pending.flush_requests.iter();
        let due: Vec<_> = requests.filter(|(_, due)| **due <= self.now).map(|(request, _)| *request).collect();
        for request in due {
            self.pending.flush_requests.remove(&request);
            match request {
                FlushRequest::Queue(queue) => moved += self.flush_queue(queue),
                FlushRequest::Tree(cohort) => {
                    let Some(node) = self.cohorts[cohort].node.filter(|n| !self.ledger.forest.has_cycle(*n)) else {
                        continue;
                    };
                    for queue in self.ledger.forest.queues_below(node) {
                        if let Some(Owner::Queue(queue)) = self.ledger.owner(queue) {
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
        let State { queues, pending: PendingWork { places, .. }, names, objects: Objects { namespaces, .. }, .. } =
            self;
        let QueueRecord { pending, object, .. } = &mut queues[queue];
        let selector = object.as_ref().and_then(|object| object.namespace_selector.as_ref());
        let selected = |local_queue: LocalQueueId| {
            let namespace = names.namespaces.find(&names.local_queues[local_queue].0);
            let labels = namespace.and_then(|id| namespaces.get(id)).and_then(Option::as_ref);
            labels.is_some_and(|labels| crate::objects::selectors::selects(selector, labels))
        };
        pending.begin_flush();
        let mut moved = pending.unpark_buckets(places, selected);
        let held: Vec<WorkloadId> = pending.held().filter(|&id| selected(self.workloads.row(id).local_queue)).collect();
        for workload in held {
            if backoff_expired(&self.workloads.get(workload).workload, self.now) {
                let item = self.item(workload);
                self.queues[queue].pending.unpark(&mut self.pending.places, &item);
                moved += 1;
            }
        }
        self.note_waiting(queue);
        moved
    }
}
