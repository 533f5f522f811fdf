//! Flavors, topologies and the kinds that only have a schema.

use kueuecore::base::gates::Gates;
use serde_json::{Value, json};

use super::*;

#[test]
fn flavors_and_topologies_are_refused_with_the_reason() {
    let flavor = |spec| kueue("ResourceFlavor", spec);
    let topology = |labels: &[&str]| {
        let levels: Vec<Value> = labels.iter().map(|label| json!({"nodeLabel": label})).collect();
        kueue("Topology", json!({"levels": levels}))
    };
    let tolerations = |toleration: Value| flavor(json!({"tolerations": [toleration]}));
    let many: serde_json::Map<String, Value> = (0..9).map(|i| (format!("l{i}"), json!("v"))).collect();
    check(
        &[
            (
                flavor(json!({"topologyName": "t"})),
                "spec: Invalid value: \"object\": no such key: nodeLabels evaluating rule: at least one nodeLabel is required when topology is set",
            ),
            (
                flavor(json!({"topologyName": "t", "nodeLabels": {}})),
                "spec: Invalid value: at least one nodeLabel is required when topology is set",
            ),
            (flavor(json!({"topologyName": "t", "nodeLabels": {"a": "b"}})), "accepted"),
            (
                flavor(
                    json!({"nodeTaints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "v", "effect": "NoSchedule"}]}),
                ),
                "spec.nodeTaints[1]: Duplicate value: {\"key\":\"a\",\"value\":\"v\",\"effect\":\"NoSchedule\"}: taints must be unique by key and effect pair",
            ),
            (
                flavor(json!({"nodeTaints": [{"key": "a", "effect": "No"}]})),
                "spec.nodeTaints: Invalid value: supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
            ),
            (
                tolerations(json!({"operator": "Equal"})),
                "spec.tolerations: Invalid value: operator must be Exists when 'key' is empty, which means 'match all values and all keys'",
            ),
            (
                tolerations(json!({"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"})),
                "spec.tolerations: Invalid value: effect must be 'NoExecute' when 'tolerationSeconds' is set",
            ),
            (
                tolerations(json!({"key": "a", "operator": "Gt"})),
                "spec.tolerations: Invalid value: supported toleration values: 'Equal'(default), 'Exists'",
            ),
            (
                tolerations(json!({"key": "a", "operator": "Exists", "value": "v"})),
                "spec.tolerations: Invalid value: a value must be empty when 'operator' is 'Exists'",
            ),
            (
                tolerations(json!({"key": "a", "effect": "No"})),
                "spec.tolerations: Invalid value: supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
            ),
            (
                flavor(json!({"nodeLabels": many})),
                "spec.nodeLabels: Too many: 9: must have at most 8 items\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ),
            (topology(&["a", "kubernetes.io/hostname"]), "accepted"),
            (topology(&["a", "a"]), "spec.levels: Invalid value: must be unique"),
            (
                topology(&["kubernetes.io/hostname", "a"]),
                "spec.levels: Invalid value: the kubernetes.io/hostname label can only be used at the lowest level of topology",
            ),
            (topology(&[]), "spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items"),
        ],
        &Gates::default(),
    );
}

#[test]
fn nodes_and_pods_are_refused_with_the_reason() {
    let node = |body: Value| {
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        node.as_object_mut().expect("an object").extend(body.as_object().cloned().unwrap_or_default());
        node
    };
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"});
    check(
        &[
            (node(json!({})), "accepted"),
            (
                node(json!({"status": {"allocatable": {"cpu": 0.5}, "conditions": [ready], "nodeInfo": {"a": 1}}})),
                "accepted",
            ),
            (
                node(json!({"spec": {"unschedulable": "yes"}})),
                "spec.unschedulable: Invalid value: \"string\": spec.unschedulable in body must be of type boolean: \"string\"",
            ),
            (
                node(json!({"spec": {"taints": [{"key": "a", "effect": "Never"}]}})),
                "spec.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ),
            (node(json!({"spec": {"taints": [{"key": "a"}]}})), "spec.taints[0].effect: Required value"),
            (
                node(json!({"status": {"allocatable": {"cpu": "lots"}}})),
                "status.allocatable.cpu: Invalid value: \"lots\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": 0.5}}}]})), "accepted"),
            (pod(json!({"nodeName": 3})), "spec.nodeName: Invalid value: 3: must be a string"),
        ],
        &Gates::default(),
    );
}

