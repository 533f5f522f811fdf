//! Cycles until nothing changes, and what they did.

use rustc_hash::FxHashMap;

use super::{Explorer, Spot, TICK_NS};
use crate::base::ids::WorkloadId;
use crate::objects::Time;
use crate::schedule::decision::Preempted;

/// A loop comes back at least so many times before it counts: what a standing leaves out might have ended it.
const MIN_VISITS: u8 = 3;
/// Cycles after which a course is given up. Loops found so far take at most a dozen cycles a turn.
const MAX_CYCLES: usize = 300;
/// The same if experiments make workloads wait: each wait that ends takes some cycles.
const MAX_CYCLES_WITH_WAITS: usize = 1000;
/// Two years before the end of time, after which a course is given up: a wait takes up to one.
const LAST_NS: i64 = i64::MAX - 2 * 365 * 86_400 * TICK_NS;

/// How a course ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nothing changes any more.
    #[default]
    Rest,
    /// The same state came back again and again, each time after an eviction.
    Repeats,
    /// It was still changing after many cycles.
    Unsettled,
}

/// What one cycle did, as far as properties read it.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The workloads that got quota.
    pub admitted: Vec<WorkloadId>,
    /// The workloads that were preempted.
    pub preempted: Vec<Preempted>,
    /// Was one of them preempted for another ClusterQueue, although its own used no more than its nominal quota?
    pub takes_nominal_quota: bool,
}

/// The cycles after a move.
#[derive(Clone, Debug, Default)]
pub struct Course {
    pub cycles: Vec<Cycle>,
    pub ending: Ending,
    /// How many cycles came before the last turn, if it repeats.
    pub turn_begins: usize,
}

impl Course {
    /// The cycles of the last turn, if it repeats; else all.
    pub fn turn(&self) -> &[Cycle] {
        self.cycles.get(self.turn_begins..).unwrap_or_default()
    }

    /// The workloads that were preempted, perhaps several times.
    pub fn preempted(&self) -> impl Iterator<Item = &Preempted> {
        self.cycles.iter().flat_map(|cycle| &cycle.preempted)
    }
}

impl Explorer {
    /// Runs cycles, a tick apart, until nothing changes, and on from there whenever the wait of an experiment ends. The
    /// jobs of evicted workloads stop at once.
    pub(super) fn settle(&self, spot: &mut Spot) -> Course {
        let has_waits = spot.engine.state.config.experiments.are_on();
        let most = if has_waits { MAX_CYCLES_WITH_WAITS } else { MAX_CYCLES };
        let mut course = Course::default();
        // From each standing to how often it was reached, and after how many cycles.
        let mut visits: FxHashMap<u64, (u8, usize)> = FxHashMap::default();
        let mut idle = 0;
        reconcile(spot);
        loop {
            if idle > self.patience {
                if !has_waits || !skip_wait(spot) {
                    break;
                }
                idle = 0;
            }
            if course.cycles.len() >= most || spot.now.0 > LAST_NS {
                course.ending = Ending::Unsettled;
                break;
            }
            spot.now.0 += TICK_NS;
            // Freed quota brings back parked workloads only in the next cycle, which is why one runs even without heads.
            spot.engine.state.retry_at_once();
            let decision = spot.engine.cycle(spot.now);
            if decision.cycle == 0 {
                // Nobody could be tried, which time alone may change.
                idle = self.patience + 1;
                continue;
            }
            let has_changed = decision.has_changed_something();
            let admitted = decision.admissions.iter().map(|it| it.workload).collect();
            let takes_nominal_quota = decision.preemptions.iter().any(|it| self.takes_nominal_quota(spot, it));
            let evicted = decision.evictions.iter().map(|it| it.workload);
            let evicted: Vec<_> = evicted.chain(decision.preemptions.iter().map(|it| it.workload)).collect();
            let n_released = evicted.into_iter().filter(|id| spot.engine.release(*id, spot.now)).count();
            course.cycles.push(Cycle { admitted, preempted: decision.preemptions, takes_nominal_quota });
            let (n_events, n_evicted) = reconcile(spot);
            idle = if has_changed || n_released > 0 || n_events > 0 { 0 } else { idle + 1 };
            if n_released + n_evicted > 0 {
                let (n, last) = visits.entry(self.standing(spot)).or_default();
                *n += 1;
                if *n >= MIN_VISITS {
                    course.ending = Ending::Repeats;
                    course.turn_begins = *last;
                    break;
                }
                *last = course.cycles.len();
            }
        }
        course
    }
}

/// Lets time pass until the next wait of an experiment ends, at which a cycle comes next; `false` if nobody waits.
/// Other timers that are over by then are only noticed then.
fn skip_wait(spot: &mut Spot) -> bool {
    let Some(Time(at)) = spot.engine.state.next_experiment(spot.now) else { return false };
    if spot.engine.state.config.wait_for_pods_ready.is_some() {
        // Jobs of the explorer start at once, and have been ready for all that time.
        let running: Vec<_> = spot.arrivals.iter().filter(|it| spot.holds_quota(**it)).map(|it| it.id).collect();
        for id in running {
            spot.engine.note_readiness(id, true, spot.now);
        }
    }
    spot.now.0 = spot.now.0.max(at - TICK_NS);
    true
}

/// Lets controllers act until nothing follows; the numbers of events, and of workloads that lost their quota.
fn reconcile(spot: &mut Spot) -> (usize, usize) {
    let (mut n_events, mut n_released) = (0, 0);
    loop {
        let events = spot.engine.reconcile(spot.now);
        if events.is_empty() {
            return (n_events, n_released);
        }
        n_events += events.len();
        for event in events.iter().filter(|event| event.reason.starts_with("Evicted")) {
            let found = spot.engine.state.workloads.find(event.key.namespace(), event.key.name());
            n_released += usize::from(found.is_some_and(|id| spot.engine.release(id, spot.now)));
        }
    }
}
