//! The result of a cycle, as plain data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::base::key::Key;
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::objects::conditions::MAX_EVENT_MESSAGE;
use crate::objects::message::Message;
use crate::objects::{Admission, Time};
use crate::queue::Parked;

/// The decisions of one scheduling cycle.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Number of the cycle, from 1; 0 if there was no head and so no cycle.
    pub cycle: u64,
    /// Workloads that got quota, in the order of the decisions.
    pub admissions: Vec<Admitted>,
    /// Workloads with quota whose admission a second pass has changed: placed after a delay, or in place of a failed
    /// host, or only with the count of pods that are left.
    pub placed: Vec<Admitted>,
    /// Workloads that lose their quota because there is no replacement for a failed host.
    pub evictions: Vec<Evicted>,
    /// Their flavors, by ids: pod set by pod set, resource by resource.
    pub flavors: Vec<AssignedFlavor>,
    /// Preempted workloads: marked, but they keep their quota until they have stopped.
    pub preemptions: Vec<Preempted>,
    /// Slices of elastic workloads that ended because their replacements got quota.
    pub replaced: Vec<Replaced>,
    /// Heads that stayed pending, in the order of the decisions.
    pub pending: Vec<Kept>,
    /// Workloads that were parked with a head of the same shape, without an evaluation (rules/05 §4).
    pub parked: Vec<Parked>,
    /// Kubernetes events, in order.
    pub events: Vec<Event>,
    /// Per ClusterQueue: preemptions that were skipped because of other entries of the cycle (rules/05 §6.4).
    pub skipped_preemptions: BTreeMap<String, u32>,
    /// Per ClusterQueue: results of assigning an entry again because its targets were already victims (rules/05 §6.4).
    pub target_recomputations: BTreeMap<String, BTreeMap<&'static str, u32>>,
    /// Workloads that need a decision the engine does not make.
    pub undecided: Vec<Undecided>,
    /// The head that fits but waits until the pods of all workloads with quota are ready: the cycle is not over, and
    /// the next call continues it (rules/07 §6).
    pub waits_for_pods: Option<Key>,
    /// How many parked workloads went back to their heaps before the heads were taken.
    pub unparked: usize,
}

/// An index in a decision, which has at most as many workloads as there are ids.
pub(crate) fn index(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 of a kind")
}

impl Decision {
    /// Keys of the workloads that were parked with a head of the same shape.
    pub fn parked_keys(&self) -> impl Iterator<Item = &Key> {
        self.parked.iter().flat_map(Parked::keys)
    }

    /// Adds what the same cycle decided after it had waited.
    pub(crate) fn go_on(&mut self, rest: Decision) {
        let Decision { admissions, flavors, preemptions, replaced, pending, parked, events, undecided, .. } = rest;
        self.placed.extend(rest.placed);
        self.evictions.extend(rest.evictions);
        let n_before = index(self.admissions.len());
        self.admissions.extend(admissions);
        let behind = |it: AssignedFlavor| AssignedFlavor { admission: it.admission + n_before, ..it };
        self.flavors.extend(flavors.into_iter().map(behind));
        self.preemptions.extend(preemptions);
        self.replaced.extend(replaced);
        self.pending.extend(pending);
        self.parked.extend(parked);
        self.events.extend(events);
        self.undecided.extend(undecided);
        for (queue, n) in rest.skipped_preemptions {
            *self.skipped_preemptions.entry(queue).or_default() += n;
        }
        for (queue, results) in rest.target_recomputations {
            let of_queue = self.target_recomputations.entry(queue).or_default();
            for (result, n) in results {
                *of_queue.entry(result).or_default() += n;
            }
        }
        self.waits_for_pods = rest.waits_for_pods;
    }

    /// Did a workload get quota or a place, or lose them?
    pub fn has_decided(&self) -> bool {
        let Self { admissions, placed, preemptions, evictions, .. } = self;
        !(admissions.is_empty() && placed.is_empty() && preemptions.is_empty() && evictions.is_empty())
    }

    /// Did the cycle change anything but messages: a reservation, a preemption, or the contents of a heap or of the
    /// parked workloads?
    pub fn has_changed_something(&self) -> bool {
        self.unparked > 0
            || self.has_decided()
            || !self.parked.is_empty()
            || self.pending.iter().any(|kept| kept.parked)
    }
}

/// A workload that got quota.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub key: Key,
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: QueueId,
    pub admission: Shared<Admission>,
    /// Is it Admitted, or does it wait for admission checks?
    pub is_admitted: bool,
    /// When: the time of the cycle, or later if that waited.
    pub at: Time,
}

/// A workload that is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    pub key: Key,
    pub workload: WorkloadId,
    /// Reason of its condition Evicted.
    pub reason: &'static str,
    /// Kueue's message.
    pub message: Message,
    /// Was it Evicted before, so that its condition was rewritten?
    pub again: bool,
    /// The message of its event SecondPassFailed if this can't be written.
    pub unwritten: Message,
}

