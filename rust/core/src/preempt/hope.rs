//! Whether a search can still succeed: checked once, after removing many candidates without success.

use super::candidates::Wanted;
use super::{Demand, Preemptor, World};
use crate::base::amount::Amount;
use crate::base::ids::QueueId;
use crate::objects::PreemptionPolicy;
use crate::quota::tree::{Row, Tree};

/// How many candidates a search over this many ClusterQueues removes before the check, which then costs less than a
/// tenth of that. With a recorder the check is off, so that all candidates are recorded.
pub(super) fn patience(world: &World<'_>, n_queues: usize) -> usize {
    if world.recorder.is_some() { usize::MAX } else { (16 * n_queues).max(512) }
}

/// Would the preemptor not fit even without any candidates of these ClusterQueues? Its own usage is not in the tree.
pub(super) fn is_hopeless(
    world: &World<'_>,
    tree: &mut Tree,
    preemptor: &Preemptor,
    demand: &Demand,
    wanted: &Wanted<'_>,
    queues: impl Iterator<Item = (QueueId, Row, PreemptionPolicy)>,
) -> bool {
    // If a sum may lose something, removing more may leave less room.
    if tree.may_saturate() {
        return false;
    }
    let mark = tree.mark();
    for (queue, row, policy) in queues {
        for (&column, &fr) in demand.contested.iter().zip(&demand.flavor_resources) {
            let most = wanted.most(world, queue, policy, fr).min(tree.usage(row, column));
            tree.remove_usage(row, column, most.max(Amount::ZERO));
        }
    }
    let is_short = |&(column, amount): &(Option<_>, _)| {
        column.is_some_and(|it| demand.contested.contains(&it) && amount > tree.available(preemptor.row, it))
    };
    let is_hopeless = demand.requests.iter().any(is_short);
    tree.rollback(mark);
    is_hopeless
}
