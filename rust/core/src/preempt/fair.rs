//! Preemption by fair sharing (rules/04 §5).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::candidates::{Wanted, allowed};
use super::hope::{is_hopeless, patience};
use super::order::{Order, Victim, Victims};
use super::removals::Removals;
use super::{Demand, Found, Preemptor, World, minimise, restore, within_nominal_gate};
use crate::base::gates::Gate;
use crate::objects::config::PreemptionStrategy;
use crate::objects::{Preemption, PreemptionPolicy};
use crate::quota::forest::NodeId;
use crate::quota::share::Share;
use crate::quota::tree::{Row, Tree};
use crate::state::searches::{Comparison, Contender, Holder, Spared};
use crate::status::reasons;
use crate::workloads::charge::CandidateKey;

pub(super) fn find_targets(
    world: &World<'_>,
    tree: &mut Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    wanted: &Wanted<'_>,
    strategies: &[PreemptionStrategy],
) -> Found {
    let queues = collect(world, tree, preemptor, demand, wanted);
    if queues.is_empty() {
        return Found::default();
    }
    let mark = tree.mark();
    let own_path: Vec<NodeId> = world.forest.path(preemptor.node).collect();
    let before = world
        .recorder
        .map_or_else(Vec::new, |_| own_path.iter().map(|&node| world.share(preemptor, tree, node)).collect());
    // All shares include the preemptor's workload.
    put_in(tree, preemptor, demand);
    let patience = patience(world, queues.len());
    let removed = Removals::new(world);
    let mut search = Search { world, preemptor, demand, wanted, own_path, before, patience, removed };
    let is_hopeless = cfg!(debug_assertions) && search.is_hopeless(tree);
    let mut retry = Vec::new();
    let mut outcome = search.first_pass(tree, queues, strategies[0], &mut retry);
    let has_own_victim = search.removed.iter().any(|removed| removed.row == preemptor.row);
    let looks_again = world.config.gates.enabled(Gate::FairSharingReevaluatePreemptionCandidates);
    if outcome.is_continue() && looks_again && has_own_victim {
        // The preemptor's share has become smaller, so whoever was passed over may be taken now (rules/04 §5.2).
        let passed_over = std::mem::take(&mut retry);
        outcome = search.first_pass(tree, grouped(passed_over), strategies[0], &mut retry);
    }
    // The second strategy only sees candidates that the first one passed over (rules/04 §5.2).
    if outcome.is_continue() && strategies.len() > 1 {
        outcome = search.second_pass(tree, retry);
    }
    let fits = outcome == FITS;
    debug_assert!(!(fits && is_hopeless), "some candidates were enough, so all are");
    let mut removed = search.removed;
    take_out(tree, preemptor, demand);
    if fits {
        // Only checks whether the workload still fits, not whether the remaining victims are fair (rules/04 §5.2).
        minimise(tree, preemptor, demand, true, &mut removed);
    }
    let found = Found { targets: removed.targets(), level: demand.level(tree, preemptor.row) };
    restore(world, tree, mark, &found.targets);
    if fits { found } else { Found::default() }
}

/// Does a ClusterQueue exceed its nominal quota of anything contested?
fn borrows(demand: &Demand, tree: &Tree, row: Row) -> bool {
    demand.contested.iter().any(|&c| tree.nominal(row, c) < tree.usage(row, c))
}

fn put_in(tree: &mut Tree, preemptor: &Preemptor, demand: &Demand) {
    for &(column, amount) in &demand.requests {
        if let Some(column) = column {
            tree.add_usage(preemptor.row, column, amount);
        }
    }
}

fn take_out(tree: &mut Tree, preemptor: &Preemptor, demand: &Demand) {
    for &(column, amount) in &demand.requests {
        if let Some(column) = column {
            tree.remove_usage(preemptor.row, column, amount);
        }
    }
}

