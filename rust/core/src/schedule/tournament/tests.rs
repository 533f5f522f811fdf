//! Compares the next entry with a model that recomputes all shares before each decision, literally as in rules/05 §6.3,
//! in random trees.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::assign::{Assignment, Usage};
use crate::base::ids::{FlavorResourceId, Id, QueueId, WorkloadId};
use crate::base::names::Names;
use crate::objects::message::Message;
use crate::queue::RequeueReason;
use crate::quota::forest::NodeKind;
use crate::quota::tree::Quota;
use crate::schedule::entry::EntryStatus;
use crate::testing::Dice;

const N_WORLDS: u64 = 4_000;
const MAX_LEVELS: usize = 5;

impl Dice {
    fn up_to(&mut self, most: usize) -> Amount {
        Amount::new(i64::try_from(self.below(most + 1)).unwrap())
    }

    fn limit(&mut self) -> Option<Amount> {
        self.once_in(4).then(|| self.up_to(6))
    }
}

/// What makes a world unlike the others.
#[derive(Clone, Copy, PartialEq)]
enum Sums {
    Small,
    /// Some are near 2^62 or have no limit.
    Huge,
    /// Some requests are negative.
    Negative,
}

struct World {
    dice: Dice,
    forest: Forest,
    flavor_resources: Vec<FlavorResourceId>,
    sums: Sums,
    gates: Gates,
    entries: Vec<Entry>,
    /// The greatest number of cohorts above a ClusterQueue.
    levels: usize,
}

fn world(seed: u64) -> World {
    let mut dice = Dice(seed);
    let mut names = Names::default();
    let n_resources = 1 + dice.below(2);
    let mut flavor_resources = Vec::new();
    for flavor in 0..=dice.below(2) {
        for resource in 0..n_resources {
            let (flavor, resource) =
                (names.flavors.intern(&format!("flavor-{flavor}")), names.resource(&format!("r{resource}")));
            flavor_resources.push(names.flavor_resource(flavor, resource));
        }
    }
    let sums = dice.one_of(&[Sums::Small, Sums::Small, Sums::Huge, Sums::Negative]);
    let mut gates = Gates::default();
    for gate in
        [Gate::PrioritizePreemptorWorkloads, Gate::FairSharingPrioritizeNonBorrowing, Gate::PrioritySortingWithinCohort]
    {
        gates = gates.with(gate, dice.once_in(2));
    }

    let mut forest = Forest::default();
    let mut cohorts: Vec<(NodeId, usize)> = Vec::new();
    let mut queues = Vec::new();
    let (n_cohorts, n_queues) = (1 + dice.below(12), 1 + dice.below(12));
    for n in 0..n_cohorts + n_queues {
        let kind = if n < n_cohorts { NodeKind::Cohort } else { NodeKind::Queue };
        let node = forest.add_node(kind);
        // Prefer the latest ones: deep trees.
        let first = if dice.once_in(2) { cohorts.len().saturating_sub(3) } else { 0 };
        let parent = (first < cohorts.len() && !dice.once_in(8)).then(|| dice.one_of(&cohorts[first..]));
        let parent = parent.filter(|(_, level)| kind == NodeKind::Queue || *level < MAX_LEVELS);
        forest.set_parent(node, parent.map(|(parent, _)| parent), &names);
        let level = parent.map_or(0, |(_, level)| level) + 1;
        match kind {
            NodeKind::Cohort => cohorts.push((node, level)),
            NodeKind::Queue => queues.push((node, level)),
        }
        forest.set_weight(node, dice.one_of(&[0.0, 0.5, 1.0, 1.0, 1.0, 3.0]));
        let mut quotas = BTreeMap::new();
        for &fr in &flavor_resources {
            if dice.once_in(if kind == NodeKind::Queue { 8 } else { 2 }) {
                continue;
            }
            let nominal = match (sums, dice.below(6)) {
                (Sums::Huge, 0) => Amount::UNLIMITED,
                (Sums::Huge, 1) => Amount::new(1 << 62),
                _ => dice.up_to(8),
            };
            let quota = Quota { nominal, borrowing_limit: dice.limit(), lending_limit: dice.limit() };
            quotas.insert(fr, quota);
        }
        forest.set_quotas(node, quotas);
    }
    forest.flush(&names);
    for &(node, _) in &queues {
        for &fr in &flavor_resources {
            if dice.once_in(3) {
                forest.charge(node, &[(fr, dice.up_to(8))], true, &names);
            }
        }
    }
    let levels = queues.iter().map(|(_, level)| level - 1).max().unwrap();
    let mut world = World { dice, forest, flavor_resources, sums, gates, entries: Vec::new(), levels };
    // In another order than that of the nodes.
    while !queues.is_empty() {
        let (node, _) = queues.swap_remove(world.dice.below(queues.len()));
        if !world.dice.once_in(8) {
            let entry = world.entry(node);
            world.entries.push(entry);
        }
    }
    world
}

