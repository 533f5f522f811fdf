//! Messages of assignments, as codes (rules/03 §7).

use std::sync::Arc;

use smallvec::SmallVec;

use crate::assign::{Assignment, Attempt, Mode, PodSetAssignment, Possibility};
use crate::base::names::Names;
use crate::base::shared::Shared;
use crate::base::when_read::WhenRead;
use crate::objects::PodSet;
use crate::objects::message::{Considered, ConsideredFlavor, Message, Misfit, NoFit, Why};

/// The message of an assignment; empty if everything fits (rules/03 §7).
pub fn assignment(names: &Names, assignment: &Assignment, pod_sets: &Shared<Vec<PodSet>>) -> Message {
    if matches!(assignment.mode(), Mode::Fit | Mode::DeferredFit) {
        return Message::default();
    }
    let mut misfits = SmallVec::new();
    for pod_set in assignment.pod_sets().iter().filter(|ps| !ps.is_fit()) {
        if let Some(error) = &pod_set.error {
            misfits.clear();
            misfits.push(Misfit { pod_set: pod_set.index, why: Why::Error(error.clone()) });
            break;
        }
        misfits.push(Misfit { pod_set: pod_set.index, why: Why::Reasons(pod_set.reasons.clone()) });
    }
    Message::NoFit(Arc::new(NoFit { pod_sets: pod_sets.clone(), misfits, lexicon: names.lexicon() }))
}

/// Attempts in the order of the flavors' names.
pub fn by_flavor_name<'a>(names: &Names, attempts: &'a [Attempt]) -> Vec<&'a Attempt> {
    let mut attempts: Vec<&Attempt> = attempts.iter().collect();
    attempts.sort_by_key(|attempt| &names.flavors[attempt.flavor]);
    attempts
}

/// The event of a reservation: how long the workload was queued, and which flavors were skipped or borrow (rules/03
/// §7).
pub(crate) fn quota_reserved(
    names: &Names,
    assignment: &Arc<Assignment>,
    pod_sets: &Shared<Vec<PodSet>>,
    queue: Arc<str>,
    wait_ns: i64,
) -> Message {
    if assignment.takes_the_first() {
        return Message::QuotaReservedAfter { queue, wait_ns };
    }
    let assignment = Arc::clone(assignment);
    let flavors = WhenRead::new(Box::new(move || considered_flavors(&assignment)));
    let (pod_sets, lexicon) = (pod_sets.clone(), names.lexicon());
    Message::QuotaReservedAmong(Arc::new(Considered { queue, wait_ns, pod_sets, flavors, lexicon }))
}

fn considered_flavors(assignment: &Assignment) -> Vec<(usize, ConsideredFlavor)> {
    let of_pod_set = |pod_set: &PodSetAssignment| {
        let notable = pod_set.attempts.iter().filter(|attempt| attempt.is_notable());
        let considered = |attempt: &Attempt| ConsideredFlavor {
            flavor: attempt.flavor,
            mode: attempt.mode.as_str(),
            possibility: attempt.possibility.map(Possibility::as_str),
            level: attempt.level,
            reasons: attempt.reasons.clone(),
        };
        notable.map(|attempt| (pod_set.index, considered(attempt))).collect::<Vec<_>>()
    };
    assignment.pod_sets().iter().flat_map(of_pod_set).collect()
}
