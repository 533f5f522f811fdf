//! Values of the wrong shape, as the API server itself rejects them.

use super::*;

const BLOCKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was \
                       invalid; correct the existing errors to complete validation";

/// The errors, without the note that rules were skipped.
fn errors(object: &Value) -> Vec<String> {
    let text = people(object, &Gates::default()).err().unwrap_or_default();
    text.lines().filter(|line| *line != BLOCKED).map(str::to_owned).collect()
}

fn class(value: Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "x"},
           "value": value})
}

fn with_metadata(more: Value) -> Value {
    let mut object = class(json!(1));
    for (name, value) in more.as_object().into_iter().flatten() {
        object["metadata"][name] = value.clone();
    }
    object
}

fn of_pod(spec: Value) -> Value {
    let mut pod = json!({"containers": [{"name": "c"}]});
    for (name, value) in spec.as_object().into_iter().flatten() {
        pod[name] = value.clone();
    }
    workload(&Value::Null, &json!({"template": {"spec": pod}}), &Value::Null)
}

const POD: &str = "spec.podSets[0].template.spec";

#[test]
fn numbers_are_checked_for_type_range_and_bound() {
    let out_of_range = |bits: u32, path: &str| {
        format!("<nil>: Invalid value: \"\": Checked value must be of type integer with format int{bits} in {path}")
    };
    let is_float = "value: Invalid value: \"float64\": value in body must be of type int32: \"float64\"";
    let table = [
        (json!(1.0), vec![]),
        (json!(-0.0), vec![]),
        (json!(2_147_483_648_i64), vec![out_of_range(32, "value")]),
        (json!(1e10), vec![out_of_range(32, "value")]),
        (json!(1.5), vec![is_float.to_owned(), out_of_range(32, "value")]),
        (json!(9_223_372_036_854_775_808_u64), vec![is_float.to_owned(), out_of_range(32, "value")]),
        (json!(true), vec!["value: Invalid value: \"\": value in body must be of type int32: \"\"".to_owned()]),
        (json!({}), vec!["value: Invalid value: \"\": value in body must be of type int32: \"\"".to_owned()]),
        (
            json!("1"),
            vec!["value: Invalid value: \"string\": value in body must be of type integer: \"string\"".to_owned()],
        ),
        (
            json!([]),
            vec!["value: Invalid value: \"array\": value in body must be of type integer: \"array\"".to_owned()],
        ),
    ];
    for (value, expected) in table {
        assert_eq!(errors(&class(value.clone())), expected, "{value}");
    }
    let pod_set = workload(&Value::Null, &json!({"minCount": -0.5}), &Value::Null);
    let path = "spec.podSets[0].minCount";
    let expected = [
        format!("{path}: Invalid value: \"float64\": {path} in body must be of type int32: \"float64\""),
        out_of_range(32, path),
        format!("{path}: Invalid value: -0.5: {path} in body should be greater than or equal to 0"),
    ];
    assert_eq!(errors(&pod_set), expected);
}

#[test]
fn an_amount_is_an_integer_of_64_bits_or_a_text() {
    let queue = |quota: Value| {
        kueue("ClusterQueue", json!({"cohortName": "c", "resourceGroups": quotas(&json!({"nominalQuota": quota}))}))
    };
    let path = format!("{QUOTA}.nominalQuota");
    let wrong = |name: &str| {
        vec![
            format!("{path}: Invalid value: \"{name}\": {path} in body must be of type integer,string: \"{name}\""),
            format!("<nil>: Invalid value: \"\": \"{path}\" must validate at least one schema (anyOf)"),
            format!("{path}: Invalid value: \"{name}\": {path} in body must be of type integer: \"{name}\""),
        ]
    };
    let out_of_range =
        format!("<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in {path}");
    for good in [json!(3.0), json!(i64::MAX), json!("9223372036854775808")] {
        assert_eq!(errors(&queue(good.clone())), [""; 0], "{good}");
    }
    for bad in [json!(0.5), json!(9_223_372_036_854_775_808_u64), json!(1e300)] {
        assert_eq!(errors(&queue(bad.clone())), [wrong("number"), vec![out_of_range.clone()]].concat(), "{bad}");
    }
    assert_eq!(errors(&queue(json!([1]))), wrong("array"));
}

#[test]
fn unsupported_values_are_shown_without_unknown_fields() {
    let strategy = |value: Value| kueue("ClusterQueue", json!({"queueingStrategy": value}));
    let path = "spec.queueingStrategy";
    let supported = "supported values: \"StrictFIFO\", \"BestEffortFIFO\"";
    let table = [
        (json!({"a": 1}), "object", "{}"),
        (json!([{"a": 1}, null]), "array", "[{},null]"),
        (json!(1e7), "number", "1e+07"),
        (json!(true), "boolean", "true"),
    ];
    for (value, name, shown) in table {
        let expected = [
            format!("{path}: Invalid value: \"{name}\": {path} in body must be of type string: \"{name}\""),
            format!("{path}: Unsupported value: {shown}: {supported}"),
        ];
        assert_eq!(errors(&strategy(value)), expected);
    }
}

#[test]
fn entries_of_a_list_by_name_are_objects() {
    let path = format!("{POD}.containers[1]");
    let expected = [
        format!("{path}: Invalid value: \"string\": {path} in body must be of type object: \"string\""),
        format!("{path}: Invalid value: \"x\": must be an object for an array of list-type map"),
    ];
    assert_eq!(errors(&of_pod(json!({"containers": [{"name": "c"}, "x"]}))), expected);
}