/// The flavor of one resource of a pod set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedFlavor {
    /// Index in [`Decision::admissions`].
    pub admission: u32,
    /// Index of the pod set.
    pub pod_set: u32,
    /// Pods that may start.
    pub count: i32,
    pub resource: ResourceId,
    pub flavor: FlavorId,
    /// The total of the pod set: milli-units of `cpu`, whole units of the rest.
    pub amount: i64,
}

/// A workload that is preempted.
#[derive(Clone, Debug)]
pub struct Preempted {
    pub key: Key,
    pub workload: WorkloadId,
    /// The ClusterQueue whose quota it holds.
    pub queue: Text,
    /// Its id; `None` if it no longer holds any.
    pub queue_id: Option<QueueId>,
    pub preemptor: Key,
    /// The slot of that workload.
    pub preemptor_id: WorkloadId,
    /// Reason of its condition Preempted; `FlavorMigration`, of Evicted, for a variant that another one replaces.
    pub reason: &'static str,
    /// Kueue's message.
    pub message: Message,
}

/// A slice that is finished because a newer one replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub key: Key,
    /// The slice that got quota in its place.
    pub successor: Key,
    /// Kueue's message.
    pub message: Message,
}

/// A head that stayed pending.
#[derive(Clone, Debug)]
pub struct Kept {
    pub key: Key,
    pub workload: WorkloadId,
    /// Its ClusterQueue.
    pub queue: Text,
    pub queue_id: QueueId,
    /// Reason of its condition QuotaReserved; empty if none was written.
    pub reason: &'static str,
    /// Kueue's message.
    pub message: Message,
    /// Where it went: parked, or back into the heap.
    pub parked: bool,
    /// Has its status changed?
    pub written: bool,
}

/// An event on a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    pub reason: Cow<'static, str>,
    pub key: Key,
    /// Its message; [`Event::text`] is the part that is shown.
    pub message: Message,
}

impl Event {
    /// Its message in at most 1024 bytes, except for the two events that name the priorities of a preemption: Kueue
    /// does not cut those.
    pub fn text(&self) -> Text {
        let limit = match self.message {
            Message::PreemptedWithPriorities(_) | Message::PreemptedFor(_) => usize::MAX,
            _ => MAX_EVENT_MESSAGE,
        };
        self.message.cut(limit)
    }
}

/// A workload that needs a decision the engine does not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    pub key: Key,
    /// The responsible field.
    pub field: String,
    /// What is missing.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::config::Config;
    use crate::objects::{Preemption, PreemptionPolicy, Workload};
    use crate::testing::{World, workload};

    #[test]
    fn ids_and_names_of_a_decision_agree() {
        let mut world = World::new(Config::default());
        world.submit(workload("a", "6"));
        let admitted = world.cycle();
        world.submit(workload("b", "6"));
        let kept = world.cycle();
        let names = &world.engine.state.names;
        let it = &admitted.admissions[0];
        assert_eq!((it.workload, &names.queues[it.queue]), (world.id("a"), &it.admission.cluster_queue));
        let got = admitted.flavors[0];
        assert_eq!((admitted.flavors.len(), got.admission, got.pod_set, got.count, got.amount), (1, 0, 0, 1, 6000));
        assert_eq!((names.resource_text(got.resource), names.flavors[got.flavor].as_str()), ("cpu", "default"));
        let it = &kept.pending[0];
        assert_eq!((it.workload, &names.queues[it.queue_id]), (world.id("b"), &it.queue));
    }

    #[test]
    fn only_events_that_name_priorities_are_longer_than_events_may_be() {
        let mut world = World::new(Config::default());
        world.change_cluster_queue(|queue| {
            let within_cluster_queue = PreemptionPolicy::LowerPriority;
            queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
        });
        world.submit(workload("low", "6"));
        world.cycle();
        let mut high = Workload { priority: Some(1), ..workload("high", "6") };
        high.meta.key = Key::new("ns", "high", &"u".repeat(2 * MAX_EVENT_MESSAGE));
        world.submit(high);
        let events = world.cycle().events;
        let lengths = |reason: &str| -> Vec<bool> {
            let of_reason = events.iter().filter(|event| event.reason == reason);
            of_reason.map(|event| event.text().len() > MAX_EVENT_MESSAGE).collect()
        };
        assert_eq!((lengths("Preempted"), lengths("EvictedDueToPreempted")), (vec![true], vec![false]), "{events:?}");
        assert!(events.iter().any(|event| event.message.text().len() > event.text().len()), "one is cut");
    }

    #[test]
    fn decisions_after_a_wait_follow_the_earlier_ones() {
        let mut world = World::new(Config::default());
        world.submit(workload("a", "6"));
        let mut decision = world.cycle();
        decision.go_on(decision.clone());
        assert_eq!(decision.flavors.iter().map(|it| it.admission).collect::<Vec<_>>(), [0, 1]);
    }
}
