//! Preemption by fair shares (rules/04 §5).

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::{CandidateKey, Wanted, allowed};
use super::{Demand, Preemptor, Target, World, minimise, remove_workload, restore, within_nominal_gate};
use crate::config::PreemptionStrategy;
use crate::forest::NodeId;
use crate::objects::PreemptionPolicy;
use crate::reasons;
use crate::share::Share;
use crate::tree::Tree;

/// A candidate with the ClusterQueue that it is in.
#[derive(Clone, Copy)]
struct Victim<'a> {
    node: NodeId,
    /// The order of candidates: workloads of other ClusterQueues before those of the preemptor's (rules/04 §3).
    rank: (bool, bool, &'a CandidateKey),
}

impl Victim<'_> {
    fn target(&self, world: &World<'_>, reason: &'static str) -> Target {
        let queue = world.queue_at(self.node).expect("victims are in ClusterQueues");
        Target { workload: self.rank.2.id, queue, reason }
    }
}

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
    let mut search = Search { world, preemptor, demand, targets: Vec::new() };
    let mut retry = Vec::new();
    let mut fits = search.first_pass(tree, queues, strategies[0], &mut retry);
    if !fits && strategies.len() > 1 {
        fits = search.second_pass(tree, retry);
    }
    let mut targets = search.targets;
    take_out(tree, preemptor, demand);
    if fits {
        minimise(world, tree, preemptor, demand, true, &mut targets);
    }
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

/// The victims of one ClusterQueue in order; only as many are looked at as are asked for.
struct Victims<'a> {
    first: Victim<'a>,
    rest: Box<dyn Iterator<Item = Victim<'a>> + 'a>,
}

impl<'a> Victims<'a> {
    fn new(mut all: impl Iterator<Item = Victim<'a>> + 'a) -> Option<Self> {
        let first = all.next()?;
        Some(Self { first, rest: Box::new(all) })
    }
}

/// Victims by ClusterQueue; a ClusterQueue without any is left out.
type ByQueue<'a> = BTreeMap<NodeId, Victims<'a>>;

