//! A simulation in virtual time: objects are created, updated and deleted, jobs run and end, and cycles follow one
//! another until nothing is left to happen.
//!
//! The engine decides; this module adds only the cluster around a scheduler, in virtual time: the order of events, the
//! controllers between two cycles, jobs that stop when evicted and end after their run time, and admission checks that
//! are ready at once or decided by the caller. Nothing is random, so equal input gives equal output.
//!
//! One rule for time: **whatever is due acts when it is due.** A cycle takes time; what becomes due meanwhile happens
//! first, each at its own moment, and only then the next cycle begins. [`Timers::AfterRound`] is the rule with which
//! Kueue's runs were recorded.

mod copies;
mod job_plan;
mod label_log;
mod log_part;
mod node_log;
mod placements;
mod plan;
mod preemptions;
mod quotas;
mod record;
mod series;
mod simulation;
mod submissions;
#[cfg(test)]
mod tests;
mod usage;
mod work_log;

pub use copies::{Copies, CopiesError};
pub use job_plan::{JobPlan, NodeLoss, PodsPlan};
pub use label_log::{Eviction, LabelLog};
pub use node_log::NodeLog;
pub use placements::{Domain, PlacementLog, PlacementRows};
pub use plan::{Change, Ending, Happening, Options, Timers};
pub use preemptions::PreemptionLog;
pub use quotas::{NodeQuota, QuotaLog};
pub use record::{Cycle, Log, Run, Step};
pub use series::{Series, Waiting};
pub use simulation::{ResumeError, Simulation, Turn};
pub use submissions::Submissions;
pub use usage::UsageLog;
pub use work_log::{Present, WorkLog};

use crate::engine::Engine;
use crate::objects::Time;

/// Runs from the engine's state at `now` until nothing is left to happen. `happenings` are ordered by time, and among
/// equal times as given. `interrupted` is called between cycles; it ends the run by returning `true`.
pub fn simulate(
    engine: &mut Engine,
    happenings: Vec<Happening>,
    options: Options,
    now: Time,
    mut interrupted: impl FnMut() -> bool,
) -> Run {
    let mut simulation = Simulation::new(options, now);
    simulation.schedule(happenings);
    simulation.happened(engine);
    let turn = simulation.advance(engine, None, |_| interrupted());
    let run = simulation.record(engine);
    let Turn::Done(ending) = turn else { return run };
    Run { ending, ..run }
}