#[test]
fn every_field_of_a_pod_has_its_shape() {
    let rules = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let required =
        |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}});
    let term = |field: &str, entry: Value| required(json!({"nodeSelectorTerms": [{field: [entry]}]}));
    let typed = |path: &str, found: &str, wanted: &str| {
        let path = format!("{POD}.{path}");
        format!("{path}: Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\"")
    };
    let missing = |path: &str| format!("{POD}.{path}: Required value");
    let values = json!({"key": "k", "operator": "In", "values": 1});
    let table = [
        (required(json!({})), missing(&format!("{rules}.nodeSelectorTerms"))),
        (
            term("matchExpressions", json!({"operator": "In"})),
            missing(&format!("{rules}.nodeSelectorTerms[0].matchExpressions[0].key")),
        ),
        (
            term("matchFields", values),
            typed(&format!("{rules}.nodeSelectorTerms[0].matchFields[0].values"), "integer", "array"),
        ),
        (json!({"restartPolicy": 1}), typed("restartPolicy", "integer", "string")),
        (json!({"resourceClaims": {}}), typed("resourceClaims", "object", "array")),
        (json!({"resourceClaims": [{}]}), missing("resourceClaims[0].name")),
        (
            json!({"resourceClaims": [{"name": "a"}, {"name": "a"}]}),
            format!("{POD}.resourceClaims[1]: Duplicate value: {{\"name\":\"a\"}}"),
        ),
        (json!({"containers": [{"name": "c", "image": 1}]}), typed("containers[0].image", "integer", "string")),
        (
            json!({"containers": [{"name": "c", "resources": {"claims": [{"name": 1}]}}]}),
            typed("containers[0].resources.claims[0].name", "integer", "string"),
        ),
        (
            json!({"containers": [{"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]}),
            format!("{POD}.containers[0].ports[1]: Duplicate value: {{\"containerPort\":1,\"protocol\":\"TCP\"}}"),
        ),
        (
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"items": [{"key": "k"}]}}]}}]}),
            missing("volumes[0].projected.sources[0].secret.items[0].path"),
        ),
    ];
    for (pod, expected) in table {
        assert_eq!(errors(&of_pod(pod.clone())), [expected], "{pod}");
    }
}

#[test]
fn a_null_is_nothing_but_an_empty_label() {
    let taken = |object: &Value| people(object, &Gates::default()).expect("taken").objects.remove(0).0;
    let Object::ResourceFlavor(flavor) = taken(&kueue("ResourceFlavor", json!({"nodeLabels": {"a": null, "b": "c"}})))
    else {
        panic!("a ResourceFlavor")
    };
    assert_eq!(flavor.node_labels.keys().collect::<Vec<_>>(), ["b"]);
    let Object::WorkloadPriorityClass(class) = taken(&with_metadata(json!({"labels": {"a": null}}))) else {
        panic!("a WorkloadPriorityClass")
    };
    assert_eq!(class.meta.labels.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), [("a", "")]);
    let requests = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": null}}}], "priority": null});
    let Object::Workload(workload) = taken(&of_pod(requests)) else { panic!("a Workload") };
    assert!(workload.pod_sets[0].template.spec.containers[0].resources.requests.is_empty());
}

#[test]
fn a_rule_that_reads_an_integer_does_not_take_it_for_one_as_a_float() {
    let class = json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "c"});
    let object = workload(&json!({"priority": 1.0, "priorityClassRef": class}), &Value::Null, &Value::Null);
    let text = "spec: Invalid value: \"object\": invalid data, expected int, got float64 evaluating rule: priority should \
                not be nil when priorityClassRef is set";
    assert_eq!(errors(&object), [text]);
}

#[test]
fn metadata_has_rules_of_its_own() {
    let owner = |more: Value| {
        let mut owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"});
        for (name, value) in more.as_object().into_iter().flatten() {
            owner[name] = value.clone();
        }
        json!({"ownerReferences": [owner]})
    };
    let table = [
        (json!({"generation": -1}), "metadata.generation: Invalid value: -1: must be greater than or equal to 0"),
        (
            owner(json!({"apiVersion": "a/"})),
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/\": version must not be empty",
        ),
        (owner(json!({"uid": null})), "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ),
        (
            json!({"managedFields": [{"operation": "Replace"}]}),
            "metadata.managedFields[0].operation: Invalid value: \"Replace\": must be `Apply` or `Update`",
        ),
        (
            json!({"managedFields": [{"operation": "Apply", "manager": "é\u{0}"}]}),
            "metadata.managedFields[0].manager: Invalid value: \"é\\x00\": invalid character U+0000 (at position 2)",
        ),
        (
            json!({"name": "x".repeat(254)}),
            &format!("metadata.name: Invalid value: \"{}...\": must be no more than 253 characters", "x".repeat(253)),
        ),
    ];
    for (more, expected) in table {
        assert_eq!(errors(&with_metadata(more.clone())), [expected], "{more}");
    }
    let foreign = errors(&with_metadata(json!({"finalizers": ["kueue.x-k8s.io/é"]})));
    assert!(
        foreign[0].starts_with("metadata.finalizers: Invalid value: \"kueue.x-k8s.io/é\": name part must"),
        "{foreign:?}"
    );
    let both = with_metadata(json!({"ownerReferences": [
        {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true},
        {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "v", "controller": true},
    ]}));
    let text = "Only one reference can have Controller set to true. Found \"true\" in references for A/a and B/b";
    assert!(errors(&both)[0].ends_with(text), "{:?}", errors(&both));
    let namespaced = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "q", "namespace": "a.b"}, "spec": {"clusterQueue": "c"}});
    assert_eq!(errors(&namespaced), ["metadata.namespace: Invalid value: \"a.b\": must not contain dots"]);
}
