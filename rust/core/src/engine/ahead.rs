//! Who is ahead of a workload in its ClusterQueue, and by which rule (rules/05 §2, rules/09 §1.5).

use crate::base::ids::{LocalQueueId, WorkloadId};
use crate::objects::Time;
use crate::queue::OrderKey;
use crate::state::State;

/// A workload ahead of another one.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// The workload.
    pub workload: WorkloadId,
    /// The rule.
    pub why: Precedence,
}

/// The first rule of the queue order that puts one workload ahead of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precedence {
    /// Its LocalQueue has used less, by admission fair sharing.
    Usage {
        /// The usage of its LocalQueue.
        theirs: (LocalQueueId, f64),
        /// The usage of the other's.
        ours: (LocalQueueId, f64),
    },
    /// It waits for its victims, and stays in front until it has quota.
    Sticky,
    /// Its priority is higher.
    Priority(i64),
    /// It has waited longer: since when.
    Time(Time),
    /// Its UID, or its name, comes first.
    Uid,
}

impl State {
    /// The pending workloads ahead of a pending one, parked ones included, in the order of the base rules.
    pub(super) fn ahead_of(&self, id: WorkloadId) -> Vec<Ahead> {
        let Some(queue) = self.queue_of(id) else { return Vec::new() };
        let pending = &self.queues[queue].pending;
        let ours = (pending.key(&self.item(id)), self.workloads.row(id).local_queue);
        let others = pending.active().chain(pending.inadmissible()).filter(|other| *other != id);
        let ahead = others.filter_map(|workload| {
            let theirs = (pending.key(&self.item(workload)), self.workloads.row(workload).local_queue);
            Some(Ahead { workload, why: self.precedence(pending.is_usage_based, &theirs, &ours)? })
        });
        ahead.collect()
    }

    /// `None`: it is not ahead.
    fn precedence(
        &self,
        is_usage_based: bool,
        (theirs, their_queue): &(OrderKey, LocalQueueId),
        (ours, our_queue): &(OrderKey, LocalQueueId),
    ) -> Option<Precedence> {
        if is_usage_based {
            let usages = [their_queue, our_queue].map(|&queue| (queue, self.local_queue_usage(queue)));
            let [their_usage, our_usage] = usages;
            match their_usage.1.total_cmp(&our_usage.1) {
                std::cmp::Ordering::Less => return Some(Precedence::Usage { theirs: their_usage, ours: our_usage }),
                std::cmp::Ordering::Greater => return None,
                std::cmp::Ordering::Equal => {}
            }
        }
        (theirs < ours).then(|| match () {
            () if theirs.not_sticky != ours.not_sticky => Precedence::Sticky,
            () if theirs.negated_priority != ours.negated_priority => {
                Precedence::Priority(theirs.negated_priority.saturating_neg())
            }
            () if theirs.time != ours.time => Precedence::Time(theirs.time),
            () => Precedence::Uid,
        })
    }
}
