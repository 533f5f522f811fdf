//! Workloads as an engine holds them: the fields that scheduling reads, named as in v1beta2.
//!
//! Decoding gives the same Workload again.

use kueuecore::base::gates::Gates;
use kueuecore::objects::{
    Container, Meta, PodSet, PodSpec, PodTemplate, Resources, TopologyRequest, Workload, WorkloadMeta,
};
use serde_json::{Map, Value, json};

use super::objects::{metadata, object, put_map, toleration};
use super::{put, put_json, put_list, put_resources, put_text, resource_list, workload_status};
use crate::kinds::Kind;

/// A Workload with its status.
#[must_use]
pub fn workload(workload: &Workload, gates: &Gates) -> Value {
    let mut spec = Map::new();
    put_list(&mut spec, "podSets", &workload.pod_sets, pod_set);
    put_text(&mut spec, "queueName", &workload.queue_name);
    if let Some(class) = &workload.priority_class {
        let mut of = Map::new();
        put_text(&mut of, "group", &class.group);
        put_text(&mut of, "kind", &class.kind);
        put_text(&mut of, "name", &class.name);
        spec.insert("priorityClassRef".to_owned(), Value::Object(of));
    }
    put(&mut spec, "priority", workload.priority);
    put(&mut spec, "active", workload.active);
    put(&mut spec, "maximumExecutionTimeSeconds", workload.maximum_execution_time_seconds);
    put_list(&mut spec, "preemptionGates", &workload.preemption_gates, |name| json!({"name": name}));
    let mut out = object(Kind::Workload, metadata(&meta(&workload.meta)), spec);
    let status = workload_status(&workload.status, gates);
    if status.as_object().is_some_and(|status| !status.is_empty()) {
        out.insert("status".to_owned(), status);
    }
    out.into()
}

fn meta(meta: &WorkloadMeta) -> Meta {
    Meta {
        name: meta.key.name().to_owned(),
        namespace: meta.key.namespace().to_owned(),
        uid: meta.key.uid().to_owned(),
        created: meta.created,
        generation: meta.generation,
        labels: meta.details.labels.clone(),
        annotations: meta.details.annotations.clone(),
        owners: meta.details.owners.clone(),
        deleting: meta.details.deleting,
    }
}

fn pod_set(pod_set: &PodSet) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "name", &pod_set.name);
    put(&mut out, "count", Some(pod_set.count));
    put(&mut out, "minCount", pod_set.min_count);
    out.insert("template".to_owned(), template(&pod_set.template));
    put(&mut out, "topologyRequest", pod_set.topology_request.as_deref().map(topology_request));
    out.into()
}

fn template(template: &PodTemplate) -> Value {
    let mut metadata = Map::new();
    put_map(&mut metadata, "labels", &template.labels);
    put_map(&mut metadata, "annotations", &template.annotations);
    let mut out = Map::new();
    if !metadata.is_empty() {
        out.insert("metadata".to_owned(), Value::Object(metadata));
    }
    out.insert("spec".to_owned(), Value::Object(pod_spec(&template.spec)));
    out.into()
}

fn pod_spec(spec: &PodSpec) -> Map<String, Value> {
    // Fields that matter only for equality are kept as JSON, including affinities and claims.
    let mut out = match serde_json::from_str(&spec.opaque) {
        Ok(Value::Object(opaque)) => opaque,
        _ => Map::new(),
    };
    put_list(&mut out, "initContainers", &spec.init_containers, container);
    put_list(&mut out, "containers", &spec.containers, container);
    put_map(&mut out, "nodeSelector", &spec.node_selector);
    put_list(&mut out, "tolerations", &spec.tolerations, toleration);
    put(&mut out, "runtimeClassName", spec.runtime_class_name.clone());
    put_text(&mut out, "priorityClassName", &spec.priority_class_name);
    put(&mut out, "priority", spec.priority);
    put(&mut out, "overhead", spec.overhead.as_ref().map(resource_list));
    put(&mut out, "resources", spec.resources.as_ref().map(resources));
    out
}

fn container(container: &Container) -> Value {
    let mut out = Map::new();
    put_text(&mut out, "name", &container.name);
    if container.resources != Resources::default() {
        out.insert("resources".to_owned(), resources(&container.resources));
    }
    if container.sidecar {
        put_text(&mut out, "restartPolicy", "Always");
    }
    put_json(&mut out, "ports", &container.ports);
    out.into()
}

fn resources(of: &Resources) -> Value {
    let mut out = Map::new();
    put_resources(&mut out, "requests", &of.requests);
    put_resources(&mut out, "limits", &of.limits);
    out.into()
}

fn topology_request(of: &TopologyRequest) -> Value {
    let mut out = Map::new();
    put(&mut out, "required", of.required.clone());
    put(&mut out, "preferred", of.preferred.clone());
    put(&mut out, "unconstrained", of.unconstrained);
    put(&mut out, "podIndexLabel", of.pod_index_label.clone());
    put(&mut out, "subGroupIndexLabel", of.sub_group_index_label.clone());
    put(&mut out, "subGroupCount", of.sub_group_count);
    put(&mut out, "podSetGroupName", of.pod_set_group_name.clone());
    put(&mut out, "podSetSliceRequiredTopology", of.slice_required_topology.clone());
    put(&mut out, "podSetSliceSize", of.slice_size);
    put_list(
        &mut out,
        "podsetSliceRequiredTopologyConstraints",
        &of.constraints,
        |layer| json!({"topology": layer.topology, "size": layer.size}),
    );
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode_value;
    use kueuecore::objects::Object;

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
