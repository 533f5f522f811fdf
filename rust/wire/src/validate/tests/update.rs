//! Updates of every kind.

use kueuecore::base::gates::{Gate, Gates};
use serde_json::{Value, json};

use super::*;

/// The errors of an update between two manifests.
fn updated(old: &Value, new: &Value, gates: &Gates) -> String {
    updated_by(old, new, &Config { gates: *gates, ..Config::default() })
}

fn updated_by(old: &Value, new: &Value, config: &Config) -> String {
    let object = |value| decode_value(value).unwrap_or_else(|rejection| panic!("{rejection}"));
    let errors = update(&object(old), &object(new), config);
    if errors.is_empty() {
        return "accepted".to_owned();
    }
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn another_uid_is_another_object() {
    let with_uid = |uid: &str, cluster_queue: &str| {
        let mut queue = kueue("LocalQueue", json!({"clusterQueue": cluster_queue}));
        queue["metadata"]["uid"] = Value::from(uid);
        queue
    };
    let refusal = "metadata.uid: Invalid value: \"v\": this is a different object: the existing one has UID \"u\"; delete it \
                   first";
    let (gates, old) = (Gates::default(), with_uid("u", "a"));
    assert_eq!(updated(&old, &with_uid("v", "b"), &gates), refusal);
    assert_eq!(updated(&old, &with_uid("", "a"), &gates), "accepted");
    assert_eq!(updated(&with_uid("", "a"), &old, &gates), "accepted");
}

#[test]
fn immutable_fields_stay() {
    let flavor = |spec| kueue("ResourceFlavor", spec);
    let topology = |labels: &[&str]| {
        let levels: Vec<Value> = labels.iter().map(|label| json!({"nodeLabel": label})).collect();
        kueue("Topology", json!({"levels": levels}))
    };
    let hostname = "kubernetes.io/hostname";
    let table = [
        (
            kueue("LocalQueue", json!({"clusterQueue": "a"})),
            kueue("LocalQueue", json!({"clusterQueue": "b"})),
            "spec.clusterQueue: Invalid value: \"b\": field is immutable",
        ),
        (
            kueue("AdmissionCheck", json!({"controllerName": "a"})),
            kueue("AdmissionCheck", json!({"controllerName": "b"})),
            "spec.controllerName: Invalid value: \"b\": field is immutable",
        ),
        (
            flavor(json!({"topologyName": "a"})),
            flavor(json!({"topologyName": "b"})),
            "spec: Invalid value: topologyName is immutable when topologyName is set",
        ),
        (flavor(json!({})), flavor(json!({"topologyName": "b"})), "accepted"),
        (
            topology(&["a"]),
            topology(&["b"]),
            "spec.levels: Invalid value: levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change",
        ),
        (topology(&["a", hostname]), topology(&["b", hostname]), "accepted"),
        (
            kueue("ClusterQueue", json!({})),
            kueue("ClusterQueue", json!({"concurrentAdmissionPolicy": {"migration": {"mode": "X"}}})),
            "spec.concurrentAdmissionPolicy: Invalid value: {\"migration\":{\"mode\":\"X\"}}: field is immutable",
        ),
    ];
    for (old, new, expected) in table {
        assert_eq!(updated(&old, &new, &Gates::default()), expected, "{new}");
    }
}

#[test]
fn a_check_keeps_flavors_that_are_gone_while_nothing_changes() {
    let queue = |on: &[&str], flavors: &Value| {
        kueue(
            "ClusterQueue",
            json!({"resourceGroups": flavors, "admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": on}]}}),
        )
    };
    let flavors = quotas(&json!({}));
    let error = |j: usize| {
        format!(
            "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[{j}]: Unsupported value: \"g\": supported values: \"f\""
        )
    };
    let strict = Gates::default();
    let lenient = strict.with(Gate::RejectUpdatesToCQWithInvalidOnFlavors, false);
    assert_eq!(updated(&queue(&["g"], &flavors), &queue(&["g"], &flavors), &lenient), "accepted");
    assert_eq!(updated(&queue(&["g"], &flavors), &queue(&["g"], &flavors), &strict), error(0));
    assert_eq!(updated(&queue(&["g"], &flavors), &queue(&["f", "g"], &flavors), &lenient), error(1));
    assert_eq!(updated(&queue(&["g"], &json!([])), &queue(&["g"], &flavors), &lenient), error(0));
}

