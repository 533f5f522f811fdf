//! Why nothing fits, in one word.

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
