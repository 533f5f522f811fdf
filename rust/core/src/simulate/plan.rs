//! The plan of a run: its events, and how time passes.

use std::sync::Arc;

use super::copies::Copies;
use super::job_plan::JobPlan;
use crate::base::key::Key;
use crate::engine::columns::Columns;
use crate::objects::{Kind, Object, Time};

/// An external event.
#[derive(Clone, Debug)]
pub struct Happening {
    /// When; an event in the past happens at once.
    pub at: Time,
    pub change: Change,
}

/// External events. Those that name an object that is gone, or a workload that has finished, are ignored.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object appears.
    Create {
        object: Box<Object>,
        /// What the job of a Workload does.
        job: JobPlan,
    },
    /// A workload appears from a row of columns.
    Submit {
        columns: Arc<Columns>,
        row: usize,
        /// Run time in nanoseconds; `None`: forever.
        run_ns: Option<i64>,
        /// Does its job fail at the end of its run time?
        ends_failed: bool,
    },
    /// A workload appears as a copy of a template.
    Copy {
        /// All copies.
        copies: Arc<Copies>,
        /// Which row.
        row: usize,
    },
    /// An object is replaced: its spec, for a Workload also its labels and annotations, and `status.reclaimablePods` if
    /// there are any.
    Update(Box<Object>),
    /// An object that only external controllers watch appears or changes ([`super::Turn::Ask`]).
    Watch,
    /// The job of a workload ends, whether it is running or not.
    Finish(Key),
    /// A workload is deleted.
    Delete(Key),
    /// Another object is deleted.
    Remove {
        kind: Kind,
        /// Its namespace; empty: none.
        namespace: String,
        name: String,
    },
}

impl Change {
    pub(super) fn creates_workload(&self) -> bool {
        match self {
            Change::Create { object, .. } => matches!(**object, Object::Workload(_)),
            Change::Submit { .. } | Change::Copy { .. } => true,
            Change::Update(_) | Change::Watch | Change::Finish(_) | Change::Delete(_) | Change::Remove { .. } => false,
        }
    }
}

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a cycle takes.
    pub cycle_step_ns: i64,
    /// How many cycles in a row without a visible change end a round; `None`: one more than the most flavors in any
    /// resource group, so that a head can try them all.
    pub quiet_cycles: Option<usize>,
    /// The run stops after this many cycles; `None`: no limit.
    pub max_cycles: Option<u64>,
    /// How long the job of an evicted workload takes to stop.
    pub eviction_ns: i64,
    /// Keep all events, messages and parked workloads of every cycle?
    pub keeps_messages: bool,
    /// Keep the decisions of cycles? The steps are enough for a run with millions of them.
    pub keeps_cycles: bool,
    /// Keep workloads in the engine once their jobs have ended? Otherwise a run needs memory only for those that have
    /// not.
    pub keeps_finished: bool,
    /// Keep the log? Without it, a run only counts, and watches ([`super::Simulation::watch`]).
    pub keeps_log: bool,
    /// Does each cycle begin a whole number of cycles after the start? Then workloads that share nothing do not shift
    /// each other's cycles.
    pub keeps_beat: bool,
    /// When timers that expire between the cycles of a round act.
    pub timers: Timers,
}

/// When timers that expire between the cycles of a round act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// When due, before the next cycle.
    #[default]
    WhenDue,
    /// After the round of cycles, as in Kueue's recorded runs. For comparisons with them.
    AfterRound,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left to happen.
    #[default]
    Complete,
    /// The limit of cycles was reached.
    CycleLimit,
    /// The caller asked for it.
    Interrupted,
    /// The next event would happen, or end, at the end of time or later.
    OutOfTime,
}

/// The end of time: later times saturate here, so nothing may happen at it.
pub(super) const END: Time = Time(i64::MAX);

impl Ending {
    const ALL: [Self; 4] = [Ending::Complete, Ending::CycleLimit, Ending::Interrupted, Ending::OutOfTime];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Ending::Complete => "Complete",
            Ending::CycleLimit => "CycleLimit",
            Ending::Interrupted => "Interrupted",
            Ending::OutOfTime => "OutOfTime",
        }
    }
}
