use kueuecore::base::releases::Release;
use kueuecore::objects::{
    BorrowWithinCohort, FungibilityPolicy, Preemption, PreemptionPolicy, StopPolicy, Time, TopologyAssignment,
    TopologyDomain,
};
use serde_json::json;

use super::*;

mod batches;
mod topology;

fn one(value: &Value) -> Object {
    decode_value(value).unwrap_or_else(|rejection| panic!("{rejection}"))
}

fn refusal(data: &str) -> String {
    let rejections = decode(data.as_bytes(), Door::Trusted).expect_err("must be refused");
    rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn an_empty_trusted_cluster_queue_keeps_everything_absent() {
    let Object::ClusterQueue(queue) =
        one(&json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q_1"}}))
    else {
        panic!("a ClusterQueue")
    };
    assert_eq!(queue.meta.name, "q_1");
    assert_eq!(queue.meta.namespace, "");
    assert_eq!(queue.meta.created, Time::ABSENT);
    assert_eq!(queue.namespace_selector, None);
    assert_eq!(queue.preemption, None);
    assert_eq!(queue.flavor_fungibility.when_can_borrow, FungibilityPolicy::MayStopSearch);
    assert_eq!(queue.flavor_fungibility.when_can_preempt, FungibilityPolicy::TryNextFlavor);
    assert_eq!(queue.fair_weight, None);
}

#[test]
fn a_cluster_queue_is_read_in_full() {
    let Object::ClusterQueue(queue) = one(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"},
        "spec": {
            "cohortName": "c",
            "namespaceSelector": {},
            "queueingStrategy": "StrictFIFO",
            "flavorFungibility": {"whenCanPreempt": "Preempt", "whenCanBorrow": "TryNextFlavor"},
            "preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -4}},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [
                {"name": "cpu", "nominalQuota": 2, "borrowingLimit": "200m", "lendingLimit": null}]}]}],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": ["f"]}]},
            "stopPolicy": "HoldAndDrain",
            "fairSharing": {"weight": "1500m"},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
            "concurrentAdmissionPolicy": {"b": 1, "a": {}},
        },
    })) else {
        panic!("a ClusterQueue")
    };
    let quota = &queue.resource_groups[0].flavors[0].resources[0];
    assert_eq!(quota.nominal_quota.to_string(), "2");
    assert_eq!(quota.borrowing_limit.as_ref().map(ToString::to_string).as_deref(), Some("200m"));
    assert_eq!(quota.lending_limit, None);
    assert!(queue.namespace_selector.is_some());
    assert_eq!(queue.flavor_fungibility.when_can_preempt, FungibilityPolicy::MayStopSearch);
    assert_eq!(queue.flavor_fungibility.when_can_borrow, FungibilityPolicy::TryNextFlavor);
    let preemption = queue.preemption.expect("present");
    assert_eq!(preemption.reclaim_within_cohort, PreemptionPolicy::Any);
    assert_eq!(preemption.within_cluster_queue, PreemptionPolicy::Unset);
    assert_eq!(preemption.borrow_within_cohort.expect("present").max_priority_threshold, Some(-4));
    assert_eq!(queue.admission_checks[0].on_flavors, ["f"]);
    assert_eq!(queue.stop_policy, StopPolicy::HoldAndDrain);
    assert!(queue.usage_based_admission);
    assert_eq!(queue.concurrent_admission_policy, "{\"a\":{},\"b\":1}");
}

