//! Types of conditions: those that the engine reads and writes, which are looked up far more often, and all others.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::read_text;
use crate::base::text::Text;

macro_rules! known_types {
    ($($(#[$doc:meta])* $name:ident = $variant:ident;)*) => {
        /// A type of condition that the engine reads or writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Known {
            $($(#[$doc])* $variant,)*
        }

        $($(#[$doc])* pub const $name: Known = Known::$variant;)*

        /// All known types.
        const ALL: &[Known] = &[$($name),*];

        impl Known {
            /// The text in `type`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Known::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

known_types! {
    /// Quota is held: phase one of admission.
    QUOTA_RESERVED = QuotaReserved;
    /// Phase two: the job may start.
    ADMITTED = Admitted;
    /// Evicted, and no quota reserved since.
    EVICTED = Evicted;
    /// Preempted, and no quota reserved since.
    PREEMPTED = Preempted;
    /// True: back in the queue after an eviction. False: not yet.
    REQUEUED = Requeued;
    FINISHED = Finished;
    /// The pods of an admitted workload are ready.
    PODS_READY = PodsReady;
    /// Kueue itself is about to deactivate the workload.
    DEACTIVATION_TARGET = DeactivationTarget;
    /// It would preempt, but a preemption gate is closed.
    BLOCKED_ON_PREEMPTION_GATES = BlockedOnPreemptionGates;
    /// A pod group that waits for replacements of failed pods.
    WAITING_FOR_REPLACEMENT_PODS = WaitingForReplacementPods;
    /// The pods of an admitted workload have nodes, or had them once.
    PODS_SCHEDULED = PodsScheduled;
}

/// The `type` of a condition.
#[derive(Clone, PartialEq, Eq)]
pub struct ConditionType(Type);

#[derive(Clone, PartialEq, Eq)]
enum Type {
    Known(Known),
    /// Any other type.
    Other(Text),
}

impl ConditionType {
    /// The known type, if it is one.
    pub(crate) fn known(&self) -> Option<Known> {
        match self.0 {
            Type::Known(known) => Some(known),
            Type::Other(_) => None,
        }
    }

    /// The type as text.
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
        let known = ALL.iter().find(|known| known.as_str() == text);
        known.map_or_else(|| Self(Type::Other(Text::copied(text))), |&known| known.into())
    }
}

impl PartialEq<Known> for ConditionType {
    fn eq(&self, other: &Known) -> bool {
        matches!(self.0, Type::Known(known) if known == *other)
    }
}

impl Serialize for ConditionType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ConditionType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, |text| text.into())
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
        for &known in ALL {
            assert_eq!(ConditionType::from(known.as_str()), ConditionType::from(known));
            assert!(ConditionType::from(known.as_str()) == known);
        }
        let other = ConditionType::from("Admitted ");
        assert!(other != ADMITTED && other != ConditionType::default());
        assert_eq!((other.as_str(), format!("{other:?}").as_str()), ("Admitted ", "\"Admitted \""));
    }
}
