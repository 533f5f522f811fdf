//! Preemption: which workloads give way to a pending one (rules/04).
//!
//! A search removes candidates from the quota tree until the workload fits, puts back those that were not needed, and
//! restores the tree.

mod candidates;
mod classical;
mod fair;
mod hope;
mod order;
mod removals;

use std::collections::BTreeSet;

use candidates::Wanted;
use removals::{Removals, Removed};
use rustc_hash::FxHashMap;

use crate::assign::{Assignment, Mode, Oracle, Possibility};
use crate::base::amount::Amount;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorResourceId, IdVec, LocalQueueId, QueueId, WorkloadId};
use crate::base::names::Names;
use crate::objects::config::{Config, PreemptionStrategy};
use crate::objects::{Preemption, PreemptionPolicy, Time};
use crate::quota::forest::{Forest, NodeId, TreeId};
use crate::quota::share::Share;
use crate::quota::tree::{Column, Mark, Row, Tree};
use crate::state::experiments::ExperimentWaits;
use crate::state::records::{LocalQueueRecord, Owner, QueueRecord};
use crate::state::searches::{Holder, Recorder, Search, Spared};
use crate::workloads::Workloads;
use crate::workloads::charge::Target;

/// The inputs of a search; the quota tree is separate, because the search modifies it for trials.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The cohort trees.
    pub forest: &'a Forest,
    /// The owners of nodes.
    pub owners: &'a IdVec<NodeId, Option<Owner>>,
    /// ClusterQueues with their candidates.
    pub queues: &'a IdVec<QueueId, QueueRecord>,
    /// LocalQueues with their usage.
    pub local_queues: &'a IdVec<LocalQueueId, LocalQueueRecord>,
    pub workloads: &'a Workloads,
    pub names: &'a Names,
    pub config: &'a Config,
    /// The time of the cycle, and what waits for that of an experiment.
    pub now: Time,
    pub experiments: &'a ExperimentWaits,
    /// The placement check, if the preemptor must be placed, too.
    pub placing: Option<&'a dyn Placing>,
    /// The recorder, if an explanation is wanted.
    pub recorder: Option<&'a Recorder>,
}

/// Whether the preemptor has a place on nodes once others are gone (rules/08 §11.6).
pub trait Placing {
    /// Records that a workload counts as gone, or no longer does.
    fn note(&self, target: &Target, is_gone: bool);

    /// Is there a place for all of its pods now? `gone` lists the workloads that count as gone.
    fn has_place(&self, gone: &dyn Fn() -> Vec<Target>) -> bool;
}

impl World<'_> {
    fn queue_at(&self, node: NodeId) -> Option<QueueId> {
        match self.owners[node] {
            Some(Owner::Queue(queue)) => Some(queue),
            _ => None,
        }
    }

    fn row(&self, node: NodeId) -> Row {
        self.forest.locate(node).1
    }

    /// The current share of a node of the preemptor's tree.
    fn share(&self, preemptor: &Preemptor, tree: &Tree, node: NodeId) -> Share {
        let resources = self.forest.resources_of(preemptor.tree);
        tree.share(self.row(node), self.forest.weight(node), resources, &[])
    }
}

/// The workload that needs room.
#[derive(Clone, Copy, Debug)]
pub struct Preemptor {
    /// Its ClusterQueue.
    pub queue: QueueId,
    /// The node of the ClusterQueue.
    pub node: NodeId,
    pub tree: TreeId,
    pub row: Row,
    /// Effective priority.
    pub priority: i64,
    /// Queue-order time.
    pub time: Time,
    /// Does it hold quota already?
    pub has_reservation: bool,
}

/// What needs room.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// `F`: the flavor-resources on which preemption is needed, by column.
    contested: Vec<Column>,
    /// `F`.
    flavor_resources: Vec<FlavorResourceId>,
    /// `R`: all requests of the workload; a column missing in the tree offers nothing.
    requests: Vec<(Option<Column>, Amount)>,
}

impl Demand {
    /// The demand of an assignment of mode Preempt (rules/04 §1).
    pub fn of_assignment(assignment: &Assignment, requests: &[(FlavorResourceId, Amount)], tree: &Tree) -> Self {
        let contested: BTreeSet<Column> = assignment
            .pod_sets()
            .iter()
            .flat_map(|ps| &ps.flavors)
            .filter(|choice| choice.mode == Mode::Preempt)
            .filter_map(|choice| tree.column(choice.pair?))
            .collect();
        let requests = requests.iter().map(|&(fr, amount)| (tree.column(fr), amount)).collect();
        Self::new(tree, contested.into_iter().collect(), requests)
    }

