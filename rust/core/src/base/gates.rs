//! Feature gates as a plain value: a set of bits, passed as an argument and never global (rules/11 §4).

mod table;

use std::collections::BTreeMap;

use super::bits::Bits;
use super::changes::{Change, Changes};
use super::releases::{Release, Version};

pub use table::{Gate, Stage, State};
use table::{Row, TABLE};

impl Gate {
    /// Every gate, by name in byte order.
    pub const ALL: [Gate; TABLE.len()] = {
        let mut all = [Gate::AdmissionFairSharing; TABLE.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = TABLE[i].gate;
            i += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name in a Configuration, such as `PartialAdmission`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The gate of this name; `None` for any other text, including `AllAlpha` and `AllBeta`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Gate> {
        TABLE.binary_search_by_key(&name, |row| row.name).ok().map(|i| TABLE[i].gate)
    }

    /// What a release makes of it, and since which version of its history.
    fn past(self, release: Release) -> Option<&'static (Version, State)> {
        self.row().history.iter().rev().find(|(since, _)| *since <= release.version())
    }

    /// What a release makes of it.
    #[must_use]
    pub fn state(self, release: Release) -> State {
        self.past(release).map_or(State::Absent { on: false, remedy: "" }, |(_, state)| *state)
    }

    /// Is it on in a release unless something sets it? A release without the gate may still behave as if it were.
    #[must_use]
    pub fn default_on(self, release: Release) -> bool {
        match self.state(release) {
            State::Known { default, .. } => default,
            State::Absent { on, .. } => on,
        }
    }

    /// Can a Configuration of this release name it?
    #[must_use]
    pub fn is_known(self, release: Release) -> bool {
        matches!(self.state(release), State::Known { .. })
    }

    /// The gates that must be on while this one is (rules/11 §4.3).
    #[must_use]
    pub fn needs(self) -> &'static [Gate] {
        self.row().needs
    }

    /// What it does when it is on, in a few words.
    #[must_use]
    pub fn what(self) -> &'static str {
        self.row().what
    }
}

/// The state of all feature gates.
///
/// Immutable and `Copy`: [`Gates::with`] gives a changed copy and checks nothing; settings that come from a user
/// go through [`Gates::set_from_names`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gates(Bits);

impl Default for Gates {
    /// The defaults of the newest release.
    fn default() -> Self {
        Gates::of(Release::default())
    }
}

impl std::fmt::Debug for Gates {
    /// Only the differences from the newest defaults.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gates ")?;
        f.debug_map().entries(self.differences(Release::default()).map(|(gate, on)| (gate.name(), on))).finish()
    }
}

