//! Admission fair sharing: the arithmetic, and which workloads are charged.

use std::collections::BTreeMap;

use kueuecore::engine::Engine;
use kueuecore::objects::{Object, ResourceList};
use kueuecore::state::admission_fair_sharing::{decayed, usage as usage_of, weight as weight_of};
use kueuecore_wire::encode::resource_list;
use serde_json::{Value, json};

use super::values::{entries, integer, quantity};
use super::{Answer, Case, object, read};

const SECOND_NS: i64 = 1_000_000_000;
/// Part of the API server's error for a missing object.
const NOT_FOUND: &str = "not found";

fn list(value: &Value) -> Result<ResourceList, String> {
    entries(value).map(|(name, given)| Ok((name.clone(), quantity(given)?))).collect()
}

fn weights(value: &Value) -> BTreeMap<String, f64> {
    entries(value).filter_map(|(name, weight)| Some((name.clone(), weight.as_f64()?))).collect()
}

fn number(value: f64) -> Value {
    if value.is_infinite() { json!("+Inf") } else { json!(value) }
}

/// Kind `afs_decay`.
pub(super) fn afs_decay(case: &Case<'_>) -> Answer {
    let input = case.input;
    let used = list(&input["usage"])?;
    let elapsed_ns = integer(input, "elapsedSeconds")? * SECOND_NS;
    let half_life_ns = integer(input, "halfLifeSeconds")? * SECOND_NS;
    let every = input["reportEvery"].as_i64().unwrap_or(1).max(1);
    let (mut consumed, mut reported) = (ResourceList::new(), Vec::new());
    for sample in 1..=integer(input, "samples")? {
        consumed = decayed(&consumed, &used, elapsed_ns, half_life_ns, case.config.changes);
        if sample % every == 0 {
            reported.push(resource_list(&consumed));
        }
    }
    Ok(Some(json!({"consumed": reported})))
}

/// Kind `resource_list_mul_float`.
pub(super) fn resource_list_mul_float(case: &Case<'_>) -> Answer {
    let given = &case.input["resources"];
    if given.is_null() {
        return Ok(Some(json!({"resources": null})));
    }
    let factor = case.input["factor"].as_f64().ok_or("factor is no number")?;
    let scaled: ResourceList =
        list(given)?.iter().map(|(name, quantity)| (name.clone(), quantity.times_f64_toward_zero(factor))).collect();
    Ok(Some(json!({"resources": resource_list(&scaled)})))
}

/// Kind `afs_usage`.
pub(super) fn afs_usage(case: &Case<'_>) -> Answer {
    let input = case.input;
    let weight = input["weight"].as_f64().ok_or("weight is no number")?;
    let usage = usage_of(
        &list(&input["consumed"])?,
        &list(&input["penalty"])?,
        weight,
        &weights(&input["resourceWeights"]),
        case.config.changes,
    );
    Ok(Some(json!({"usage": number(usage)})))
}

/// Kind `afs_local_queue_weight`. There is no API server here: its errors are passed through.
pub(super) fn afs_local_queue_weight(case: &Case<'_>) -> Answer {
    if let Some(error) = other_error(&case.input["error"]) {
        return Ok(Some(json!({"error": error, "weight": 0})));
    }
    let configured = case.objects.iter().find_map(|object| match object {
        Object::LocalQueue(queue) => queue.fair_weight.as_ref(),
        _ => None,
    });
    Ok(Some(json!({"weight": weight_of(configured)})))
}

/// Kind `local_queue_fs_usage`.
pub(super) fn local_queue_fs_usage(case: &Case<'_>) -> Answer {
    let input = case.input;
    if let Some(error) = other_error(&input["localQueueError"]) {
        return Ok(Some(json!({"error": error, "usage": 0})));
    }
    let consumed = list(&input["consumedResources"])?;
    let usage = usage_of(
        &consumed,
        &ResourceList::new(),
        weight_of(None),
        &weights(&input["resourceWeights"]),
        case.config.changes,
    );
    Ok(Some(json!({"usage": number(usage)})))
}

fn other_error(error: &Value) -> Option<&str> {
    error.as_str().filter(|error| !error.contains(NOT_FOUND))
}

/// Kind `afs_entry_penalty`: a cycle with enough quota, and whether it has charged anything.
pub(super) fn afs_entry_penalty(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let namespace = workload.meta.key.namespace().to_owned();
    let mut engine = Engine::new(case.config.clone());
    let quota = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "1000"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [quota]}]);
    let scope = &case.input["admissionScope"];
    let queue = json!({"namespaceSelector": {}, "resourceGroups": groups, "admissionScope": scope});
    let local_queue = json!({"name": workload.queue_name.as_str(), "namespace": namespace});
    let objects = vec![
        read(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?,
        object("ResourceFlavor", &json!({"name": "default"}), &json!({}))?,
        object("ClusterQueue", &json!({"name": "cq"}), &queue)?,
        object("LocalQueue", &local_queue, &json!({"clusterQueue": "cq"}))?,
        Object::Workload(Box::new(workload)),
    ];
    engine.apply(objects, case.now);
    engine.cycle(case.now);
    let charged = engine.state.local_queues.iter().any(|queue| queue.account.as_ref().is_some_and(|a| a.has_penalty()));
    Ok(Some(json!({"apply": charged})))
}
