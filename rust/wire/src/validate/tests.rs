use kueuecore::gates::Gate;
use serde_json::json;

use super::*;
use crate::decode::{Decoded, Door, decode_value, decode_with};

fn people(object: &Value, gates: &Gates) -> Result<Decoded, String> {
    decode_with(object.to_string().as_bytes(), Door::People, gates).map_err(|rejections| {
        let errors: Vec<String> = rejections.iter().flat_map(|r| &r.errors).map(ToString::to_string).collect();
        errors.join("\n")
    })
}

fn refused(object: &Value, gates: &Gates) -> String {
    people(object, gates).err().unwrap_or_else(|| "accepted".to_owned())
}

/// A kind of v1beta2 with this spec.
fn kueue(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

/// Gives every row the same other fields and compares the refusals.
fn check(rows: &[(Value, &str)], gates: &Gates) {
    for (object, expected) in rows {
        assert_eq!(refused(object, gates), *expected, "{object}");
    }
}

/// One group with one flavor and these quotas of cpu.
fn quotas(resource: &Value) -> Value {
    let mut cpu = json!({"name": "cpu", "nominalQuota": 1});
    for (name, value) in resource.as_object().into_iter().flatten() {
        cpu[name] = value.clone();
    }
    json!([{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [cpu]}]}])
}

fn groups(n_groups: usize, n_flavors: usize, n_resources: usize) -> Value {
    let group = |g: usize| {
        let names: Vec<String> = (0..n_resources).map(|r| format!("r{g}-{r}")).collect();
        let quotas: Vec<Value> = names.iter().map(|name| json!({"name": name, "nominalQuota": 0})).collect();
        let flavors: Vec<Value> =
            (0..n_flavors).map(|f| json!({"name": format!("f{g}-{f}"), "resources": quotas})).collect();
        json!({"coveredResources": names, "flavors": flavors})
    };
    (0..n_groups).map(group).collect()
}

const QUOTA: &str = "spec.resourceGroups[0].flavors[0].resources[0]";

