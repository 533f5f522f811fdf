//! Assignment modes and their order of preference (rules/03 §2).

use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::objects::config::Config;
use crate::objects::{FlavorFungibility, FungibilityPolicy, FungibilityPreference};

/// How a flavor, pod set or workload can be assigned, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Not with the existing quota.
    NoFit,
    /// Only with preemptions.
    Preempt,
    /// Once preemptions in progress in this cycle are complete.
    DeferredFit,
    Fit,
}

impl Mode {
    /// Kueue's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::NoFit => "NoFit",
            Mode::Preempt => "Preempt",
            Mode::DeferredFit => "DeferredFit",
            Mode::Fit => "Fit",
        }
    }
}

/// What a simulated preemption found for one flavor-resource (rules/04 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Possibility {
    /// No workload could be preempted.
    NoCandidates,
    /// Workloads of the own ClusterQueue, and possibly others.
    Preempt,
    /// Only workloads of other ClusterQueues.
    Reclaim,
}

impl Possibility {
    /// Kueue's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Possibility::NoCandidates => "NoCandidates",
            Possibility::Preempt => "Preempt",
            Possibility::Reclaim => "Reclaim",
        }
    }
}

/// The internal mode of one flavor-resource, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionMode {
    /// No quota, no preemption.
    NoFit,
    /// Preemption was tried, but no workload may be preempted.
    NoCandidates,
    /// Preemption is possible.
    Preempt,
    /// Preemption in other ClusterQueues is possible.
    Reclaim,
    /// Fits now.
    Fit,
}

impl PreemptionMode {
    /// The public mode.
    pub fn mode(self) -> Mode {
        match self {
            PreemptionMode::NoFit => Mode::NoFit,
            PreemptionMode::NoCandidates | PreemptionMode::Preempt | PreemptionMode::Reclaim => Mode::Preempt,
            PreemptionMode::Fit => Mode::Fit,
        }
    }

    /// What the simulated preemption found, if there was one.
    pub fn possibility(self) -> Option<Possibility> {
        match self {
            PreemptionMode::NoCandidates => Some(Possibility::NoCandidates),
            PreemptionMode::Preempt => Some(Possibility::Preempt),
            PreemptionMode::Reclaim => Some(Possibility::Reclaim),
            PreemptionMode::NoFit | PreemptionMode::Fit => None,
        }
    }
}

impl From<Possibility> for PreemptionMode {
    fn from(possibility: Possibility) -> Self {
        match possibility {
            Possibility::NoCandidates => PreemptionMode::NoCandidates,
            Possibility::Preempt => PreemptionMode::Preempt,
            Possibility::Reclaim => PreemptionMode::Reclaim,
        }
    }
}

/// A mode and how far up the tree it borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GranularMode {
    pub preemption: PreemptionMode,
    /// The borrowing level; 0 is none.
    pub level: u32,
}

/// `flavorFungibility` of a ClusterQueue, as the release reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fungibility {
    /// What the object says.
    pub given: FlavorFungibility,
    /// What it prefers.
    pub preference: FungibilityPreference,
    /// The change FitBeatsNoCandidates.
    pub fit_beats_no_candidates: bool,
}

impl Fungibility {
    /// What it says, in the release of the settings.
    #[must_use]
    pub fn new(given: FlavorFungibility, config: &Config) -> Self {
        use FungibilityPreference::{BorrowingOverPreemption, PreemptionOverBorrowing};
        let implied = config.gates.enabled(Gate::FlavorFungibilityImplicitPreferenceDefault)
            && given.when_can_borrow == FungibilityPolicy::TryNextFlavor;
        let preference = match given.preference {
            None if implied => PreemptionOverBorrowing,
            None => BorrowingOverPreemption,
            Some(preference) if config.changes.has(Change::PreferencesAreNotSwapped) => preference,
            // Each of the two did what the other one does now.
            Some(BorrowingOverPreemption) => PreemptionOverBorrowing,
            Some(PreemptionOverBorrowing) => BorrowingOverPreemption,
        };
        Self { given, preference, fit_beats_no_candidates: config.changes.has(Change::FitBeatsNoCandidates) }
    }
}

impl Default for Fungibility {
    fn default() -> Self {
        Self::new(FlavorFungibility::default(), &Config::default())
    }
}

impl GranularMode {
    /// Fits without borrowing.
    pub(crate) const BEST: GranularMode = GranularMode { preemption: PreemptionMode::Fit, level: 0 };
    /// No fit at all.
    pub(crate) const WORST: GranularMode = GranularMode { preemption: PreemptionMode::NoFit, level: u32::MAX };

