//! Objects as an engine holds them: the fields that scheduling reads, named as in v1beta2.
//!
//! Decoding gives the same object again.

use kueuecore::base::quantity::Quantity;
use kueuecore::objects::{
    AdmissionCheck, ClusterQueue, Cohort, FlavorFungibility, FlavorQuotas, LabelSelector, LocalQueue, Meta, Node,
    Preemption, PriorityClass, Requirement, ResourceFlavor, ResourceGroup, StringMap, Taint, Time, Toleration,
    Topology,
};
use serde_json::{Map, Value, json};

use super::{condition_status, put, put_json, put_list, put_resources, put_text, put_time};
use crate::kinds::Kind;
use crate::words::Word;

/// Builds an object from its parts.
pub(super) fn object(kind: Kind, metadata: Value, spec: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("apiVersion".to_owned(), Value::from(kind.preferred_version()));
    out.insert("kind".to_owned(), Value::from(kind.name()));
    out.insert("metadata".to_owned(), metadata);
    if !spec.is_empty() {
        out.insert("spec".to_owned(), Value::Object(spec));
    }
    out
}

/// `metadata`.
pub(super) fn metadata(meta: &Meta) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "name", &meta.name);
    put_text(&mut out, "namespace", &meta.namespace);
    put_text(&mut out, "uid", &meta.uid);
    put_time(&mut out, "creationTimestamp", meta.created);
    if meta.generation != 0 {
        out.insert("generation".to_owned(), Value::from(meta.generation));
    }
    put_map(&mut out, "labels", &meta.labels);
    put_map(&mut out, "annotations", &meta.annotations);
    put_list(&mut out, "ownerReferences", &meta.owners, |owner| {
        let mut entry = Map::new();
        put_text(&mut entry, "apiVersion", &owner.api_version);
        put_text(&mut entry, "kind", &owner.kind);
        put_text(&mut entry, "name", &owner.name);
        put_text(&mut entry, "uid", &owner.uid);
        put_true(&mut entry, "controller", owner.controller);
        Value::Object(entry)
    });
    if meta.deleting {
        // Only whether deletion has begun is kept, not when.
        let since = if meta.created == Time::ABSENT { Time(0) } else { meta.created };
        put_time(&mut out, "deletionTimestamp", since);
    }
    Value::Object(out)
}

/// A Namespace: its name and its labels.
#[must_use]
pub fn namespace(name: &str, labels: &StringMap) -> Value {
    let meta = Meta { name: name.to_owned(), labels: labels.clone(), ..Meta::default() };
    object(Kind::Namespace, metadata(&meta), Map::new()).into()
}

/// A ResourceFlavor.
#[must_use]
pub fn resource_flavor(flavor: &ResourceFlavor) -> Value {
    let mut spec = Map::new();
    put_map(&mut spec, "nodeLabels", &flavor.node_labels);
    put_list(&mut spec, "nodeTaints", &flavor.node_taints, taint);
    put_list(&mut spec, "tolerations", &flavor.tolerations, toleration);
    put_text(&mut spec, "topologyName", &flavor.topology_name);
    object(Kind::ResourceFlavor, metadata(&flavor.meta), spec).into()
}

/// A Topology.
#[must_use]
pub fn topology(topology: &Topology) -> Value {
    let mut spec = Map::new();
    put_list(&mut spec, "levels", &topology.levels, |label| json!({"nodeLabel": label}));
    object(Kind::Topology, metadata(&topology.meta), spec).into()
}

/// An AdmissionCheck, with the condition Active if it is True.
#[must_use]
pub fn admission_check(check: &AdmissionCheck) -> Value {
    let mut spec = Map::new();
    put_text(&mut spec, "controllerName", &check.controller_name);
    let mut out = object(Kind::AdmissionCheck, metadata(&check.meta), spec);
    if check.active {
        let active = json!({"type": "Active", "status": "True", "reason": "Active", "message": ""});
        out.insert("status".to_owned(), json!({"conditions": [active]}));
    }
    out.into()
}

