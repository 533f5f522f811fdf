//! What must not happen, whatever arrives (docs/prove.md).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Arrival, Course, Ending, Explorer, Move, Spot, TICK_NS};
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, QueueId};
use crate::quota::forest::Forest;
use crate::schedule::decision::Preempted;
use crate::status::reasons;

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// No state comes back after an eviction, unless equals take turns.
    Loops,
    /// What fits within the nominal quota that its ClusterQueue does not use is admitted, after evictions if need be.
    Guarantee,
    /// Nobody is evicted for another ClusterQueue while its own uses no more than its nominal quota.
    NominalQuota,
    /// After evictions no less is in use than before.
    Waste,
    /// Nobody who fits alone waits for ever while those who run are followed by others like them.
    Starvation,
    /// No equals take turns for ever, which is what an experiment asks for (rules/13 §4).
    Turns,
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Loops, Self::Guarantee, Self::NominalQuota, Self::Waste, Self::Starvation, Self::Turns];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loops => "loops",
            Self::Guarantee => "guarantee",
            Self::NominalQuota => "nominal-quota",
            Self::Waste => "waste",
            Self::Starvation => "starvation",
            Self::Turns => "turns",
        }
    }
}

/// Quota in use, by flavor and resource.
pub(super) type InUse = BTreeMap<FlavorResourceId, Amount>;

impl Explorer {
    /// Is a property broken by a move, after which `spot` was reached in this course?
    pub(super) fn is_broken(&self, property: Property, before: &InUse, spot: &mut Spot, course: &Course) -> bool {
        match property {
            Property::Loops => {
                course.ending == Ending::Repeats && course.preempted().next().is_some() && !take_turns(spot, course)
            }
            Property::Turns => course.ending == Ending::Repeats && take_turns(spot, course),
            Property::NominalQuota => course.cycles.iter().any(|cycle| cycle.takes_nominal_quota),
            _ if course.ending != Ending::Rest => false,
            // No policy gives back what lost nodes had.
            Property::Guarantee if spot.lost != 0 => false,
            Property::Guarantee => spot.arrivals.iter().any(|arrival| self.is_denied_its_own(spot, *arrival)),
            Property::Waste => course.preempted().next().is_some() && is_less(&in_use(spot), before),
            Property::Starvation => (0..spot.arrivals.len()).any(|n| self.starves(spot, n)),
        }
    }

    /// Is a workload preempted for another ClusterQueue, although its own uses no more than its nominal quota?
    pub(super) fn takes_nominal_quota(&self, spot: &Spot, preempted: &Preempted) -> bool {
        let state = &spot.engine.state;
        let of_preemptor = state.workloads.row(preempted.preemptor_id).queued_in;
        let Some(queue) = preempted.queue_id.filter(|queue| of_preemptor.is_none_or(|it| it != *queue)) else {
            return false;
        };
        // It holds its quota until it is released.
        let charge = state.workloads.get(preempted.workload).charge.as_ref();
        charge.is_some_and(|charge| charge.usage.iter().all(|(pair, _)| !exceeds(spot, queue, *pair, Amount::ZERO)))
    }

    /// Does a workload wait, alone in its ClusterQueue, although there is room for it within the nominal quota?
    fn is_denied_its_own(&self, spot: &Spot, arrival: Arrival) -> bool {
        let Some(wanted) = arrival.shape.and_then(|shape| self.shapes[usize::from(shape)].alone.as_ref()) else {
            return false;
        };
        if !spot.is_pending(arrival) {
            return false;
        }
        let queue_of = |arrival: Arrival| spot.engine.state.workloads.row(arrival.id).queued_in;
        let Some(queue) = queue_of(arrival) else { return false };
        let mut waiting = spot.arrivals.iter().filter(|it| spot.is_pending(**it) && queue_of(**it) == Some(queue));
        let is_alone = waiting.next().is_some() && waiting.next().is_none();
        is_alone && wanted.iter().all(|(pair, amount)| !exceeds(spot, queue, *pair, *amount))
    }