    /// Is `self` preferred to `other` (rules/03 §2.1)?
    pub(crate) fn preferred_to(self, other: GranularMode, fungibility: &Fungibility) -> bool {
        if self.preemption == PreemptionMode::NoFit {
            return false;
        }
        if other.preemption == PreemptionMode::NoFit {
            return true;
        }
        let without_candidates = |mode: GranularMode| mode.preemption == PreemptionMode::NoCandidates;
        if fungibility.fit_beats_no_candidates && without_candidates(self) != without_candidates(other) {
            return without_candidates(other);
        }
        match fungibility.preference {
            FungibilityPreference::BorrowingOverPreemption => {
                (self.preemption, other.level) > (other.preemption, self.level)
            }
            FungibilityPreference::PreemptionOverBorrowing => {
                (other.level, self.preemption) > (self.level, other.preemption)
            }
        }
    }

    /// The worse of two.
    pub(super) fn or_worse(self, other: GranularMode, fungibility: &Fungibility) -> GranularMode {
        if self.preferred_to(other, fungibility) { other } else { self }
    }

    /// Is a flavor with this mode better than the best one so far, and does the scan end with it (rules/03 §4)?
    /// `fungible` is the feature gate.
    pub(super) fn compare(self, best: GranularMode, fungibility: &Fungibility, fungible: bool) -> (bool, bool) {
        if fungible {
            let is_last = !self.try_next(fungibility);
            return (is_last || self.preferred_to(best, fungibility), is_last);
        }
        let is_better = self.preemption > best.preemption;
        (is_better, is_better && self.preemption == PreemptionMode::Fit)
    }

    /// Does the scan continue with the next flavor after this one (rules/03 §2.2)?
    pub(crate) fn try_next(self, fungibility: &Fungibility) -> bool {
        use FungibilityPolicy::TryNextFlavor;
        match self.preemption {
            PreemptionMode::NoFit | PreemptionMode::NoCandidates => return true,
            PreemptionMode::Preempt | PreemptionMode::Reclaim
                if fungibility.given.when_can_preempt == TryNextFlavor =>
            {
                return true;
            }
            _ => {}
        }
        self.level != 0 && fungibility.given.when_can_borrow == TryNextFlavor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PreemptionMode::{Fit, NoCandidates, NoFit, Preempt, Reclaim};

    fn mode(preemption: PreemptionMode, level: u32) -> GranularMode {
        GranularMode { preemption, level }
    }

    fn of(given: FlavorFungibility) -> Fungibility {
        Fungibility::new(given, &Config::default())
    }

    #[test]
    fn preference_follows_the_configured_order() {
        let borrowing_first = Fungibility::default();
        let preemption_first = of(FlavorFungibility {
            preference: Some(FungibilityPreference::PreemptionOverBorrowing),
            ..FlavorFungibility::default()
        });
        for (a, b, borrowing, preemption) in [
            (mode(NoFit, 0), mode(NoFit, 5), false, false),
            (mode(NoCandidates, 9), mode(NoFit, 0), true, true),
            (mode(NoCandidates, 0), mode(Preempt, 3), false, false),
            (mode(Reclaim, 2), mode(Preempt, 1), true, false),
            (mode(Fit, 1), mode(Reclaim, 0), true, false),
            (mode(Fit, 1), mode(Fit, 2), true, true),
            (mode(Fit, 1), mode(Fit, 1), false, false),
        ] {
            assert_eq!(a.preferred_to(b, &borrowing_first), borrowing, "{a:?} over {b:?}");
            assert_eq!(a.preferred_to(b, &preemption_first), preemption, "{a:?} over {b:?}");
        }
    }

    #[test]
    fn a_fit_without_borrowing_always_ends_the_scan() {
        let never_stop = of(FlavorFungibility {
            when_can_borrow: FungibilityPolicy::TryNextFlavor,
            when_can_preempt: FungibilityPolicy::TryNextFlavor,
            ..FlavorFungibility::default()
        });
        assert!(!mode(Fit, 0).try_next(&never_stop));
        assert!(mode(Fit, 1).try_next(&never_stop));
        assert!(!mode(Fit, 1).try_next(&Fungibility::default()));
        assert!(mode(Preempt, 0).try_next(&Fungibility::default()));
        assert!(mode(NoCandidates, 0).try_next(&Fungibility::default()));
    }
}
