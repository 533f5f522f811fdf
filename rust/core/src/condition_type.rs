//! Types of conditions: those that the engine reads and writes, which are looked for far more often than any other, and all
//! others.

use std::fmt;

use crate::text::Text;

/// A type of condition that the engine reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Quota is held: phase one of admission.
    QuotaReserved,
    /// Phase two: the job may start.
    Admitted,
    /// Evicted, and not reserved again since.
    Evicted,
    /// Preempted, and not reserved again since.
    Preempted,
    /// True: back in the queue after an eviction. False: not yet.
    Requeued,
    /// Terminal.
    Finished,
    /// The pods of an admitted workload are ready.
    PodsReady,
    /// Kueue itself is about to deactivate the workload.
    DeactivationTarget,
    /// It would preempt, but a preemption gate is closed.
    BlockedOnPreemptionGates,
    /// A pod group that waits for replacements of failed pods.
    WaitingForReplacementPods,
}

/// Quota is held: phase one of admission.
pub const QUOTA_RESERVED: Known = Known::QuotaReserved;
/// Phase two: the job may start.
pub const ADMITTED: Known = Known::Admitted;
/// Evicted, and not reserved again since.
pub const EVICTED: Known = Known::Evicted;
/// Preempted, and not reserved again since.
pub const PREEMPTED: Known = Known::Preempted;
/// True: back in the queue after an eviction. False: not yet.
pub const REQUEUED: Known = Known::Requeued;
/// Terminal.
pub const FINISHED: Known = Known::Finished;
/// The pods of an admitted workload are ready.
pub const PODS_READY: Known = Known::PodsReady;
/// Kueue itself is about to deactivate the workload.
pub const DEACTIVATION_TARGET: Known = Known::DeactivationTarget;
/// It would preempt, but a preemption gate is closed.
pub const BLOCKED_ON_PREEMPTION_GATES: Known = Known::BlockedOnPreemptionGates;
/// A pod group that waits for replacements of failed pods.
pub const WAITING_FOR_REPLACEMENT_PODS: Known = Known::WaitingForReplacementPods;

/// All of them.
const ALL: [Known; 10] = [
    QUOTA_RESERVED,
    ADMITTED,
    EVICTED,
    PREEMPTED,
    REQUEUED,
    FINISHED,
    PODS_READY,
    DEACTIVATION_TARGET,
    BLOCKED_ON_PREEMPTION_GATES,
    WAITING_FOR_REPLACEMENT_PODS,
];

impl Known {
    /// As it stands in `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Known::QuotaReserved => "QuotaReserved",
            Known::Admitted => "Admitted",
            Known::Evicted => "Evicted",
            Known::Preempted => "Preempted",
            Known::Requeued => "Requeued",
            Known::Finished => "Finished",
            Known::PodsReady => "PodsReady",
            Known::DeactivationTarget => "DeactivationTarget",
            Known::BlockedOnPreemptionGates => "BlockedOnPreemptionGates",
            Known::WaitingForReplacementPods => "WaitingForReplacementPods",
        }
    }
}

/// The `type` of a condition.
#[derive(Clone, PartialEq, Eq)]
pub struct ConditionType(Type);

#[derive(Clone, PartialEq, Eq)]
enum Type {
    Known(Known),
    /// None of those.
    Other(Text),
}

impl ConditionType {
    /// As text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Type::Known(known) => known.as_str(),
            Type::Other(text) => text,
        }
    }
}

impl Default for ConditionType {
    fn default() -> Self {
        Self(Type::Other(Text::default()))
    }
}

impl From<Known> for ConditionType {
    fn from(known: Known) -> Self {
        Self(Type::Known(known))
    }
}

impl From<&str> for ConditionType {
    fn from(text: &str) -> Self {
        let known = ALL.into_iter().find(|known| known.as_str() == text);
        known.map_or_else(|| Self(Type::Other(Text::copied(text))), Self::from)
    }
}

impl PartialEq<Known> for ConditionType {
    fn eq(&self, other: &Known) -> bool {
        matches!(self.0, Type::Known(known) if known == *other)
    }
}

impl fmt::Debug for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_type_is_itself_wherever_it_came_from() {
        for known in ALL {
            assert_eq!(ConditionType::from(known.as_str()), ConditionType::from(known));
            assert!(ConditionType::from(known.as_str()) == known);
        }
        let other = ConditionType::from("Admitted ");
        assert!(other != ADMITTED && other != ConditionType::default());
        assert_eq!((other.as_str(), format!("{other:?}").as_str()), ("Admitted ", "\"Admitted \""));
    }
}
