//! Answers one recorded case with the engine; both are JSON.
//!
//! The extension module `kueuecore._proof`, for comparison with Kueue: it reads the case, calls the functions that a
//! cycle calls, and writes the results. It answers only what no world shows through the library itself: the parts of an
//! assignment, the numbers of a cohort tree, what pods request. It implements no rule, and the product does not depend
//! on it.
#![forbid(unsafe_code)]

mod assign;
mod cache;
mod pods;
mod quota;
mod statuses;
mod topology;
mod values;

use kueuecore::base::releases::Release;
use kueuecore::engine::Engine;
use kueuecore::objects::config::Config;
use kueuecore::objects::{Object, Time, Workload};
use kueuecore::state::State;
use kueuecore_wire::configuration::Configuration;
use kueuecore_wire::decode::{Door, decode, decode_value};
use kueuecore_wire::time::parse_time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

/// The content of one case besides its kind.
struct Case<'a> {
    config: Config,
    now: Time,
    objects: Vec<Object>,
    input: &'a Value,
}

type Answer = Result<Value, String>;

/// Recorded cases, answered by the engine.
#[pymodule(gil_used = false)]
mod _proof {
    #[pymodule_export]
    use super::answer;
}

/// Answers a case, given without its `expect`; `None`: there is no answer to cases of its kind.
#[pyfunction]
fn answer(case: &[u8]) -> PyResult<Option<Vec<u8>>> {
    answered(case).map_err(PyValueError::new_err)
}

fn answered(case: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let value: Value = serde_json::from_slice(case).map_err(|e| e.to_string())?;
    let Some(answerer) = answerer(values::text(&value, "kind")?) else { return Ok(None) };
    let answer = answerer(&Case::read(&value)?)?;
    serde_json::to_vec(&answer).map(Some).map_err(|e| e.to_string())
}

fn answerer(kind: &str) -> Option<fn(&Case<'_>) -> Answer> {
    Some(match kind {
        "assign" => assign::assign,
        "scheduling_hash" => assign::scheduling_hash,
        "quota" => quota::quota,
        "cache_ops" => cache::cache_ops,
        "topology" => topology::topology,
        "admission_checks" => statuses::admission_checks,
        "queue_order_timestamp" => statuses::queue_order_timestamp,
        "sync_admitted" => statuses::sync_admitted,
        "adjust_resources" => pods::adjust_resources,
        "limit_range_summary" => pods::limit_range_summary,
        "limit_range_validation" => pods::limit_range_validation,
        "validate_limit_range" => pods::validate_limit_range,
        "validate_resources" => pods::validate_resources,
        "total_requests" => pods::total_requests,
        "resource_value" => pods::resource_value,
        "resource_quantity" => pods::resource_quantity,
        "amount_from_quantity" => pods::amount_from_quantity,
        _ => return None,
    })
}

/// The settings of a case, in the release of Kueue that it was recorded from, with single `changes` switched.
fn configuration_of(case: &Value) -> Result<Configuration, String> {
    let release = match case["kueue"].as_str() {
        Some(name) => Release::from_name(name).ok_or_else(|| format!("no release of Kueue: {name}"))?,
        None => Release::default(),
    };
    let configuration =
        Configuration::trusted(&case["config"], &case["featureGates"], release).map_err(|e| lines(&e))?;
    let switches = case["changes"].as_object().into_iter().flatten();
    let switches = switches.filter_map(|(name, on)| Some((name.as_str(), on.as_bool()?)));
    configuration.switched(switches).map_err(|name| format!("no change of Kueue: {name}"))
}

impl<'a> Case<'a> {
    fn read(case: &'a Value) -> Result<Self, String> {
        let config = configuration_of(case)?;
        let now = parse_time(values::text(&case["config"], "now")?).ok_or("config.now is no time")?;
        let objects = match &case["objects"] {
            Value::Null => Vec::new(),
            objects => decode(objects.to_string().as_bytes(), Door::Trusted)
                .map_err(|e| lines(&e))?
                .objects
                .into_iter()
                .map(|(object, _)| object)
                .collect(),
        };
        Ok(Self { config: config.scheduling, now, objects, input: &case["input"] })
    }

    /// The state with all objects applied.
    fn state(&self) -> State {
        self.state_with(self.config.clone())
    }

    fn state_with(&self, config: Config) -> State {
        let mut engine = Engine::new(config);
        engine.apply(self.objects.clone(), self.now);
        engine.state
    }

    /// A Workload of the input.
    fn workload(&self, key: &str) -> Result<Workload, String> {
        workload(&self.input[key])
    }
}

fn workload(value: &Value) -> Result<Workload, String> {
    match decode_value(value).map_err(|e| e.to_string())? {
        Object::Workload(workload) => Ok(*workload),
        _ => Err("not a Workload".to_owned()),
    }
}

fn lines<E: ToString>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
