//! Usage and quota of ClusterQueues or Cohorts over time: the logs of a run, played again through a forest of quotas.

use std::collections::{BTreeMap, BTreeSet};

use super::quotas::NodeQuota;
use super::record::Log;
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, Id, IdVec};
use crate::base::names::Names;
use crate::quota::forest::{Forest, NodeId, NodeKind};
use crate::quota::tree::{Column, Row, Tree};

/// How the number of jobs that wait has changed, in order of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting<'a> {
    /// When.
    pub times: &'a [i64],
    /// In which ClusterQueue, as an index into [`super::UsageLog::queue_names`].
    pub queues: &'a [u32],
    /// By how many.
    pub changes: &'a [i64],
}

/// A row per time, node, flavor and resource, in this order; of several changes at one time only the last counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Which node, as an index into [`super::QuotaLog::nodes`].
    pub nodes: Vec<u32>,
    /// Which flavor and resource, as an index into [`super::UsageLog::pair_names`].
    pub pairs: Vec<u32>,
    /// Nominal quota; of a cohort also that of all below it.
    pub nominal: Vec<i64>,
    /// What is used; of a cohort what all below it use.
    pub usage: Vec<i64>,
    /// What is used beyond `nominal`, below a cohort.
    pub borrowed: Vec<i64>,
    /// What others have of what it does not use itself.
    pub lent: Vec<i64>,
    /// How many jobs wait; of a cohort in all ClusterQueues below it.
    pub pending: Vec<i64>,
    /// The weighted share (rules/02 §6).
    pub share: Vec<i64>,
}

impl Series {
    /// The rows of all ClusterQueues (or Cohorts) of a run.
    ///
    /// `every`: a row of each at these distances from `start` to `end`; `None`: where something of it has changed.
    pub fn of(log: &Log, is_queue: bool, start: i64, end: i64, every: Option<i64>, waiting: Waiting<'_>) -> Self {
        let mut player = Player::new(log);
        let mut series = Series::default();
        let mut events = Events { log, waiting, n_quotas: 0, n_charges: 0, n_waiting: 0 };
        match every {
            Some(step) => {
                let mut time = start;
                loop {
                    events.play_until(&mut player, time);
                    series.take_down(&mut player, log, is_queue, time, true);
                    match time.checked_add(step).filter(|next| *next <= end) {
                        Some(next) => time = next,
                        None => break,
                    }
                }
            }
            None => {
                events.play_until(&mut player, start);
                series.take_down(&mut player, log, is_queue, start, true);
                while let Some(time) = events.next_time() {
                    events.play_until(&mut player, time);
                    series.take_down(&mut player, log, is_queue, time, false);
                }
            }
        }
        series
    }

    /// The rows at one time: of all nodes, or of those of which something has changed.
    fn take_down(&mut self, player: &mut Player, log: &Log, is_queue: bool, time: i64, all: bool) {
        player.forest.flush(&player.names);
        let changed = std::mem::take(&mut player.changed);
        let chosen: Vec<u32> = if all { player.here.keys().copied().collect() } else { changed.into_iter().collect() };
        for code in chosen {
            if log.quotas.nodes[code as usize].0 != is_queue {
                continue;
            }
            // One that has gone has no rows.
            if let Some(&node) = player.here.get(&code) {
                self.add_node(player, time, code, node);
            }
        }
    }

    fn add_node(&mut self, player: &Player, time: i64, code: u32, node: NodeId) {
        let (tree, row) = player.forest.locate(node);
        let (resources, tree) = (player.forest.resources_of(tree), player.forest.tree(tree));
        let share = tree.share(row, player.forest.weight(node), resources, &[]).rounded();
        let (sums, families) = (&player.sums[node], player.families(node));
        for (column, pair) in tree.columns().iter().enumerate() {
            let used = sums.usage.get(pair).copied();
            if used.is_none() && !tree.is_declared(row, column) {
                continue;
            }
            let usage = used.unwrap_or(Amount::ZERO);
            let nominal = sums.nominal.get(pair).copied().unwrap_or(Amount::ZERO);
            let over = if tree.parent(row).is_some() { usage.minus(nominal).max(Amount::ZERO) } else { Amount::ZERO };
            self.times.push(time);
            self.nodes.push(code);
            self.pairs.push(u32::try_from(pair.index()).expect("fewer than 2^32 pairs"));
            self.nominal.push(nominal.get());
            self.usage.push(usage.get());
            self.borrowed.push(over.get());
            self.lent.push(lent(tree, &families, row, column));
            self.pending.push(sums.pending);
            self.share.push(share);
        }
    }
}

/// What is still to be played.
struct Events<'a> {
    log: &'a Log,
    waiting: Waiting<'a>,
    n_quotas: usize,
    n_charges: usize,
    n_waiting: usize,
}

