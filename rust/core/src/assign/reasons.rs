//! Why nothing fits, in one word.

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::objects::config::Config;

/// Why nothing fits, as in the reason of the condition, least severe first (rules/03 §7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoFitReason {
    /// No attempt gave a reason.
    #[default]
    None,
    /// There is enough quota, but no place in the topology.
    TopologyPlacementFailed,
    /// Others use the quota.
    WaitingForQuota,
    /// Exceeds the maximum quota.
    ExceedsMaxQuota,
    /// No flavor is suitable.
    NoMatchingFlavor,
}

/// Whether it is recorded why nothing fits, and what counts as a reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observing {
    /// Is it recorded?
    pub is_on: bool,
    /// Does a resource without quota count, if no flavor was tried for it (rules/03 §7.1)?
    pub(super) counts_uncovered: bool,
}

impl Observing {
    /// By the settings.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            is_on: config.gates.enabled(Gate::UnadmittedWorkloadsObservability),
            counts_uncovered: config.changes.has(Change::UncoveredResourceHasAReason),
        }
    }
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
