//! Classical preemption, including hierarchical cohorts (rules/04 §4).

use smallvec::SmallVec;

use super::candidates::{Allowed, Candidate, Merged, Wanted, allowed};
use super::hope::{is_hopeless, patience};
use super::removals::{Removals, Removed};
use super::{Demand, Found, Preemptor, World, borrow_within_cohort, minimise, restore};
use crate::base::amount::Amount;
use crate::base::ids::QueueId;
use crate::objects::{Preemption, PreemptionPolicy};
use crate::quota::forest::NodeId;
use crate::quota::tree::{Row, Tree};
use crate::state::searches::{Holder, Spared};
use crate::status::reasons;

/// How a candidate may be preempted (rules/04 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// In the preemptor's own ClusterQueue.
    WithinQueue,
    /// The preemptor has a hierarchical advantage.
    Hierarchical,
    /// Only if the preemptor will not borrow.
    NoBorrow,
    /// Even if the preemptor borrows.
    WhileBorrowing,
}

impl Kind {
    fn reason(self) -> &'static str {
        match self {
            Kind::WithinQueue => reasons::IN_CLUSTER_QUEUE,
            Kind::Hierarchical | Kind::NoBorrow => reasons::IN_COHORT_RECLAMATION,
            Kind::WhileBorrowing => reasons::IN_COHORT_RECLAIM_WHILE_BORROWING,
        }
    }
}

/// A ClusterQueue with candidates.
#[derive(Clone, Copy, Debug)]
struct Source {
    queue: QueueId,
    row: Row,
    /// Does the preemptor have a hierarchical advantage over it?
    advantage: bool,
    /// The row of the lowest common ancestor with the preemptor; `None`: it is the preemptor's own.
    ancestor: Option<Row>,
}

pub(super) fn find_targets(
    world: &World<'_>,
    tree: &mut Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    wanted: &Wanted<'_>,
) -> Found {
    let Some(preemption) = &world.queues[preemptor.queue].rules.preemption else { return Found::default() };
    let others = collect(world, tree, preemptor, demand, preemption);
    let search = Search { world, wanted, preemptor, demand, preemption, others: &others };
    if !search.has_candidates() {
        return Found::default();
    }
    // All or nothing: an attempt whose candidates are not enough leaves no victims (rules/04 §4.4).
    for &allow_borrowing in search.attempts(tree) {
        let mark = tree.mark();
        let mut removed = Removals::new(world);
        let fits = search.attempt(tree, allow_borrowing, &mut removed);
        if fits {
            minimise(tree, preemptor, demand, allow_borrowing, &mut removed);
        }
        let found = Found { targets: removed.targets(), level: demand.level(tree, preemptor.row) };
        restore(world, tree, mark, &found.targets);
        if fits {
            debug_assert!(!search.is_hopeless(tree), "some candidates were enough, so all are");
            return found;
        }
    }
    Found::default()
}

/// The other ClusterQueues whose workloads may be candidates (rules/04 §4.2).
fn collect(
    world: &World<'_>,
    tree: &Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    preemption: &Preemption,
) -> Vec<Source> {
    let mut sources = Vec::new();
    if preemption.reclaim_within_cohort == PreemptionPolicy::Never {
        return sources;
    }
    let grounds = Grounds::new(tree, preemptor, demand, preemption);
    if !grounds.takes_all && !grounds.ancestors.iter().any(|&(_, advantage)| advantage) {
        return sources;
    }
    for (row, &node) in world.forest.nodes_of(preemptor.tree).iter().enumerate() {
        if row != preemptor.row
            && let Ok((ancestor, advantage)) = grounds.meet(world, tree, demand, row, node)
            && let Some(queue) = world.queue_at(node)
        {
            sources.push(Source { queue, row, advantage, ancestor: Some(ancestor) });
        }
    }
    sources
}

/// What decides whether another ClusterQueue must give up quota (rules/04 §4.2).
struct Grounds {
    /// Each ancestor of the preemptor, and whether it has an advantage over ClusterQueues that meet it there.
    ancestors: SmallVec<[(Row, bool); 4]>,
    /// Or is an advantage not needed?
    takes_all: bool,
}

