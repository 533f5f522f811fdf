//! Preemption by fair shares (rules/04 §5).

use std::collections::BTreeMap;

use super::candidates::{Wanted, allowed};
use super::order::{Order, Victim, Victims};
use super::{Demand, Preemptor, Removed, World, minimise, restore, targets_of, within_nominal_gate};
use crate::objects::PreemptionPolicy;
use crate::objects::config::PreemptionStrategy;
use crate::quota::forest::NodeId;
use crate::quota::share::Share;
use crate::quota::tree::Tree;
use crate::status::reasons;
use crate::workloads::charge::{CandidateKey, Target};

pub(super) fn find_targets(
    world: &World<'_>,
    tree: &mut Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    strategies: &[PreemptionStrategy],
) -> Vec<Target> {
    let queues = collect(world, tree, preemptor, demand);
    if queues.is_empty() {
        return Vec::new();
    }
    let mark = tree.mark();
    // All shares include the workload that wants to come in.
    put_in(tree, preemptor, demand);
    let own_path = world.forest.path(preemptor.node).collect();
    let mut search = Search { world, preemptor, demand, own_path, removed: Vec::new() };
    let mut retry = Vec::new();
    let mut fits = search.first_pass(tree, queues, strategies[0], &mut retry);
    if !fits && strategies.len() > 1 {
        fits = search.second_pass(tree, retry);
    }
    let mut removed = search.removed;
    take_out(tree, preemptor, demand);
    if fits {
        minimise(tree, preemptor, demand, true, &mut removed);
    }
    let targets = targets_of(&removed);
    restore(world, tree, mark, &targets);
    if fits { targets } else { Vec::new() }
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

/// Candidates of the own ClusterQueue and of every other one of the tree that borrows something contested (§5.1).
fn collect<'a>(world: &World<'a>, tree: &Tree, preemptor: &Preemptor, demand: &'a Demand) -> Vec<Victims<'a>> {
    let mut found = Vec::new();
    let Some(preemption) = &world.queues[preemptor.queue].rules.preemption else { return found };
    let wanted = Wanted::new(world, preemptor, &demand.flavor_resources);
    let own = preemptor.node;
    let mut add = |node: NodeId, policy: PreemptionPolicy| {
        let queue = world.queue_at(node);
        found.extend(queue.and_then(|queue| Victims::kept(node, allowed(*world, &wanted, queue, policy))));
    };
    add(own, preemption.within_cluster_queue);
    if let Some(parent) = world.forest.parent(own)
        && preemption.reclaim_within_cohort != PreemptionPolicy::Never
    {
        let root = world.forest.root(parent).expect("a preemptor is not below a cycle");
        for queue in world.forest.queues_below(root) {
            let row = world.row(queue);
            let borrows = demand.contested.iter().any(|&c| tree.nominal(row, c) < tree.usage(row, c));
            if queue != own && world.forest.is_active(queue) && borrows {
                add(queue, preemption.reclaim_within_cohort);
            }
        }
    }
    found
}

/// The same of victims that were passed over, in the order in which they were.
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
    /// The ClusterQueue of the preemptor and the cohorts above it.
    own_path: Vec<NodeId>,
    removed: Vec<Removed<'a>>,
}

impl<'a> Search<'a> {
    fn share(&self, tree: &Tree, node: NodeId) -> Share {
        self.world.share(self.preemptor, tree, node)
    }

    /// Would the preemptor fit now? Its own usage, which stands in the tree for the shares, does not count.
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

    /// Preempts one, and says whether that is enough.
    fn preempt(&mut self, tree: &mut Tree, victim: &Victim<'a>, reason: &'static str) -> bool {
        let removed = victim.take_out(self.world, tree, reason);
        self.removed.push(removed);
        self.fits(tree)
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
    ) -> bool {
        let row = self.preemptor.row;
        let has_nominal_right = within_nominal_gate(self.world)
            && self.demand.contested.iter().all(|&c| tree.usage(row, c) <= tree.nominal(row, c));
        let mut order = Order::new(self.world, self.preemptor, queues);
        while let Some(queue) = order.next(tree) {
            if queue == self.preemptor.node || has_nominal_right {
                let own = queue == self.preemptor.node;
                let reason = if own { reasons::IN_CLUSTER_QUEUE } else { reasons::IN_COHORT_RECLAMATION };
                let victim = order.pop(queue).expect("a yielded ClusterQueue has candidates");
                if self.preempt(tree, &victim, reason) {
                    return true;
                }
                continue;
            }
            let (ours, theirs) = self.contenders(queue);
            let new = self.share(tree, ours);
            let old = self.share(tree, theirs);
            if new.weighted().is_infinite() && !old.weighted().is_infinite() {
                while let Some(victim) = order.pop(queue) {
                    retry.push(victim);
                }
                continue;
            }
            while let Some(victim) = order.pop(queue) {
                let passes = match strategy {
                    PreemptionStrategy::LessThanInitialShare => new.compare(&old).is_lt(),
                    PreemptionStrategy::LessThanOrEqualToFinalShare => {
                        let mark = tree.mark();
                        let removed = victim.take_out(self.world, tree, "");
                        let after = self.share(tree, theirs);
                        restore(self.world, tree, mark, &[removed.target]);
                        new.compare(&after).is_le()
                    }
                };
                if !passes {
                    retry.push(victim);
                    continue;
                }
                if self.preempt(tree, &victim, reasons::IN_COHORT_FAIR_SHARING) {
                    return true;
                }
                // The shares have changed: another ClusterQueue may be the one to take from now.
                break;
            }
        }
        false
    }

    /// The second strategy, on what failed the first: at most one victim per ClusterQueue (rules/04 §5.5).
    fn second_pass(&mut self, tree: &mut Tree, retry: Vec<Victim<'a>>) -> bool {
        let mut order = Order::new(self.world, self.preemptor, grouped(retry));
        while let Some(queue) = order.next(tree) {
            let victim = order.pop(queue).expect("a yielded ClusterQueue has candidates");
            order.leave_out(queue);
            let (ours, theirs) = self.contenders(queue);
            if self.share(tree, ours).compare(&self.share(tree, theirs)).is_lt()
                && self.preempt(tree, &victim, reasons::IN_COHORT_FAIR_SHARING)
            {
                return true;
            }
        }
        false
    }
}