impl Gates {
    /// The defaults of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        let on = Gate::ALL.into_iter().filter(|gate| gate.default_on(release));
        on.fold(Gates(Bits::EMPTY), |gates, gate| gates.with(gate, true))
    }

    /// Is the gate on?
    #[must_use]
    pub const fn enabled(self, gate: Gate) -> bool {
        self.0.has(gate as usize)
    }

    /// A copy with one gate set; locks and dependencies are not checked.
    #[must_use]
    pub const fn with(self, gate: Gate, on: bool) -> Self {
        Gates(self.0.with(gate as usize, on))
    }

    /// The gates that are not at the default of a release, by name, with their values.
    pub(crate) fn differences(self, release: Release) -> impl Iterator<Item = (Gate, bool)> {
        let differ = Gate::ALL.into_iter().filter(move |gate| self.enabled(*gate) != gate.default_on(release));
        differ.map(move |gate| (gate, self.enabled(gate)))
    }

    /// The gates of a release with the `featureGates` of a Configuration (rules/11 §1.3).
    ///
    /// `AllAlpha` and `AllBeta` set the gates of their stage that are not named themselves. If a name is given twice,
    /// the last value counts.
    ///
    /// # Errors
    /// Every unknown name and every locked gate that would change, by name; if there is none, every gate left on whose
    /// dependency is off.
    pub fn set_from_names<'a>(
        release: Release,
        settings: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<Gates, Vec<GateError>> {
        let settings: BTreeMap<&str, bool> = settings.into_iter().collect();
        let mut gates = Gates::of(release);
        for (special, of_stage) in SPECIAL {
            let Some(&on) = settings.get(special) else { continue };
            for gate in Gate::ALL {
                if matches!(gate.state(release), State::Known { stage, .. } if stage == of_stage) {
                    gates = gates.with(gate, on);
                }
            }
        }
        let mut errors = Vec::new();
        for (&name, &on) in &settings {
            if SPECIAL.iter().any(|(special, _)| *special == name) {
                continue;
            }
            match Gate::from_name(name).map(|gate| (gate, gate.state(release))) {
                Some((gate, State::Known { locked: true, default, .. })) if on != default => {
                    errors.push(GateError::Locked { gate, on });
                }
                Some((gate, State::Known { .. })) => gates = gates.with(gate, on),
                _ => errors.push(GateError::Unknown { name: name.to_owned() }),
            }
        }
        if errors.is_empty() {
            errors = gates.missing_dependencies(release);
        }
        if errors.is_empty() { Ok(gates.with_earlier_names()) } else { Err(errors) }
    }

    /// A gate whose name has changed turns on what it became.
    fn with_earlier_names(self) -> Self {
        let names = [
            (Gate::DynamicResourceAllocation, Gate::KueueDRAIntegration),
            (Gate::DRAExtendedResources, Gate::KueueDRAIntegrationExtendedResource),
        ];
        let on = names.into_iter().filter(|(earlier, _)| self.enabled(*earlier));
        on.fold(self, |gates, (_, now)| gates.with(now, true))
    }

    /// Every gate that is on while a gate it needs is off (rules/11 §4.3).
    #[must_use]
    pub(crate) fn missing_dependencies(self, release: Release) -> Vec<GateError> {
        let changes = Changes::of(release);
        let mut errors = Vec::new();
        // They were checked before the gates were set.
        if !changes.has(Change::GateDependenciesAreChecked) {
            return errors;
        }
        for row in TABLE.iter().filter(|row| self.enabled(row.gate) && row.gate.is_known(release)) {
            let needs = row.needs.iter().copied().filter(|_| {
                row.gate != Gate::SchedulerLibraryIntegration || changes.has(Change::SchedulerLibraryNeedsTopology)
            });
            let mut disabled: Vec<Gate> = needs.filter(|&needed| !self.enabled(needed)).collect();
            if disabled.is_empty() {
                continue;
            }
            if changes.has(Change::GateDependenciesAreListed) {
                errors.push(GateError::DependsOnDisabled { gate: row.gate, disabled });
                continue;
            }
            let is_checked = match row.gate {
                Gate::FlavorFungibilityPreserveScanProgress => false,
                Gate::TASProfileMixed => {
                    errors.push(GateError::ProfileWithoutTopology);
                    false
                }
                _ => true,
            };
            if is_checked {
                errors.extend(disabled.drain(..).map(|needed| GateError::Requires { gate: row.gate, needed }));
            }
        }
        errors
    }
}

/// The names that set a whole stage.
const SPECIAL: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Why a feature gate setting is rejected, in Kueue's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no such gate.
    #[error("unrecognized feature gate: {name}")]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// The gate is locked.
    #[error("cannot set feature gate {} to {on}, feature is locked to {}", gate.name(), !on)]
    Locked {
        gate: Gate,
        /// The value asked for.
        on: bool,
    },
    /// The gate is on and one that it needs is off.
    #[error("{} is enabled, but depends on features that are disabled: [{}]", gate.name(), names(disabled))]
    DependsOnDisabled {
        /// The gate that is on.
        gate: Gate,
        /// The disabled gates that it needs, in the order of the table.
        disabled: Vec<Gate>,
    },
    /// The same, as older releases report it.
    #[error("{} requires {} to be enabled", gate.name(), needed.name())]
    Requires {
        /// The gate that is on.
        gate: Gate,
        /// The disabled gate that it needs.
        needed: Gate,
    },
    /// The same about TASProfileMixed, as older releases report it.
    #[error("cannot use a TAS profile with TAS disabled")]
    ProfileWithoutTopology,
}

