//! Pod resources: defaults, checks, totals, and single quantities.

use kueuecore::base::amount::Amount;
use kueuecore::base::changes::Changes;
use kueuecore::base::gates::Gate;
use kueuecore::objects::resource_names;
use kueuecore::objects::{LimitRange, LimitRangeItem, Object, PodSpec, ResourceList, Resources, Workload};
use kueuecore::pods::totals::{self, DeviceRequests, PodSetTotals};
use kueuecore::pods::{self, FieldError, LimitRangeSummary};
use kueuecore_wire::decode::decode_value;
use kueuecore_wire::encode::resource_list;
use serde_json::{Map, Value, json};

use super::values::{amount, entries, integer, is_true, quantity, text, texts};
use super::{Answer, Case, workload};

/// Kind `adjust_resources`.
pub(super) fn adjust_resources(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    let id = state.store_workload(case.workload("workload")?);
    let mut answer = case.input["workload"].clone();
    for (i, pod_set) in state.workloads.get(id).spec.adjusted.iter().enumerate() {
        if let Some(shown) = answer.pointer_mut(&format!("/spec/podSets/{i}/template/spec")) {
            show_pod(shown, &pod_set.template.spec);
        }
    }
    Ok(json!({"workload": answer}))
}

/// Writes what adjusting may have changed over the pod spec as given.
fn show_pod(shown: &mut Value, pod: &PodSpec) {
    let Some(shown) = shown.as_object_mut() else { return };
    if let Some(overhead) = &pod.overhead {
        shown.insert("overhead".to_owned(), resource_list(overhead));
    }
    if let Some(of_pod) = &pod.resources {
        shown.insert("resources".to_owned(), resources(of_pod));
    }
    for (key, containers) in [("initContainers", &pod.init_containers), ("containers", &pod.containers)] {
        let shown = shown.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (shown, container) in shown.filter_map(Value::as_object_mut).zip(containers) {
            shown.insert("resources".to_owned(), resources(&container.resources));
        }
    }
}

fn resources(of: &Resources) -> Value {
    json!({"requests": resource_list(&of.requests), "limits": resource_list(&of.limits)})
}

/// Kind `limit_range_summary`.
pub(super) fn limit_range_summary(case: &Case<'_>) -> Answer {
    let ranges = case.objects.iter().filter_map(|object| match object {
        Object::LimitRange(range) => Some(range),
        _ => None,
    });
    let summary = pods::summarize(&ranges.collect::<Vec<&LimitRange>>());
    let shown: Map<String, Value> = summary.by_type.iter().map(|(kind, item)| (kind.clone(), limits(item))).collect();
    Ok(json!({"summary": shown}))
}

fn limits(item: &LimitRangeItem) -> Value {
    json!({
        "max": resource_list(&item.max),
        "min": resource_list(&item.min),
        "default": resource_list(&item.default),
        "defaultRequest": resource_list(&item.default_request),
        "maxLimitRequestRatio": resource_list(&item.max_limit_request_ratio),
    })
}

/// Kind `limit_range_validation`.
pub(super) fn limit_range_validation(case: &Case<'_>) -> Answer {
    let limits = summary(&case.input["summary"])?;
    let pod = pod_spec(&case.input["podSpec"])?;
    let errors = pods::pod_limit_range_errors(&pod, text(case.input, "path")?, &limits, case.config.changes);
    Ok(show_errors(&errors))
}

/// Reads a summary as if it were the namespace's only LimitRange.
fn summary(value: &Value) -> Result<LimitRangeSummary, String> {
    let limits: Vec<Value> = entries(value)
        .map(|(kind, item)| {
            let mut item = item.as_object().cloned().unwrap_or_default();
            item.insert("type".to_owned(), json!(kind));
            Value::Object(item)
        })
        .collect();
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits}});
    match decode_value(&range).map_err(|e| e.to_string())? {
        Object::LimitRange(range) => Ok(pods::summarize(&[&range])),
        _ => Err("not a LimitRange".to_owned()),
    }
}

/// Reads a pod spec as part of a workload.
fn pod_spec(value: &Value) -> Result<PodSpec, String> {
    let around = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "spec": {"podSets": [{"template": {"spec": value}}]},
    });
    let pod_set = workload(&around)?.pod_sets.first().cloned().ok_or("no pod set")?;
    Ok(pod_set.template.spec)
}

/// Kind `validate_limit_range`.
pub(super) fn validate_limit_range(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let limits = case.state().objects.limit_summary(workload.meta.key.namespace());
    Ok(show_errors(&pods::limit_range_errors(&workload.pod_sets, &limits, case.config.changes)))
}