/// Candidates of the own ClusterQueue, and of all others in the tree that borrow something contested (§5.1).
fn collect<'a>(
    world: &World<'a>,
    tree: &Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    wanted: &'a Wanted<'a>,
) -> Vec<Victims<'a>> {
    let mut found = Vec::new();
    let Some(preemption) = &world.queues[preemptor.queue].rules.preemption else { return found };
    let own = preemptor.node;
    let mut add = |node: NodeId, policy: PreemptionPolicy| {
        let queue = world.queue_at(node);
        found.extend(queue.and_then(|queue| Victims::kept(node, allowed(world, wanted, queue, policy))));
    };
    add(own, preemption.within_cluster_queue);
    if let Some(parent) = world.forest.parent(own)
        && preemption.reclaim_within_cohort != PreemptionPolicy::Never
    {
        let root = world.forest.root(parent).expect("a preemptor is not below a cycle");
        for queue in world.forest.queues_below(root) {
            let row = world.row(queue);
            // Only the ClusterQueue itself must borrow; cohorts in between do not protect it, unlike in the
            // classical search (rules/04 §5.1).
            if queue != own && world.forest.is_active(queue) && borrows(demand, tree, row) {
                add(queue, preemption.reclaim_within_cohort);
            }
        }
    }
    found
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
    let of_node = |(row, &node): (Row, &NodeId)| {
        let queue = world.queue_at(node)?;
        let (policy, shield) = if row == preemptor.row {
            (preemption.within_cluster_queue, None)
        } else if !world.forest.is_active(node) {
            (preemption.reclaim_within_cohort, Some(Spared::Inactive))
        } else {
            let lends = !borrows(demand, tree, row);
            (preemption.reclaim_within_cohort, lends.then_some(Spared::WithinNominal))
        };
        Some(wanted.holders(world, queue, policy, shield))
    };
    world.forest.nodes_of(preemptor.tree).iter().enumerate().filter_map(of_node).flatten().collect()
}

/// Groups skipped victims by ClusterQueue, in their order.
fn grouped(victims: Vec<Victim<'_>>) -> Vec<Victims<'_>> {
    let mut by_queue: BTreeMap<NodeId, Vec<&CandidateKey>> = BTreeMap::new();
    for victim in victims {
        by_queue.entry(victim.node).or_default().push(victim.key);
    }
    by_queue.into_iter().filter_map(|(node, keys)| Victims::passed_over(node, keys)).collect()
}

struct Search<'a> {
    world: &'a World<'a>,
    preemptor: &'a Preemptor,
    demand: &'a Demand,
    wanted: &'a Wanted<'a>,
    /// The ClusterQueue of the preemptor and the cohorts above it.
    own_path: Vec<NodeId>,
    /// Their shares without the preemptor's workload; only with a recorder.
    before: Vec<Share>,
    /// After this many victims the search checks whether more could ever be enough.
    patience: usize,
    removed: Removals<'a>,
}

/// Ends the search: `true` if the victims so far are enough, `false` if none will be.
type Outcome = ControlFlow<bool>;
const FITS: Outcome = Outcome::Break(true);
const HOPELESS: Outcome = Outcome::Break(false);

impl<'a> Search<'a> {
    fn share(&self, tree: &Tree, node: NodeId) -> Share {
        self.world.share(self.preemptor, tree, node)
    }

    /// Would the preemptor fit now? Its own usage, which is in the tree for the shares, does not count.
    fn fits(&self, tree: &mut Tree) -> bool {
        let mark = tree.mark();
        take_out(tree, self.preemptor, self.demand);
        let fits = self.demand.fits(tree, self.preemptor.row, true);
        if tree.has_saturated() {
            tree.keep(mark);
            put_in(tree, self.preemptor, self.demand);
        } else {
            tree.rollback(mark);
        }
        fits
    }

    /// Preempts one workload.
    fn preempt(&mut self, tree: &mut Tree, victim: &Victim<'a>, reason: &'static str) -> Outcome {
        let removed = victim.take_out(self.world, tree, reason);
        self.removed.push(removed);
        if self.fits(tree) && self.removed.leave_place() {
            FITS
        } else if self.removed.len() == self.patience && self.is_hopeless(tree) {
            HOPELESS
        } else {
            Outcome::Continue(())
        }
    }

    /// Skips a victim, because the comparison of shares does not allow it.
    fn pass(&self, victim: &Victim<'_>) {
        if let Some(recorder) = self.world.recorder {
            recorder.pass(victim.key.id, Spared::Share);
        }
    }

    /// Records which shares are compared for a victim.
    fn record(
        &self,
        tree: &mut Tree,
        victim: &Victim<'_>,
        (ours, theirs): (NodeId, NodeId),
        (strategy, passes): (PreemptionStrategy, bool),
    ) {
        let Some(recorder) = self.world.recorder else { return };
        let at = self.own_path.iter().position(|&node| node == ours).expect("it is on the preemptor's path");
        let ours = Contender { node: ours, now: self.before[at].clone(), then: self.share(tree, ours) };
        let (now, then) = (self.share(tree, theirs), self.share_without(tree, victim, theirs));
        let theirs = Contender { node: theirs, now, then };
        recorder.compare(victim.key.id, Comparison { strategy, ours, theirs, passes });
    }

    /// The share of a node once a victim is gone.
    fn share_without(&self, tree: &mut Tree, victim: &Victim<'_>, node: NodeId) -> Share {
        let mark = tree.mark();
        let removed = victim.take_out(self.world, tree, "");
        let share = self.share(tree, node);
        restore(self.world, tree, mark, &[removed.target]);
        share
    }