    fn new(tree: &Tree, contested: Vec<Column>, requests: Vec<(Option<Column>, Amount)>) -> Self {
        let flavor_resources = contested.iter().map(|&column| tree.columns()[column]).collect();
        Self { contested, flavor_resources, requests }
    }

    /// Is usage below nominal quota for everything contested?
    fn is_under_nominal(&self, tree: &Tree, row: Row) -> bool {
        self.contested.iter().all(|&c| tree.nominal(row, c) > tree.usage(row, c))
    }

    fn is_within_nominal(&self, tree: &Tree, row: Row) -> bool {
        self.contested.iter().all(|&c| tree.subtree_quota(row, c) >= tree.usage(row, c))
    }

    /// Does everything fit, with or without borrowing (rules/04 §4.4)?
    fn fits(&self, tree: &Tree, row: Row, allow_borrowing: bool) -> bool {
        self.shortage(tree, row, allow_borrowing).is_none()
    }

    /// The borrowing level.
    fn level(&self, tree: &Tree, row: Row) -> u32 {
        let level = |&(column, amount): &(Option<_>, _)| tree.room(row, column?, amount).level.into();
        self.requests.iter().filter_map(level).max().unwrap_or(0)
    }

    /// The first request that does not fit; `None`: everything fits.
    fn shortage(&self, tree: &Tree, row: Row, allow_borrowing: bool) -> Option<Shortage> {
        self.requests.iter().find_map(|&(column, amount)| {
            let Some(column) = column else {
                return (amount > Amount::ZERO).then_some(Shortage { of: None, amount: Amount::UNLIMITED });
            };
            let available = tree.available_unclamped(row, column);
            let is_too_much = amount > available.max(Amount::ZERO);
            let mut missing = if is_too_much { amount.minus(available) } else { Amount::ZERO };
            if !allow_borrowing {
                missing = missing.max(tree.usage(row, column).plus(amount).minus(tree.subtree_quota(row, column)));
            }
            // A saturated sum may have lost something, so nothing is known about the missing amount.
            let least = if amount.is_huge() { Amount::ZERO } else { missing };
            (missing > Amount::ZERO).then_some(Shortage { of: Some(tree.columns()[column]), amount: least })
        })
    }
}

/// The result of a search: nothing if no set of candidates makes enough room.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The workloads to preempt, in Kueue's order.
    pub targets: Vec<Target>,
    /// How far up the tree the preemptor borrows once they are gone.
    level: u32,
}

/// How much of a flavor-resource is missing. A lower bound: freeing less, anywhere in the tree, cannot help.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    /// `None`: the tree does not have it.
    of: Option<FlavorResourceId>,
    amount: Amount,
}

impl Shortage {
    /// Is something certainly missing after this much more was freed?
    fn lasts(&mut self, tree: &Tree, usage: &[(FlavorResourceId, Amount)]) -> bool {
        if let Some((_, amount)) = usage.iter().find(|(fr, _)| Some(*fr) == self.of) {
            self.amount = self.amount.minus(*amount);
        }
        self.amount > Amount::ZERO && !tree.may_saturate()
    }
}

/// Searches for workloads to preempt.
pub fn find_targets(world: &World<'_>, tree: &mut Tree, preemptor: &Preemptor, demand: &Demand) -> Found {
    let Some(recorder) = world.recorder else { return search(world, tree, preemptor, demand) };
    let holders = holders(world, tree, preemptor, demand);
    recorder.begin(Search::new(demand.flavor_resources.clone(), holders, world.placing.is_some()));
    let found = search(world, tree, preemptor, demand);
    recorder.end(&found.targets);
    found
}

/// A search that is not made, because the preemptor would exceed its nominal quota and may not preempt for that
/// (rules/03 §4.1): users of a flavor-resource in its tree.
pub(crate) fn search_not_made(
    world: &World<'_>,
    tree: &Tree,
    preemptor: &Preemptor,
    fr: FlavorResourceId,
    amount: Amount,
) -> Search {
    let column = tree.column(fr);
    let demand = Demand::new(tree, column.into_iter().collect(), vec![(column, amount)]);
    let mut holders = holders(world, tree, preemptor, &demand);
    holders.iter_mut().for_each(|holder| holder.spared = holder.spared.or(Some(Spared::WouldBorrow)));
    Search::new(vec![fr], holders, false)
}

/// Users of contested resources in the tree, and why each is not a candidate.
fn holders(world: &World<'_>, tree: &Tree, preemptor: &Preemptor, demand: &Demand) -> Vec<Holder> {
    let wanted = Wanted::new(world, preemptor, &demand.flavor_resources);
    match &world.config.fair_sharing {
        None => classical::holders(world, tree, preemptor, demand, &wanted),
        Some(_) => fair::holders(world, tree, preemptor, demand, &wanted),
    }
}