#[test]
fn cluster_queues_are_refused_with_the_reason() {
    let queue = |spec| kueue("ClusterQueue", spec);
    let quota = |resource: Value| queue(json!({"cohortName": "c", "resourceGroups": quotas(&resource)}));
    let two_groups = |a: &str, b: &str| {
        let group = |flavor: &str, resource: &str| json!({"coveredResources": [resource], "flavors": [{"name": flavor, "resources": [{"name": resource, "nominalQuota": 1}]}]});
        queue(json!({"resourceGroups": [group("f", "cpu"), group(a, b)]}))
    };
    let checks = |checks: Value| {
        queue(json!({"resourceGroups": quotas(&json!({})), "admissionChecksStrategy": {"admissionChecks": checks}}))
    };
    let pattern = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let rows = [
        (queue(json!({})), "accepted"),
        (
            quota(json!({"nominalQuota": "-1"})),
            &*format!("{QUOTA}.nominalQuota: Invalid value: \"-1\": must be greater than or equal to 0"),
        ),
        (
            quota(json!({"borrowingLimit": "-1"})),
            &format!("{QUOTA}.borrowingLimit: Invalid value: \"-1\": must be greater than or equal to 0"),
        ),
        (
            quota(json!({"lendingLimit": "2"})),
            &format!("{QUOTA}.lendingLimit: Invalid value: \"2\": must be less than or equal to the nominalQuota"),
        ),
        (
            quota(json!({"nominalQuota": "1x"})),
            &format!(
                "{QUOTA}.nominalQuota: Invalid value: \"1x\": {QUOTA}.nominalQuota in body should match '{pattern}'"
            ),
        ),
        (
            quota(json!({"nominalQuota": true})),
            &format!(
                "{QUOTA}.nominalQuota: Invalid value: \"boolean\": {QUOTA}.nominalQuota in body must be of type integer,string: \"boolean\"\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
            ),
        ),
        (
            queue(json!({"resourceGroups": quotas(&json!({"borrowingLimit": 1}))})),
            "spec: Invalid value: borrowingLimit must be nil when cohort is empty",
        ),
        (
            queue(json!({"resourceGroups": quotas(&json!({"lendingLimit": 1}))})),
            &format!("{QUOTA}.lendingLimit: Invalid value: \"1\": must be nil when cohort is empty"),
        ),
        (two_groups("f", "memory"), "spec.resourceGroups[1].flavors[0].name: Duplicate value: \"f\""),
        (two_groups("g", "cpu"), "spec.resourceGroups[1].coveredResources[0]: Duplicate value: \"cpu\""),
        (
            two_groups("g", "a b"),
            &format!(
                "spec.resourceGroups[1].coveredResources[0]: Invalid value: \"a b\": {}",
                crate::names::label_key_errors("a b")[0]
            ),
        ),
        (
            queue(
                json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "memory", "nominalQuota": 1}]}]}]}),
            ),
            &format!("{QUOTA}.name: Invalid value: \"memory\": must match the name in coveredResources"),
        ),
        (
            queue(
                json!({"resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}]}),
            ),
            "spec.resourceGroups[0]: Invalid value: flavors must have the same number of resources as the coveredResources",
        ),
        (
            queue(
                json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}, {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}]}),
            ),
            "spec.resourceGroups[0].flavors[1]: Duplicate value: {\"name\":\"f\"}",
        ),
        (
            queue(json!({"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}})),
            "spec.preemption: Invalid value: reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        ),
        (
            queue(json!({"flavorFungibility": {"preference": "BorrowingOverPreemption"}})),
            "spec.flavorFungibility: Invalid value: preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
        ),
        (
            queue(json!({"fairSharing": {"weight": "-1"}})),
            "spec.fairSharing: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            queue(json!({"fairSharing": {"weight": "1n"}})),
            "spec.fairSharing: Invalid value: \"1n\": When not 0, weight must be > 10e-9",
        ),
        (queue(json!({"fairSharing": {"weight": "2n"}})), "accepted"),
        (
            queue(json!({"resourceGroups": groups(5, 52, 1)})),
            "spec.resourceGroups: Invalid value: 260: total number of flavors across all resourceGroups must be ≤ 256, got 260",
        ),
        (
            queue(json!({"resourceGroups": groups(5, 1, 52)})),
            "spec.resourceGroups: Invalid value: 260: total number of covered resources across all resourceGroups must be ≤ 256, got 260",
        ),
        (
            queue(json!({"resourceGroups": groups(1, 30, 20)})),
            "spec.resourceGroups[0]: Invalid value: 600: number of flavor-resource combinations in a resourceGroup must be ≤ 512, got 600",
        ),
        (
            queue(json!({"resourceGroups": groups(17, 1, 1)})),
            "spec.resourceGroups: Too many: 17: must have at most 16 items\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ),
        (
            checks(json!([{"name": "a", "onFlavors": ["g"]}])),
            "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0]: Unsupported value: \"g\": supported values: \"f\"",
        ),
        (
            checks(json!([{"name": "a"}, {"name": "a"}])),
            "spec.admissionChecksStrategy.admissionChecks[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            checks(json!([])),
            "spec.admissionChecksStrategy.admissionChecks: Invalid value: 0: spec.admissionChecksStrategy.admissionChecks in body should have at least 1 items",
        ),
        (
            queue(json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
            "spec.namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            queue(
                json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
            ),
            "spec.namespaceSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            queue(json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}})),
            "spec.namespaceSelector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector operator",
        ),
        (
            queue(json!({"cohortName": "A"})),
            r#"spec.cohortName: Invalid value: "A": spec.cohortName in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"#,
        ),
    ];
    for (object, expected) in rows {
        let found = refused(&object, &Gates::default());
        assert_eq!(found, expected, "{object}");
    }
}

#[test]
fn an_enum_lists_its_values() {
    let blocked = "\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let table = [
        (
            json!({"stopPolicy": "Stop"}),
            "spec.stopPolicy: Unsupported value: \"Stop\": supported values: \"None\", \"Hold\", \"HoldAndDrain\"",
        ),
        (
            json!({"queueingStrategy": "FIFO"}),
            "spec.queueingStrategy: Unsupported value: \"FIFO\": supported values: \"StrictFIFO\", \"BestEffortFIFO\"",
        ),
        (
            json!({"preemption": {"withinClusterQueue": "Any"}}),
            "spec.preemption.withinClusterQueue: Unsupported value: \"Any\": supported values: \"Never\", \"LowerPriority\", \"LowerOrNewerEqualPriority\"",
        ),
        (
            json!({"flavorFungibility": {"whenCanBorrow": "Borrow"}}),
            "spec.flavorFungibility.whenCanBorrow: Unsupported value: \"Borrow\": supported values: \"MayStopSearch\", \"TryNextFlavor\"",
        ),
        (json!({"admissionScope": {}}), "spec.admissionScope.admissionMode: Required value"),
    ];
    for (spec, expected) in table {
        assert_eq!(refused(&kueue("ClusterQueue", spec), &Gates::default()), format!("{expected}{blocked}"));
    }
}

#[test]
fn concurrent_admission_is_checked_with_its_gate() {
    let queue = |policy: Value, strategy: &str| {
        kueue(
            "ClusterQueue",
            json!({"resourceGroups": quotas(&json!({})), "queueingStrategy": strategy, "concurrentAdmissionPolicy": policy}),
        )
    };
    let named = |mode: &str, name: &str| json!({"migration": {"mode": mode, "constraints": {"lastAcceptableFlavorName": name}}});
    let on = Gates::default().with(Gate::ConcurrentAdmission, true);
    let path = "spec.concurrentAdmissionPolicy.migration.constraints";
    check(
        &[
            (queue(named("TryPreferredFlavors", "f"), "BestEffortFIFO"), "accepted"),
            (
                queue(named("TryPreferredFlavors", "g"), "BestEffortFIFO"),
                &format!(
                    "{path}.lastAcceptableFlavorName: Invalid value: \"g\": must be one of the flavors defined in the ClusterQueue: [f]"
                ),
            ),
            (
                queue(named("RetainFirstAdmission", "f"), "BestEffortFIFO"),
                &format!(
                    "{path}: Forbidden: may only be set when migration.mode is \"TryPreferredFlavors\" (got \"RetainFirstAdmission\")"
                ),
            ),
            (
                queue(named("TryPreferredFlavors", "f"), "StrictFIFO"),
                "spec.queueingStrategy: Invalid value: \"StrictFIFO\": StrictFIFO queueing strategy cannot be used when ConcurrentAdmissionPolicy is defined",
            ),
            (
                kueue(
                    "ClusterQueue",
                    json!({"concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}}}),
                ),
                "spec.resourceGroups: Invalid value: 0: must have exactly one ResourceGroup when ConcurrentAdmissionPolicy is defined",
            ),
        ],
        &on,
    );
    assert_eq!(refused(&queue(named("TryPreferredFlavors", "g"), "StrictFIFO"), &Gates::default()), "accepted");
}

#[test]
fn cohorts_may_lend_more_than_their_own() {
    let cohort = |spec| kueue("Cohort", spec);
    check(
        &[
            (cohort(json!({"parentName": "p", "resourceGroups": quotas(&json!({"lendingLimit": 5}))})), "accepted"),
            (
                cohort(json!({"resourceGroups": quotas(&json!({"borrowingLimit": 5}))})),
                &format!("{QUOTA}.borrowingLimit: Invalid value: \"5\": must be nil when parent is empty"),
            ),
            (
                cohort(json!({"fairSharing": {"weight": "-2"}})),
                "spec.fairSharing: Invalid value: \"-2\": must be greater than or equal to 0",
            ),
        ],
        &Gates::default(),
    );
}

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
            (object("WorkloadPriorityClass", json!({})), &format!("value: Required value\n{blocked}")),
            (
                object("WorkloadPriorityClass", json!({"value": 3_000_000_000_i64})),
                "value: Invalid value: 3000000000: Checked value must be of type integer with format int32 in value",
            ),
            (
                object("WorkloadPriorityClass", json!({"value": 1, "description": "d".repeat(2049)})),
                &format!("description: Too long: may not be more than 2048 bytes\n{blocked}"),
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
    assert_eq!(refused(&beta1, &Gates::default()), "spec.clusters[1]: Duplicate value: \"a\"");
}

#[test]
fn metadata_is_checked() {
    let with =
        |metadata: Value| json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": metadata});
    let blocked = "\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let rows = [
        (with(json!({"generateName": "x-"})), "accepted".to_owned()),
        (with(json!({})), format!("metadata.name: Required value: name or generateName is required{blocked}")),
        (
            with(json!({"name": "x", "namespace": "ns"})),
            "metadata.namespace: Forbidden: not allowed on this type".to_owned(),
        ),
    ];
    for (object, expected) in rows {
        assert_eq!(refused(&object, &Gates::default()), expected);
    }
    let found = refused(&with(json!({"name": "A_b", "labels": {"a": "b c"}})), &Gates::default());
    assert!(found.starts_with("metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain"), "{found}");
    assert!(found.contains("\nmetadata.labels: Invalid value: \"b c\": a valid label"), "{found}");
}

/// A Workload of v1beta2 with one pod set, and other fields.
fn workload(spec: &Value, pod_set: &Value, status: &Value) -> Value {
    let mut one = json!({"name": "main", "count": 3, "template": {"spec": {"containers": [{"name": "c"}]}}});
    for (name, value) in pod_set.as_object().into_iter().flatten() {
        one[name] = value.clone();
    }
    let mut object = kueue("Workload", json!({"podSets": [one]}));
    for (name, value) in spec.as_object().into_iter().flatten() {
        object["spec"][name] = value.clone();
    }
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn reserved(more: Value) -> Value {
    let mut status = json!({"conditions": [condition("QuotaReserved")]});
    for (name, value) in more.as_object().into_iter().flatten() {
        status[name] = value.clone();
    }
    status
}

fn admitted(assignment: Value) -> Value {
    reserved(json!({"admission": {"clusterQueue": "q", "podSetAssignments": [assignment]}}))
}

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
                pod_set(json!({"minCount": 0})),
                "spec.podSets[0].minCount: Invalid value: 0: spec.podSets[0].minCount in body should be greater than or equal to 1",
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
        assert_eq!(workload.meta.namespace, "default");
    }
}

/// The errors of an update between two manifests.
fn updated(old: &Value, new: &Value, gates: &Gates) -> String {
    let object = |value| decode_value(value).unwrap_or_else(|rejection| panic!("{rejection}"));
    let errors = update(&object(old), &object(new), gates);
    if errors.is_empty() {
        return "accepted".to_owned();
    }
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
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
    let lenient = Gates::default();
    let strict = lenient.with(Gate::RejectUpdatesToCQWithInvalidOnFlavors, true);
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
fn unknown_fields_are_warned_about() {
    let object = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "x", "lables": {}}, "spce": {},
        "spec": {"cohort": "c", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1, "borowingLimit": 1}]}]}], "xyz": 1},
    });
    let decoded = people(&object, &Gates::default()).expect("well formed");
    let found: Vec<(&str, &str)> = decoded.warnings.iter().map(|w| (w.field.as_str(), w.message.as_str())).collect();
    let quota = "spec.resourceGroups[0].flavors[0].resources[0].borowingLimit";
    assert_eq!(
        found,
        [
            ("spce", "unknown field \"spce\", did you mean \"spec\"?"),
            ("metadata.lables", "unknown field \"metadata.lables\", did you mean \"labels\"?"),
            ("spec.cohort", "unknown field \"spec.cohort\", did you mean \"cohortName\"?"),
            ("spec.xyz", "unknown field \"spec.xyz\""),
            (quota, &format!("unknown field \"{quota}\", did you mean \"borrowingLimit\"?")),
        ]
    );
    assert_eq!(
        (decoded.warnings[0].object.kind.as_str(), decoded.warnings[0].object.name.as_str()),
        ("ClusterQueue", "x")
    );
}
