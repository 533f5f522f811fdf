//! Objects as an engine holds them: the fields that scheduling reads, named as in v1beta2.
//!
//! Decoding gives the same object again.

use kueuecore::base::gates::Gates;
use kueuecore::objects::{
    AdmissionCheck, ClusterQueue, Cohort, ConditionStatus, LocalQueue, Meta, MetaDetails, Node, PriorityClass,
    ResourceFlavor, ResourceList, StringMap, Time, Topology, Workload, WorkloadMeta,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{resource_list, workload_status};
use crate::kinds::Kind;
use crate::time::format_time;
use crate::written::written;

/// Builds an object from its parts; an empty spec or status is left out.
fn object<const N: usize>(kind: Kind, meta: &Meta, parts: [(&str, Value); N]) -> Value {
    let mut out = Map::new();
    out.insert("apiVersion".to_owned(), Value::from(kind.preferred_version()));
    out.insert("kind".to_owned(), Value::from(kind.name()));
    out.insert("metadata".to_owned(), metadata(meta));
    let is_empty = |part: &Value| part.is_null() || part.as_object().is_some_and(Map::is_empty);
    let parts = parts.into_iter().filter(|(_, part)| !is_empty(part));
    out.extend(parts.map(|(name, part)| (name.to_owned(), part)));
    out.into()
}

/// An object whose fields are those of its spec.
fn with_spec(kind: Kind, meta: &Meta, spec: &impl Serialize) -> Value {
    object(kind, meta, [("spec", written(spec))])
}

/// `metadata`.
fn metadata(meta: &Meta) -> Value {
    let mut out = written(meta);
    if meta.deleting {
        // Only whether deletion has begun is kept, not when.
        let since = if meta.created == Time::ABSENT { Time(0) } else { meta.created };
        out["deletionTimestamp"] = Value::from(format_time(since));
    }
    out
}

/// A Namespace: its name and its labels.
#[must_use]
pub fn namespace(name: &str, labels: &StringMap) -> Value {
    let meta = Meta { name: name.to_owned(), labels: labels.clone(), ..Meta::default() };
    object(Kind::Namespace, &meta, [])
}

/// A ResourceFlavor.
#[must_use]
pub fn resource_flavor(flavor: &ResourceFlavor) -> Value {
    with_spec(Kind::ResourceFlavor, &flavor.meta, flavor)
}

/// A Topology.
#[must_use]
pub fn topology(topology: &Topology) -> Value {
    with_spec(Kind::Topology, &topology.meta, topology)
}

/// An AdmissionCheck, with the condition Active if it is True.
#[must_use]
pub fn admission_check(check: &AdmissionCheck) -> Value {
    let active = json!({"type": "Active", "status": "True", "reason": "Active", "message": ""});
    let status = if check.active { json!({"conditions": [active]}) } else { Value::Null };
    object(Kind::AdmissionCheck, &check.meta, [("spec", written(check)), ("status", status)])
}

/// A WorkloadPriorityClass.
#[must_use]
pub fn workload_priority_class(class: &PriorityClass) -> Value {
    object(Kind::WorkloadPriorityClass, &class.meta, [("value", Value::from(class.value))])
}

/// A Cohort.
#[must_use]
pub fn cohort(cohort: &Cohort) -> Value {
    with_spec(Kind::Cohort, &cohort.meta, cohort)
}

/// A ClusterQueue.
#[must_use]
pub fn cluster_queue(queue: &ClusterQueue) -> Value {
    with_spec(Kind::ClusterQueue, &queue.meta, queue)
}

/// A LocalQueue, with the initial values of its account.
#[must_use]
pub fn local_queue(queue: &LocalQueue) -> Value {
    let account = |consumed| json!({"fairSharing": {"admissionFairSharingStatus": {"consumedResources": consumed}}});
    let status = queue.consumed_resources.as_ref().map(|consumed| account(resource_list(consumed)));
    object(Kind::LocalQueue, &queue.meta, [("spec", written(queue)), ("status", status.unwrap_or_default())])
}

#[derive(Serialize)]
struct NodeStatus<'a> {
    allocatable: &'a ResourceList,
    conditions: Vec<NodeCondition<'a>>,
}

#[derive(Serialize)]
struct NodeCondition<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    status: ConditionStatus,
    #[serde(rename = "lastTransitionTime")]
    since: Time,
}

/// A Node: the statuses of its conditions, and since when it is ready.
#[must_use]
pub fn node(node: &Node) -> Value {
    let ready = |kind: &str| node.ready.filter(|_| kind == "Ready");
    let conditions = node.condition_statuses.iter().map(|(kind, status)| NodeCondition {
        kind,
        status: *status,
        since: ready(kind).map_or(Time::ABSENT, |ready| ready.since),
    });
    let status = NodeStatus { allocatable: &node.allocatable, conditions: conditions.collect() };
    object(Kind::Node, &node.meta, [("spec", written(node)), ("status", written(&status))])
}

/// A Workload with its status.
#[must_use]
pub fn workload(workload: &Workload, gates: &Gates) -> Value {
    let WorkloadMeta { key, created, generation, details } = &workload.meta;
    let MetaDetails { labels, annotations, owners, deleting } = (**details).clone();
    let meta = Meta {
        name: key.name().to_owned(),
        namespace: key.namespace().to_owned(),
        uid: key.uid().to_owned(),
        created: *created,
        generation: *generation,
        labels,
        annotations,
        owners,
        deleting,
    };
    let status = workload_status(&workload.status, gates);
    object(Kind::Workload, &meta, [("spec", written(workload)), ("status", status)])
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

    #[test]
    fn a_workload_survives_a_round_trip() {
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]});
        let request = json!({
            "required": "rack", "preferred": "block", "unconstrained": false, "podIndexLabel": "i",
            "subGroupIndexLabel": "j", "subGroupCount": 2, "podSetGroupName": "g",
            "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4,
            "podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 4}],
        });
        let full = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {
                "name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2,
                "labels": {"a": "b"}, "annotations": {"c": "d"},
            },
            "spec": {
                "queueName": "q", "priority": 5, "active": true, "maximumExecutionTimeSeconds": 60,
                "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
                "preemptionGates": [{"name": "g"}],
                "podSets": [{
                    "name": "main", "count": 3, "minCount": 1, "topologyRequest": request,
                    "template": {
                        "metadata": {"labels": {"e": "f"}, "annotations": {"g": "h"}},
                        "spec": {
                            "initContainers": [{"name": "i", "restartPolicy": "Always"}],
                            "containers": [{
                                "name": "c", "ports": [{"containerPort": 80}],
                                "resources": {"requests": {"cpu": "1500m"}, "limits": {"memory": "1Gi"}},
                            }],
                            "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "k", "operator": "Exists"}],
                            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
                            "topologySpreadConstraints": [{"maxSkew": 1}],
                            "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}],
                            "runtimeClassName": "r", "priorityClassName": "p", "priority": 9,
                            "overhead": {"cpu": "1"}, "resources": {"requests": {"cpu": "4"}},
                        },
                    },
                }],
            },
            "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "R", "message": "m"}]},
        });
        let Ok(Object::Workload(decoded)) = decode_value(&full) else { panic!("a Workload") };
        let encoded = workload(&decoded, &Gates::default());
        assert_eq!(encoded, full);
        assert_eq!(decode_value(&encoded), Ok(Object::Workload(decoded)));
    }
}