fn search(world: &World<'_>, tree: &mut Tree, preemptor: &Preemptor, demand: &Demand) -> Found {
    if !may_preempt(world, preemptor) {
        return Found::default();
    }
    let wanted = Wanted::new(world, preemptor, &demand.flavor_resources);
    match &world.config.fair_sharing {
        None => classical::find_targets(world, tree, preemptor, demand, &wanted),
        Some(fair_sharing) => {
            let both = [PreemptionStrategy::LessThanOrEqualToFinalShare, PreemptionStrategy::LessThanInitialShare];
            let strategies: &[PreemptionStrategy] =
                if fair_sharing.preemption_strategies.is_empty() { &both } else { &fair_sharing.preemption_strategies };
            fair::find_targets(world, tree, preemptor, demand, &wanted, strategies)
        }
    }
}

/// Does the ClusterQueue allow any preemption?
fn may_preempt(world: &World<'_>, preemptor: &Preemptor) -> bool {
    let allows = |policy| !matches!(policy, PreemptionPolicy::Never | PreemptionPolicy::Unset);
    let preemption = &world.queues[preemptor.queue].rules.preemption;
    preemption.as_ref().is_some_and(|p| allows(p.within_cluster_queue) || allows(p.reclaim_within_cohort))
}

/// Ends a what-if in which `targets` were removed. Saturated sums end up where adding the targets back one by one
/// leads, as in Kueue, until the cycle ends (rules/02 §1); all others are restored.
pub(crate) fn restore(world: &World<'_>, tree: &mut Tree, mark: Mark, targets: &[Target]) {
    if !tree.has_saturated() {
        return tree.rollback(mark);
    }
    tree.keep(mark);
    for target in targets {
        put_back(world, tree, target.queue, target.workload);
    }
}

/// Removes the workloads that charge anything to this tree, and returns them.
pub(crate) fn remove_from_tree(
    world: &World<'_>,
    tree: &mut Tree,
    id: TreeId,
    workloads: &BTreeSet<WorkloadId>,
) -> Vec<Target> {
    if workloads.is_empty() {
        return Vec::new();
    }
    let target_of = |&workload: &WorkloadId| {
        let queue = world.workloads.get(workload).cached_in()?;
        let is_here = world.queues[queue].node.is_some_and(|node| world.forest.locate(node).0 == id);
        is_here.then_some(Target { workload, queue, reason: "" })
    };
    let mut targets: Vec<Target> = workloads.iter().filter_map(target_of).collect();
    if tree.has_saturated() {
        // Only then the order matters, which Kueue does not define.
        targets.sort_by_cached_key(|target| world.workloads.get(target.workload).key().clone());
    }
    for target in &targets {
        remove_workload(world, tree, target.queue, target.workload);
    }
    targets
}

/// Removes a workload's charge from the tree.
pub(crate) fn remove_workload(world: &World<'_>, tree: &mut Tree, queue: QueueId, workload: WorkloadId) {
    change_usage(world, tree, queue, workload, Tree::remove_all);
}

fn put_back(world: &World<'_>, tree: &mut Tree, queue: QueueId, workload: WorkloadId) {
    change_usage(world, tree, queue, workload, Tree::add_all);
}

fn change_usage(
    world: &World<'_>,
    tree: &mut Tree,
    queue: QueueId,
    workload: WorkloadId,
    change: impl Fn(&mut Tree, Row, &[(FlavorResourceId, Amount)]),
) {
    let (row, usage) = charge(world, queue, workload);
    change(tree, row, usage);
}

/// The tree position and amounts of a workload's charge, if any.
fn charge<'a>(world: &World<'a>, queue: QueueId, workload: WorkloadId) -> (Row, &'a [(FlavorResourceId, Amount)]) {
    let charge = world.workloads.get(workload).charge.as_deref();
    match (charge, world.queues[queue].node) {
        (Some(charge), Some(node)) => (world.row(node), &charge.usage),
        _ => (0, &[]),
    }
}