    fn is_hopeless(&self, tree: &mut Tree) -> bool {
        let Some(preemption) = &self.world.queues[self.preemptor.queue].rules.preemption else { return true };
        let mut rows: BTreeSet<Row> = self.removed.iter().map(|removed| removed.row).collect();
        rows.extend((0..tree.n_rows()).filter(|&row| borrows(self.demand, tree, row)));
        rows.insert(self.preemptor.row);
        let nodes = self.world.forest.nodes_of(self.preemptor.tree);
        let queues = rows.into_iter().filter_map(|row| {
            let policy = match row == self.preemptor.row {
                true => preemption.within_cluster_queue,
                false => preemption.reclaim_within_cohort,
            };
            Some((self.world.queue_at(nodes[row])?, row, policy))
        });
        let mark = tree.mark();
        take_out(tree, self.preemptor, self.demand);
        let is_hopeless = is_hopeless(self.world, tree, self.preemptor, self.demand, self.wanted, queues);
        tree.rollback(mark);
        is_hopeless
    }

    /// The children of the lowest common ancestor on the paths to the preemptor and to another ClusterQueue.
    fn contenders(&self, target: NodeId) -> (NodeId, NodeId) {
        let mut below = target;
        while let Some(parent) = self.world.forest.parent(below) {
            if let Some(at) = self.own_path.iter().position(|&n| n == parent) {
                return (self.own_path[at - 1], below);
            }
            below = parent;
        }
        (self.preemptor.node, below)
    }

    /// The first strategy (rules/04 §5.4).
    fn first_pass(
        &mut self,
        tree: &mut Tree,
        queues: Vec<Victims<'a>>,
        strategy: PreemptionStrategy,
        retry: &mut Vec<Victim<'a>>,
    ) -> Outcome {
        let row = self.preemptor.row;
        // Decided once, with the preemptor counted and no victim removed yet (rules/04 §5.4).
        let has_nominal_right = within_nominal_gate(self.world)
            && self.demand.contested.iter().all(|&c| tree.usage(row, c) <= tree.nominal(row, c));
        let mut order = Order::new(self.world, self.preemptor, queues);
        while let Some(queue) = order.next(tree) {
            if queue == self.preemptor.node || has_nominal_right {
                let own = queue == self.preemptor.node;
                let reason = if own { reasons::IN_CLUSTER_QUEUE } else { reasons::IN_COHORT_RECLAMATION };
                let victim = order.pop(queue).expect("a yielded ClusterQueue has candidates");
                order.record_ties(&victim);
                self.preempt(tree, &victim, reason)?;
                continue;
            }
            let (ours, theirs) = self.contenders(queue);
            let new = self.share(tree, ours);
            let old = self.share(tree, theirs);
            // Against an infinite share of its own no candidate passes, whatever the strategy (rules/04 §5.4 rule 3).
            if new.weighted().is_infinite() && !old.weighted().is_infinite() {
                while let Some(victim) = order.pop(queue) {
                    self.record(tree, &victim, (ours, theirs), (strategy, false));
                    self.pass(&victim);
                    retry.push(victim);
                }
                continue;
            }
            while let Some(victim) = order.pop(queue) {
                let passes = match strategy {
                    PreemptionStrategy::LessThanInitialShare => new.compare(&old).is_lt(),
                    PreemptionStrategy::LessThanOrEqualToFinalShare => {
                        new.compare(&self.share_without(tree, &victim, theirs)).is_le()
                    }
                };
                self.record(tree, &victim, (ours, theirs), (strategy, passes));
                if !passes {
                    self.pass(&victim);
                    retry.push(victim);
                    continue;
                }
                order.record_ties(&victim);
                self.preempt(tree, &victim, reasons::IN_COHORT_FAIR_SHARING)?;
                // The shares have changed: another ClusterQueue may be next now.
                break;
            }
        }
        Outcome::Continue(())
    }

    /// The second strategy, on candidates that failed the first: at most one victim per ClusterQueue (rules/04 §5.5).
    fn second_pass(&mut self, tree: &mut Tree, retry: Vec<Victim<'a>>) -> Outcome {
        let mut order = Order::new(self.world, self.preemptor, grouped(retry));
        while let Some(queue) = order.next(tree) {
            let victim = order.pop(queue).expect("a yielded ClusterQueue has candidates");
            // Also if the victim is spared: a ClusterQueue gives one at most in this pass (rules/04 §5.5).
            order.leave_out(queue);
            let (ours, theirs) = self.contenders(queue);
            let passes = self.share(tree, ours).compare(&self.share(tree, theirs)).is_lt();
            self.record(tree, &victim, (ours, theirs), (PreemptionStrategy::LessThanInitialShare, passes));
            if passes {
                order.record_ties(&victim);
                self.preempt(tree, &victim, reasons::IN_COHORT_FAIR_SHARING)?;
            }
        }
        Outcome::Continue(())
    }
}
