//! What came of a run.

use std::sync::Arc;

use super::label_log::LabelLog;
use super::node_log::NodeLog;
use super::placements::PlacementLog;
use super::plan::Ending;
use super::preemptions::PreemptionLog;
use super::quotas::QuotaLog;
use super::usage::UsageLog;
use super::work_log::WorkLog;
use crate::base::key::Key;
use crate::objects::Time;
use crate::schedule::decision::{Decision, Event};

/// A cycle of a run.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Its number in the run, from 1.
    pub number: u64,
    /// When it began.
    pub time: Time,
    /// What it decided, with or without events and pending heads as [`super::Options::keeps_messages`] says.
    pub decision: Decision,
    /// How many workloads it parked.
    pub n_parked: usize,
    /// These workloads in the order of their keys, if [`super::Options::keeps_messages`] says so.
    pub parked: Vec<Key>,
}

/// What became of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It appeared.
    Created,
    /// It may start.
    Admitted,
    /// It was evicted, and its job has stopped.
    Stopped,
    /// Its job has ended.
    Finished,
    /// It is gone.
    Deleted,
    /// Its pods got other nodes in place of one that had failed, while it ran.
    Replaced,
}

impl Step {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Created => "Created",
            Step::Admitted => "Admitted",
            Step::Stopped => "Stopped",
            Step::Finished => "Finished",
            Step::Deleted => "Deleted",
            Step::Replaced => "Replaced",
        }
    }
}

/// What came of a run so far; the engine holds the state that goes with it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Why it ended, or stands still.
    pub ending: Ending,
    /// The time at its end.
    pub end: Time,
    /// Number of cycles.
    pub n_cycles: u64,
    /// What happened; shared with the run as long as nothing else happens.
    pub log: Arc<Log>,
}

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The cycles in which anything happened, or, with messages, was said.
    pub cycles: Vec<Cycle>,
    /// What became of the workloads, in order of time; these by number.
    pub steps: Vec<(Time, Step, u32)>,
    /// Namespace and name by number: first those that the happenings create, in the order in which they were given,
    /// then others. `None`: it never appeared.
    pub workloads: Vec<Option<Key>>,
    /// The numbers of those that have appeared, in the order in which they did.
    pub named: Vec<u32>,
    /// With messages: the events of cycles and of controllers, with their times.
    pub events: Vec<(Time, Event)>,
    /// Who took and gave back quota.
    pub usage: UsageLog,
    /// What quota there was.
    pub quotas: QuotaLog,
    /// Who was preempted for whom.
    pub preemptions: PreemptionLog,
    /// Where pods were placed.
    pub placements: PlacementLog,
    /// Which nodes were lost and came back.
    pub nodes: NodeLog,
    /// What was lost of the work of jobs, and how they ended.
    pub work: WorkLog,
    /// What metrics are labelled with.
    pub labels: LabelLog,
}

impl Log {
    /// Namespace and name of the workload of a step.
    pub fn key(&self, number: u32) -> &Key {
        self.workloads[number as usize].as_ref().expect("a workload with steps has appeared")
    }
}