impl World {
    fn amount(&mut self) -> Amount {
        match (self.sums, self.dice.below(12)) {
            (Sums::Huge, 0) => Amount::UNLIMITED,
            (Sums::Huge, 1) => Amount::new((1 << 62) - 3),
            (Sums::Huge, 2) => Amount::new((1 << 61) - 3),
            (Sums::Negative, 0) => Amount::new(-2),
            _ => self.dice.up_to(9),
        }
    }

    fn usage(&mut self) -> Usage {
        let mut usage = Usage::default();
        for fr in self.flavor_resources.clone() {
            if !self.dice.once_in(4) {
                let amount = self.amount();
                usage.change(fr, |_| amount);
            }
        }
        usage
    }

    fn entry(&mut self, node: NodeId) -> Entry {
        let (tree, row) = self.forest.locate(node);
        let assignment = Assignment::new(Vec::new(), self.usage(), 0);
        Entry {
            workload: WorkloadId::from_index(0),
            queue: QueueId::from_index(0),
            node,
            tree,
            row,
            assignment: Some(Arc::new(assignment)),
            targets: Vec::new(),
            stands: Vec::new(),
            second_pass: None,
            shape: None,
            generation: 0,
            starts_over: false,
            status: EntryStatus::NotNominated,
            message: Message::default(),
            reason: "",
            requeue: RequeueReason::Generic,
            silent: false,
            is_gone: false,
            is_homeless: false,
            has_reservation: self.dice.once_in(10),
            is_preemptor: self.dice.once_in(4),
            priority: i64::try_from(self.dice.below(3)).unwrap(),
            time: Time(i64::try_from(self.dice.below(3)).unwrap()),
        }
    }
}

fn change(forest: &mut Forest, entry: &Entry, usage: &[(FlavorResourceId, Amount)], adds: bool) {
    let tree = forest.tree_mut(entry.tree);
    for &(fr, amount) in usage {
        let Some(column) = tree.column(fr) else { continue };
        if adds {
            tree.add_usage(entry.row, column, amount);
        } else {
            tree.remove_usage(entry.row, column, amount);
        }
    }
}

/// By cohort and entry: the share of the child on the entry's path, with the entry, and whether that borrows what the
/// entry asks for.
type Shares = BTreeMap<(NodeId, usize), (Share, bool)>;

fn plainly_next(forest: &mut Forest, gates: Gates, entries: &[Entry], left: &Sorted<usize>) -> usize {
    let first = *left.first().unwrap();
    let root = forest.root(entries[first].node).unwrap();
    if root == entries[first].node {
        return first;
    }
    let mut of_tree: Vec<_> = left.iter().copied().filter(|&e| entries[e].tree == entries[first].tree).collect();
    of_tree.sort_by_key(|&index| entries[index].node);
    let mut shares = Shares::new();
    for &index in &of_tree {
        let entry = &entries[index];
        change(forest, entry, entry.usage(), true);
        for child in forest.path(entry.node) {
            let Some(cohort) = forest.parent(child) else { continue };
            let (id, row) = forest.locate(child);
            let tree = forest.tree(id);
            let share = tree.share(row, forest.weight(child), forest.resources_of(id), &[]);
            let borrows = |&&(fr, amount): &&(FlavorResourceId, Amount)| {
                amount > Amount::ZERO && share.borrowed.iter().any(|&column| tree.columns()[column] == fr)
            };
            let borrows = entry.usage().iter().find(borrows).is_some();
            shares.insert((cohort, index), (share, borrows));
        }
        change(forest, entry, entry.usage(), false);
    }
    plain_winner(root, forest, gates, entries, &of_tree, &shares).unwrap()
}