fn names(gates: &[Gate]) -> String {
    gates.iter().map(|gate| gate.name()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod pages;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.gate as usize, i, "{}", row.name);
            assert_eq!(format!("{:?}", row.gate), row.name);
            assert_eq!(Gate::from_name(row.name), Some(row.gate));
        }
        assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(Gate::from_name("AllAlpha"), None);
        assert_eq!(Gate::from_name("partialadmission"), None);
    }

    #[test]
    fn defaults_are_kueues() {
        let gates = Gates::default();
        assert_eq!(Gate::ALL.iter().filter(|&&gate| gates.enabled(gate)).count(), 86); // 11 of them are built in by now
        assert!(gates.enabled(Gate::PartialAdmission));
        assert!(!gates.enabled(Gate::UnadmittedWorkloadsExplicitStatus));
        assert!(!gates.enabled(Gate::TASReplaceNodeDueToNotReadyOverFixedTime));
        for release in Release::all() {
            assert_eq!(Gates::of(release).missing_dependencies(release), [], "{release}");
        }
        let changed = gates.with(Gate::PriorityBoost, true).with(Gate::MultiKueue, false);
        assert_eq!(format!("{changed:?}"), r#"Gates {"MultiKueue": false, "PriorityBoost": true}"#);
        assert_eq!(changed.with(Gate::PriorityBoost, false).with(Gate::MultiKueue, true), gates);
    }

    fn set(settings: &[(&'static str, bool)]) -> Result<Gates, Vec<String>> {
        Gates::set_from_names(Release::DEVELOPMENT, settings.iter().copied())
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn settings_are_refused_with_kueues_texts() {
        type Case = (&'static [(&'static str, bool)], &'static [&'static str]);
        let cases: &[Case] = &[
            (
                &[("Nope", true), ("TLSOptions", false), ("Alas", false)],
                &[
                    "unrecognized feature gate: Alas",
                    "unrecognized feature gate: Nope",
                    "cannot set feature gate TLSOptions to false, feature is locked to true",
                ],
            ),
            (
                &[("FlavorFungibility", false)],
                &["FlavorFungibilityPreserveScanProgress is enabled, but depends on features that are disabled: \
                   [FlavorFungibility]"],
            ),
            (
                &[("TASReplaceNodeDueToNotReadyOverFixedTime", true), ("AllBeta", false)],
                &["TASReplaceNodeDueToNotReadyOverFixedTime is enabled, but depends on features that are disabled: \
                   [TopologyAwareScheduling TASFailedNodeReplacement]"],
            ),
            // Dependencies are checked only if every setting is valid on its own.
            (&[("FlavorFungibility", false), ("Nope", true)], &["unrecognized feature gate: Nope"]),
        ];
        for (settings, errors) in cases {
            assert_eq!(set(settings).expect_err("must be refused"), *errors, "{settings:?}");
        }
    }

    #[test]
    fn all_of_a_stage_leaves_named_gates_alone() {
        let gates = set(&[("AllAlpha", true), ("PriorityBoost", false), ("TLSOptions", true)]).expect("valid");
        for gate in Gate::ALL {
            let expected = match gate.state(Release::DEVELOPMENT) {
                State::Known { stage: Stage::Alpha, .. } => gate != Gate::PriorityBoost,
                _ => gate.default_on(Release::DEVELOPMENT),
            };
            assert_eq!(gates.enabled(gate), expected, "{}", gate.name());
        }
        let gates = set(&[("AllBeta", false), ("PartialAdmission", true)]).expect("valid");
        assert!(gates.enabled(Gate::PartialAdmission) && gates.enabled(Gate::TLSOptions));
        assert!(!gates.enabled(Gate::MultiKueue) && !gates.enabled(Gate::PriorityBoost));
        let gates = set(&[("AllBeta", true)]).expect("valid");
        assert!(gates.enabled(Gate::UnadmittedWorkloadsExplicitStatus));
    }

    #[test]
    fn a_release_has_the_gates_of_its_day() {
        let set = |release: &str, name: &'static str, on| {
            let release = Release::from_name(release).expect("a release");
            let gates = Gates::set_from_names(release, [(name, on)]);
            gates.map_err(|errors| errors[0].to_string())
        };
        assert!(set("0.16", "LendingLimit", false).is_ok_and(|gates| !gates.enabled(Gate::LendingLimit)));
        let locked = "cannot set feature gate LendingLimit to false, feature is locked to true";
        assert_eq!(set("0.17", "LendingLimit", false).expect_err("locked"), locked);
        for release in ["0.16", "0.19"] {
            let unknown = set(release, "ConcurrentAdmission", true).is_err();
            assert_eq!(unknown, release == "0.16", "{release}");
        }
        assert!(set("0.19", "LendingLimit", true).is_err());
        assert!(set("0.16", "DynamicResourceAllocation", true).is_ok_and(|it| it.enabled(Gate::KueueDRAIntegration)));
        let error = set("0.18.6", "ElasticJobsViaWorkloadSlices", false);
        assert!(error.is_ok());
        let error = set("0.18.6", "TASFailedNodeReplacement", false).expect_err("others need it");
        assert_eq!(error, "TASFailedNodeReplacementFailFast requires TASFailedNodeReplacement to be enabled");
    }
}
