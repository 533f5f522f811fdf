//! The assignment of a pod set: the flavor of each resource, or why there is none (rules/03 §3).

use smallvec::SmallVec;

use super::{AttemptList, Mode, Reason};
use crate::base::ids::{FlavorId, FlavorResourceId, ResourceId};
use crate::base::shared::Shared;
use crate::objects::TopologyAssignment;

/// The requested amount of each resource.
pub type Requests = SmallVec<[(ResourceId, i64); 4]>;

/// The flavors of resources.
pub type Choices = SmallVec<[FlavorChoice; 4]>;

/// The flavor of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorChoice {
    pub resource: ResourceId,
    pub flavor: FlavorId,
    /// Both together; `None`: no quota was ever declared for the pair.
    pub pair: Option<FlavorResourceId>,
    /// The mode in which it is available.
    pub mode: Mode,
    /// Borrowing level.
    pub level: u32,
    /// Where the scan ended; -1: at the last flavor.
    pub tried_index: i32,
}

/// The result for one pod set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSetAssignment {
    /// Index of the pod set.
    pub index: usize,
    /// Effective or reduced count.
    pub count: i32,
    /// Totals for that count, with `pods` if the ClusterQueue covers it.
    pub requests: Requests,
    /// The chosen flavors; empty: none.
    pub flavors: Choices,
    /// Why it does not fit (now); empty: it fits.
    pub reasons: Vec<Reason>,
    /// Why it could not be evaluated.
    pub error: Option<String>,
    /// The tried flavors, in order.
    pub attempts: AttemptList,
    /// The placement of its pods, if they are placed and there is a place.
    pub place: Option<Shared<TopologyAssignment>>,
    /// Is it placed later, and has that happened?
    pub delayed: Option<Delay>,
}

/// A delayed placement (rules/08 §11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Not placed yet.
    Pending,
    Ready,
}

impl Delay {
    /// `delayedTopologyRequest`.
    pub fn as_str(self) -> &'static str {
        match self {
            Delay::Pending => "Pending",
            Delay::Ready => "Ready",
        }
    }
}

/// What a pod set gets, without the attempts.
#[derive(Debug, PartialEq)]
pub(crate) struct Grant {
    /// Index of the pod set.
    pub index: usize,
    /// Effective or reduced count.
    pub count: i32,
    /// The flavor and the total of each resource that has one.
    pub choices: SmallVec<[(ResourceId, FlavorId, i64); 4]>,
    /// See [`PodSetAssignment`].
    pub place: Option<Shared<TopologyAssignment>>,
    /// See [`PodSetAssignment`].
    pub delayed: Option<Delay>,
}

impl PodSetAssignment {
    /// What the pod set gets.
    pub(super) fn grant(&self) -> Grant {
        let units = |resource| self.requests.iter().find(|request| request.0 == resource).map_or(0, |it| it.1);
        let choices = self.flavors.iter().map(|it| (it.resource, it.flavor, units(it.resource))).collect();
        Grant { index: self.index, count: self.count, choices, place: self.place.clone(), delayed: self.delayed }
    }

    /// The worst mode of its flavors (rules/03 §3).
    pub fn mode(&self) -> Mode {
        if self.error.is_some() {
            Mode::NoFit
        } else if self.reasons.is_empty() {
            Mode::Fit
        } else {
            self.flavors.iter().map(|f| f.mode).min().unwrap_or(Mode::NoFit)
        }
    }

    /// Does it fit without objections?
    pub(crate) fn is_fit(&self) -> bool {
        self.error.is_none() && self.reasons.is_empty()
    }
}