/// Candidates of the own ClusterQueue and of every other one of the tree that borrows something contested (§5.1).
fn collect<'a>(world: &World<'a>, tree: &Tree, preemptor: &Preemptor, demand: &'a Demand) -> ByQueue<'a> {
    let mut by_queue = BTreeMap::new();
    let Some(preemption) = &world.queues[preemptor.queue].rules.preemption else { return by_queue };
    let wanted = Wanted::new(world, preemptor, &demand.flavor_resources);
    let own = preemptor.node;
    let mut add = |node: NodeId, policy: PreemptionPolicy| {
        let Some(queue) = world.queue_at(node) else { return };
        let keys = allowed(*world, &wanted, queue, policy);
        let victims = keys.map(move |key| Victim { node, rank: (key.not_evicted, node == own, key) });
        if let Some(victims) = Victims::new(victims) {
            by_queue.insert(node, victims);
        }
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
    by_queue
}

/// The same of victims that were passed over, in the order in which they were.
fn grouped(victims: Vec<Victim<'_>>) -> ByQueue<'_> {
    let mut by_queue: BTreeMap<NodeId, Vec<Victim<'_>>> = BTreeMap::new();
    for victim in victims {
        by_queue.entry(victim.node).or_default().push(victim);
    }
    by_queue.into_iter().filter_map(|(node, victims)| Some((node, Victims::new(victims.into_iter())?))).collect()
}

struct Search<'a> {
    world: &'a World<'a>,
    preemptor: &'a Preemptor,
    demand: &'a Demand,
    targets: Vec<Target>,
}

impl<'a> Search<'a> {
    fn share(&self, tree: &Tree, node: NodeId) -> Share {
        let resources = self.world.forest.resources_of(self.preemptor.tree);
        tree.share(self.world.row(node), self.world.forest.weight(node), resources, &[])
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
    fn preempt(&mut self, tree: &mut Tree, victim: &Victim<'_>, reason: &'static str) -> bool {
        let target = victim.target(self.world, reason);
        remove_workload(self.world, tree, target.queue, target.workload);
        self.targets.push(target);
        self.fits(tree)
    }

    /// The children of the lowest common ancestor on the paths to the preemptor and to another ClusterQueue.
    fn contenders(&self, target: NodeId) -> (NodeId, NodeId) {
        let own: Vec<NodeId> = self.world.forest.path(self.preemptor.node).collect();
        let mut below = target;
        while let Some(parent) = self.world.forest.parent(below) {
            if let Some(at) = own.iter().position(|&n| n == parent) {
                return (own[at - 1], below);
            }
            below = parent;
        }
        (self.preemptor.node, below)
    }

    /// The first strategy (rules/04 §5.4).
    fn first_pass(
        &mut self,
        tree: &mut Tree,
        queues: ByQueue<'a>,
        strategy: PreemptionStrategy,
        retry: &mut Vec<Victim<'a>>,
    ) -> bool {
        let row = self.preemptor.row;
        let has_nominal_right = within_nominal_gate(self.world)
            && self.demand.contested.iter().all(|&c| tree.usage(row, c) <= tree.nominal(row, c));
        let mut order = Order::new(self.world, self.preemptor, queues);
        while let Some(queue) = order.next(self, tree) {
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
                        let target = victim.target(self.world, "");
                        remove_workload(self.world, tree, target.queue, target.workload);
                        let after = self.share(tree, theirs);
                        restore(self.world, tree, mark, &[target]);
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
        while let Some(queue) = order.next(self, tree) {
            let victim = order.pop(queue).expect("a yielded ClusterQueue has candidates");
            order.drop_queue(queue);
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

/// Which ClusterQueue is taken from next (rules/04 §5.3).
struct Order<'a> {
    world: &'a World<'a>,
    preemptor: NodeId,
    ancestors: BTreeSet<NodeId>,
    queues: ByQueue<'a>,
    pruned: BTreeSet<NodeId>,
}

impl<'a> Order<'a> {
    fn new(world: &'a World<'a>, preemptor: &Preemptor, queues: ByQueue<'a>) -> Self {
        let ancestors = world.forest.path(preemptor.node).skip(1).collect();
        Order { world, preemptor: preemptor.node, ancestors, queues, pruned: BTreeSet::new() }
    }

    fn first(&self, queue: NodeId) -> Option<&Victim<'a>> {
        self.queues.get(&queue).map(|victims| &victims.first)
    }

    fn pop(&mut self, queue: NodeId) -> Option<Victim<'a>> {
        let victims = self.queues.get_mut(&queue)?;
        match victims.rest.next() {
            Some(next) => Some(std::mem::replace(&mut victims.first, next)),
            None => self.queues.remove(&queue).map(|victims| victims.first),
        }
    }

    fn drop_queue(&mut self, queue: NodeId) {
        self.pruned.insert(queue);
    }

    fn next(&mut self, search: &Search<'_>, tree: &Tree) -> Option<NodeId> {
        let Some(parent) = self.world.forest.parent(self.preemptor) else {
            let own = self.preemptor;
            return (!self.pruned.contains(&own) && self.first(own).is_some()).then_some(own);
        };
        let root = self.world.forest.root(parent).expect("a preemptor is not below a cycle");
        while !self.pruned.contains(&root) {
            if let Some(queue) = self.descend(search, tree, root) {
                return Some(queue);
            }
        }
        None
    }

    /// The child with the greatest share, down to a ClusterQueue; `None` if this only pruned something.
    fn descend(&mut self, search: &Search<'_>, tree: &Tree, cohort: NodeId) -> Option<NodeId> {
        let mut queue: Option<(NodeId, Share)> = None;
        for child in self.world.forest.child_queues(cohort).collect::<Vec<_>>() {
            if self.pruned.contains(&child) || !self.world.forest.is_active(child) {
                continue;
            }
            let share = search.share(tree, child);
            let Some(candidate) = self.first(child).copied() else {
                self.pruned.insert(child);
                continue;
            };
            if !share.is_borrowing() && child != self.preemptor {
                self.pruned.insert(child);
                continue;
            }
            let is_greater = queue.as_ref().is_none_or(|(best, best_share)| match share.compare(best_share) {
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Equal => self.first(*best).is_some_and(|first| candidate.rank < first.rank),
            });
            if is_greater {
                queue = Some((child, share));
            }
        }
        let mut below: Option<(NodeId, Share)> = None;
        for child in self.cohorts_by_name(cohort) {
            if self.pruned.contains(&child) {
                continue;
            }
            let share = search.share(tree, child);
            if !share.is_borrowing() && !self.ancestors.contains(&child) {
                self.pruned.insert(child);
            } else if below.as_ref().is_none_or(|(_, best)| share.compare(best).is_ge()) {
                below = Some((child, share));
            }
        }
        match (queue, below) {
            (None, None) => {
                self.pruned.insert(cohort);
                None
            }
            (Some((queue, _)), None) => Some(queue),
            (None, Some((child, _))) => self.descend(search, tree, child),
            (Some((queue, share)), Some((child, of_child))) => {
                if of_child.compare(&share).is_ge() {
                    self.descend(search, tree, child)
                } else {
                    Some(queue)
                }
            }
        }
    }

    /// Kueue takes the last of equals in no fixed order; here it is the order of names.
    fn cohorts_by_name(&self, cohort: NodeId) -> Vec<NodeId> {
        let mut children: Vec<NodeId> = self.world.forest.child_cohorts(cohort).collect();
        children.sort_by_key(|child| match self.world.owners.get(child) {
            Some(crate::state::Owner::Cohort(id)) => self.world.names.cohorts[*id].clone(),
            _ => String::new(),
        });
        children
    }
}