#[test]
fn a_workload_keeps_what_scheduling_reads_of_a_pod() {
    let term = json!({"matchExpressions": [{"key": "k", "operator": "Exists"}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]});
    let Object::Workload(workload) = one(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": null,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"queueName": "lq", "priority": 5, "active": false, "preemptionGates": [{"name": "g"}],
            "podSets": [{"name": "main", "count": 3, "minCount": 1,
                "topologyRequest": {"required": "rack", "podSetSliceSize": 2, "podSetSliceRequiredTopology": "host"},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                    "restartPolicy": "Never",
                    "initContainers": [{"name": "i", "restartPolicy": "Always", "image": "x"}],
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": 1.5, "memory": "1Gi"}}, "ports": [{"hostPort": 1, "containerPort": 2}]}],
                    "affinity": {"nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": term}]}},
                    "tolerations": [{"key": "t", "operator": "Exists", "tolerationSeconds": 3}],
                    "overhead": {}}}}]},
    })) else {
        panic!("a Workload")
    };
    assert_eq!(workload.meta.created, Time(1_767_225_600_000_000_000));
    assert!(!workload.meta.details.deleting);
    assert!(workload.meta.details.owners[0].controller);
    assert_eq!(workload.active, Some(false));
    assert_eq!(*workload.preemption_gates, ["g"]);
    let pods = &workload.pod_sets[0];
    let request = pods.topology_request.as_ref().expect("present");
    assert_eq!(request.required.as_deref(), Some("rack"));
    assert_eq!(request.layers().as_slice(), [("host", 2)]);
    let spec = &pods.template.spec;
    assert!(spec.init_containers[0].sidecar);
    assert_eq!(spec.containers[0].resources.requests["cpu"].to_string(), "1500m");
    assert_eq!(spec.containers[0].ports, r#"[{"containerPort":2,"hostPort":1}]"#);
    let terms = spec.required_node_affinity.as_ref().expect("present");
    assert_eq!(terms[0].match_fields[0].values, ["n"]);
    assert_eq!((spec.preferred_node_affinity[0].weight, &spec.preferred_node_affinity[0].term), (7, &terms[0]));
    assert_eq!(terms[0].match_expressions[0].operator, "Exists");
    assert_eq!(spec.tolerations[0].toleration_seconds, Some(3));
    assert!(spec.overhead.as_ref().is_some_and(std::collections::BTreeMap::is_empty));
    assert!(spec.opaque.starts_with(r#"{"affinity":{"nodeAffinity""#), "{}", spec.opaque);
}

#[test]
fn older_versions_are_converted() {
    let Object::ClusterQueue(queue) = one(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"},
        "spec": {"cohort": "c", "admissionChecks": ["a", "b"], "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
    })) else {
        panic!("a ClusterQueue")
    };
    assert_eq!(queue.cohort_name, "c");
    assert_eq!(queue.admission_checks.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(queue.flavor_fungibility.when_can_preempt, FungibilityPolicy::MayStopSearch);

    let Object::Workload(workload) = one(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass", "podSets": []},
        "status": {"accumulatedPastExexcutionTimeSeconds": 3, "admission": {"clusterQueue": "q", "podSetAssignments": [
            {"name": "main", "topologyAssignment": {"levels": ["r", "h"], "domains": [
                {"values": ["r1", "h1"], "count": 1}, {"values": ["r1", "h2"], "count": 2}]}}]}},
    })) else {
        panic!("a Workload")
    };
    let class = workload.priority_class.expect("present");
    assert_eq!(
        (class.group.as_str(), class.kind.as_str(), class.name.as_str()),
        ("kueue.x-k8s.io", "WorkloadPriorityClass", "high")
    );
    assert_eq!(workload.status.rare.accumulated_past_execution_time_seconds, Some(3));
    let domain = |host: &str, count| TopologyDomain::new(["r1", host], count);
    let domains = vec![domain("h1", 1), domain("h2", 2)];
    assert_eq!(
        workload.status.admission.as_ref().expect("present").pod_set_assignments[0].topology_assignment,
        Some(TopologyAssignment { levels: vec!["r".to_owned(), "h".to_owned()], domains }.into())
    );
}