impl Grounds {
    fn new(tree: &Tree, preemptor: &Preemptor, demand: &Demand, preemption: &Preemption) -> Self {
        let mut remaining = demand.requests.clone();
        let mut advantage = fits_in_quota(tree, preemptor.row, &mut remaining);
        let mut ancestors = SmallVec::new();
        for row in std::iter::successors(tree.parent(preemptor.row), |&row| tree.parent(row)) {
            // Against candidates that meet it in this cohort, it has the advantage from below: the cohort's own quota
            // counts for the next one up (rules/04 §4.2).
            ancestors.push((row, advantage));
            // Once won, an advantage holds for all cohorts further up (rules/04 §4.2).
            advantage |= fits_in_quota(tree, row, &mut remaining);
        }
        let takes_all = borrow_within_cohort(preemption).is_some() || demand.is_under_nominal(tree, preemptor.row);
        Self { ancestors, takes_all }
    }

    /// Where a node meets the preemptor, and whether the preemptor has an advantage there.
    // Inlined, because searches drop the reason: as a call it costs 4 % of the instructions of a search for 10 victims.
    #[inline(always)]
    fn meet(
        &self,
        world: &World<'_>,
        tree: &Tree,
        demand: &Demand,
        row: Row,
        node: NodeId,
    ) -> Result<(Row, bool), Spared> {
        if demand.is_within_nominal(tree, row) {
            return Err(Spared::WithinNominal);
        }
        if !world.forest.is_active(node) {
            return Err(Spared::Inactive);
        }
        let mut above = tree.parent(row);
        while let Some(cohort) = above {
            if let Some(&(_, advantage)) = self.ancestors.iter().find(|ancestor| ancestor.0 == cohort) {
                return if advantage || self.takes_all { Ok((cohort, advantage)) } else { Err(Spared::WouldBorrow) };
            }
            // A cohort within its nominal quota protects everything below it.
            if demand.is_within_nominal(tree, cohort) {
                return Err(Spared::CohortWithinNominal);
            }
            above = tree.parent(cohort);
        }
        Err(Spared::CohortWithinNominal)
    }
}

/// Users of contested resources in the tree, and why each is not a candidate.
pub(super) fn holders(
    world: &World<'_>,
    tree: &Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    wanted: &Wanted<'_>,
) -> Vec<Holder> {
    let none = Preemption::default();
    let preemption = world.queues[preemptor.queue].rules.preemption.as_ref().unwrap_or(&none);
    let grounds = Grounds::new(tree, preemptor, demand, preemption);
    let of_node = |(row, &node): (Row, &NodeId)| {
        let queue = world.queue_at(node)?;
        Some(if row == preemptor.row {
            wanted.holders(world, queue, preemption.within_cluster_queue, None)
        } else {
            let policy = preemption.reclaim_within_cohort;
            let shield = if policy == PreemptionPolicy::Never || policy == PreemptionPolicy::Unset {
                Some(Spared::Policy)
            } else {
                grounds.meet(world, tree, demand, row, node).err()
            };
            wanted.holders(world, queue, policy, shield)
        })
    };
    world.forest.nodes_of(preemptor.tree).iter().enumerate().filter_map(of_node).flatten().collect()
}

/// Does everything fit into the node's subtree quota? What exceeds its unused local quota remains (rules/02 §2.4).
fn fits_in_quota(tree: &Tree, row: Row, remaining: &mut [(Option<usize>, Amount)]) -> bool {
    let mut fits = true;
    for (column, amount) in remaining {
        match *column {
            Some(column) => {
                fits &= !tree.borrowing_with(row, column, *amount);
                *amount = amount.minus(tree.local_available(row, column)).max(Amount::ZERO);
            }
            None => fits &= *amount <= Amount::ZERO,
        }
    }
    fits
}

struct Search<'a> {
    world: &'a World<'a>,
    wanted: &'a Wanted<'a>,
    preemptor: &'a Preemptor,
    demand: &'a Demand,
    preemption: &'a Preemption,
    others: &'a [Source],
}

impl<'a> Search<'a> {
    fn candidates(&self, source: &Source, policy: PreemptionPolicy) -> (QueueId, Allowed<'a>) {
        (source.queue, allowed(self.world, self.wanted, source.queue, policy))
    }

    fn others(&self, advantage: bool) -> impl Iterator<Item = &'a Source> + use<'a> {
        self.others.iter().filter(move |source| source.advantage == advantage)
    }

