//! ClusterQueues and Cohorts.

use kueuecore::base::gates::{Gate, Gates};
use serde_json::{Value, json};

use super::*;

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
                "{QUOTA}.nominalQuota: Invalid value: \"boolean\": {QUOTA}.nominalQuota in body must be of type integer,string: \"boolean\"\n<nil>: Invalid value: \"\": \"{QUOTA}.nominalQuota\" must validate at least one schema (anyOf)\n{QUOTA}.nominalQuota: Invalid value: \"boolean\": {QUOTA}.nominalQuota in body must be of type integer: \"boolean\"\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
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