#[test]
fn a_wrong_shape_is_named_with_its_path_and_value() {
    let workload = |body: &str| {
        format!(r#"{{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{"name":"w"}},{body}}}"#)
    };
    let table = [
        (
            workload(r#""spec":{"podSets":[{"count":"x"}]}"#),
            r#"Workload "w" is invalid: spec.podSets[0].count: Invalid value: "x": must be an integer of 32 bits"#,
        ),
        (
            workload(r#""status":{"requeueState":{"requeueAt":"soon"}}"#),
            r#"Workload "w" is invalid: status.requeueState.requeueAt: Invalid value: "soon": must be a time such as 2026-01-01T00:00:00Z"#,
        ),
        (
            r#"{"apiVersion":"kueue.x-k8s.io/v1","kind":"Workload","metadata":{"name":"w"}}"#.to_owned(),
            r#"Workload "w" is invalid: apiVersion: Unsupported value: "kueue.x-k8s.io/v1": supported values: "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1""#,
        ),
        (
            r#"{"apiVersion":"kueue.x-k8s.io/v1alpha1","kind":"Cohort","metadata":{"name":"c"}}"#.to_owned(),
            r#"Cohort "c" is invalid: apiVersion: Unsupported value: "kueue.x-k8s.io/v1alpha1": supported values: "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1""#,
        ),
        (r#"{"apiVersion":"v1"}"#.to_owned(), "object 0 is invalid: kind: Required value"),
        ("3".to_owned(), "object 0 is invalid: Invalid value: 3: must be an object"),
    ];
    for (data, text) in table {
        let found = refusal(&data);
        assert!(found.starts_with(text), "{found}\n  instead of\n{text}");
    }
    let quota = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Cohort","metadata":{"name":"c"},"spec":{"resourceGroups":[{"flavors":[{"resources":[{"nominalQuota":"1x"}]}]}]}}"#;
    let found = refusal(quota);
    assert!(
        found.contains(r#"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "1x": "#),
        "{found}"
    );
}

/// As the last line of Kueue that serves v1beta1.
fn decode_served(data: &[u8], door: Door) -> Result<Decoded, Vec<Rejection>> {
    decode_with(data, door, &Config::of(Release::from_name("0.19").expect("a line of releases")))
}

fn people(value: &Value) -> Object {
    let decoded = decode_served(value.to_string().as_bytes(), Door::People);
    let decoded = decoded.unwrap_or_else(|rejections| panic!("{}", rejections[0]));
    assert_eq!(decoded.warnings, []);
    decoded.objects.into_iter().next().expect("one object").0
}

#[test]
fn the_door_for_people_fills_in_defaults() {
    let never = PreemptionPolicy::Never;
    for api_version in ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"] {
        let Object::ClusterQueue(queue) = people(
            &json!({"apiVersion": api_version, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"fairSharing": {}, "namespaceSelector": null}}),
        ) else {
            panic!("a ClusterQueue")
        };
        assert_eq!(
            queue.preemption,
            Some(Preemption {
                reclaim_within_cohort: never,
                within_cluster_queue: never,
                borrow_within_cohort: Some(BorrowWithinCohort { policy: never, max_priority_threshold: None }),
            })
        );
        assert_eq!(queue.fair_weight.map(|weight| weight.to_string()).as_deref(), Some("1"));
        assert_eq!(queue.namespace_selector, None);
    }

    let Object::Workload(workload) = people(&json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"podSets": [{"template": {"spec": {"containers": []}}}]},
    })) else {
        panic!("a Workload")
    };
    assert_eq!(workload.meta.key.namespace(), "default");
    assert_eq!(workload.active, Some(true));
    assert_eq!((workload.pod_sets[0].name.as_str(), workload.pod_sets[0].count), ("main", 1));

    let Object::LimitRange(range) = people(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": 4}, "min": {"cpu": 1, "memory": 1}, "default": {"memory": 3}}, {"type": "Pod", "max": {"cpu": 4}}]},
    })) else {
        panic!("a LimitRange")
    };
    let texts = |list: &kueuecore::objects::ResourceList| -> String {
        list.iter().map(|(name, quantity)| format!("{name}={quantity} ")).collect()
    };
    assert_eq!(texts(&range.limits[0].default), "cpu=4 memory=3 ");
    assert_eq!(texts(&range.limits[0].default_request), "cpu=4 memory=3 ");
    assert_eq!(texts(&range.limits[1].default), "");
}

#[test]
fn older_versions_are_checked_and_converted_at_the_door_for_people() {
    let queue = |spec: Value| json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec});
    let Object::ClusterQueue(found) = people(&queue(
        json!({"cohort": "c", "admissionChecks": ["a"], "flavorFungibility": {"whenCanBorrow": "Borrow"}}),
    )) else {
        panic!("a ClusterQueue")
    };
    assert_eq!((found.cohort_name.as_str(), found.admission_checks[0].name.as_str()), ("c", "a"));
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"priorityClassName": "high", "podSets": [{"template": {"spec": {"containers": []}}}]},
    });
    let rejections = decode_served(workload.to_string().as_bytes(), Door::People).expect_err("must be refused");
    assert_eq!(
        rejections[0].to_string(),
        "Workload \"w\" is invalid: spec: Invalid value: priority should not be nil when priorityClassName is set"
    );
}

