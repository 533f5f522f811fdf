//! The classical order in which the entries of a cycle are decided on (rules/05 §6.2). With fair sharing see
//! [`crate::schedule::tournament`].

use crate::base::gates::{Gate, Gates};
use crate::schedule::entry::Entry;

/// Sorts entries for the classical order; ties stay in the order of the ClusterQueues' names (rules/05 §6.2).
pub fn sort_classical(entries: &mut [Entry], gates: Gates) {
    let preemptors_first = gates.enabled(Gate::PrioritizePreemptorWorkloads);
    let by_priority = gates.enabled(Gate::PrioritySortingWithinCohort);
    entries.sort_by_cached_key(|e| {
        (
            !e.has_reservation,
            preemptors_first && !e.is_preemptor,
            e.borrowing(),
            if by_priority { e.priority.saturating_neg() } else { 0 },
            e.time,
        )
    });
}
