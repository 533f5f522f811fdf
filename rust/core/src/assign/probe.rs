//! What pod sets without pods would need for a pod each, which decides on their flavor (rules/03 §4 rule 3d).

use smallvec::SmallVec;

use super::pod_set::{PodSetAssignment, Requests};
use super::{Candidate, Context, Reason, ResourceGroup, Usage, set_request};
use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::pods::totals::Totals;
use crate::quota::tree::Tree;

/// One pod of each pod set of a group, none of which has any.
pub(super) struct Probe {
    /// Their requests, in canonical order.
    requests: Requests,
    /// What earlier pod sets request, whatever of that a replaced slice holds.
    earlier: Usage,
}

impl Probe {
    /// `None`: some pod set of the group has pods, or does not need room for any.
    pub fn new(
        context: &Context<'_>,
        candidate: &Candidate<'_>,
        earlier: &[PodSetAssignment],
        group: &[PodSetAssignment],
    ) -> Option<Self> {
        if group.iter().any(|it| it.count != 0) || !context.config.changes.has(Change::ZeroPodsNeedRoomForOne) {
            return None;
        }
        let mut requests = Requests::new();
        for pod_set in group {
            for (resource, value) in of_one_pod(candidate, pod_set.index).requests {
                let before = requests.iter().find(|it| it.0 == resource).map_or(0, |it| it.1);
                set_request(context.names, &mut requests, resource, before.saturating_add(value));
            }
        }
        if let Some(pods) = context.names.pods().filter(|&pods| context.queue.group_of(pods).is_some()) {
            set_request(context.names, &mut requests, pods, group.len() as i64);
        }
        let mut usage = Usage::default();
        for pod_set in earlier {
            for choice in &pod_set.flavors {
                let units = pod_set.requests.iter().find(|it| it.0 == choice.resource).map_or(0, |it| it.1);
                choice.pair.into_iter().for_each(|pair| usage.add(pair, units));
            }
        }
        Some(Self { requests, earlier: usage })
    }

    /// Why a flavor, by its index, could not hold these pods even if nothing else used it; empty: it could.
    pub fn objections(
        &self,
        context: &Context<'_>,
        tree: &Tree,
        group: &ResourceGroup,
        flavor: usize,
    ) -> SmallVec<[Reason; 2]> {
        let objection = |&(resource, requested)| {
            let covered = group.covered.iter().position(|it| *it == resource)?;
            let fr = group.pair(flavor, covered);
            let assumed = self.earlier.get(fr);
            let maximum = tree.column(fr).map_or(Amount::ZERO, |column| tree.potential_available(context.row, column));
            let exceeds = assumed.plus_units(requested) > maximum;
            exceeds.then_some(Reason::ExceedsMaximum { fr, assumed, requested, maximum })
        };
        self.requests.iter().filter_map(objection).collect()
    }
}

fn of_one_pod(candidate: &Candidate<'_>, index: usize) -> Totals {
    candidate.of_one_pod.get(index).cloned().unwrap_or_else(|| candidate.totals[index].scaled_to(1))
}
