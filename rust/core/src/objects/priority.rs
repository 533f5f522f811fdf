//! The priority of a workload (rules/04 §2).

use crate::base::gates::{Gate, Gates};
use crate::objects::Workload;

/// Annotation whose i32 value is added to the priority.
pub const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";

/// The priority of the spec, 0 when absent.
#[must_use]
pub(crate) fn base_priority(workload: &Workload) -> i32 {
    workload.priority.unwrap_or(0)
}

/// The boost of the annotation; 0 without the gate or the annotation, or if its value is not an i32.
#[must_use]
pub fn priority_boost(workload: &Workload, gates: Gates) -> i32 {
    if !gates.enabled(Gate::PriorityBoost) {
        return 0;
    }
    workload.meta.details.annotations.get(PRIORITY_BOOST).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Priority plus boost (rules/04 §2).
#[must_use]
pub fn effective_priority(workload: &Workload, gates: Gates) -> i64 {
    i64::from(base_priority(workload)) + i64::from(priority_boost(workload, gates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boost_counts_with_its_gate_and_if_it_is_a_number() {
        let on = Gates::default().with(Gate::PriorityBoost, true);
        for (text, expected) in [("5", 15), ("-5", 5), ("+5", 15), ("", 10), ("x", 10), ("2147483648", 10)] {
            let mut w = Workload { priority: Some(10), ..Workload::default() };
            w.meta.details.annotations.insert(PRIORITY_BOOST.to_owned(), text.to_owned());
            assert_eq!(effective_priority(&w, on), expected, "{text}");
            assert_eq!(effective_priority(&w, Gates::default()), 10, "{text}");
        }
    }
}
