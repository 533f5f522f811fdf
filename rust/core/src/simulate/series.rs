//! Usage and quota of ClusterQueues or Cohorts over time: replays the logs of a run in a forest of quotas.

mod lending;
mod player;

use lending::Lending;
use player::Player;

use super::record::Log;
use crate::base::amount::Amount;
use crate::base::ids::Id;
use crate::quota::forest::NodeId;

/// Changes in the number of waiting jobs, in order of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting<'a> {
    pub times: &'a [i64],
    /// In which ClusterQueue, as an index into [`super::UsageLog::queue_names`].
    pub queues: &'a [u32],
    /// By how many.
    pub changes: &'a [i8],
}

/// One row per time, node, flavor and resource, in this order; of several changes at one time only the last counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Which node, as an index into [`super::QuotaLog::nodes`].
    pub nodes: Vec<u32>,
    /// Which flavor and resource, as an index into [`super::UsageLog::pair_names`].
    pub pairs: Vec<u32>,
    /// Nominal quota; for a cohort including everything below it.
    pub nominal: Vec<i64>,
    /// Usage; for a cohort including everything below it.
    pub usage: Vec<i64>,
    /// Usage beyond its quota, below a cohort.
    pub borrowed: Vec<i64>,
    /// How much of its unused quota others use.
    pub lent: Vec<i64>,
    /// Number of waiting jobs; for a cohort in all ClusterQueues below it.
    pub pending: Vec<i64>,
    /// The weighted share (rules/02 §6).
    pub share: Vec<i64>,
}

impl Series {
    /// The rows of all ClusterQueues (or Cohorts) of a run.
    ///
    /// `every`: one row of each at these intervals from `start` to `end`; `None`: one row whenever one changes.
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

    /// Writes the rows at one time: of all nodes, or of those that changed.
    fn take_down(&mut self, player: &mut Player, log: &Log, is_queue: bool, time: i64, all: bool) {
        player.forest.flush(&player.names);
        let changed = std::mem::take(&mut player.changed);
        let chosen: Vec<u32> = if all { player.here.keys().copied().collect() } else { changed.into_iter().collect() };
        let mut lending = Lending::default();
        for code in chosen {
            if log.quotas.nodes[code as usize].0 != is_queue {
                continue;
            }
            // A deleted node has no rows.
            if let Some(&node) = player.here.get(&code) {
                self.add_node(player, &mut lending, time, code, node);
            }
        }
    }

    fn add_node(&mut self, player: &Player, lending: &mut Lending, time: i64, code: u32, node: NodeId) {
        let (tree, row) = player.forest.locate(node);
        let (resources, tree) = (player.forest.resources_of(tree), player.forest.tree(tree));
        let share = tree.share(row, player.forest.weight(node), resources, &[]).rounded();
        let (sums, lent) = (&player.sums[node], lending.of(&player.forest, node));
        for (column, pair) in tree.columns().iter().enumerate() {
            let used = sums.usage.get(pair).copied();
            if used.is_none() && !tree.is_declared(row, column) {
                continue;
            }
            let usage = used.unwrap_or(Amount::ZERO);
            let nominal = sums.nominal.get(pair).copied().unwrap_or(Amount::ZERO);
            // As its parent cohort sees it: quota that is not lent upwards counts for nobody else.
            let over = tree.usage(row, column).minus(tree.subtree_quota(row, column)).max(Amount::ZERO);
            let borrowed = if tree.parent(row).is_some() { over } else { Amount::ZERO };
            self.times.push(time);
            self.nodes.push(code);
            self.pairs.push(u32::try_from(pair.index()).expect("fewer than 2^32 pairs"));
            self.nominal.push(nominal.get());
            self.usage.push(usage.get());
            self.borrowed.push(borrowed.get());
            self.lent.push(lent[column]);
            self.pending.push(sums.pending);
            self.share.push(share);
        }
    }
}

/// What remains to be replayed.
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

    /// Replays everything up to and including a time.
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
                player.wait(self.waiting.queues[self.n_waiting], i64::from(self.waiting.changes[self.n_waiting]));
                self.n_waiting += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