/// Drops targets that are not needed, last added first; the last of the list moves to the place of a dropped one
/// (rules/04 §4.5). At the start all targets are out of the tree; at the end only those that stay targets.
fn minimise(
    tree: &mut Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    allow_borrowing: bool,
    removed: &mut Removals<'_>,
) {
    // If this much is needed, so is more: what others leave only becomes less.
    let mut needed: FxHashMap<Row, &[(FlavorResourceId, Amount)]> = FxHashMap::default();
    for i in (0..removed.len().saturating_sub(1)).rev() {
        let last = removed[i];
        let Removed { row, usage, .. } = last;
        if needed.get(&row).is_some_and(|least| is_at_least(usage, least)) && !tree.may_saturate() {
            continue;
        }
        tree.add_all(row, usage);
        if !demand.fits(tree, preemptor.row, allow_borrowing) {
            tree.remove_all(row, usage);
            needed.insert(row, usage);
            continue;
        }
        removed.swap_remove(i);
        if !removed.leave_place() {
            removed.undo_swap_remove(i, last);
            tree.remove_all(row, usage);
        }
    }
}

/// Is it at least as much of the same flavor-resources?
fn is_at_least(usage: &[(FlavorResourceId, Amount)], least: &[(FlavorResourceId, Amount)]) -> bool {
    usage.len() == least.len() && usage.iter().zip(least).all(|(a, b)| a.0 == b.0 && a.1 >= b.1)
}

/// May the preemptor's ClusterQueue preempt in other ClusterQueues while it borrows (rules/04 §4.1)?
fn borrow_within_cohort(preemption: &Preemption) -> Option<Option<i32>> {
    let configured = preemption.borrow_within_cohort.as_ref()?;
    (configured.policy != PreemptionPolicy::Never).then_some(configured.max_priority_threshold)
}

/// The oracle of flavor assignment: a search for one flavor-resource (rules/04 §6).
pub struct Simulation<'a> {
    world: World<'a>,
    preemptor: Preemptor,
    /// The last search and its result.
    last: Option<(Demand, Found)>,
}

impl<'a> Simulation<'a> {
    /// Searches for a preemptor, valid while `world` does not change.
    pub fn new(world: World<'a>, preemptor: Preemptor) -> Self {
        Self { world, preemptor, last: None }
    }

    /// [`find_targets`] on the tree of the assignment.
    pub fn targets(&mut self, tree: &mut Tree, demand: Demand) -> Vec<Target> {
        self.find(tree, demand).targets.clone()
    }

    /// A search restores the tree, so the same search has the same result: a request for one resource was already
    /// searched when its flavor was chosen.
    fn find(&mut self, tree: &mut Tree, demand: Demand) -> &Found {
        let last = self.last.take().filter(|(last, _)| *last == demand && !tree.has_saturated());
        let found = last.map(|(_, found)| found);
        let found = found.unwrap_or_else(|| find_targets(&self.world, tree, &self.preemptor, &demand));
        &self.last.insert((demand, found)).1
    }

    /// The same if the preemptor must be placed, too.
    pub fn targets_with_place(&self, tree: &mut Tree, demand: &Demand, placing: &dyn Placing) -> Vec<Target> {
        let world = World { placing: Some(placing), ..self.world };
        find_targets(&world, tree, &self.preemptor, demand).targets
    }
}

impl Oracle for Simulation<'_> {
    fn simulate(
        &mut self,
        tree: &mut Tree,
        row: Row,
        column: Column,
        amount: Amount,
        level: u32,
    ) -> (Possibility, u32) {
        if self.world.recorder.is_none() && !may_preempt(&self.world, &self.preemptor) {
            return (Possibility::NoCandidates, level);
        }
        let demand = Demand::new(tree, vec![column], vec![(Some(column), amount)]);
        let (world, queue) = (self.world, self.preemptor.queue);
        let Found { targets, level: found_level } = self.find(tree, demand);
        let look_again = |tree: &mut Tree| {
            let mark = tree.mark();
            for target in targets {
                remove_workload(&world, tree, target.queue, target.workload);
            }
            let level = tree.room(row, column, amount).level;
            restore(&world, tree, mark, targets);
            level
        };
        let level = if targets.is_empty() { level } else { *found_level };
        // A search undoes its trials, except for sums that saturated meanwhile.
        let level = if tree.has_saturated() { look_again(tree) } else { level };
        debug_assert!(tree.has_saturated() || level == look_again(tree), "the same once targets are taken out anew");
        let possibility = match &targets[..] {
            [] => Possibility::NoCandidates,
            _ if targets.iter().any(|target| target.queue == queue) => Possibility::Preempt,
            _ => Possibility::Reclaim,
        };
        (possibility, level)
    }

    fn may_borrow(&self, fr: FlavorResourceId) -> bool {
        let World { now, experiments, .. } = self.world;
        self.preemptor.has_reservation || !experiments.waits_to_borrow(self.preemptor.queue, fr, now)
    }
}

fn within_nominal_gate(world: &World<'_>) -> bool {
    world.config.gates.enabled(Gate::FairSharingPreemptWithinNominal)
}

#[cfg(test)]
mod tests;