#[test]
fn the_other_kinds_are_refused_with_the_reason() {
    let blocked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let object = |kind: &str, body: Value| {
        let mut object = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}});
        for (name, value) in body.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        object
    };
    check(
        &[
            (object("WorkloadPriorityClass", json!({"value": 3})), "accepted"),
            (object("WorkloadPriorityClass", json!({})), "value: Required value"),
            (
                object("WorkloadPriorityClass", json!({"value": 3_000_000_000_i64})),
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in value",
            ),
            (
                object("WorkloadPriorityClass", json!({"value": 1, "description": "d".repeat(2049)})),
                "description: Too long: may not be more than 2048 bytes",
            ),
            (
                object("AdmissionCheck", json!({"spec": {"controllerName": ""}})),
                "spec.controllerName: Invalid value: \"\": spec.controllerName in body should be at least 1 chars long",
            ),
            (
                object("MultiKueueConfig", json!({"spec": {"clusters": ["a", "a"]}})),
                "spec.clusters: Invalid value: must be unique",
            ),
            (
                object("MultiKueueCluster", json!({"spec": {"clusterSource": {}}})),
                "spec.clusterSource: Invalid value: exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
            ),
            (
                object("MultiKueueCluster", json!({"spec": {}})),
                &format!("spec.clusterSource: Required value\n{blocked}"),
            ),
            (
                object(
                    "ProvisioningRequestConfig",
                    json!({"spec": {"provisioningClassName": "c", "managedResources": ["a", "a"]}}),
                ),
                "spec.managedResources[1]: Duplicate value: \"a\"",
            ),
            (
                object("ClusterQueue", json!({"spec": "x"})),
                &format!("spec: Invalid value: \"string\": spec in body must be of type object: \"string\"\n{blocked}"),
            ),
        ],
        &Gates::default(),
    );
    let beta1 = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "MultiKueueConfig", "metadata": {"name": "x"}, "spec": {"clusters": ["a", "a"]}});
    check_releases(&beta1, &[("0.19", "spec.clusters[1]: Duplicate value: \"a\"")]);
}

#[test]
fn lists_in_statuses_have_limits() {
    let with_status = |kind: &str, spec: Value, status: Value| {
        let mut object = kueue(kind, spec);
        object["status"] = status;
        object
    };
    let many = |n: usize| -> Vec<Value> { (0..n).map(|i| json!({"name": format!("f{i}"), "resources": []})).collect() };
    let resources: Vec<Value> = (0..65).map(|i| json!({"name": format!("r{i}"), "total": "1"})).collect();
    let conditions: Vec<Value> = (0..17).map(|i| json!({"type": format!("C{i}"), "status": "True"})).collect();
    let unchecked = "\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let cluster = json!({"clusterSource": {"kubeConfig": {"location": "secret"}}});
    check(
        &[
            (with_status("LocalQueue", json!({"clusterQueue": "q"}), json!({"flavorsUsage": many(64)})), "accepted"),
            (
                with_status("LocalQueue", json!({"clusterQueue": "q"}), json!({"flavorsUsage": many(65)})),
                &format!("status.flavorsUsage: Too many: 65: must have at most 64 items{}", unchecked),
            ),
            (
                with_status(
                    "ClusterQueue",
                    json!({}),
                    json!({"flavorsReservation": [{"name": "f", "resources": resources}]}),
                ),
                &format!(
                    "status.flavorsReservation[0].resources: Too many: 65: must have at most 64 items{}",
                    unchecked
                ),
            ),
            (
                with_status("MultiKueueCluster", cluster, json!({"conditions": conditions})),
                &format!("status.conditions: Too many: 17: must have at most 16 items{}", unchecked),
            ),
            (
                with_status("AdmissionCheck", json!({"controllerName": "c"}), json!({"conditions": conditions})),
                &format!("status.conditions: Too many: 17: must have at most 16 items{}", unchecked),
            ),
        ],
        &Gates::default(),
    );
}