impl Events<'_> {
    fn next_time(&self) -> Option<i64> {
        let quota = self.log.quotas.changes.get(self.n_quotas).map(|change| change.time);
        let charge = self.log.usage.times.get(self.n_charges).copied();
        let waits = self.waiting.times.get(self.n_waiting).copied();
        [quota, charge, waits].into_iter().flatten().min()
    }

    /// Everything up to a time, that included.
    fn play_until(&mut self, player: &mut Player, until: i64) {
        while let Some(time) = self.next_time().filter(|time| *time <= until) {
            let quotas = &self.log.quotas.changes[self.n_quotas..];
            let quotas = &quotas[..quotas.partition_point(|change| change.time <= time)];
            self.n_quotas += quotas.len();
            if !quotas.is_empty() {
                player.change_quotas(self.log, quotas);
            }
            let usage = &self.log.usage;
            while usage.times.get(self.n_charges).is_some_and(|it| *it <= time) {
                let change = self.n_charges;
                let from = change.checked_sub(1).map_or(0, |before| usage.ends[before] as usize);
                let amounts = from..usage.ends[change] as usize;
                for at in amounts {
                    let amount = Amount::new(usage.amounts[at]);
                    player.charge(usage.queues[change], usage.pairs[at], amount, usage.adds[change] == 1);
                }
                self.n_charges += 1;
            }
            while self.waiting.times.get(self.n_waiting).is_some_and(|it| *it <= time) {
                player.wait(self.waiting.queues[self.n_waiting], self.waiting.changes[self.n_waiting]);
                self.n_waiting += 1;
            }
        }
    }
}

/// What there is at and below a node.
#[derive(Clone, Debug, Default)]
struct Sums {
    nominal: BTreeMap<FlavorResourceId, Amount>,
    usage: BTreeMap<FlavorResourceId, Amount>,
    pending: i64,
}

/// A forest of quotas, as it was at a time.
struct Player {
    names: Names,
    forest: Forest,
    /// The nodes that are there, by their codes.
    here: BTreeMap<u32, NodeId>,
    sums: IdVec<NodeId, Sums>,
    /// The codes of nodes by their ids, and of ClusterQueues by their index in the log of usage.
    codes: IdVec<NodeId, u32>,
    queue_codes: Vec<Option<u32>>,
    /// What workloads of each ClusterQueue hold and how many wait, whether it is there or not.
    held: Vec<BTreeMap<FlavorResourceId, Amount>>,
    waiting: Vec<i64>,
    /// Nodes of which something has changed.
    changed: BTreeSet<u32>,
}

impl Player {
    fn new(log: &Log) -> Self {
        let mut names = Names::default();
        for (flavor, resource) in &log.usage.pair_names {
            let (flavor, resource) = (names.flavors.intern(flavor.as_str()), names.resource(resource));
            names.flavor_resource(flavor, resource);
        }
        let queues = log.quotas.nodes.iter().zip(0..).filter(|((is_queue, _), _)| *is_queue);
        let codes: BTreeMap<&str, u32> = queues.map(|((_, name), code)| (name.as_str(), code)).collect();
        let n_queues = log.usage.queue_names.len();
        Self {
            names,
            forest: Forest::default(),
            here: BTreeMap::new(),
            sums: IdVec::default(),
            codes: IdVec::default(),
            queue_codes: log.usage.queue_names.iter().map(|name| codes.get(name.as_str()).copied()).collect(),
            held: vec![BTreeMap::new(); n_queues],
            waiting: vec![0; n_queues],
            changed: BTreeSet::new(),
        }
    }

    /// What nodes declare from now on.
    fn change_quotas(&mut self, log: &Log, changes: &[NodeQuota]) {
        changes.iter().for_each(|it| self.touch_tree(it.node));
        let coming: Vec<u32> = changes.iter().filter(|it| !it.is_gone).map(|it| it.node).collect();
        let new: BTreeSet<u32> = coming.into_iter().filter(|code| !self.here.contains_key(code)).collect();
        for &code in &new {
            let is_queue = log.quotas.nodes[code as usize].0;
            let node = self.forest.add_node(if is_queue { NodeKind::Queue } else { NodeKind::Cohort });
            self.here.insert(code, node);
            self.codes.push(code);
            self.sums.push(Sums::default());
        }
        for change in changes.iter().filter(|it| !it.is_gone) {
            let node = self.here[&change.node];
            let parent = change.parent.and_then(|parent| self.here.get(&parent).copied());
            let left = self.forest.parent(node).filter(|old| parent != Some(*old));
            self.forest.set_parent(node, parent, &self.names);
            left.into_iter().for_each(|left| self.forest.recompute(left));
            let quotas = change.quotas.iter().map(|(pair, quota)| (Id::from_index(*pair as usize), *quota));
            self.forest.set_quotas(node, quotas.collect());
            self.forest.set_weight(node, change.weight);
            self.forest.recompute(node);
        }
        for change in changes.iter().filter(|it| it.is_gone) {
            // Whoever was below it has moved: it goes only as the last.
            if let Some(node) = self.here.get(&change.node).copied().filter(|node| !self.forest.has_children(*node)) {
                let parent = self.forest.parent(node);
                self.here.remove(&change.node);
                self.forest.remove_node(node);
                if let Some(parent) = parent {
                    self.forest.recompute(parent);
                }
            }
        }
        for (queue, code) in self.queue_codes.iter().enumerate() {
            if let Some(code) = code.filter(|code| new.contains(code)) {
                let held: Vec<_> = self.held[queue].iter().map(|(pair, amount)| (*pair, *amount)).collect();
                self.forest.charge(self.here[&code], &held, true, &self.names);
            }
        }
        changes.iter().for_each(|it| self.touch_tree(it.node));
        self.sum_up();
    }