/// A WorkloadPriorityClass.
#[must_use]
pub fn workload_priority_class(class: &PriorityClass) -> Value {
    let mut out = object(Kind::WorkloadPriorityClass, metadata(&class.meta), Map::new());
    out.insert("value".to_owned(), Value::from(class.value));
    out.into()
}

/// A Cohort.
#[must_use]
pub fn cohort(cohort: &Cohort) -> Value {
    let mut spec = Map::new();
    put_text(&mut spec, "parentName", &cohort.parent_name);
    put_list(&mut spec, "resourceGroups", &cohort.resource_groups, resource_group);
    put_weight(&mut spec, cohort.fair_weight.as_ref());
    object(Kind::Cohort, metadata(&cohort.meta), spec).into()
}

/// A ClusterQueue.
#[must_use]
pub fn cluster_queue(queue: &ClusterQueue) -> Value {
    // With all fields, so that none is forgotten here.
    let ClusterQueue {
        meta,
        cohort_name,
        resource_groups,
        queueing_strategy,
        namespace_selector,
        flavor_fungibility,
        preemption,
        admission_checks,
        stop_policy,
        fair_weight,
        usage_based_admission,
        concurrent_admission_policy,
        last_acceptable_flavor: _, // part of the policy
    } = queue;
    let mut spec = Map::new();
    put_text(&mut spec, "cohortName", cohort_name);
    put_list(&mut spec, "resourceGroups", resource_groups, resource_group);
    put_text(&mut spec, "queueingStrategy", queueing_strategy.word());
    put(&mut spec, "namespaceSelector", namespace_selector.as_ref().map(selector));
    spec.insert("flavorFungibility".to_owned(), fungibility(flavor_fungibility));
    put(&mut spec, "preemption", preemption.as_ref().map(preemption_policies));
    if !admission_checks.is_empty() {
        let mut strategy = Map::new();
        put_list(&mut strategy, "admissionChecks", admission_checks, |rule| {
            let mut entry = Map::new();
            put_text(&mut entry, "name", &rule.name);
            put_list(&mut entry, "onFlavors", &rule.on_flavors, |name| Value::from(name.as_str()));
            Value::Object(entry)
        });
        spec.insert("admissionChecksStrategy".to_owned(), Value::Object(strategy));
    }
    put_text(&mut spec, "stopPolicy", stop_policy.word());
    put_weight(&mut spec, fair_weight.as_ref());
    if *usage_based_admission {
        spec.insert("admissionScope".to_owned(), json!({"admissionMode": "UsageBasedAdmissionFairSharing"}));
    }
    put_json(&mut spec, "concurrentAdmissionPolicy", concurrent_admission_policy);
    object(Kind::ClusterQueue, metadata(meta), spec).into()
}

fn fungibility(of: &FlavorFungibility) -> Value {
    let FlavorFungibility { when_can_borrow, when_can_preempt, preference } = of;
    let mut out = Map::new();
    put_text(&mut out, "whenCanBorrow", when_can_borrow.word());
    put_text(&mut out, "whenCanPreempt", when_can_preempt.word());
    if let Some(preference) = preference {
        put_text(&mut out, "preference", preference.word());
    }
    out.into()
}

/// A LocalQueue, with the initial values of its account.
#[must_use]
pub fn local_queue(queue: &LocalQueue) -> Value {
    let mut spec = Map::new();
    put_text(&mut spec, "clusterQueue", &queue.cluster_queue);
    put_text(&mut spec, "stopPolicy", queue.stop_policy.word());
    put_weight(&mut spec, queue.fair_weight.as_ref());
    let mut out = object(Kind::LocalQueue, metadata(&queue.meta), spec);
    if let Some(consumed) = &queue.consumed_resources {
        let account = json!({"consumedResources": super::resource_list(consumed)});
        out.insert("status".to_owned(), json!({"fairSharing": {"admissionFairSharingStatus": account}}));
    }
    out.into()
}

