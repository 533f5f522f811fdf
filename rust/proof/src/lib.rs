//! Answers one recorded case with the engine; both are JSON.
//!
//! The extension module `kueuecore._proof`, for comparison with Kueue: it reads the case, calls the functions that a
//! cycle calls, and writes the results. It implements no rule, and the product does not depend on it.
#![forbid(unsafe_code)]

mod assign;
mod cache;
mod cycles;
mod late_checks;
mod live;
mod pods;
mod preempt;
mod quota;
mod runs;
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

/// An answer, or `None` if the case needs something that is not implemented.
type Answer = Result<Option<Value>, String>;

/// A cycle allocates and frees many small pieces, which mimalloc does fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Recorded cases, answered by the engine.
#[pymodule(gil_used = false)]
mod _proof {
    #[pymodule_export]
    use super::answer;
}

/// Answers a case, given without its `expect`; `None`: it needs something that is not implemented. Ctrl-C ends a run.
#[pyfunction]
fn answer(py: Python<'_>, case: &[u8]) -> PyResult<Option<Vec<u8>>> {
    let mut raised = None;
    let answer = py.detach(|| {
        answered(case, &mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_some()
        })
    });
    match raised {
        Some(error) => Err(error),
        None => answer.map_err(PyValueError::new_err),
    }
}

fn answered(case: &[u8], interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Vec<u8>>, String> {
    let value: Value = serde_json::from_slice(case).map_err(|e| e.to_string())?;
    let answer = match values::text(&value, "kind")? {
        "cycle" => cycles::cycle(&value),
        "cycles" => cycles::cycles(&value),
        "trace" => runs::trace(&value, interrupted),
        "scale" => runs::scale(&value, interrupted),
        kind => match answerer(kind) {
            Some(answerer) => answerer(&Case::read(&value)?),
            None => Ok(None),
        },
    }?;
    answer.map(|answer| serde_json::to_vec(&answer).map_err(|e| e.to_string())).transpose()
}

fn answerer(kind: &str) -> Option<fn(&Case<'_>) -> Answer> {
    Some(match kind {
        "assign" => assign::assign,
        "scheduling_hash" => assign::scheduling_hash,
        "preempt" => preempt::preempt,
        "quota" => quota::quota,
        "cache_ops" => cache::cache_ops,
        "readiness" => statuses::readiness,
        "topology" => topology::topology,
        "usage" => statuses::usage,
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
pub(crate) fn configuration_of(case: &Value) -> Result<Configuration, String> {
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
        self.state_with(self.config.clone(), self.objects.clone())
    }

    fn state_with(&self, config: Config, objects: Vec<Object>) -> State {
        let mut engine = Engine::new(config);
        engine.apply(objects, self.now);
        engine.state
    }

    /// A Workload of the input.
    fn workload(&self, key: &str) -> Result<Workload, String> {
        workload(&self.input[key])
    }
}

fn read(value: &Value) -> Result<Object, String> {
    decode_value(value).map_err(|e| e.to_string())
}

fn workload(value: &Value) -> Result<Workload, String> {
    match read(value)? {
        Object::Workload(workload) => Ok(*workload),
        _ => Err("not a Workload".to_owned()),
    }
}

fn lines<E: ToString>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
