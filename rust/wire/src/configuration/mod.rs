//! Kueue's Configuration file: `config.kueue.x-k8s.io` v1beta2 and v1beta1, as JSON (rules/11).
//!
//! decode strictly → defaults of the file's own version → v1beta2 → feature gates → validation, all errors at once.
//! [`Configuration::scheduling`] is what the engine reads, [`Configuration::rest`] the whole file for everything else.

mod defaults;
mod error;
pub mod file;
mod lower;
mod strict;
#[cfg(test)]
mod tests;
mod validate;

use std::cell::RefCell;
use std::collections::BTreeMap;

use kueuecore::base::changes::Change;
use kueuecore::base::gates::{Gate, GateError, Gates};
use kueuecore::base::releases::Release;
use kueuecore::objects::config::{Config, Experiments};
use serde_json::Value;

pub use error::ConfigurationError;
use file::{File, V1BETA1, V1BETA2, Version};

use crate::duration::Duration;
use crate::field_error::{FieldError, quoted};

/// A Configuration that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What scheduling reads, with the effective feature gates.
    pub scheduling: Config,
    /// The whole file in v1beta2 with all defaults filled in.
    pub rest: File,
    /// Did the file itself turn `waitForPodsReady` on? v1beta2 does by default, which only makes sense if pods ever
    /// become ready (rules/11 §2.1).
    pub names_wait_for_pods_ready: bool,
}

impl Default for Configuration {
    /// The newest Kueue's settings without a file.
    fn default() -> Self {
        Self::of(Release::default())
    }
}

const KIND: &str = "Configuration";

impl Configuration {
    /// A release's settings without a file.
    #[must_use]
    pub fn of(release: Release) -> Self {
        let mut rest = File { api_version: V1BETA2.to_owned(), kind: KIND.to_owned(), ..File::default() };
        defaults::apply(&mut rest, Version::V1beta2, release);
        let scheduling = lower::scheduling(&rest, release, Gates::of(release));
        Self { scheduling, rest, names_wait_for_pods_ready: false }
    }

    /// Reads a file of a release given as JSON. `feature_gates` are those of the command line; a file that also has
    /// `featureGates` is rejected.
    ///
    /// # Errors
    /// All errors, in the order in which Kueue checks. A file that cannot be decoded, or that has unknown or duplicate
    /// fields, is not checked further.
    pub fn read(
        json: &[u8],
        feature_gates: &BTreeMap<String, bool>,
        release: Release,
    ) -> Result<Self, Vec<ConfigurationError>> {
        let (value, mut errors) = strict::parse(json).map_err(|error| vec![error])?;
        let version = version_of(&value).map_err(|error| vec![error])?;
        let unknown = RefCell::new(Vec::new());
        let decoded: Result<File, _> = strict::decode(&value, &|path| absent_in(version, release, path), &unknown);
        errors.extend(unknown.into_inner());
        let mut file = match decoded {
            Ok(file) if errors.is_empty() => file,
            Ok(_) => return Err(errors),
            Err(error) => {
                errors.push(error);
                return Err(errors);
            }
        };
        let names_wait_for_pods_ready = file.wait_for_pods_ready.is_some();
        defaults::apply(&mut file, version, release);
        if version == Version::V1beta1 {
            defaults::convert_to_v1beta2(&mut file);
            file.api_version = V1BETA2.to_owned();
        }
        let (gates, gate_errors) = gates_of(&file, feature_gates, release);
        let mut errors: Vec<ConfigurationError> = gate_errors.into_iter().map(Into::into).collect();
        errors.extend(validate::validate(&file, gates, release).into_iter().map(ConfigurationError::from));
        if !errors.is_empty() {
            return Err(errors);
        }
        let names_wait_for_pods_ready = names_wait_for_pods_ready && file.wait_for_pods_ready.is_some();
        if !feature_gates.is_empty() {
            file.feature_gates = Some(feature_gates.clone());
        }
        Ok(Self { scheduling: lower::scheduling(&file, release, gates), rest: file, names_wait_for_pods_ready })
    }