/// A Node: the statuses of its conditions, and since when it is ready.
#[must_use]
pub fn node(node: &Node) -> Value {
    let mut spec = Map::new();
    put_true(&mut spec, "unschedulable", node.unschedulable);
    put_list(&mut spec, "taints", &node.taints, taint);
    let conditions = node.condition_statuses.iter().map(|(kind, status)| {
        let mut entry = Map::new();
        put_text(&mut entry, "type", kind);
        put_text(&mut entry, "status", condition_status(*status));
        if let Some(ready) = node.ready.filter(|_| kind == "Ready") {
            put_time(&mut entry, "lastTransitionTime", ready.since);
        }
        Value::Object(entry)
    });
    let conditions: Vec<Value> = conditions.collect();
    let mut status = Map::new();
    put_resources(&mut status, "allocatable", &node.allocatable);
    put_list(&mut status, "conditions", &conditions, Value::clone);
    let mut out = object(Kind::Node, metadata(&node.meta), spec);
    if !status.is_empty() {
        out.insert("status".to_owned(), Value::Object(status));
    }
    out.into()
}

/// A toleration.
pub(super) fn toleration(toleration: &Toleration) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "key", &toleration.key);
    put_text(&mut out, "operator", &toleration.operator);
    put_text(&mut out, "value", &toleration.value);
    put_text(&mut out, "effect", &toleration.effect);
    put(&mut out, "tolerationSeconds", toleration.toleration_seconds);
    out.into()
}

/// Labels and the like, if there are any.
pub(super) fn put_map(out: &mut Map<String, Value>, name: &str, map: &StringMap) {
    if !map.is_empty() {
        out.insert(name.to_owned(), json!(map));
    }
}

fn put_true(out: &mut Map<String, Value>, name: &str, value: bool) {
    if value {
        out.insert(name.to_owned(), Value::from(true));
    }
}

fn put_weight(out: &mut Map<String, Value>, weight: Option<&Quantity>) {
    if let Some(weight) = weight {
        out.insert("fairSharing".to_owned(), json!({"weight": weight.to_string()}));
    }
}

fn taint(taint: &Taint) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "key", &taint.key);
    put_text(&mut out, "value", &taint.value);
    put_text(&mut out, "effect", &taint.effect);
    out.into()
}

fn selector(selector: &LabelSelector) -> Value {
    let mut out = Map::new();
    put_map(&mut out, "matchLabels", &selector.match_labels);
    put_list(&mut out, "matchExpressions", &selector.match_expressions, requirement);
    out.into()
}

fn requirement(requirement: &Requirement) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "key", &requirement.key);
    put_text(&mut out, "operator", &requirement.operator);
    put_list(&mut out, "values", &requirement.values, |value| Value::from(value.as_str()));
    out.into()
}

fn resource_group(group: &ResourceGroup) -> Value {
    json!({
        "coveredResources": group.covered_resources,
        "flavors": group.flavors.iter().map(flavor_quotas).collect::<Vec<_>>(),
    })
}

fn flavor_quotas(flavor: &FlavorQuotas) -> Value {
    let resources = flavor.resources.iter().map(|quota| {
        let mut entry = Map::new();
        put_text(&mut entry, "name", &quota.name);
        put_text(&mut entry, "nominalQuota", &quota.nominal_quota.to_string());
        put(&mut entry, "borrowingLimit", quota.borrowing_limit.as_ref().map(ToString::to_string));
        put(&mut entry, "lendingLimit", quota.lending_limit.as_ref().map(ToString::to_string));
        Value::Object(entry)
    });
    json!({"name": flavor.name, "resources": resources.collect::<Vec<_>>()})
}