/// Kind `validate_resources`.
pub(super) fn validate_resources(case: &Case<'_>) -> Answer {
    Ok(show_errors(&pods::resource_errors(&case.workload("workload")?.pod_sets)))
}

fn show_errors(errors: &[FieldError]) -> Value {
    let mut shown = Vec::with_capacity(errors.len());
    for error in errors {
        shown.push(json!({
            "type": "FieldValueInvalid",
            "field": error.field,
            "badValue": error.resources,
            "detail": error.detail,
        }));
    }
    json!({"errors": shown})
}

/// Kind `total_requests`.
pub(super) fn total_requests(case: &Case<'_>) -> Answer {
    let kept = is_true(case.input, "preserveTotalRequests");
    let current = case.workload("workload")?;
    let (counted, devices) =
        if kept { (case.workload("initial")?, devices(&case.input["dra"])?) } else { (current.clone(), None) };
    let reclaimable = case.config.gates.enabled(Gate::ReclaimablePods);
    let totals = totals::totals(&counted.pod_sets, &counted.status, &case.config, reclaimable, devices.as_ref());
    let shown = totals.iter().map(|totals| {
        let mut shown = show_totals(totals);
        if let Some(request) = topology_request(&current, &totals.name, case.config.changes) {
            shown["topologyRequest"] = request;
        }
        shown
    });
    Ok(json!({
        "clusterQueue": current.status.admission.as_ref().map(|admission| admission.cluster_queue.as_str()),
        "totalRequests": shown.collect::<Vec<_>>(),
    }))
}

/// The placement of the pods of a pod set, and the requests of each.
fn topology_request(workload: &Workload, name: &str, changes: Changes) -> Option<Value> {
    let mut assignments = workload.status.admission.as_ref()?.pod_set_assignments.iter();
    let place = assignments.find(|each| each.name == name)?.topology_assignment.as_ref()?;
    let pod_set = workload.pod_sets.iter().find(|each| each.name == name)?;
    let requests: Map<String, Value> = kueuecore::state::sites::requests_of(pod_set, changes)
        .iter()
        .map(|(name, value)| (name.clone(), super::values::amount(name, Amount::new(*value))))
        .collect();
    let domains = place.domains.iter();
    let domains = domains.map(
        |each| json!({"values": super::topology::values_of(each), "count": each.count, "singlePodRequests": requests}),
    );
    Some(json!({"levels": place.levels, "domainRequests": domains.collect::<Vec<_>>()}))
}

fn devices(dra: &Value) -> Result<Option<DeviceRequests>, String> {
    if dra.is_null() {
        return Ok(None);
    }
    let mut devices = DeviceRequests::default();
    for (pod_set, given) in entries(&dra["preprocessedResources"]) {
        let list: Result<ResourceList, String> =
            entries(given).map(|(name, value)| Ok((name.clone(), quantity(value)?))).collect();
        devices.added.insert(pod_set.clone(), list?);
    }
    for (pod_set, names) in entries(&dra["replacedExtendedResources"]) {
        devices.replaced.insert(pod_set.clone(), texts(names).map(str::to_owned).collect());
    }
    Ok(Some(devices))
}

fn show_totals(totals: &PodSetTotals) -> Value {
    let requests: Map<String, Value> =
        totals.requests.iter().map(|(name, value)| (name.clone(), amount(name, Amount::new(*value)))).collect();
    json!({"name": totals.name, "count": totals.count, "requests": requests, "flavors": totals.flavors})
}

/// Kind `resource_value`.
pub(super) fn resource_value(case: &Case<'_>) -> Answer {
    let value = resource_names::resource_value(text(case.input, "resource")?, &quantity(&case.input["quantity"])?);
    Ok(json!({"value": value}))
}

/// Kind `resource_quantity`.
pub(super) fn resource_quantity(case: &Case<'_>) -> Answer {
    let (resource, value) = (text(case.input, "resource")?, integer(case.input, "value")?);
    let quantity = resource_names::quantity_from_value(resource, value, is_true(case.input, "binaryFormatted"));
    Ok(json!({"quantity": quantity.to_string()}))
}

/// Kind `amount_from_quantity`.
pub(super) fn amount_from_quantity(case: &Case<'_>) -> Answer {
    let given = quantity(&case.input["quantity"])?;
    let amount = resource_names::amount_from_quantity(text(case.input, "resource")?, &given);
    Ok(json!({"amount": if amount.is_unlimited() { json!("unlimited") } else { json!(amount.get()) }}))
}