    /// Candidates with advantage, candidates by priority, and candidates of the own ClusterQueue.
    fn streams(&self, allow_borrowing: bool) -> [(Merged<'a>, Vec<Source>); 3] {
        let of = |sources: Vec<Source>, policy: PreemptionPolicy| {
            (Merged::new(sources.iter().map(|source| self.candidates(source, policy)).collect()), sources)
        };
        // While borrowing, only candidates with advantage are preempted, unless the ClusterQueue allows others.
        let by_priority = !allow_borrowing || borrow_within_cohort(self.preemption).is_some();
        [
            of(self.others(true).copied().collect(), self.preemption.reclaim_within_cohort),
            of(self.others(false).filter(|_| by_priority).copied().collect(), self.preemption.reclaim_within_cohort),
            of(vec![self.own()], self.preemption.within_cluster_queue),
        ]
    }

    fn has_others(&self, advantage: bool) -> bool {
        let policy = self.preemption.reclaim_within_cohort;
        self.others(advantage).any(|source| self.candidates(source, policy).1.next().is_some())
    }

    fn own(&self) -> Source {
        Source { queue: self.preemptor.queue, row: self.preemptor.row, advantage: false, ancestor: None }
    }

    fn has_candidates(&self) -> bool {
        self.candidates(&self.own(), self.preemption.within_cluster_queue).1.next().is_some()
            || self.has_others(true)
            || self.has_others(false)
    }

    /// The attempts to make: is borrowing allowed in each (rules/04 §4.3)?
    fn attempts(&self, tree: &Tree) -> &'static [bool] {
        let forbidden = borrow_within_cohort(self.preemption).is_none();
        let under = || self.demand.is_under_nominal(tree, self.preemptor.row);
        let has_hierarchy = self.has_others(true);
        if (forbidden && !under()) || !(has_hierarchy || self.has_others(false)) {
            &[true]
        } else if forbidden && !has_hierarchy {
            &[false, true]
        } else {
            &[true, false]
        }
    }

    fn kind(&self, candidate: &Candidate<'_>, source: &Source) -> Kind {
        if source.ancestor.is_none() {
            return Kind::WithinQueue;
        }
        if source.advantage {
            return Kind::Hierarchical;
        }
        let Some(threshold) = borrow_within_cohort(self.preemption) else { return Kind::NoBorrow };
        let priority = candidate.key.priority;
        let above = threshold.is_some_and(|threshold| priority > i64::from(threshold));
        // A priority that equals the threshold may still be preempted (rules/04 §4.1).
        if priority >= self.preemptor.priority || above { Kind::NoBorrow } else { Kind::WhileBorrowing }
    }

    /// Removes candidates until the preemptor fits, if it does (rules/04 §4.4).
    fn attempt(&self, tree: &mut Tree, allow_borrowing: bool, removed: &mut Removals<'a>) -> bool {
        let mut streams = self.streams(allow_borrowing);
        let mut shortage = self.demand.shortage(tree, self.preemptor.row, allow_borrowing);
        let patience = patience(self.world, 1 + self.others.len());
        // Evicting what is already evicted costs nothing, so all of these come first (rules/04 §4.2).
        for only_evicted in [true, false] {
            for (stream, sources) in &mut streams {
                while let Some(candidate) =
                    stream.next(only_evicted, |source| self.is_exhausted(tree, &sources[source]))
                {
                    let source = &sources[candidate.source];
                    let kind = self.kind(&candidate, source);
                    if allow_borrowing && kind == Kind::NoBorrow {
                        if let Some(recorder) = self.world.recorder {
                            recorder.pass(candidate.key.id, Spared::Threshold);
                        }
                        continue;
                    }
                    let Candidate { key, queue, .. } = candidate;
                    let last = Removed::take_out(tree, key, queue, source.row, kind.reason());
                    removed.push(last);
                    if removed.len() == patience && self.is_hopeless(tree) {
                        return false;
                    }
                    if shortage.as_mut().is_some_and(|shortage| shortage.lasts(tree, last.usage)) {
                        continue;
                    }
                    shortage = self.demand.shortage(tree, self.preemptor.row, allow_borrowing);
                    if shortage.is_none() && removed.leave_place() {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn is_hopeless(&self, tree: &mut Tree) -> bool {
        let of = |source: Source, policy| (source.queue, source.row, policy);
        let others = self.others.iter().map(|&source| of(source, self.preemption.reclaim_within_cohort));
        let queues = others.chain([of(self.own(), self.preemption.within_cluster_queue)]);
        is_hopeless(self.world, tree, self.preemptor, self.demand, self.wanted, queues)
    }

    /// Does preempting there no longer help? Since victims are only removed, that stays so.
    fn is_exhausted(&self, tree: &Tree, source: &Source) -> bool {
        // The own ClusterQueue is never exhausted, however little it uses (rules/04 §4.4).
        let Some(ancestor) = source.ancestor else { return false };
        // The ClusterQueue itself and every cohort strictly between it and the common ancestor.
        let path = std::iter::successors(Some(source.row), |&row| tree.parent(row));
        path.take_while(|&row| row != ancestor).any(|row| self.demand.is_within_nominal(tree, row))
    }
}
