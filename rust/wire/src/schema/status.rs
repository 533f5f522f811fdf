//! The Workload's status (rules/01 §6).

use serde_json::Value;

use super::kueue::tolerations;
use super::{
    Field, Pattern, Schema, field, has, int32, int32_from, items, list, map, object, one_of, quantity, reference, text,
    time,
};

pub(super) fn workload_status() -> Schema {
    let named_node = object([field("name", text().at_most(63)).required()]);
    object([
        field("conditions", conditions()),
        field("admission", admission()),
        field("requeueState", object([field("count", int32_from(0)), field("requeueAt", time())])),
        field("reclaimablePods", by_name(object([pod_set_name().required(), count().required()]), 18)),
        field("admissionChecks", by_name(admission_check(), 8)),
        field(
            "resourceRequests",
            by_name(object([pod_set_name().required(), field("resources", map(quantity()))]), 18),
        ),
        field("accumulatedPastExecutionTimeSeconds", int32()),
        field("schedulingStats", object([field("evictions", evictions())])),
        field("nominatedClusterNames", list(text().at_most(256)).at_most(20)),
        field("clusterName", text().at_most(256)),
        field("unhealthyNodes", by_name(named_node, 8)),
        field("preemptionGates", by_name(preemption_gate(), 8)),
    ])
    .rule("clusterName and nominatedClusterNames are mutually exclusive", |status| {
        !has(status, "clusterName") || items(status, "nominatedClusterNames").is_empty()
    })
}

fn by_name(item: Schema, max: usize) -> Schema {
    list(item).at_most(max).unique_by(&["name"])
}

fn pod_set_name() -> Field {
    field("name", text().at_most(63).like(Pattern::Label))
}

fn count() -> Field {
    field("count", int32_from(0))
}

fn conditions() -> Schema {
    let condition = object([
        field("type", text().at_most(316).like(Pattern::LabelKey)).required(),
        field("status", one_of(&["True", "False", "Unknown"])).required(),
        field("reason", text().at_least(1).at_most(1024).like(Pattern::Reason)).required(),
        field("message", text().at_most(32768)).required(),
        field("lastTransitionTime", time()).required(),
        field("observedGeneration", super::Schema::new(super::Shape::Integer { bits: 64, min: 0 })),
    ]);
    list(condition).at_most(16).unique_by(&["type"])
}

fn admission() -> Schema {
    let assignment = object([
        pod_set_name().default("main"),
        field("flavors", map(reference())),
        field("resourceUsage", map(quantity())),
        count(),
        field("topologyAssignment", topology_assignment()),
        field("delayedTopologyRequest", one_of(&["Pending", "Ready"]).at_most(7)),
    ]);
    object([field("clusterQueue", reference()), field("podSetAssignments", by_name(assignment, 18))])
}

const ONE_OF_TWO: &str = "exactly one of the fields in [universal individual] must be set";

fn one_of_two(value: &Value) -> bool {
    has(value, "universal") != has(value, "individual")
}

fn topology_assignment() -> Schema {
    let roots = list(text().at_most(63)).at_least(1).at_most(100_000);
    let individual = object([
        field("prefix", text().at_most(63)),
        field("suffix", text().at_most(63)),
        field("roots", roots).required(),
    ]);
    let values =
        object([field("universal", text().at_most(63)), field("individual", individual)]).rule(ONE_OF_TWO, one_of_two);
    let pod_counts = object([
        field("universal", int32_from(1)),
        field("individual", list(int32_from(1)).at_least(1).at_most(100_000)),
    ])
    .rule(ONE_OF_TWO, one_of_two);
    let slice = object([
        field("domainCount", int32_from(1)).required(),
        field("podCounts", pod_counts).required(),
        field("valuesPerLevel", list(values).at_least(1).at_most(16)).required(),
    ])
    .rule("podCounts.individual must have length equal to domainCount", |slice| {
        let counts = &slice["podCounts"];
        !has(counts, "individual") || is_domain_count(slice, items(counts, "individual").len())
    })
    .rule(
        "valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice",
        |slice| {
            items(slice, "valuesPerLevel").iter().all(|values| {
                !has(values, "individual") || is_domain_count(slice, items(&values["individual"], "roots").len())
            })
        },
    );
    object([
        field("levels", list(text().at_most(317)).at_least(1).at_most(16)).required(),
        field("slices", list(slice).at_most(1000)).required(),
    ])
    .rule(
        "valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
        |assignment| {
            let n_levels = items(assignment, "levels").len();
            items(assignment, "slices").iter().all(|slice| items(slice, "valuesPerLevel").len() == n_levels)
        },
    )
}

fn is_domain_count(slice: &Value, n: usize) -> bool {
    slice["domainCount"].as_u64() == u64::try_from(n).ok()
}

fn admission_check() -> Schema {
    let update = object([
        pod_set_name().required(),
        field("labels", map(text())),
        field("annotations", map(text())),
        field("nodeSelector", map(text())),
        field("tolerations", tolerations()),
    ]);
    object([
        field("name", text().at_least(1).at_most(316)).required(),
        field("state", one_of(&["Pending", "Ready", "Retry", "Rejected"])).required(),
        field("lastTransitionTime", time()).required(),
        field("message", text().at_most(32768)).required(),
        field("requeueAfterSeconds", int32_from(0)),
        field("retryCount", int32_from(0)),
        field("podSetUpdates", list(update).at_most(18)),
    ])
}

fn evictions() -> Schema {
    let eviction = object([
        field("reason", text().at_most(316)).required(),
        field("underlyingCause", text().at_most(316)).required(),
        count().required(),
    ]);
    list(eviction).at_most(256).unique_by(&["reason", "underlyingCause"])
}

fn preemption_gate() -> Schema {
    object([
        field("name", text().at_least(1).at_most(63)).required(),
        field("position", one_of(&["Closed", "Open"])).required(),
        field("lastTransitionTime", time()).required(),
    ])
}
