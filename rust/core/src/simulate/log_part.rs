//! A log as bytes, part by part: what has happened since the part before.
//!
//! ```text
//! length, CRC-32 | a part
//! ```

use std::sync::Arc;

use super::label_log::{LabelLog, LabelMark};
use super::node_log::NodePart;
use super::placements::{PlacementMark, PlacementPart};
use super::plan::Ending;
use super::preemptions::PreemptionLog;
use super::quotas::{NodeQuota, QuotaLog};
use super::record::{Log, Run, Step};
use super::usage::{NONE, UsageLog};
use super::work_log::{WorkLog, WorkMark};
use crate::base::key::Key;
use crate::base::names::Names;
use crate::objects::Time;
use crate::snapshot::{Damage, Pool, Reader, Stored, Writer, stored};

stored!(enum Step { 0 = Created, 1 = Admitted, 2 = Stopped, 3 = Finished, 4 = Deleted, 5 = Replaced });

/// A position in a log, up to which it is in the parts so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    n_steps: usize,
    n_named: usize,
    n_changes: usize,
    n_queues: usize,
    n_pairs: usize,
    n_quotas: usize,
    n_quota_nodes: usize,
    n_preemptions: usize,
    placements: PlacementMark,
    n_node_changes: usize,
    n_nodes: usize,
    work: WorkMark,
    labels: LabelMark,
}

/// What was added to a log. Cycles and events are left out: runs that keep them are never saved.
struct Part {
    times: Vec<Time>,
    steps: Vec<Step>,
    numbers: Vec<u32>,
    /// Number of workloads so far.
    n_workloads: u32,
    /// Which of them have a name now, and their ClusterQueue.
    named: Vec<(u32, (Key, u32))>,
    changes: Changes,
    quotas: Vec<NodeQuota>,
    quota_nodes: Vec<(bool, String)>,
    preemptions: PreemptionLog,
    placements: PlacementPart,
    nodes: NodePart,
    work: WorkLog,
    labels: LabelLog,
}

stored!(struct Part {
    times, steps, numbers, n_workloads, named, changes, quotas, quota_nodes, preemptions, placements, nodes, work,
    labels,
});

/// What was added to a [`UsageLog`].
struct Changes {
    times: Vec<i64>,
    workloads: Vec<u32>,
    queues: Vec<u32>,
    adds: Vec<u8>,
    ends: Vec<u32>,
    pairs: Vec<u32>,
    amounts: Vec<i64>,
    queue_names: Vec<String>,
    pair_names: Vec<(String, String)>,
}

stored!(struct Changes { times, workloads, queues, adds, ends, pairs, amounts, queue_names, pair_names });

impl Run {
    /// Its whole log as one part, without cycles and events.
    pub fn log_part(&self) -> Vec<u8> {
        self.log.part(Mark::default())
    }

    /// The record of a run of `n_workloads` whose log is one part; it has no cycles and events.
    ///
    /// # Errors
    /// [`Damage`]: this is not the log of such a run.
    pub fn of_log_part(
        part: &[u8],
        n_workloads: u32,
        ending: Ending,
        end: Time,
        n_cycles: u64,
    ) -> Result<Self, Damage> {
        let log = Arc::new(Log::of_parts(part, n_workloads as usize)?);
        Ok(Self { ending, end, n_cycles, log })
    }
}

