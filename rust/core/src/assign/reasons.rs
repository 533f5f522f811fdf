//! Why nothing fits, in one word.

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