#[test]
fn no_bytes_make_the_decoder_panic() {
    let sample = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"priorityClassSource": "a", "podSets": [{"count": 3, "topologyRequest": {"required": "a"}, "template": {"spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}}}]},
        "status": {"admission": {"podSetAssignments": [{"topologyAssignment": {"levels": ["a"], "domains": [{"values": [], "count": 1}]}}]}},
    })
    .to_string();
    let mut bytes = sample.clone().into_bytes();
    for i in 0..bytes.len() {
        let original = bytes[i];
        for replacement in [b'"', b'{', b']', b'0', b',', b'\\', 0xff] {
            bytes[i] = replacement;
            for door in [Door::People, Door::Trusted] {
                // It only has to return.
                let _ = decode_served(&bytes, door);
            }
        }
        bytes[i] = original;
        let _ = decode_served(&bytes[..i], Door::People);
    }
    let deep = "[".repeat(100_000);
    assert!(decode(deep.as_bytes(), Door::People).is_err());
    let nested = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let _ = decode(nested.as_bytes(), Door::Trusted);
    for shape in ["null", "[null]", "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":{}}", "{\"kind\":3}", "\"x\""] {
        assert!(decode(shape.as_bytes(), Door::People).is_err(), "{shape}");
    }
}

#[test]
fn parts_of_objects_are_read_alone() {
    let spec =
        pod_spec(&json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": 2}}}]})).expect("well formed");
    assert_eq!(spec.containers[0].resources.limits["cpu"].to_string(), "2");
    assert_eq!(pod_set(&json!({"name": "p", "count": 2})).expect("well formed").count, 2);
    assert_eq!(limit_range_item(&json!({"type": "Pod", "max": {"cpu": 0.5}})).expect("well formed").kind, "Pod");
    assert_eq!(resource_list(&Value::Null), Ok(ResourceList::new()));
    let error = resource_list(&json!({"cpu": "x"})).expect_err("no quantity");
    assert!(error.to_string().starts_with("cpu: Invalid value: \"x\": "), "{error}");
}

#[test]
fn a_value_is_read_as_its_text_is() {
    for object in [
        json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"cohort": "c"}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": [{"type": "Pod", "min": {"cpu": 0.5}}]}}),
    ] {
        for door in [Door::Trusted, Door::People] {
            let decoded = decode_served(object.to_string().as_bytes(), door).expect("well formed");
            if door == Door::Trusted || object["kind"] == "LimitRange" {
                assert_eq!(decoded.objects, [(one(&object), 0)]);
            }
        }
    }
    let found = decode_value(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}));
    assert_eq!(
        found.expect_err("foreign").to_string(),
        "Deployment \"d\" is invalid: kind: Invalid value: \"Deployment\": is not a kind that is read"
    );
}

