//! The record of a run.

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
    /// Its decision, with or without events and pending heads, see [`super::Options::keeps_messages`].
    pub decision: Decision,
    /// How many workloads it parked.
    pub n_parked: usize,
    /// The parked workloads, sorted by key, if [`super::Options::keeps_messages`].
    pub parked: Vec<Key>,
}

/// A step in the life of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It appeared.
    Created,
    /// It was admitted.
    Admitted,
    /// It was evicted, and its job has stopped.
    Stopped,
    /// Its job has ended.
    Finished,
    /// It is gone.
    Deleted,
    /// Its pods moved from a failed node to others while it ran.
    Replaced,
}

impl Step {
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

/// The record of a run so far; the engine has the matching state.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Why it ended, or paused.
    pub ending: Ending,
    /// The time at its end.
    pub end: Time,
    /// Number of cycles.
    pub n_cycles: u64,
    /// What happened; shared with the run until something else happens.
    pub log: Arc<Log>,
}

/// The log of a run.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The cycles in which anything happened or, with messages, was reported.
    pub cycles: Vec<Cycle>,
    /// The steps of all workloads, in order of time, with workloads by number.
    pub steps: Vec<(Time, Step, u32)>,
    /// Namespace and name by number: first the workloads that scheduled events create, in the order given, then others.
    /// `None`: it never appeared.
    pub workloads: Vec<Option<Key>>,
    /// The numbers of workloads in order of appearance.
    pub named: Vec<u32>,
    /// With messages: the events of cycles and of controllers, with their times.
    pub events: Vec<(Time, Event)>,
    /// Charges and releases of quota.
    pub usage: UsageLog,
    /// Quotas over time.
    pub quotas: QuotaLog,
    pub preemptions: PreemptionLog,
    /// Where pods were placed.
    pub placements: PlacementLog,
    /// Nodes lost and back.
    pub nodes: NodeLog,
    /// Lost work of jobs, and how they ended.
    pub work: WorkLog,
    /// Labels of metrics.
    pub labels: LabelLog,
}

impl Log {
    /// Namespace and name of the workload of a step.
    pub fn key(&self, number: u32) -> &Key {
        self.workloads[number as usize].as_ref().expect("a workload with steps has appeared")
    }
}
