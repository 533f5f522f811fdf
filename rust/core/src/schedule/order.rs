//! The classical order in which the entries of a cycle are decided on (rules/05 §6.2). With fair sharing see
//! [`crate::schedule::tournament`].

use crate::base::gates::{Gate, Gates};
use crate::schedule::entry::Entry;

/// Sorts entries for the classical order; ties stay in the order of the ClusterQueues' names (rules/05 §6.2).
pub fn sort_classical(entries: &mut [Entry], gates: Gates) {
    let preemptors_first = gates.enabled(Gate::PrioritizePreemptorWorkloads);
    let by_priority = gates.enabled(Gate::PrioritySortingWithinCohort);
    entries.sort_by_cached_key(|e| {
        let comes_later = [!e.has_reservation, preemptors_first && !e.is_preemptor].map(u64::from);
        // The level up to which it borrows, not whether it does: nearer cohorts come first (rules/05 §6.2).
        let level = comes_later[0] << 33 | comes_later[1] << 32 | u64::from(e.borrowing());
        let negated_priority = if by_priority { e.priority.saturating_neg() } else { 0 };
        (level, u128::from(ascending(negated_priority)) << 64 | u128::from(ascending(e.time.0)))
    });
}

/// An unsigned number in the same order.
fn ascending(number: i64) -> u64 {
    number.abs_diff(i64::MIN)
}