fn preemption_policies(of: &Preemption) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "reclaimWithinCohort", of.reclaim_within_cohort.word());
    put_text(&mut out, "withinClusterQueue", of.within_cluster_queue.word());
    if let Some(of) = &of.borrow_within_cohort {
        let mut borrow = Map::new();
        put_text(&mut borrow, "policy", of.policy.word());
        put(&mut borrow, "maxPriorityThreshold", of.max_priority_threshold);
        out.insert("borrowWithinCohort".to_owned(), Value::Object(borrow));
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode_value;
    use kueuecore::objects::Object;

    fn again(value: &Value) -> Value {
        match decode_value(value).expect("it is well formed") {
            Object::Namespace(meta) => namespace(&meta.name, &meta.labels),
            Object::ResourceFlavor(it) => resource_flavor(&it),
            Object::Topology(it) => topology(&it),
            Object::Cohort(it) => cohort(&it),
            Object::ClusterQueue(it) => cluster_queue(&it),
            Object::LocalQueue(it) => local_queue(&it),
            Object::AdmissionCheck(it) => admission_check(&it),
            Object::WorkloadPriorityClass(it) => workload_priority_class(&it),
            Object::Node(it) => node(&it),
            other => panic!("{other:?}"),
        }
    }

    fn full(kind: &str, rest: Value) -> Value {
        let group = if matches!(kind, "Namespace" | "Node") { "v1" } else { "kueue.x-k8s.io/v1beta2" };
        let mut out = json!({"apiVersion": group, "kind": kind, "metadata": {
            "name": "x", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 3,
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "v", "controller": true}],
        }});
        out.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        out
    }

    #[test]
    fn objects_survive_a_round_trip() {
        let groups = json!([{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [
            {"name": "cpu", "nominalQuota": "1500m", "borrowingLimit": "1", "lendingLimit": "2"}]}]}]);
        let taints = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
        let all = [
            full(
                "Cohort",
                json!({"spec": {
                "parentName": "p", "resourceGroups": groups, "fairSharing": {"weight": "500m"}}}),
            ),
            full(
                "ClusterQueue",
                json!({"spec": {
                "cohortName": "p", "resourceGroups": groups, "fairSharing": {"weight": "2"},
                "queueingStrategy": "StrictFIFO", "stopPolicy": "Hold",
                "namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [
                    {"key": "k", "operator": "In", "values": ["v"]}]},
                "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch",
                                      "preference": "PreemptionOverBorrowing"},
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerOrNewerEqualPriority",
                               "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 3}},
                "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["f"]}]},
                "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
                "concurrentAdmissionPolicy": {"migration": {"mode": "x"}}}}),
            ),
            full(
                "LocalQueue",
                json!({
                "spec": {"clusterQueue": "q", "stopPolicy": "HoldAndDrain", "fairSharing": {"weight": "1"}},
                "status": {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"cpu": "5"}}}}}),
            ),
            full(
                "ResourceFlavor",
                json!({"spec": {
                "nodeLabels": {"l": "m"}, "nodeTaints": taints, "topologyName": "t",
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]}}),
            ),
            full("Topology", json!({"spec": {"levels": [{"nodeLabel": "rack"}]}})),
            full(
                "AdmissionCheck",
                json!({"spec": {"controllerName": "c"}, "status": {"conditions": [
                {"type": "Active", "status": "True", "reason": "Active", "message": ""}]}}),
            ),
            full("WorkloadPriorityClass", json!({"value": 7})),
            full(
                "Node",
                json!({"spec": {"unschedulable": true, "taints": taints}, "status": {
                "allocatable": {"cpu": "8"}, "conditions": [
                    {"type": "Disk", "status": "False"},
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            ),
        ];
        for object in &all {
            assert_eq!(&again(object), object);
        }
    }

    #[test]
    fn a_namespace_has_a_name_and_labels() {
        let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "labels": {"a": "b"}}});
        assert_eq!(again(&plain), plain);
    }
}
