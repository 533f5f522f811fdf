//! Where a cluster stands, as one number: two spots with the same one go on alike, whatever their workloads are called.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{Arrival, Explorer, Spot};
use crate::objects::Time;
use crate::state::State;
use crate::topology::sites::Stand;

/// What stands for a workload without a reservation.
const NEVER: usize = usize::MAX;

impl Explorer {
    /// A number that two spots share if they have the same workloads at the same stages, places and flavors, which came
    /// and got their quota in the same order. When that was does not matter, but for how long experiments still make
    /// somebody wait.
    pub(super) fn standing(&self, spot: &Spot) -> u64 {
        let state = &spot.engine.state;
        let rows = spot.arrivals.iter().filter(|it| !it.is_gone).map(|it| state.workloads.row(it.id));
        let mut times: Vec<Time> = rows.flat_map(|row| [row.time, row.reserved]).collect();
        times.sort_unstable();
        times.dedup();
        let mut each: Vec<u64> =
            spot.arrivals.iter().filter(|it| !it.is_gone).map(|it| of_workload(state, *it, &times, spot.now)).collect();
        // Workloads of one shape that stand alike are as good as each other.
        each.sort_unstable();
        let mut hasher = FxHasher::default();
        (each, spot.lost).hash(&mut hasher);
        if state.config.experiments.are_on() {
            state.pending.experiments.backoffs_left(spot.now).for_each(|it| it.hash(&mut hasher));
        }
        hasher.finish()
    }
}

fn of_workload(state: &State, arrival: Arrival, times: &[Time], now: Time) -> u64 {
    let record = state.workloads.get(arrival.id);
    let row = &record.row;
    let rank = |time: Time| times.binary_search(&time).unwrap_or(NEVER);
    let is_active = |queue| state.queues[queue].pending.is_active(&state.pending.places, arrival.id);
    let place = row.queued_in.map(|queue| (queue, is_active(queue)));
    let identity = arrival.shape.map_or((true, arrival.id.0), |shape| (false, u32::from(shape)));
    let tried = record.resume.as_ref().is_some_and(|resume| resume.has_pending_flavors());
    let reserved = if row.has_reservation { rank(row.reserved) } else { NEVER };
    let mut hasher = FxHasher::default();
    (identity, row.stage as u8, row.is_evicted, row.is_held, place, tried, rank(row.time), reserved).hash(&mut hasher);
    if state.config.experiments.are_on() {
        let waits = &state.pending.experiments;
        waits.turn_left(arrival.id, state.config.experiments, now).for_each(|left| left.hash(&mut hasher));
    }
    if let Some(charge) = &record.charge {
        charge.usage.hash(&mut hasher);
        for domain in charge.stands.iter().flat_map(Stand::domains) {
            domain.hash(&mut hasher);
        }
    }
    hasher.finish()
}
