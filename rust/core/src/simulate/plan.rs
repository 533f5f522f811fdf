//! What is to happen in a run, and how time goes by.

use std::sync::Arc;

use super::copies::Copies;
use super::job_plan::JobPlan;
use crate::base::key::Key;
use crate::engine::columns::Columns;
use crate::objects::{Kind, Object, Time};

/// Something that happens from outside.
#[derive(Clone, Debug)]
pub struct Happening {
    /// When; what is scheduled too late happens at once.
    pub at: Time,
    /// What.
    pub change: Change,
}

/// What can happen from outside. What names an object that is gone, or a workload that has finished, is ignored.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object appears.
    Create {
        /// The object.
        object: Box<Object>,
        /// What the job of a Workload does.
        job: JobPlan,
    },
    /// A workload appears that is a row of columns.
    Submit {
        /// The columns.
        columns: Arc<Columns>,
        /// The row.
        row: usize,
        /// Run time in nanoseconds; `None`: for ever.
        run_ns: Option<i64>,
        /// Does its job fail once it has run its time?
        ends_failed: bool,
    },
    /// A workload appears that is a copy of another.
    Copy {
        /// All of them.
        copies: Arc<Copies>,
        /// Which.
        row: usize,
    },
    /// An object is replaced: its spec, of a Workload also its labels and annotations, and `status.reclaimablePods` if
    /// there are any.
    Update(Box<Object>),
    /// An object appears or changes that only those look at who are asked ([`super::Turn::Ask`]).
    Watch,
    /// The job of a workload ends, whether it runs or not.
    Finish(Key),
    /// A workload is deleted.
    Delete(Key),
    /// Another object is deleted.
    Remove {
        /// Its kind.
        kind: Kind,
        /// Its namespace; empty: none.
        namespace: String,
        /// Its name.
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

/// How time goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a cycle takes.
    pub cycle_step_ns: i64,
    /// So many cycles in a row without a visible change end a round; `None`: one more than the most flavors in any
    /// resource group, so that a head can try them all.
    pub quiet_cycles: Option<usize>,
    /// The run stops after this many cycles; `None`: it may go on for ever.
    pub max_cycles: Option<u64>,
    /// How long the job of an evicted workload takes to stop.
    pub eviction_ns: i64,
    /// Keep all events, messages and who was parked of every cycle?
    pub keeps_messages: bool,
    /// Keep what the cycles decided? A run of millions has steps enough.
    pub keeps_cycles: bool,
    /// Keep workloads in the engine once their jobs have ended? Without, a run needs memory for those that are alive.
    pub keeps_finished: bool,
    /// What is due while cycles follow one another.
    pub timers: Timers,
}

/// When something acts that is due while cycles follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// When it is due, before the next cycle.
    #[default]
    WhenDue,
    /// Once the round of cycles is over, as Kueue's runs were recorded. For comparisons with them.
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
    /// What comes next would happen, or end, at the end of time or later.
    OutOfTime,
}

/// The end of time: whatever would happen later saturates here, so nothing may happen at it.
pub(super) const END: Time = Time(i64::MAX);

impl Ending {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Complete => "Complete",
            Ending::CycleLimit => "CycleLimit",
            Ending::Interrupted => "Interrupted",
            Ending::OutOfTime => "OutOfTime",
        }
    }
}
