//! Preemption by fair shares (rules/04 §5).

use std::cmp::Ordering;
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
            order.prune(queue);
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

/// Which ClusterQueue is taken from next (rules/04 §5.3). What belongs to a node stands at its row.
struct Order<'a> {
    world: &'a World<'a>,
    preemptor: NodeId,
    ancestors: BTreeSet<NodeId>,
    queues: Vec<Option<Victims<'a>>>,
    is_pruned: Vec<bool>,
    /// Shares since the last change; `None`: to be worked out.
    shares: Vec<Option<Share>>,
}

impl<'a> Order<'a> {
    fn new(world: &'a World<'a>, preemptor: &Preemptor, queues: ByQueue<'a>) -> Self {
        let ancestors = world.forest.path(preemptor.node).skip(1).collect();
        let n_rows = world.forest.nodes_of(preemptor.tree).len();
        let mut by_row: Vec<Option<Victims<'a>>> = (0..n_rows).map(|_| None).collect();
        for (node, victims) in queues {
            by_row[world.row(node)] = Some(victims);
        }
        let (is_pruned, shares) = (vec![false; n_rows], vec![None; n_rows]);
        Order { world, preemptor: preemptor.node, ancestors, queues: by_row, is_pruned, shares }
    }

    fn first(&self, queue: NodeId) -> Option<&Victim<'a>> {
        self.queues[self.world.row(queue)].as_ref().map(|victims| &victims.first)
    }

    /// Takes out the next victim of a ClusterQueue; the shares above it are about to change.
    fn pop(&mut self, queue: NodeId) -> Option<Victim<'a>> {
        let mut node = Some(queue);
        while let Some(above) = node {
            self.shares[self.world.row(above)] = None;
            node = self.world.forest.parent(above);
        }
        let slot = &mut self.queues[self.world.row(queue)];
        let victims = slot.as_mut()?;
        match victims.rest.next() {
            Some(next) => Some(std::mem::replace(&mut victims.first, next)),
            None => slot.take().map(|victims| victims.first),
        }
    }

    fn prune(&mut self, node: NodeId) {
        self.is_pruned[self.world.row(node)] = true;
    }

    fn is_pruned(&self, node: NodeId) -> bool {
        self.is_pruned[self.world.row(node)]
    }

    /// Sees to it that the share of a node is known.
    fn weigh(&mut self, search: &Search<'_>, tree: &Tree, node: NodeId) {
        let share = &mut self.shares[self.world.row(node)];
        // Where sums have saturated, looking at others may have changed it.
        if share.is_none() || tree.has_saturated() {
            *share = Some(search.share(tree, node));
        }
    }

    fn share(&self, node: NodeId) -> &Share {
        self.shares[self.world.row(node)].as_ref().expect("it was weighed")
    }

    fn next(&mut self, search: &Search<'_>, tree: &Tree) -> Option<NodeId> {
        let Some(parent) = self.world.forest.parent(self.preemptor) else {
            let own = self.preemptor;
            return (!self.is_pruned(own) && self.first(own).is_some()).then_some(own);
        };
        let root = self.world.forest.root(parent).expect("a preemptor is not below a cycle");
        while !self.is_pruned(root) {
            if let Some(queue) = self.descend(search, tree, root) {
                return Some(queue);
            }
        }
        None
    }

    /// The child with the greatest share, down to a ClusterQueue; `None` if this only pruned something.
    fn descend(&mut self, search: &Search<'_>, tree: &Tree, cohort: NodeId) -> Option<NodeId> {
        let world = self.world;
        let mut queue: Option<NodeId> = None;
        for child in world.forest.child_queues(cohort) {
            if self.is_pruned(child) || !world.forest.is_active(child) {
                continue;
            }
            self.weigh(search, tree, child);
            let is_taken_from = child == self.preemptor || self.share(child).is_borrowing();
            let Some(candidate) = self.first(child).filter(|_| is_taken_from) else {
                self.prune(child);
                continue;
            };
            let is_greater = queue.is_none_or(|best| match self.share(child).compare(self.share(best)) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => self.first(best).is_some_and(|first| candidate.rank < first.rank),
            });
            if is_greater {
                queue = Some(child);
            }
        }
        let mut below: Option<NodeId> = None;
        for child in self.cohorts_by_name(cohort) {
            if self.is_pruned(child) {
                continue;
            }
            self.weigh(search, tree, child);
            if !self.share(child).is_borrowing() && !self.ancestors.contains(&child) {
                self.prune(child);
            } else if below.is_none_or(|best| self.share(child).compare(self.share(best)).is_ge()) {
                below = Some(child);
            }
        }
        match (queue, below) {
            (None, None) => {
                self.prune(cohort);
                None
            }
            (Some(queue), None) => Some(queue),
            (Some(queue), Some(child)) if self.share(child).compare(self.share(queue)).is_lt() => Some(queue),
            (_, Some(child)) => self.descend(search, tree, child),
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