fn plain_winner(
    cohort: NodeId,
    forest: &Forest,
    gates: Gates,
    entries: &[Entry],
    left: &[usize],
    shares: &Shares,
) -> Option<usize> {
    let of_children = forest.child_cohorts(cohort);
    let mut all: Vec<usize> =
        of_children.filter_map(|child| plain_winner(child, forest, gates, entries, left, shares)).collect();
    all.extend(left.iter().copied().filter(|&index| forest.parent(entries[index].node) == Some(cohort)));
    all.into_iter().min_by(|&a, &b| {
        let ((share, borrows), (other_share, other_borrows)) = (&shares[&(cohort, a)], &shares[&(cohort, b)]);
        let (entry, other) = (&entries[a], &entries[b]);
        let if_on = |gate, order| if gates.enabled(gate) { order } else { Ordering::Equal };
        if_on(Gate::PrioritizePreemptorWorkloads, other.is_preemptor.cmp(&entry.is_preemptor))
            .then(if_on(Gate::FairSharingPrioritizeNonBorrowing, borrows.cmp(other_borrows)))
            .then(share.compare(other_share))
            .then(if_on(Gate::PrioritySortingWithinCohort, other.priority.cmp(&entry.priority)))
            .then(entry.time.cmp(&other.time))
            .then(a.cmp(&b))
    })
}

fn usages(forest: &Forest, entries: &[Entry]) -> Vec<Amount> {
    let trees: BTreeSet<TreeId> = entries.iter().map(|entry| entry.tree).collect();
    let cells = |id: TreeId| {
        let tree = forest.tree(id);
        let columns = tree.columns().len();
        (0..tree.n_rows()).flat_map(move |row| (0..columns).map(move |column| tree.usage(row, column)))
    };
    trees.into_iter().flat_map(cells).collect()
}

#[test]
fn the_winner_equals_that_of_a_full_recomputation() {
    let mut n_deep = 0;
    let mut n_decisions = 0;
    let mut n_turned = 0;
    for seed in 0..N_WORLDS {
        let mut world = world(seed);
        n_deep += usize::from(world.levels == MAX_LEVELS);
        let (entries, gates) = (std::mem::take(&mut world.entries), world.gates);
        let mut plain = world.forest.clone();
        let mut tournament = Tournament::default();
        let mut left = Sorted::from_sorted((0..entries.len()).collect());
        let mut saturates = false;
        while !left.is_empty() {
            if world.dice.once_in(6) {
                // As in a stored cycle.
                tournament = tournament.clone();
            }
            let next = tournament.next(&mut world.forest, gates, &entries, &left);
            let expected = plainly_next(&mut plain, gates, &entries, &left);
            let n_left = left.len();
            assert_eq!(next, expected, "world {seed}, with {n_left} of {} left", entries.len());
            assert!(left.remove(&next));
            n_decisions += 1;
            let taken = match world.dice.below(4) {
                0 => Usage::default(),
                1 => world.usage(),
                _ => Usage::clone(&entries[next].assignment.as_ref().unwrap().usage),
            };
            for forest in [&mut world.forest, &mut plain] {
                change(forest, &entries[next], &taken, true);
            }
            let traces = (usages(&world.forest, &entries), usages(&plain, &entries));
            assert_eq!(traces.0, traces.1, "world {seed}, with {n_left} of {} left", entries.len());
            let saturated = world.forest.tree(entries[next].tree).may_saturate();
            n_turned += usize::from(saturated && !saturates && n_left < entries.len());
            saturates |= saturated;
        }
    }
    // Otherwise the test would cover less than it seems to.
    assert!(n_deep > 500 && n_decisions > 15_000 && n_turned > 200, "{n_deep}, {n_decisions}, {n_turned}");
}
