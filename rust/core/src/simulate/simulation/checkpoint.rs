//! Saves and resumes a run. A checkpoint is as large as the live state; the history is in the parts of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Simulation;
use super::jobs::Jobs;
use super::samples::Samples;
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Time;
use crate::simulate::plan::Options;
use crate::simulate::record::Log;
use crate::snapshot::{Damage, Format, LoadError, Stored, stored};
use crate::state::charges::ChargeLog;
use crate::state::node_changes::NodeChanges;

static FORMAT: Format = Format {
    kind: "kueuecore.run/",
    line: "kueuecore.run/4\n",
    what: "a checkpoint of a run: name the file that was given as the checkpoint of one",
};

/// Why a run cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The checkpoint cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The log cannot be read.
    #[error("this is not the log of a run: {0}")]
    Log(Damage),
}

/// What a checkpoint has besides the engine. Slots of workloads may be free by now.
struct Alive {
    clock: Time,
    free_at: Time,
    jobs: Jobs,
    samples: Samples,
    leaving: BTreeSet<(Time, String)>,
    n_happened: usize,
    n_quiet: usize,
    patience: usize,
    n_cycles: u64,
    n_created: u64,
    n_finished: u64,
    numbers: Vec<(u32, u32)>,
    departing: Vec<(u32, u32)>,
    follows_usage: bool,
    charges: ChargeLog,
    node_changes: NodeChanges,
    evictions: BTreeMap<u32, Vec<i32>>,
}

stored!(struct Alive {
    clock, free_at, jobs, samples, leaving, n_happened, n_quiet, patience, n_cycles, n_created, n_finished, numbers,
    departing, follows_usage, charges, node_changes, evictions
});

impl Simulation {
    /// Can it be saved now? Not within a cycle that waits for pods, nor if external controllers decide on checks.
    pub fn is_between_cycles(&self) -> bool {
        self.then.is_none() && self.underway.is_none() && self.asking.is_none()
    }

    /// What has happened since the last checkpoint that was [kept](Self::kept), to be appended to the earlier parts.
    pub fn log_part(&self) -> Vec<u8> {
        self.log.part(self.kept)
    }

    /// The live state as bytes, with a note of the caller. Equal runs give equal bytes. `None`: it can't be saved now,
    /// or never, because it keeps cycles or messages, or no log.
    pub fn checkpoint(&self, engine: &mut Engine, note: &[u8]) -> Option<Vec<u8>> {
        let Options { keeps_cycles, keeps_messages, keeps_log, .. } = self.options;
        if !self.is_between_cycles() || keeps_cycles || keeps_messages || !keeps_log {
            return None;
        }
        let alive = self.alive(engine);
        Some(engine.save_with(&FORMAT, note, |out| alive.write_to(out)))
    }

    /// The last checkpoint, and all parts of the log up to it, have been stored.
    pub fn kept(&mut self) {
        self.kept = self.log.mark();
    }

    /// The note in a checkpoint.
    ///
    /// # Errors
    /// [`LoadError`]: not a checkpoint of this version, or damaged.
    pub fn note_of(checkpoint: &[u8]) -> Result<Vec<u8>, LoadError> {
        Ok(FORMAT.open(checkpoint)?.next()?.0.to_vec())
    }

    /// Resumes a saved run. The same events must be scheduled, and no step done yet. All or nothing.
    ///
    /// # Errors
    /// [`ResumeError`]: not a checkpoint of this version, or not the matching log.
    pub fn resume(&mut self, engine: &mut Engine, checkpoint: &[u8], log: &[u8]) -> Result<(), ResumeError> {
        let log = Log::of_parts(log, self.log.workloads.len()).map_err(ResumeError::Log)?;
        let n_scheduled = self.happenings.len();
        let (loaded, _, alive) = Engine::load_with(&FORMAT, checkpoint, |from| {
            let alive = Alive::read_from(from)?;
            from.check(alive.n_happened <= n_scheduled, "more has happened than was scheduled")?;
            let mut numbers = alive.numbers.iter().chain(&alive.departing);
            let is_named = |number: u32| log.workloads.get(number as usize).is_some_and(Option::is_some);
            from.check(numbers.all(|(_, number)| is_named(*number)), "a workload that is not in the log")?;
            Ok(alive)
        })?;
        *engine = loaded;
        self.take_up(engine, alive, log);
        Ok(())
    }

    fn alive(&self, engine: &Engine) -> Alive {
        let Self { clock, free_at, n_quiet, patience, n_cycles, n_created, n_finished, follows_usage, .. } = *self;
        let mut numbers: Vec<(u32, u32)> = self.numbers.iter().map(|(id, number)| (id.0, *number)).collect();
        numbers.sort_unstable();
        Alive {
            clock,
            free_at,
            jobs: self.jobs.clone(),
            samples: self.samples.clone(),
            leaving: self.leaving.clone(),
            n_happened: self.n_scheduled as usize - self.happenings.len(),
            n_quiet,
            patience,
            n_cycles,
            n_created,
            n_finished,
            numbers,
            departing: self.departing.iter().map(|(id, number)| (id.0, *number)).collect(),
            follows_usage,
            charges: engine.state.feeds.charges.clone(),
            node_changes: engine.state.feeds.node_changes.clone(),
            evictions: self.evictions.clone(),
        }
    }

    fn take_up(&mut self, engine: &mut Engine, alive: Alive, log: Log) {
        let Alive { clock, free_at, jobs, samples, leaving, n_happened, n_quiet, patience, .. } = alive;
        let Alive { n_cycles, n_created, n_finished, numbers, departing, follows_usage, charges, .. } = alive;
        engine.state.feeds.charges = charges;
        let nodes = log.quotas.nodes.iter().zip(0..);
        let quota_codes = nodes.map(|(node, code)| (node.clone(), code)).collect();
        engine.state.feeds.node_changes = alive.node_changes;
        *self = Self {
            options: self.options,
            start: self.start,
            clock,
            free_at,
            jobs,
            samples,
            leaving,
            happenings: std::mem::take(&mut self.happenings),
            n_scheduled: self.n_scheduled,
            happened: Vec::new(),
            then: None,
            asking: None,
            underway: None,
            n_quiet,
            patience,
            n_cycles,
            n_created,
            n_finished,
            watch: self.watch.clone(),
            kept: log.mark(),
            log: Arc::new(log),
            numbers: numbers.into_iter().map(|(id, number)| (WorkloadId(id), number)).collect(),
            over: Vec::new(),
            departing: departing.into_iter().map(|(id, number)| (WorkloadId(id), number)).collect(),
            follows_usage,
            quota_nodes: FxHashMap::default(),
            quota_codes,
            evictions: alive.evictions,
        };
        if follows_usage {
            self.follow_quotas(engine);
        }
        // They are ordered by time in both runs.
        let happened = self.happenings.drain(..n_happened);
        self.happened = happened.map(|it| it.number).collect();
    }
}

#[cfg(test)]
mod tests;
