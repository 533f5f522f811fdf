//! Admission fair sharing: the numbers, and who is charged.

use std::collections::BTreeMap;

use kueuecore::admission_fair_sharing::{decayed, usage as usage_of, weight as weight_of};
use kueuecore::config::AdmissionFairSharing;
use kueuecore::engine::Engine;
use kueuecore::objects::{Object, ResourceList};
use serde_json::{Value, json};

use super::values::{entries, integer, is_true, items, quantity, text};
use super::{Answer, Case, KUEUE, object, read};
use crate::encode::resource_list;
use crate::time::format_time;

const SECOND_NS: i64 = 1_000_000_000;
/// What an error of the API server says if there is no such object.
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
        consumed = decayed(&consumed, &used, elapsed_ns, half_life_ns);
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
    let usage =
        usage_of(&list(&input["consumed"])?, &list(&input["penalty"])?, weight, &weights(&input["resourceWeights"]));
    Ok(Some(json!({"usage": number(usage)})))
}

/// Kind `afs_local_queue_weight`. There is no API server here: its errors stay what they are.
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
    let usage = usage_of(&consumed, &ResourceList::new(), weight_of(None), &weights(&input["resourceWeights"]));
    Ok(Some(json!({"usage": number(usage)})))
}

fn other_error(error: &Value) -> Option<&str> {
    error.as_str().filter(|error| !error.contains(NOT_FOUND))
}

/// Kind `afs_entry_penalty`: a cycle with enough quota, and whether it has charged anything.
pub(super) fn afs_entry_penalty(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let namespace = workload.meta.namespace.clone();
    let mut engine = Engine::new(case.config.clone());
    let quota = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "1000"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [quota]}]);
    let scope = &case.input["admissionScope"];
    let queue = json!({"namespaceSelector": {}, "resourceGroups": groups, "admissionScope": scope});
    let local_queue = json!({"name": workload.queue_name, "namespace": namespace});
    let objects = vec![
        object("v1", "Namespace", &json!({"name": namespace}), &Value::Null)?,
        object(KUEUE, "ResourceFlavor", &json!({"name": "default"}), &json!({}))?,
        object(KUEUE, "ClusterQueue", &json!({"name": "cq"}), &queue)?,
        object(KUEUE, "LocalQueue", &local_queue, &json!({"clusterQueue": "cq"}))?,
        Object::Workload(Box::new(workload)),
    ];
    engine.apply(objects, case.now);
    engine.cycle(case.now);
    let charged = engine.state.local_queues.iter().any(|queue| queue.account.as_ref().is_some_and(|a| a.has_penalty()));
    Ok(Some(json!({"apply": charged})))
}

/// Kind `candidate_order`: everybody has to give way to one workload, which asks for the quota of all of them. Those of
/// other ClusterQueues have borrowed theirs.
pub(super) fn candidate_order(case: &Case<'_>) -> Answer {
    let input = case.input;
    let own = text(input, "preemptorClusterQueue")?;
    let candidates = items(&input["candidates"]);
    let mut config = case.config.clone();
    if is_true(input, "afsEnabled") {
        config.admission_fair_sharing.get_or_insert_with(AdmissionFairSharing::default);
    }
    let mut names = vec![own];
    let mut objects = vec![object(KUEUE, "ResourceFlavor", &json!({"name": "default"}), &json!({}))?];
    for candidate in candidates {
        let name = text(candidate, "clusterQueue")?;
        if !names.contains(&name) {
            names.push(name);
        }
        if let Some(usage) = candidate["localQueueFSUsage"].as_f64() {
            let status = json!({"consumedResources": {"cpu": usage.to_string()}, "lastUpdate": null});
            objects.push(read(&json!({
                "apiVersion": KUEUE,
                "kind": "LocalQueue",
                "metadata": {"name": candidate["workload"]["spec"]["queueName"]},
                "spec": {"clusterQueue": name},
                "status": {"fairSharing": {"admissionFairSharingStatus": status}},
            }))?);
        }
    }
    for name in names {
        let nominal = if name == own { candidates.len() } else { 0 };
        let quota = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": nominal.to_string()}]});
        let spec = json!({
            "cohortName": "all",
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        });
        objects.push(object(KUEUE, "ClusterQueue", &json!({"name": name}), &spec)?);
    }
    for candidate in candidates {
        objects.push(read(&reserving(candidate, &format_time(case.now)))?);
    }
    let mut state = case.state_with(config, objects);
    let targets = super::preempt::all_targets(&mut state, own, candidates.len())?;
    Ok(Some(json!({"order": targets})))
}

/// The Workload of a candidate with one CPU of its ClusterQueue.
fn reserving(candidate: &Value, now: &str) -> Value {
    let mut workload = candidate["workload"].clone();
    let assigned = json!({"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}});
    workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "1"}});
    workload["status"]["admission"] =
        json!({"clusterQueue": candidate["clusterQueue"], "podSetAssignments": [assigned]});
    if let Some(conditions) = workload["status"]["conditions"].as_array_mut()
        && !conditions.iter().any(|condition| condition["type"] == "QuotaReserved")
    {
        conditions.push(json!({"type": "QuotaReserved", "status": "True", "lastTransitionTime": now}));
    }
    workload
}