    /// Takes the settings of a recorded case as they are: nothing is validated, gates are set one by one, fields that a
    /// Configuration does not have are skipped, and only `waitForPodsReady` gets its defaults.
    ///
    /// Besides the fields of a Configuration, `config` may hold `quotaCheckStrategy`, `resourceTransformations`,
    /// `requeuingTimestamp` and `podsReadyRequeuingTimestamp` at the top. `gates` is an object of booleans or null.
    ///
    /// # Errors
    /// A value of a wrong type, or an unknown gate.
    pub fn trusted(config: &Value, gates: &Value, release: Release) -> Result<Self, Vec<ConfigurationError>> {
        let ignored = RefCell::new(Vec::new());
        let mut rest: File = match config {
            Value::Null => File::default(),
            config => strict::decode(config, &|_| None, &ignored).map_err(|error| vec![error])?,
        };
        let names_wait_for_pods_ready = rest.wait_for_pods_ready.is_some();
        if let Some(wait) = &mut rest.wait_for_pods_ready {
            let timeout = wait.timeout.unwrap_or(Duration::seconds(30 * 60));
            defaults::wait_for_pods_ready(wait, timeout, false);
        }
        let short = Value::Object(
            [("quotaCheckStrategy", "quotaCheckStrategy"), ("resourceTransformations", "transformations")]
                .into_iter()
                .filter_map(|(short, long)| Some((long.to_owned(), config.get(short)?.clone())))
                .collect(),
        );
        let short: file::Resources = strict::decode(&short, &|_| None, &ignored).map_err(|error| vec![error])?;
        let resources = rest.resources.get_or_insert_default();
        resources.transformations.extend(short.transformations);
        if short.quota_check_strategy.is_some() {
            resources.quota_check_strategy = short.quota_check_strategy;
        }
        let mut scheduling = lower::scheduling(&rest, release, trusted_gates(gates, release)?);
        for key in ["requeuingTimestamp", "podsReadyRequeuingTimestamp"] {
            if let Some(timestamp) = config.get(key).and_then(Value::as_str) {
                scheduling.requeuing_timestamp = lower::requeuing_timestamp(timestamp);
            }
        }
        Ok(Self { scheduling, rest, names_wait_for_pods_ready })
    }

    /// The same with gates and changes switched one by one, without a check.
    ///
    /// # Errors
    /// The first name that is neither a gate nor a change.
    pub fn switched<'a>(&self, switches: impl IntoIterator<Item = (&'a str, bool)>) -> Result<Self, String> {
        let (mut gates, mut changes) = (self.scheduling.gates, self.scheduling.changes);
        for (name, on) in switches {
            match (Gate::from_name(name), Change::from_name(name)) {
                (Some(gate), _) => gates = gates.with(gate, on),
                (None, Some(change)) => changes = changes.with(change, on),
                (None, None) => return Err(name.to_owned()),
            }
        }
        let of_gates = |gates| lower::scheduling(&self.rest, self.scheduling.release, gates);
        let mut scheduling = Config { changes, experiments: self.scheduling.experiments, ..of_gates(gates) };
        // Trusted settings may name it themselves.
        let own = self.scheduling.requeuing_timestamp;
        if own != of_gates(self.scheduling.gates).requeuing_timestamp {
            scheduling.requeuing_timestamp = own;
        }
        Ok(Self { scheduling, ..self.clone() })
    }

    /// The same with these experiments, and no others (rules/13).
    #[must_use]
    pub fn with_experiments(&self, experiments: Experiments) -> Self {
        Self { scheduling: Config { experiments, ..self.scheduling.clone() }, ..self.clone() }
    }

    /// The file in v1beta2 with all defaults filled in. Reading it gives the same Configuration, except that it now
    /// names `waitForPodsReady` itself.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(&self.rest).expect("plain data with string keys is always JSON");
        prune(&mut json);
        json
    }

    /// The settings for runs in which pods never become ready by themselves: `waitForPodsReady` applies only if the
    /// file turned it on (rules/11 §2.1).
    #[must_use]
    pub fn for_simulation(&self) -> Config {
        let mut config = self.scheduling.clone();
        if !self.names_wait_for_pods_ready {
            config.wait_for_pods_ready = None;
        }
        config
    }
}

