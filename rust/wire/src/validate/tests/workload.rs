//! New Workloads.

use kueuecore::base::gates::{Gate, Gates};
use kueuecore::objects::Object;
use serde_json::{Value, json};

use super::*;

#[test]
fn workloads_are_refused_with_the_reason() {
    let none = Value::Null;
    let spec = |spec: Value| workload(&spec, &Value::Null, &Value::Null);
    let pod_set = |pod_set: Value| workload(&Value::Null, &pod_set, &Value::Null);
    let status = |status: Value| workload(&Value::Null, &Value::Null, &status);
    let requests = |resources: Value| {
        pod_set(json!({"template": {"spec": {"containers": [{"name": "c", "resources": resources}]}}}))
    };
    let pods = |name: &str| json!({"name": name, "minCount": 1, "template": {"spec": {"containers": []}}});
    let path = "spec.podSets[0].template.spec.containers[0].resources";
    let class = |group: &str, kind: &str| {
        spec(json!({"priority": 1, "priorityClassRef": {"group": group, "kind": kind, "name": "n"}}))
    };
    let mut elastic = pod_set(json!({"minCount": 1}));
    elastic["metadata"]["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true"});
    let mut gated = workload(&none, &none, &none);
    gated["metadata"]["annotations"] = json!({"kueue.x-k8s.io/admission-gated-by": "a.b/c,,a.b/c,x"});
    let gated_path = "metadata.annotations[kueue.x-k8s.io/admission-gated-by]: Invalid value:";
    check(
        &[
            (workload(&none, &none, &none), "accepted"),
            (
                spec(
                    json!({"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "n"}}),
                ),
                "spec: Invalid value: priority should not be nil when priorityClassRef is set",
            ),
            (
                class("scheduling.k8s.io", "WorkloadPriorityClass"),
                "spec.priorityClassRef: Invalid value: only the PriorityClass kind is allowed for the scheduling.k8s.io group",
            ),
            (
                class("kueue.x-k8s.io", "PriorityClass"),
                "spec.priorityClassRef: Invalid value: only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group",
            ),
            (
                spec(json!({"maximumExecutionTimeSeconds": 0})),
                "spec.maximumExecutionTimeSeconds: Invalid value: 0: spec.maximumExecutionTimeSeconds in body should be greater than or equal to 1",
            ),
            (
                spec(json!({"podSets": []})),
                "spec.podSets: Invalid value: 0: spec.podSets in body should have at least 1 items",
            ),
            (spec(json!({"podSets": [pods("a"), pods("a")]})), "spec.podSets[1]: Duplicate value: {\"name\":\"a\"}"),
            (
                spec(json!({"podSets": [pods("a"), pods("b")]})),
                "spec.podSets: Invalid value: 2: at most one podSet can use minCount",
            ),
            (
                pod_set(json!({"minCount": 4})),
                "spec.podSets[0]: Invalid value: minCount should be positive and less or equal to count",
            ),
            (
                pod_set(json!({"minCount": -1})),
                "spec.podSets[0].minCount: Invalid value: -1: spec.podSets[0].minCount in body should be greater than or equal to 0\nspec.podSets[0]: Invalid value: minCount should be positive and less or equal to count",
            ),
            (
                pod_set(json!({"count": -1})),
                "spec.podSets[0].count: Invalid value: -1: spec.podSets[0].count in body should be greater than or equal to 0",
            ),
            (elastic, "spec.podSets: Invalid value: 1: partial admission and elastic job cannot be used together"),
            (
                requests(json!({"requests": {"pods": 1}})),
                &format!("{path}.requests[pods]: Invalid value: \"pods\": the key is reserved for internal kueue use"),
            ),
            (
                requests(json!({"limits": {"cpu": "-1"}})),
                &format!("{path}.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
            ),
            (
                pod_set(json!({"template": {"spec": {"containers": [], "resources": {"requests": {"pods": 1}}}}})),
                "spec.podSets[0].template.spec.resources.requests[pods]: Invalid value: \"pods\": the key is reserved for internal kueue use",
            ),
            (
                pod_set(json!({"topologyRequest": {"podSetSliceRequiredTopology": "rack"}})),
                "spec.podSets[0].topologyRequest.podSetSliceSize: Required value: must be set when podSetSliceRequiredTopology is specified",
            ),
            (
                pod_set(json!({"topologyRequest": {"podSetSliceSize": 2}})),
                "spec.podSets[0].topologyRequest.podSetSliceSize: Forbidden: may not be set when podSetSliceRequiredTopology is not specified",
            ),
            (
                status(reserved(Value::Null)),
                "status.admission: Required value: must be set while the QuotaReserved condition is true",
            ),
            (status(admitted(json!({"name": "main", "count": 3, "resourceUsage": {"cpu": "6"}}))), "accepted"),
            (
                status(admitted(json!({"name": "other"}))),
                "status.admission.podSetAssignments[0].name: Not found: \"other\"",
            ),
            (
                status(admitted(json!({"name": "main", "count": 3, "resourceUsage": {"cpu": "1"}}))),
                "status.admission.podSetAssignments[0].resourceUsage[cpu]: Invalid value: \"1\": is not a multiple of 3",
            ),
            (
                status(reserved(json!({"admission": {"clusterQueue": "q", "podSetAssignments": []}}))),
                "<nil>: Invalid value: podSetAssignments must have the same number of podSets as the spec",
            ),
            (
                status(json!({"reclaimablePods": [{"name": "other", "count": 1}]})),
                "status.reclaimablePods[other].name: Unsupported value: \"other\": supported values: \"main\"",
            ),
            (
                status(json!({"reclaimablePods": [{"name": "main", "count": 4}]})),
                "status.reclaimablePods[main].count: Invalid value: 4: should be less or equal to 3",
            ),
            (
                status(json!({"clusterName": "a", "nominatedClusterNames": ["a"]})),
                "status: Invalid value: clusterName and nominatedClusterNames are mutually exclusive",
            ),
            (
                status(json!({"conditions": [condition("A"), condition("A")]})),
                "status.conditions[1]: Duplicate value: {\"type\":\"A\"}",
            ),
            (
                status(
                    json!({"admissionChecks": [{"name": "a", "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "podSetUpdates": [{"name": "other"}]}]}),
                ),
                "status.admissionChecks[0].podSetUpdates[0].name: Unsupported value: \"other\": supported values: \"main\"",
            ),
            (
                gated,
                &format!(
                    "{gated_path} \"a.b/c,,a.b/c,x\": cannot contain empty gate names\n{gated_path} \"a.b/c,,a.b/c,x\": duplicate gate name: a.b/c\n{gated_path} \"x\": must be a domain-prefixed path (such as \"acme.io/foo\")"
                ),
            ),
        ],
        &Gates::default(),
    );
}

#[test]
fn gates_decide_about_workloads() {
    let none = Value::Null;
    let boosted = |value: &str| {
        let mut object = workload(&none, &none, &none);
        object["metadata"]["annotations"] = json!({"kueue.x-k8s.io/priority-boost": value});
        object
    };
    let boost = Gates::default().with(Gate::PriorityBoost, true);
    let path = "metadata.annotations[kueue.x-k8s.io/priority-boost]";
    check(
        &[
            (boosted("-5"), "accepted"),
            (boosted("1x"), &format!("{path}: Invalid value: \"1x\": must be a valid signed integer")),
            (
                boosted(""),
                &format!(
                    "{path}: Invalid value: \"\": must be a valid signed integer; use \"0\" explicitly, empty string is not allowed"
                ),
            ),
        ],
        &boost,
    );
    assert_eq!(refused(&boosted("1x"), &Gates::default()), "accepted");

    let negative = workload(
        &none,
        &json!({"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]}}}),
        &none,
    );
    assert_eq!(
        refused(&negative, &Gates::default().with(Gate::WorkloadValidateResourcesAreNonNegative, false)),
        "accepted"
    );

    let variable = workload(&none, &json!({"minCount": 1}), &none);
    for (on, min_count) in [(true, Some(1)), (false, None)] {
        let gates = Gates::default().with(Gate::PartialAdmission, on);
        let decoded = people(&variable, &gates).expect("well formed");
        let (Object::Workload(workload), _) = &decoded.objects[0] else { panic!("a Workload") };
        assert_eq!(workload.pod_sets[0].min_count, min_count);
        assert_eq!(workload.meta.key.namespace(), "default");
    }
}

#[test]
fn older_releases_have_bounds_of_their_own() {
    let with_pod_sets = |n: usize| {
        let template = json!({"spec": {"containers": [{"name": "c"}]}});
        let pod_set = |i: usize| json!({"name": format!("p{i}"), "count": 1, "template": template});
        kueue("Workload", json!({"podSets": (0..n).map(pod_set).collect::<Vec<_>>()}))
    };
    for (line, most) in [("0.16", 8), ("0.17", 8), ("0.18", 10), ("0.19", 18)] {
        assert!(people_of(&with_pod_sets(most), &of_release(line)).is_ok(), "{line}");
        let errors = people_of(&with_pod_sets(most + 1), &of_release(line)).expect_err("too many");
        let expected = format!("spec.podSets: Too many: {}: must have at most {most} items", most + 1);
        assert_eq!(errors.lines().next(), Some(&*expected), "{line}");
    }
    let pod_set = |pod_set: Value| workload(&Value::Null, &pod_set, &Value::Null);
    let request = |more: Value| pod_set(json!({"topologyRequest": more}));
    let path = "spec.podSets[0].topologyRequest";
    let too_small = |field: &str, value: i32, least: i32| {
        let detail = format!("{path}.{field} in body should be greater than or equal to {least}");
        format!("{path}.{field}: Invalid value: {value}: {detail}")
    };
    check_releases(
        &request(json!({"required": "rack", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 0})),
        &[("0.17", "accepted"), ("0.20.0-devel", &too_small("podSetSliceSize", 0, 1))],
    );
    check_releases(
        &request(json!({"subGroupCount": -1})),
        &[("0.19", "accepted"), ("0.20.0-devel", &too_small("subGroupCount", -1, 0))],
    );
    let resources = json!({"limits": {"pods": 1}});
    let refusal = "spec.podSets[0].template.spec.containers[0].resources.limits[pods]: Invalid value: \"pods\": the key is \
                   reserved for internal kueue use";
    check_releases(
        &pod_set(json!({"template": {"spec": {"containers": [{"name": "c", "resources": resources}]}}})),
        &[("0.18.4", "accepted"), ("0.18.5", refusal)],
    );
}

#[test]
fn older_releases_drop_the_fields_of_newer_ones() {
    let gated = workload(&json!({"preemptionGates": [{"name": "g"}]}), &Value::Null, &Value::Null);
    let warnings = |line: &str| -> Vec<String> {
        let decoded = people_of(&gated, &of_release(line)).expect("it is valid");
        decoded.warnings.into_iter().map(|it| it.field).collect()
    };
    assert_eq!(warnings("0.16"), ["spec.preemptionGates"]);
    assert_eq!(warnings("0.17"), [""; 0]);
}
