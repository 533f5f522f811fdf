//! How many pods and slices fit into each domain (rules/08 §5).

use crate::topology::request::Request;

/// What fits into a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pods: i64,
    /// Slices, from the level of slices up.
    pub slices: i64,
    /// Pods beside a leader.
    pub pods_with_leader: i64,
    /// Slices beside a leader.
    pub slices_with_leader: i64,
    /// Leaders: one or none.
    pub leaders: i64,
    /// How strongly the pods prefer this domain.
    pub score: i64,
}

impl Counts {
    /// In slice mode, pods are counted in slices.
    pub fn of(&self, unit: Unit, with_leader: bool) -> i64 {
        match (unit, with_leader) {
            (Unit::Slices, false) => self.slices,
            (Unit::Slices, true) => self.slices_with_leader,
            (Unit::Pods, false) => self.pods,
            (Unit::Pods, true) => self.pods_with_leader,
        }
    }
}

/// The unit in which domains are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// In slices.
    Slices,
    /// Pod by pod.
    Pods,
}

/// What fits into the domains of each level.
pub type Levels = Vec<Vec<Counts>>;

/// What the room of a domain allows, whatever its nodes could take: the usage of workloads is known of the domain, and not
/// of its nodes (rules/08 §5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    pub pods: i64,
    /// Pods beside a leader.
    pub pods_with_leader: i64,
    /// Leaders: one or none.
    pub leaders: i64,
}

/// What fits into a domain with these children, filled in steps of `inner_size`.
pub fn roll_up(
    request: &Request,
    level: usize,
    children: &[Counts],
    (inner_size, bound): (i64, Option<Bound>),
    needs_leader: bool,
) -> Counts {
    let whole = |pods: i64| pods / inner_size * inner_size;
    let mut counts = Counts::default();
    let mut least_loss: Option<(i64, i64)> = None;
    let mut slices = 0;
    for child in children {
        let (pods, with_leader) = (whole(child.pods), whole(child.pods_with_leader));
        counts.pods += pods;
        // The largest and not the sum: at most one leader is placed (rules/08 §5 rule 4).
        counts.leaders = counts.leaders.max(child.leaders);
        counts.score += child.score;
        slices += child.slices;
        if !needs_leader || child.leaders > 0 {
            let loss = (pods - with_leader, child.slices - child.slices_with_leader);
            let least = least_loss.get_or_insert(loss);
            *least = (least.0.min(loss.0), least.1.min(loss.1));
        }
    }
    counts.pods_with_leader = least_loss.map_or(0, |loss| counts.pods - loss.0);
    if let Some(bound) = bound {
        counts.pods = counts.pods.min(bound.pods);
        counts.leaders = counts.leaders.min(bound.leaders);
        counts.pods_with_leader = counts.pods_with_leader.max(0).min(bound.pods_with_leader);
    }
    match level.cmp(&request.slice_level) {
        std::cmp::Ordering::Equal => {
            counts.slices = counts.pods / request.slice_size;
            counts.slices_with_leader = counts.pods_with_leader / request.slice_size;
        }
        std::cmp::Ordering::Less => {
            // Not pods by the size: a slice must not stretch over two domains of its level (rules/08 §5 rule 4).
            counts.slices = slices;
            counts.slices_with_leader = least_loss.map_or(0, |loss| slices - loss.1);
        }
        std::cmp::Ordering::Greater => {}
    }
    counts
}