impl Log {
    /// The current position.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            n_steps: self.steps.len(),
            n_named: self.named.len(),
            n_changes: self.usage.times.len(),
            n_queues: self.usage.queue_names.len(),
            n_pairs: self.usage.pair_names.len(),
            n_quotas: self.quotas.changes.len(),
            n_quota_nodes: self.quotas.nodes.len(),
            n_preemptions: self.preemptions.times.len(),
            placements: self.placements.mark(),
            n_node_changes: self.nodes.times.len(),
            n_nodes: self.nodes.names.len(),
            work: self.work.mark(),
            labels: self.labels.mark(),
        }
    }

    /// What was added since a mark.
    pub(super) fn part(&self, since: Mark) -> Vec<u8> {
        let steps = &self.steps[since.n_steps..];
        let home = |number: u32| self.usage.homes.get(number as usize).copied().unwrap_or(NONE);
        let named = self.named[since.n_named..].iter();
        let part = Part {
            times: steps.iter().map(|it| it.0).collect(),
            steps: steps.iter().map(|it| it.1).collect(),
            numbers: steps.iter().map(|it| it.2).collect(),
            n_workloads: u32::try_from(self.workloads.len()).expect("fewer than 2^32 workloads"),
            named: named.map(|&number| (number, (self.key(number).clone(), home(number)))).collect(),
            changes: self.usage.part(since),
            quotas: self.quotas.changes[since.n_quotas..].to_vec(),
            quota_nodes: self.quotas.nodes[since.n_quota_nodes..].to_vec(),
            preemptions: self.preemptions.part(since.n_preemptions),
            placements: self.placements.part(since.placements),
            nodes: self.nodes.part(since.n_node_changes, since.n_nodes),
            work: self.work.part(since.work),
            labels: self.labels.part(since.labels),
        };
        let names = Names::default();
        let mut out = Writer::new(&names);
        part.write_to(&mut out);
        let payload = out.finish();
        let mut bytes = Vec::with_capacity(payload.len() + 12);
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Joins the parts, in order, to the log of a run that began with `n_workloads`.
    ///
    /// # Errors
    /// [`Damage`]: these are not the parts of a log.
    pub(super) fn of_parts(bytes: &[u8], n_workloads: usize) -> Result<Log, Damage> {
        let mut log = Log { workloads: vec![None; n_workloads], ..Log::default() };
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let damage = |what: &str| Damage { at, what: what.to_owned() };
            let (length, after) = rest.split_first_chunk().ok_or_else(|| damage("a length is missing"))?;
            let (checksum, after) = after.split_first_chunk().ok_or_else(|| damage("a checksum is missing"))?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok();
            let (payload, after) =
                length.and_then(|it| after.split_at_checked(it)).ok_or_else(|| damage("an incomplete part"))?;
            if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
                return Err(damage("the checksum of a part does not match"));
            }
            log.add(payload, at + 12)?;
            rest = after;
        }
        Ok(log)
    }

    fn add(&mut self, payload: &[u8], at: usize) -> Result<(), Damage> {
        let mut from = Reader::new(payload, at, &[])?;
        from.fill::<Arc<str>>()?;
        for _ in 1..Pool::COUNT {
            let n = from.count()?;
            from.check(n == 0, "unused names of a log")?;
        }
        let part = Part::read_from(&mut from)?;
        let Part { times, steps, numbers, n_workloads, named, changes, quotas, quota_nodes, .. } = part;
        let Part { preemptions, placements, nodes, work, labels, .. } = part;
        from.end()?;
        let n_workloads = n_workloads as usize;
        // A new workload has a name, or came and went with its quota between two steps.
        let n_new = n_workloads.checked_sub(self.workloads.len());
        let is_possible = n_new.is_some_and(|n_new| n_new <= named.len() + changes.times.len());
        from.check(is_possible, "an impossible number of workloads")?;
        self.workloads.resize(n_workloads, None);
        let last_home = named.iter().map(|(_, (_, home))| *home).filter(|home| *home != NONE).max();
        for (number, (key, home)) in named {
            let name = self.workloads.get_mut(number as usize);
            let name = name.ok_or_else(|| from.damage("a workload without a number"))?;
            from.check(name.replace(key).is_none(), "a workload with two names")?;
            self.named.push(number);
            if home != NONE {
                self.usage.put_home(number, home);
            }
        }
        from.check(times.len() == steps.len() && times.len() == numbers.len(), "incomplete steps")?;
        let is_named = |number: &u32| self.workloads.get(*number as usize).is_some_and(Option::is_some);
        from.check(numbers.iter().all(is_named), "a step of an unknown workload")?;
        let rows = times.into_iter().zip(steps).zip(numbers);
        self.steps.extend(rows.map(|((time, step), number)| (time, step, number)));
        self.usage.add(changes, n_workloads, &from)?;
        let is_queue = |home: u32| (home as usize) < self.usage.queue_names.len();
        from.check(last_home.is_none_or(is_queue), "a ClusterQueue without a name")?;
        self.quotas.add(quota_nodes, quotas, self.usage.pair_names.len(), &from)?;
        self.preemptions.add(preemptions, n_workloads, &from)?;
        self.placements.add(placements, n_workloads, &from)?;
        self.nodes.add(nodes, &from)?;
        self.labels.add(labels, n_workloads, self.named.len(), self.usage.queue_names.len(), &from)?;
        self.work.add(work, n_workloads, &from)
    }
}

