//! Feature gates as a plain value: a set of 80 bits, passed as an argument and never global (rules/11 §4).

mod table;

use std::collections::BTreeMap;

pub use table::{Gate, Stage};
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

    const fn bit(self) -> u128 {
        1 << self as u8
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

    /// Is it on by default?
    #[must_use]
    pub fn default_on(self) -> bool {
        self.row().default
    }

    /// Its maturity.
    #[must_use]
    pub fn stage(self) -> Stage {
        self.row().stage
    }

    /// Is it an error to set it to anything but its default?
    #[must_use]
    pub fn locked(self) -> bool {
        self.row().locked
    }

    /// The gates that must be on while this one is (rules/11 §4.3).
    #[must_use]
    pub fn needs(self) -> &'static [Gate] {
        self.row().needs
    }

    /// The version of Kueue that brought the current default.
    #[must_use]
    pub fn since(self) -> &'static str {
        self.row().since
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
pub struct Gates(u128);

impl Default for Gates {
    /// Kueue's defaults.
    fn default() -> Self {
        Gates(TABLE.iter().filter(|row| row.default).fold(0, |bits, row| bits | row.gate.bit()))
    }
}

impl std::fmt::Debug for Gates {
    /// Only the differences from the defaults.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gates ")?;
        f.debug_map().entries(self.differences().map(|(gate, on)| (gate.name(), on))).finish()
    }
}

impl Gates {
    /// Is the gate on?
    #[must_use]
    pub const fn enabled(self, gate: Gate) -> bool {
        self.0 & gate.bit() != 0
    }

    /// A copy with one gate set; locks and dependencies are not checked.
    #[must_use]
    pub const fn with(self, gate: Gate, on: bool) -> Self {
        if on { Gates(self.0 | gate.bit()) } else { Gates(self.0 & !gate.bit()) }
    }

    /// The gates that are not at their default, by name, with their values.
    pub(crate) fn differences(self) -> impl Iterator<Item = (Gate, bool)> {
        TABLE
            .iter()
            .filter(move |row| self.enabled(row.gate) != row.default)
            .map(move |row| (row.gate, self.enabled(row.gate)))
    }

    /// Applies the `featureGates` of a Configuration to these gates (rules/11 §1.3).
    ///
    /// `AllAlpha` and `AllBeta` set the gates of their stage that are not named themselves. If a name is given twice,
    /// the last value counts.
    ///
    /// # Errors
    /// Every unknown name and every locked gate that would change, by name; if there is none, every gate left on whose
    /// dependency is off.
    pub fn set_from_names<'a>(
        self,
        settings: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<Gates, Vec<GateError>> {
        let settings: BTreeMap<&str, bool> = settings.into_iter().collect();
        let mut gates = self;
        for (special, stage) in SPECIAL {
            let Some(&on) = settings.get(special) else { continue };
            for row in TABLE.iter().filter(|row| row.stage == stage) {
                gates = gates.with(row.gate, on);
            }
        }
        let mut errors = Vec::new();
        for (&name, &on) in &settings {
            match Gate::from_name(name) {
                Some(gate) if gate.locked() && on != gate.default_on() => errors.push(GateError::Locked { gate, on }),
                Some(gate) => gates = gates.with(gate, on),
                None if SPECIAL.iter().any(|(special, _)| *special == name) => {}
                None => errors.push(GateError::Unknown { name: name.to_owned() }),
            }
        }
        if errors.is_empty() {
            errors = gates.missing_dependencies();
        }
        if errors.is_empty() { Ok(gates) } else { Err(errors) }
    }

    /// Every gate that is on while a gate it needs is off (rules/11 §4.3).
    #[must_use]
    pub(crate) fn missing_dependencies(self) -> Vec<GateError> {
        let mut errors = Vec::new();
        for row in TABLE.iter().filter(|row| self.enabled(row.gate)) {
            let disabled: Vec<Gate> = row.needs.iter().copied().filter(|&needed| !self.enabled(needed)).collect();
            if !disabled.is_empty() {
                errors.push(GateError::DependsOnDisabled { gate: row.gate, disabled });
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
    #[error("cannot set feature gate {} to {on}, feature is locked to {}", gate.name(), gate.default_on())]
    Locked {
        /// The gate.
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
}

fn names(gates: &[Gate]) -> String {
    gates.iter().map(|gate| gate.name()).collect::<Vec<_>>().join(" ")
}

/// The table of all gates as Markdown, as in `docs/feature-gates.md`.
#[cfg(test)]
fn markdown() -> String {
    let mut page = String::from(
        "# Feature gates\n\n\
         Kueue's feature gates with the defaults that kueuecore starts from; rules/11 §4 says more about each.\n\
         A gate that is on while one that it needs is off is an error. `AllAlpha` and `AllBeta` set every gate of\n\
         their stage that is not named itself.\n\n\
         | Gate | Default | Stage, since | Needs | When on |\n|---|---|---|---|---|\n",
    );
    for row in &TABLE {
        let default = if row.default { "on" } else { "off" };
        let locked = if row.locked { ", locked" } else { "" };
        let needs = row.needs.iter().map(|gate| gate.name()).collect::<Vec<_>>().join(", ");
        let (name, stage, since, what) = (row.name, row.stage.name(), row.since, row.what);
        page.push_str(&format!("| {name} | {default}{locked} | {stage} {since} | {needs} | {what} |\n"));
    }
    page
}

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
        assert_eq!(Gate::ALL.iter().filter(|&&gate| gates.enabled(gate)).count(), 59);
        assert!(gates.enabled(Gate::PartialAdmission));
        assert!(!gates.enabled(Gate::UnadmittedWorkloadsExplicitStatus));
        assert!(!gates.enabled(Gate::TASReplaceNodeDueToNotReadyOverFixedTime));
        assert_eq!(gates.missing_dependencies(), []);
        let changed = gates.with(Gate::PriorityBoost, true).with(Gate::MultiKueue, false);
        assert_eq!(format!("{changed:?}"), r#"Gates {"MultiKueue": false, "PriorityBoost": true}"#);
        assert_eq!(changed.with(Gate::PriorityBoost, false).with(Gate::MultiKueue, true), gates);
    }

    fn set(settings: &[(&'static str, bool)]) -> Result<Gates, Vec<String>> {
        Gates::default()
            .set_from_names(settings.iter().copied())
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
            let expected = match gate.stage() {
                Stage::Alpha => gate != Gate::PriorityBoost,
                _ => gate.default_on(),
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
    fn documentation_shows_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/feature-gates.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, markdown()).expect("docs/ can be written");
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == markdown(), "docs/feature-gates.md is stale: run UPDATE_DOCS=1 cargo test -p kueuecore gates");
    }
}
