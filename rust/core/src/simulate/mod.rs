//! A run through time: objects come, change and go, jobs run and end, cycles follow one another until nothing is left
//! to happen.
//!
//! The engine decides; here stands only what a cluster has around a scheduler, in virtual time: the order of events, the
//! controllers between two cycles, jobs that stop when they are evicted and end when their time is over, admission
//! checks that are ready at once or on which somebody else decides. Nothing is left to chance, so equal input gives
//! equal output.
//!
//! One rule for time: **whatever is due acts when it is due.** A cycle takes its time; what is due until then happens
//! first, each at its own moment, and only then does the next cycle begin. [`Timers::AfterRound`] is the rule by which
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

/// Runs on from what the engine holds at `now` until nothing is left to happen. `happenings` are taken in the order of
/// their times, and among equal times as given. `interrupted` is asked between cycles; it ends the run with `true`.
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