impl UsageLog {
    fn part(&self, since: Mark) -> Changes {
        let (n, n_amounts) = (since.n_changes, self.n_amounts(since.n_changes));
        Changes {
            times: self.times[n..].to_vec(),
            workloads: self.workloads[n..].to_vec(),
            queues: self.queues[n..].to_vec(),
            adds: self.adds[n..].to_vec(),
            ends: self.ends[n..].to_vec(),
            pairs: self.pairs[n_amounts..].to_vec(),
            amounts: self.amounts[n_amounts..].to_vec(),
            queue_names: self.queue_names[since.n_queues..].to_vec(),
            pair_names: self.pair_names[since.n_pairs..].to_vec(),
        }
    }

    /// The number of amounts of the first changes.
    fn n_amounts(&self, n_changes: usize) -> usize {
        n_changes.checked_sub(1).map_or(0, |last| self.ends[last] as usize)
    }

    fn add(&mut self, changes: Changes, n_workloads: usize, from: &Reader<'_>) -> Result<(), Damage> {
        let Changes { times, workloads, queues, adds, ends, pairs, amounts, queue_names, pair_names } = changes;
        let lengths = [workloads.len(), queues.len(), adds.len(), ends.len()];
        from.check(lengths == [times.len(); 4] && pairs.len() == amounts.len(), "changes that are not whole")?;
        self.queue_names.extend(queue_names);
        self.pair_names.extend(pair_names);
        let n_amounts = self.amounts.len() + amounts.len();
        let is_in_order = ends.is_sorted() && ends.first().is_none_or(|first| *first as usize >= self.amounts.len());
        let is_whole = ends.last().map_or(self.amounts.len(), |last| *last as usize) == n_amounts;
        from.check(is_in_order && is_whole, "amounts that belong to no change")?;
        let known = |all: &[u32], n: usize| all.iter().all(|it| (*it as usize) < n);
        let is_known = known(&workloads, n_workloads)
            && known(&queues, self.queue_names.len())
            && known(&pairs, self.pair_names.len())
            && adds.iter().all(|it| *it < 2);
        from.check(is_known, "a change of something unknown")?;
        for (&number, &queue) in workloads.iter().zip(&queues) {
            self.put_home(number, queue);
        }
        self.times.extend(times);
        self.workloads.extend(workloads);
        self.queues.extend(queues);
        self.adds.extend(adds);
        self.ends.extend(ends);
        self.pairs.extend(pairs);
        self.amounts.extend(amounts);
        Ok(())
    }
}

impl QuotaLog {
    fn add(
        &mut self,
        nodes: Vec<(bool, String)>,
        changes: Vec<NodeQuota>,
        n_pairs: usize,
        from: &Reader<'_>,
    ) -> Result<(), Damage> {
        self.nodes.extend(nodes);
        let is_node = |code: u32| (code as usize) < self.nodes.len();
        let is_known = |it: &NodeQuota| {
            is_node(it.node)
                && it.parent.is_none_or(|parent| is_node(parent) && !self.nodes[parent as usize].0)
                && it.quotas.iter().all(|(pair, _)| (*pair as usize) < n_pairs)
        };
        from.check(changes.iter().all(is_known), "a quota of something unknown")?;
        self.changes.extend(changes);
        Ok(())
    }
}
