//! Replays the logs of a run in a forest of quotas.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, Id, IdVec};
use crate::base::names::Names;
use crate::quota::forest::{Forest, NodeId, NodeKind};
use crate::simulate::quotas::NodeQuota;
use crate::simulate::record::Log;

/// Sums at and below a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub nominal: BTreeMap<FlavorResourceId, Amount>,
    pub usage: BTreeMap<FlavorResourceId, Amount>,
    pub pending: i64,
}

/// The forest of quotas at a time.
pub(super) struct Player {
    pub names: Names,
    pub forest: Forest,
    /// The existing nodes, by code.
    pub here: BTreeMap<u32, NodeId>,
    pub sums: IdVec<NodeId, Sums>,
    /// The codes of nodes by id, and of ClusterQueues by their index in the log of usage.
    codes: IdVec<NodeId, u32>,
    queue_codes: Vec<Option<u32>>,
    /// Usage and number of waiting jobs of each ClusterQueue, whether it exists or not.
    held: Vec<BTreeMap<FlavorResourceId, Amount>>,
    waiting: Vec<i64>,
    /// Nodes with changes.
    pub changed: BTreeSet<u32>,
}

impl Player {
    pub(super) fn new(log: &Log) -> Self {
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

    /// Applies new declarations of nodes. Of several changes of one node the last counts.
    pub(super) fn change_quotas(&mut self, log: &Log, changes: &[NodeQuota]) {
        let changes: BTreeMap<u32, &NodeQuota> = changes.iter().map(|it| (it.node, it)).collect();
        changes.keys().for_each(|code| self.touch_tree(*code));
        let is_new = |code: &u32| !changes[code].is_gone && !self.here.contains_key(code);
        let new: BTreeSet<u32> = changes.keys().copied().filter(is_new).collect();
        for &code in &new {
            let is_queue = log.quotas.nodes[code as usize].0;
            let node = self.forest.add_node(if is_queue { NodeKind::Queue } else { NodeKind::Cohort });
            self.here.insert(code, node);
            self.codes.push(code);
            self.sums.push(Sums::default());
        }
        for change in changes.values().filter(|it| !it.is_gone) {
            let node = self.here[&change.node];
            self.move_below(node, change.parent.and_then(|parent| self.here.get(&parent).copied()));
            let quotas = change.quotas.iter().map(|(pair, quota)| (Id::from_index(*pair as usize), *quota));
            self.forest.set_quotas(node, quotas.collect());
            self.forest.set_weight(node, change.weight);
            self.forest.recompute(node);
        }
        let gone = changes.values().filter(|it| it.is_gone);
        let gone: Vec<NodeId> = gone.filter_map(|it| self.here.remove(&it.node)).collect();
        // All leave their parents first, since a cohort may go together with its children.
        gone.iter().for_each(|node| self.move_below(*node, None));
        for node in gone {
            if !self.forest.has_children(node) {
                self.forest.remove_node(node);
            }
        }
        for (queue, code) in self.queue_codes.iter().enumerate() {
            if let Some(code) = code.filter(|code| new.contains(code)) {
                let held: Vec<_> = self.held[queue].iter().map(|(pair, amount)| (*pair, *amount)).collect();
                self.forest.charge(self.here[&code], &held, true, &self.names);
            }
        }
        changes.keys().for_each(|code| self.touch_tree(*code));
        self.sum_up();
    }

    fn move_below(&mut self, node: NodeId, parent: Option<NodeId>) {
        let left = self.forest.parent(node).filter(|old| parent != Some(*old));
        self.forest.set_parent(node, parent, &self.names);
        if let Some(left) = left {
            self.forest.recompute(left);
        }
    }

    /// A change of quota changes the shares of the whole tree.
    fn touch_tree(&mut self, code: u32) {
        let Some(&node) = self.here.get(&code) else { return };
        let top = self.forest.root(node).unwrap_or(node);
        let below = self.forest.subtree(top);
        self.changed.extend(below.into_iter().map(|node| self.codes[node]));
    }

    /// Recomputes all sums after nodes have moved.
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

    pub(super) fn charge(&mut self, queue: u32, pair: u32, amount: Amount, adds: bool) {
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

    pub(super) fn wait(&mut self, queue: u32, change: i64) {
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
}