fn version_of(value: &Value) -> Result<Version, ConfigurationError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (V1BETA2, KIND) => Ok(Version::V1beta2),
        (V1BETA1, KIND) => Ok(Version::V1beta1),
        (version, kind) => Err(ConfigurationError::WrongKind { api_version: version.into(), kind: kind.into() }),
    }
}

/// Why a field of the other version, or of a newer release, counts as unknown.
fn absent_in(version: Version, release: Release, path: &str) -> Option<String> {
    let other = file::ONLY_IN.iter().find(|(field, only_in)| *field == path && *only_in != version);
    if let Some((_, only_in)) = other {
        let name = if *only_in == Version::V1beta1 { "v1beta1" } else { "v1beta2" };
        return Some(format!("it exists only in {name}"));
    }
    Some(format!("Kueue has it since 0.{}", file::comes_with(path, release)?))
}

/// The effective gates; after an error, the settings that are valid on their own.
fn gates_of(file: &File, flag: &BTreeMap<String, bool>, release: Release) -> (Gates, Vec<FieldError>) {
    const PATH: &str = "featureGates";
    let defaults = Gates::of(release);
    let (settings, shown) = match (&file.feature_gates, flag.is_empty()) {
        (Some(gates), false) => {
            let detail = "feature gates for CLI and configuration cannot both specified";
            let shown = validate::json(gates);
            return (defaults, vec![FieldError::invalid(PATH, shown, detail)]);
        }
        (Some(gates), true) => (gates, validate::json(gates)),
        (None, false) => {
            let texts: Vec<String> = flag.iter().map(|(name, on)| format!("{name}={on}")).collect();
            (flag, quoted(&texts.join(",")))
        }
        (None, true) => return (defaults, Vec::new()),
    };
    let errors = match Gates::set_from_names(release, settings.iter().map(|(name, on)| (name.as_str(), *on))) {
        Ok(gates) => return (gates, Vec::new()),
        Err(errors) => errors,
    };
    let mut found = Vec::new();
    let mut texts = Vec::new();
    for error in &errors {
        match error {
            GateError::Requires { gate, .. } => {
                found.push(FieldError::invalid(PATH, quoted(gate.name()), error.to_string()));
            }
            GateError::ProfileWithoutTopology => found.push(FieldError::invalid(PATH, "1", error.to_string())),
            _ => texts.push(error.to_string()),
        }
    }
    if !texts.is_empty() {
        let detail = if let [text] = &texts[..] { text.clone() } else { format!("[{}]", texts.join(", ")) };
        found.push(FieldError::invalid(PATH, shown, detail));
    }
    let known = settings.iter().filter_map(|(name, on)| Some((Gate::from_name(name)?, *on)));
    (known.fold(defaults, |gates, (gate, on)| gates.with(gate, on)), found)
}

fn trusted_gates(settings: &Value, release: Release) -> Result<Gates, Vec<ConfigurationError>> {
    let mut gates = Gates::of(release);
    let mut errors = Vec::new();
    for (name, on) in settings.as_object().into_iter().flatten() {
        match (Gate::from_name(name), on.as_bool()) {
            (Some(gate), Some(on)) => gates = gates.with(gate, on),
            (None, _) => {
                let error = GateError::Unknown { name: name.clone() };
                errors.push(ConfigurationError::Malformed { path: "featureGates".into(), reason: error.to_string() });
            }
            (Some(_), None) => {
                let path = format!("featureGates.{name}");
                errors.push(ConfigurationError::Malformed { path, reason: "must be true or false".into() });
            }
        }
    }
    if errors.is_empty() { Ok(gates) } else { Err(errors) }
}

/// Removes nulls and empty lists.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
