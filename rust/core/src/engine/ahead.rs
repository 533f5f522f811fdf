//! Who is ahead of a workload in its ClusterQueue, and by which rule (rules/05 §2, rules/09 §1.5).

use crate::base::ids::{LocalQueueId, WorkloadId};
use crate::objects::Time;
use crate::queue::OrderKey;
use crate::state::State;

/// A workload ahead of another one.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    pub workload: WorkloadId,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::config::{AdmissionFairSharing, Config};
    use crate::objects::{ClusterQueue, Meta, Object, Workload};
    use crate::testing::{SECOND, World, at, cluster_queue, local_queue, namespaced, quantity, workload};

    /// A workload that never fits, of this priority, created at this second.
    fn waiting(name: &str, priority: i32, created: i64) -> Workload {
        let meta = Meta { created: at(created), ..namespaced(name) };
        Workload { meta: meta.into(), priority: Some(priority), ..workload(name, "99") }
    }

    /// Who is ahead of `w`, by name.
    fn ahead_of_w(world: &World) -> Vec<(String, Precedence)> {
        let found = world.engine.state.ahead_of(world.id("w"));
        let name = |id| world.engine.state.workloads.get(id).key().name().to_owned();
        let mut named: Vec<_> = found.into_iter().map(|it| (name(it.workload), it.why)).collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named
    }

    #[test]
    fn the_first_rule_that_differs_says_why_a_workload_is_ahead() {
        let mut world = World::new(Config::default());
        let others = [
            waiting("higher", 2, 9),
            waiting("later", 1, 6),
            waiting("lower", 0, 1),
            waiting("older", 1, 4),
            waiting("same", 1, 5),
        ];
        for workload in others.into_iter().chain([waiting("w", 1, 5)]) {
            world.submit(workload);
        }
        let expected = [
            ("higher".to_owned(), Precedence::Priority(2)),
            ("older".to_owned(), Precedence::Time(at(4))),
            ("same".to_owned(), Precedence::Uid),
        ];
        assert_eq!(ahead_of_w(&world), expected);
        // Parked ones count, too.
        for _ in 0..6 {
            world.cycle();
        }
        assert_eq!(ahead_of_w(&world), expected);
    }

    #[test]
    fn usage_of_local_queues_goes_before_priority() {
        let fair = AdmissionFairSharing {
            usage_half_life_ns: 10 * SECOND,
            usage_sampling_interval_ns: 10 * SECOND,
            ..AdmissionFairSharing::default()
        };
        let mut world = World::new(Config { admission_fair_sharing: Some(fair), ..Config::default() });
        // Kueue reads this of a ClusterQueue only when it is created.
        world.apply([Object::ClusterQueue(ClusterQueue { usage_based_admission: true, ..cluster_queue("fair", "9") })]);
        for (name, used, priority) in [("busy", "8", 9), ("idle", "1", 9), ("middling", "4", 0)] {
            let mut queue = local_queue(name, "fair");
            queue.consumed_resources = Some([("cpu".to_owned(), quantity(used))].into());
            world.apply([Object::LocalQueue(queue)]);
            let workload = if priority == 0 { "w".to_owned() } else { format!("of-{name}") };
            world.submit(Workload { queue_name: name.into(), ..waiting(&workload, priority, 1) });
        }
        let found = ahead_of_w(&world);
        assert!(
            matches!(&found[..], [(name, Precedence::Usage { theirs, ours })]
            if name == "of-idle" && theirs.1 < ours.1),
            "{found:?}"
        );
    }
}