    /// Does a workload wait for ever if, whenever the one that has run longest ends, another like it arrives?
    fn starves(&self, spot: &mut Spot, n: usize) -> bool {
        let waits = spot.arrivals[n];
        let fits = waits.shape.is_some_and(|shape| self.shapes[usize::from(shape)].alone.is_some());
        // If one of a shape waits for ever, so does the one that arrived first.
        let is_behind = spot.arrivals[..n].iter().any(|it| it.shape == waits.shape && spot.is_pending(*it));
        if !fits || is_behind || !spot.is_pending(waits) {
            return false;
        }
        let mut later = spot.fork();
        let n_there = spot.arrivals.iter().filter(|it| !it.is_gone).count();
        let mut visits: FxHashMap<u64, usize> = FxHashMap::default();
        for _ in 0..10 * spot.arrivals.len() {
            let running = |it: &usize| later.holds_quota(later.arrivals[*it]);
            let holding: Vec<usize> = (0..later.arrivals.len()).filter(running).collect();
            let since = |it: &usize| later.engine.state.workloads.row(later.arrivals[*it].id).reserved;
            let Some(longest) = holding.iter().copied().min_by_key(|it| (since(it), *it)) else { return false };
            // Whoever goes first may come first for ever: that is what priorities are for.
            let priority = |n: usize| later.engine.state.workloads.row(later.arrivals[n].id).priority;
            if holding.iter().any(|other| priority(*other) > priority(n)) {
                return false;
            }
            let Some(shape) = later.arrivals[longest].shape else { return false };
            self.end(&mut later, longest);
            later.now.0 -= TICK_NS;
            let course = self.play_move(&mut later, Move::Arrive(shape));
            if course.is_none_or(|it| it.ending != Ending::Rest) || !later.is_pending(waits) {
                return false;
            }
            let n_visits = visits.entry(self.standing(&later)).or_default();
            *n_visits += 1;
            // Those of one shape stand alike: each visit may bring it nearer to the head of its queue.
            if *n_visits > n_there {
                return true;
            }
        }
        false
    }
}

/// Is it the experiment of time shares that keeps a turn going: is each preemption within a ClusterQueue, and one of them
/// that of an equal (rules/13 §4)? Workloads of lower priority fill the room in between, and make way again.
fn take_turns(spot: &Spot, course: &Course) -> bool {
    let state = &spot.engine.state;
    if state.config.experiments.time_share_ns.is_none() {
        return false;
    }
    let priority = |id| state.workloads.row(id).priority;
    let preempted = || course.turn().iter().flat_map(|cycle| &cycle.preempted);
    preempted().all(|it| it.reason == reasons::IN_CLUSTER_QUEUE)
        && preempted().any(|it| priority(it.workload) == priority(it.preemptor_id))
}

/// Would a ClusterQueue use more than its nominal quota if it used so much more of a flavor and resource?
fn exceeds(spot: &Spot, queue: QueueId, pair: FlavorResourceId, more: Amount) -> bool {
    let state = &spot.engine.state;
    let Some(node) = state.queues[queue].node else { return true };
    let nominal = state.ledger.forest.quotas(node).get(&pair).map_or(Amount::ZERO, |quota| quota.nominal);
    usage(&state.ledger.forest, node, pair).plus(more) > nominal
}

fn usage(forest: &Forest, node: crate::quota::forest::NodeId, pair: FlavorResourceId) -> Amount {
    let (tree, row) = forest.locate(node);
    let tree = forest.tree(tree);
    tree.column(pair).map_or(Amount::ZERO, |column| tree.usage(row, column))
}

/// What all workloads use.
pub(super) fn in_use(spot: &Spot) -> InUse {
    let mut sum = InUse::new();
    for arrival in spot.arrivals.iter().filter(|it| !it.is_gone) {
        let charge = spot.engine.state.workloads.get(arrival.id).charge.as_ref();
        for (pair, amount) in charge.iter().flat_map(|charge| charge.usage.iter()) {
            let before = sum.entry(*pair).or_default();
            *before = before.plus(*amount);
        }
    }
    sum
}

/// Is less in use, and of nothing more?
fn is_less(after: &InUse, before: &InUse) -> bool {
    let is_most = |pair: &FlavorResourceId, amount: &Amount| before.get(pair).is_some_and(|before| before >= amount);
    after != before && after.iter().all(|(pair, amount)| is_most(pair, amount))
}