#[test]
fn a_workload_with_quota_keeps_what_it_was_admitted_with() {
    let none = Value::Null;
    let main = |count: i32| admitted(json!({"name": "main", "count": count}));
    let with = |spec: Value, pod_set: Value| workload(&spec, &pod_set, &main(3));
    let class = |group: &str, kind: &str, name: &str| {
        with(json!({"priority": 1, "priorityClassRef": {"group": group, "kind": kind, "name": name}}), Value::Null)
    };
    let plain = workload(&none, &none, &main(3));
    let ours = class("kueue.x-k8s.io", "WorkloadPriorityClass", "a");
    let theirs = class("scheduling.k8s.io", "PriorityClass", "a");
    let held = |more: Value| {
        let mut status = main(3);
        for (name, value) in more.as_object().into_iter().flatten() {
            status[name] = value.clone();
        }
        workload(&Value::Null, &Value::Null, &status)
    };
    let ready =
        |updates: Value| held(json!({"admissionChecks": [{"name": "a", "state": "Ready", "podSetUpdates": updates}]}));
    let running = |seconds: i32| {
        let mut object = workload(&json!({"maximumExecutionTimeSeconds": seconds}), &Value::Null, &main(3));
        object["status"]["conditions"] = json!([condition("QuotaReserved"), condition("Admitted")]);
        object
    };
    let gates = Gates::default().with(Gate::ElasticJobsViaWorkloadSlices, false);
    let table = [
        (
            plain.clone(),
            with(json!({"queueName": "b"}), none.clone()),
            "<nil>: Invalid value: queueName is immutable while workload quota reserved",
        ),
        (plain.clone(), workload(&json!({"queueName": "b"}), &none, &none), "accepted"),
        (
            plain.clone(),
            ours.clone(),
            "<nil>: Invalid value: priorityClassRef is immutable while workload quota reserved",
        ),
        (
            ours.clone(),
            theirs.clone(),
            "<nil>: Invalid value: priorityClassRef.group is immutable while workload quota reserved\n<nil>: Invalid value: priorityClassRef.kind is immutable while workload quota reserved",
        ),
        (ours, class("kueue.x-k8s.io", "WorkloadPriorityClass", "b"), "accepted"),
        (
            theirs,
            class("scheduling.k8s.io", "PriorityClass", "b"),
            "<nil>: Invalid value: priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
        ),
        (
            running(1),
            running(2),
            "<nil>: Invalid value: maximumExecutionTimeSeconds is immutable while workload quota reserved",
        ),
        (plain.clone(), with(none.clone(), json!({"count": 2})), "spec.podSets.0: Invalid value: field is immutable"),
        (
            plain.clone(),
            workload(&none, &none, &main(2)),
            "status.admission: Invalid value: {\"clusterQueue\":\"q\",\"podSetAssignments\":[{\"count\":2,\"name\":\"main\"}]}: field is immutable",
        ),
        (
            plain.clone(),
            workload(
                &none,
                &none,
                &admitted(json!({"name": "main", "count": 3, "topologyAssignment": {"levels": ["a"]}})),
            ),
            "accepted",
        ),
        (
            held(json!({"reclaimablePods": [{"name": "main", "count": 2}]})),
            held(json!({"reclaimablePods": [{"name": "main", "count": 1}]})),
            "status.reclaimablePods[main].count: Invalid value: 1: cannot be less than 2",
        ),
        (
            held(json!({"reclaimablePods": [{"name": "main", "count": 2}]})),
            plain.clone(),
            "status.reclaimablePods[main]: Required value: cannot be removed",
        ),
        (
            held(json!({"clusterName": "a"})),
            held(json!({"clusterName": "b"})),
            "status: Invalid value: clusterName is immutable once set",
        ),
        (
            held(json!({"nominatedClusterNames": ["a"]})),
            held(json!({"clusterName": "b"})),
            "status.clusterName: Invalid value: \"b\": when setting clusterName it must be one of the nominatedClusterNames",
        ),
        (
            ready(json!([{"name": "main"}])),
            ready(json!([{"name": "main", "labels": {"a": "b"}}])),
            "status.admissionChecks[0].podSetUpdates: Invalid value: [{\"labels\":{\"a\":\"b\"},\"name\":\"main\"}]: field is immutable",
        ),
        (workload(&none, &none, &reserved(none.clone())), workload(&none, &none, &reserved(none.clone())), "accepted"),
    ];
    for (old, new, expected) in table {
        assert_eq!(updated(&old, &new, &gates), expected, "{new}");
    }
}