    /// A change of quota changes the shares of a whole tree.
    fn touch_tree(&mut self, code: u32) {
        let Some(&node) = self.here.get(&code) else { return };
        let top = self.forest.root(node).unwrap_or(node);
        let below = self.forest.subtree(top);
        self.changed.extend(below.into_iter().map(|node| self.codes[node]));
    }

    /// Works all sums out anew, as nodes have moved.
    fn sum_up(&mut self) {
        self.sums = IdVec::default();
        for _ in self.codes.iter() {
            self.sums.push(Sums::default());
        }
        let queues = self.queue_codes.iter().enumerate();
        let queues: BTreeMap<u32, usize> = queues.filter_map(|(queue, code)| Some(((*code)?, queue))).collect();
        for (code, &node) in &self.here {
            let quotas = self.forest.quotas(node);
            let queue = queues.get(code).copied();
            for above in self.forest.path(node) {
                let sums = &mut self.sums[above];
                for (pair, quota) in quotas {
                    let sum = sums.nominal.entry(*pair).or_default();
                    *sum = sum.plus(quota.nominal);
                }
                let Some(queue) = queue else { continue };
                sums.pending += self.waiting[queue];
                for (pair, amount) in &self.held[queue] {
                    let sum = sums.usage.entry(*pair).or_default();
                    *sum = sum.plus(*amount);
                }
            }
        }
    }

    fn charge(&mut self, queue: u32, pair: u32, amount: Amount, adds: bool) {
        let pair = FlavorResourceId::from_index(pair as usize);
        let count = |sum: &mut Amount| *sum = if adds { sum.plus(amount) } else { sum.minus(amount) };
        count(self.held[queue as usize].entry(pair).or_default());
        let Some(node) = self.node_of(queue) else { return };
        self.forest.charge(node, &[(pair, amount)], adds, &self.names);
        for above in self.forest.path(node) {
            count(self.sums[above].usage.entry(pair).or_default());
            self.changed.insert(self.codes[above]);
        }
    }

    fn wait(&mut self, queue: u32, change: i64) {
        self.waiting[queue as usize] += change;
        let Some(node) = self.node_of(queue) else { return };
        for above in self.forest.path(node) {
            self.sums[above].pending += change;
            self.changed.insert(self.codes[above]);
        }
    }

    fn node_of(&self, queue: u32) -> Option<NodeId> {
        self.here.get(&self.queue_codes[queue as usize]?).copied()
    }

    /// The rows of a node and its siblings, last; before them those of its parent and the parent's siblings, and so on.
    fn families(&self, node: NodeId) -> Vec<Vec<Row>> {
        let row_of = |node: NodeId| self.forest.locate(node).1;
        let above: Vec<NodeId> = self.forest.path(node).skip(1).collect();
        let below = |node: &NodeId| {
            let (cohorts, queues) = (self.forest.child_cohorts(*node), self.forest.child_queues(*node));
            cohorts.chain(queues).map(row_of).collect()
        };
        above.iter().rev().map(below).collect()
    }
}

/// How much others have of the quota of a node that it does not use itself.
///
/// What the children of a cohort use beyond their quotas, and what others outside have of it, comes from what its
/// children do not use of what they lend and from its own quota, in proportion to how much each has.
fn lent(tree: &Tree, families: &[Vec<Row>], row: Row, column: Column) -> i64 {
    let get = |amount: Amount| i128::from(amount.get());
    let over = |row: Row| get(tree.usage(row, column)) - get(tree.subtree_quota(row, column));
    let idle = |row: Row| {
        let lends = get(tree.subtree_quota(row, column)) - get(tree.local_quota(row, column));
        lends.min(-over(row)).max(0)
    };
    let path: Vec<Row> = std::iter::successors(Some(row), |row| tree.parent(*row)).collect();
    let mut lent = 0;
    // From the root down to the node: what the cohort above has lent is what is asked of its children.
    for (place, family) in families.iter().enumerate() {
        let (cohort, child) = (path[path.len() - 1 - place], path[path.len() - 2 - place]);
        let asked = family.iter().map(|child| over(*child).max(0)).fold(lent, i128::saturating_add);
        let pool =
            family.iter().map(|child| idle(*child)).fold(get(tree.nominal(cohort, column)), i128::saturating_add);
        lent = if pool > 0 { asked.min(pool).saturating_mul(idle(child)) / pool } else { 0 };
    }
    i64::try_from(lent).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