#[test]
fn a_list_is_no_object_however_it_is_filled() {
    let head = r#""apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload""#;
    let table = [
        (format!(r#"{{{head},"metadata":["w","ns"]}}"#), r#"metadata: Invalid value: ["w","ns"]: must be an object"#),
        (
            format!(r#"{{{head},"metadata":{{"name":"w"}},"spec":{{"podSets":[["main",1]]}}}}"#),
            r#"spec.podSets[0]: Invalid value: ["main",1]: must be an object"#,
        ),
        (
            format!(r#"{{{head},"metadata":{{"name":"w"}},"spec":"x"}}"#),
            r#"spec: Invalid value: "x": must be an object"#,
        ),
        (
            format!(r#"{{{head},"metadata":{{"name":"w"}},"spec":{{"podSets":7}}}}"#),
            "spec.podSets: Invalid value: 7: must be a list",
        ),
    ];
    for (data, text) in table {
        let rejections = decode(data.as_bytes(), Door::Trusted).expect_err("refused");
        assert_eq!(rejections[0].errors[0].to_string(), text);
    }
}

#[test]
fn an_object_is_the_same_wherever_its_version_and_kind_stand() {
    let (version, kind) = (r#""apiVersion":"kueue.x-k8s.io/v1beta2""#, r#""kind":"Workload""#);
    let rest =
        r#""metadata":{"name":"w","namespace":"ns"},"spec":{"queueName":"lq","podSets":[{"name":"main","count":2}]}"#;
    let texts = [
        format!("{{{version},{kind},{rest}}}"),
        format!("{{{kind},{version},{rest}}}"),
        format!("{{{rest},{kind},{version}}}"),
        format!(r#"{{"\u006bind":"Workload",{version},{rest}}}"#),
        format!(r#"[{{{version},{rest},{kind}}}]"#),
        format!(r#"{{{version},"kind":"WorkloadList","items":[{{{rest}}}]}}"#),
    ];
    let read = |text: &str| decode(text.as_bytes(), Door::Trusted).expect("a Workload").objects;
    let first = read(&texts[0]);
    assert!(matches!(&first[0].0, Object::Workload(workload) if workload.pod_sets[0].count == 2));
    for text in &texts {
        assert_eq!(read(text), first, "{text}");
    }
    let all = read(&texts.join(" "));
    assert_eq!(all.iter().map(|(_, index)| *index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    for again in [version, kind] {
        for text in [format!("{{{version},{kind},{rest},{again}}}"), format!("{{{again},{again},{rest}}}")] {
            let rejections = decode(text.as_bytes(), Door::Trusted).expect_err("twice");
            assert!(rejections[0].errors[0].detail.starts_with("duplicate field"), "{}", rejections[0]);
        }
    }
}

#[test]
fn invalid_json_is_reported_with_its_line_in_the_whole_input() {
    let flavor = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"f"}}"#;
    let error = |data: &[u8]| decode(data, Door::Trusted).expect_err("not JSON")[0].errors[0].to_string();
    let broken = format!("{flavor}\n{flavor}\n{{\"a\"}}");
    assert_eq!(error(broken.as_bytes()), "Invalid value: not JSON: expected `:` at line 3 column 5");
    for at in [0, 7] {
        let mut bytes = format!("{flavor}\n{flavor}").into_bytes();
        bytes.insert(flavor.len() + 1 + at, 0xff);
        let place = format!("Invalid value: not JSON: invalid unicode code point at line 2 column {}", at + 1);
        assert_eq!(error(&bytes), place);
    }
}

#[test]
fn impossible_json_values_are_reported_with_their_field() {
    for (spec, start) in [
        (r#"{"nodeLabels":{"a":"\ud800"}}"#, "spec.nodeLabels.a: Invalid value: "),
        (r#"{"tolerations":[{"tolerationSeconds":1e999}]}"#, "spec.tolerations[0].tolerationSeconds: Invalid value: "),
    ] {
        let rest = format!(r#""kind":"ResourceFlavor","metadata":{{"name":"f"}},"spec":{spec}}}"#);
        for version in ["v1beta2", "v1beta1"] {
            let flavor = format!(r#"{{"apiVersion":"kueue.x-k8s.io/{version}",{rest}"#);
            for door in [Door::People, Door::Trusted] {
                let rejections = decode_served(flavor.as_bytes(), door).expect_err("no JSON value");
                let text = rejections[0].errors[0].to_string();
                assert!(text.starts_with(start), "{text}");
                assert_eq!(rejections[0].object.name, "f");
            }
        }
    }
}

#[test]
fn duplicate_fields_are_reported() {
    let flavor = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"f"},
        "spec":{"nodeLabels":{"a":"1"},"nodeLabels":{"a":"2","a":"3"}}}"#;
    let decoded = decode(flavor.as_bytes(), Door::People).expect("the last one counts");
    let warnings: Vec<_> = decoded.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            r#"duplicate field "spec.nodeLabels.a": the last one counts"#,
            r#"duplicate field "spec.nodeLabels": the last one counts"#
        ]
    );
    let rejections = decode(flavor.as_bytes(), Door::Trusted).expect_err("no API server holds that");
    assert_eq!(rejections[0].errors[0].path, "spec.nodeLabels.a");
}

#[test]
fn rejections_include_the_warnings_of_their_object() {
    let queue = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":{"name":"q"},
        "spec":{"clusterQueu":"x","stopPolicy":"Never"}}"#;
    let rejections = decode(queue.as_bytes(), Door::People).expect_err("no such policy");
    let warnings: Vec<_> = rejections[0].warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(warnings, [r#"unknown field "spec.clusterQueu", did you mean "clusterQueue"?"#]);
}

#[test]
fn a_preemption_config_is_read_since_kueue_0_20() {
    let text = r#"{"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "PreemptionConfig", "metadata": {"name": "p"},
        "spec": {"rules": [{"name": "r", "activationPolicy": {"trigger": "Always"}}]}}"#;
    let old = Release::from_name("0.20.0-devel").map(Config::of).expect("a release");
    for door in [Door::People, Door::Trusted] {
        let read = decode_with(text.as_bytes(), door, &Config::default()).expect("it is known");
        assert!(matches!(&read.objects[..], [(Object::PreemptionConfig(meta), 0)] if meta.name == "p"));
        assert_eq!(read.warnings, []);
        let refused = decode_with(text.as_bytes(), door, &old).expect_err("it is unknown");
        let text = refused[0].to_string();
        assert!(text.contains("kind: Unsupported value: \"PreemptionConfig\": supported values: "), "{text}");
        assert!(text.ends_with("\"MultiKueueConfig\", \"MultiKueueCluster\""), "{text}");
    }
}