#[test]
fn an_elastic_workload_may_shrink() {
    let elastic = |count: i32, reclaimable: &Value| {
        let mut status = admitted(json!({"name": "main", "count": 3}));
        status["reclaimablePods"] = reclaimable.clone();
        let mut object = workload(&Value::Null, &json!({"count": count}), &status);
        object["metadata"]["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true"});
        object
    };
    let gates = Gates::default().with(Gate::ElasticJobsViaWorkloadSlices, true);
    let two = json!([{"name": "main", "count": 2}]);
    assert_eq!(updated(&elastic(3, &two), &elastic(1, &two), &gates), "accepted");
    assert_eq!(updated(&elastic(3, &two), &elastic(1, &json!([])), &gates), "accepted");
    assert_eq!(
        updated(&elastic(1, &two), &elastic(3, &two), &gates),
        "spec.podSets.0: Invalid value: field is immutable"
    );
}

#[test]
fn admission_gates_are_only_ever_removed() {
    let gated = |gates: &str| {
        let mut object = workload(&Value::Null, &Value::Null, &Value::Null);
        object["metadata"]["annotations"] = json!({"kueue.x-k8s.io/admission-gated-by": gates});
        object
    };
    let path = "metadata.annotations[kueue.x-k8s.io/admission-gated-by]: Forbidden:";
    let table = [
        (gated("a.b/c,a.b/d"), gated("a.b/d"), "accepted".to_owned()),
        (gated("a.b/c"), gated(""), "accepted".to_owned()),
        (gated(""), gated("a.b/c"), format!("{path} cannot add admission gate after creation")),
        (gated("a.b/c"), gated("a.b/d"), format!("{path} can only remove gates, not add new ones")),
    ];
    for (old, new, expected) in table {
        assert_eq!(updated(&old, &new, &Gates::default()), expected);
    }
}

#[test]
fn older_releases_keep_more_fields_as_they_are() {
    let flavor = |label: &str, taint: &str| {
        let taints = json!([{"key": taint, "effect": "NoSchedule"}]);
        kueue("ResourceFlavor", json!({"topologyName": "t", "nodeLabels": {"pool": label}, "nodeTaints": taints}))
    };
    let levels = |zone: &str| {
        let levels = json!([{"nodeLabel": zone}, {"nodeLabel": "kubernetes.io/hostname"}]);
        kueue("Topology", json!({"levels": levels}))
    };
    let in_queue = |queue: &str| {
        let spec = if queue.is_empty() { json!({}) } else { json!({"queueName": queue}) };
        workload(&spec, &json!({}), &admitted(json!({"name": "main", "count": 3})))
    };
    let queue_is_fixed = "<nil>: Invalid value: queueName is immutable while workload quota reserved";
    let table = [
        (
            (flavor("a", "t"), flavor("b", "t")),
            [
                "spec: Invalid value: resourceFlavorSpec are immutable when topologyName is set",
                "spec: Invalid value: nodeLabels are immutable when topologyName is set",
                "accepted",
            ],
        ),
        (
            (flavor("a", "t"), flavor("a", "u")),
            ["spec: Invalid value: resourceFlavorSpec are immutable when topologyName is set", "accepted", "accepted"],
        ),
        (
            (levels("a"), levels("b")),
            [
                "spec.levels: Invalid value: field is immutable",
                "spec.levels: Invalid value: field is immutable",
                "accepted",
            ],
        ),
        ((in_queue("a"), in_queue("")), ["accepted", queue_is_fixed, queue_is_fixed]),
        ((in_queue("a"), in_queue("b")), [queue_is_fixed; 3]),
    ];
    for ((old, new), expected) in &table {
        for (line, errors) in ["0.16", "0.19", "0.20.0-devel"].into_iter().zip(expected) {
            assert_eq!(updated_by(old, new, &of_release(line)), *errors, "{line}: {new}");
        }
    }
}
