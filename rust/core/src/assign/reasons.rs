//! Why a flavor can't be assigned, as codes; `messages` has the words.

use crate::base::amount::Amount;
use crate::base::ids::{FlavorId, FlavorResourceId, ResourceId};
use crate::objects::Taint;

/// One reason of a pod set's status or of an attempt (rules/03 §3 to §5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No resource group covers the resource.
    ResourceUnavailable(ResourceId),
    /// The ResourceFlavor does not exist.
    FlavorNotFound(FlavorId),
    /// A recomputation keeps to the flavors of the nomination.
    NotNominated(FlavorId, ResourceId),
    /// A variant is limited to other flavors (concurrent admission).
    NotAllowed(FlavorId),
    /// The pod set asks for topology, the flavor has none.
    TopologyUnsupported(FlavorId),
    /// The flavor places with topology only, the pod set does not ask for it.
    TopologyOnly(FlavorId),
    /// A taint of the flavor is not tolerated.
    UntoleratedTaint(FlavorId, Box<Taint>),
    /// Node selector or affinity do not match the flavor's labels.
    AffinityMismatch(FlavorId),
    /// More than there could ever be.
    ExceedsMaximum {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// What earlier pod sets take.
        assumed: Amount,
        /// What this pod set (group) asks for.
        requested: i64,
        /// The most that there can be.
        maximum: Amount,
    },
    /// More than is free now.
    Insufficient {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// How much is missing.
        missing: Amount,
    },
    /// The slice that is replaced uses another flavor.
    ReplacedSliceFlavor(FlavorId, Option<FlavorId>),
    /// The flavor was tried for other resources of its group, but has none of this one.
    ResourceNotProvided(FlavorId, ResourceId),
}

/// Why nothing fits, as the condition's reason says it, least severe first (rules/03 §7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoFitReason {
    /// No attempt gave a reason.
    #[default]
    None,
    /// Quota would do, no place in the topology does.
    TopologyPlacementFailed,
    /// Others use the quota.
    WaitingForQuota,
    /// Never, with this quota.
    ExceedsMaxQuota,
    /// No flavor suits.
    NoMatchingFlavor,
}

impl NoFitReason {
    /// The reason of condition and event; empty if there is none.
    pub fn as_str(self) -> &'static str {
        match self {
            NoFitReason::None => "",
            NoFitReason::TopologyPlacementFailed => "TopologyPlacementFailed",
            NoFitReason::WaitingForQuota => "WaitingForQuota",
            NoFitReason::ExceedsMaxQuota => "ExceedsMaxQuota",
            NoFitReason::NoMatchingFlavor => "NoMatchingFlavor",
        }
    }
}
