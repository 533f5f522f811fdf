//! The Workload's status (rules/01 §6).

use kueuecore::base::changes::Change;
use serde_json::Value;

use super::flavor::tolerations;
use super::rule::{self, Outcome};
use super::{
    Field, Pattern, Schema, Served, field, has, int32, int32_from, int64_from, items, list, map, object, one_of,
    quantity, reference, text, time,
};

pub(super) fn workload_status(served: Served) -> Schema {
    let (old, most) = (served.old, served.most_pod_sets());
    // v1beta1 has no bounds on these.
    let limited = |max: usize| if old { text() } else { text().at_most(max) };
    let node = object([field("name", limited(63)).required()]);
    let mut fields = vec![
        field("conditions", conditions(old)),
        field("admission", admission(old, most)),
        field("requeueState", object([field("count", int32_from(0)), field("requeueAt", time())])),
        field("reclaimablePods", by_name(object([pod_set_name().required(), count().required()]), most)),
        field("admissionChecks", by_name(admission_check(old, most), 8)),
        field(
            "resourceRequests",
            by_name(object([pod_set_name().required(), field("resources", map(quantity()))]), most),
        ),
        field("schedulingStats", object([field("evictions", evictions(old))])),
        field("nominatedClusterNames", list(limited(256)).at_most(20)),
        field("clusterName", limited(256)),
        field("unhealthyNodes", if old { list(node) } else { by_name(node, 8) }),
    ];
    if old {
        fields.push(field("accumulatedPastExexcutionTimeSeconds", int32()));
    } else {
        fields.push(field("accumulatedPastExecutionTimeSeconds", int32()));
        if served.has(Change::SchemaFieldsOf017) {
            fields.push(field("preemptionGates", by_name(preemption_gate(), 8)));
        }
    }
    object(fields)
        .on_update(
            "clusterName is immutable once set",
            "has(self.clusterName) && has(oldSelf.clusterName) ? self.clusterName == oldSelf.clusterName : true",
        )
        .rule(
            "clusterName and nominatedClusterNames are mutually exclusive",
            "!(has(self.clusterName) && has(self.nominatedClusterNames)) || size(self.nominatedClusterNames) == 0",
            |status| !has(status, "clusterName") || items(status, "nominatedClusterNames").is_empty(),
        )
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

/// The conditions of any of Kueue's kinds.
pub(super) fn conditions(old: bool) -> Schema {
    let condition = object([
        field("type", text().at_most(316).like(Pattern::LabelKey)).required(),
        field("status", one_of(&["True", "False", "Unknown"])).required(),
        field("reason", text().at_least(1).at_most(1024).like(Pattern::Reason)).required(),
        field("message", text().at_most(32768)).required(),
        field("lastTransitionTime", time()).required(),
        field("observedGeneration", int64_from(0)),
    ]);
    let conditions = list(condition).unique_by(&["type"]);
    if old { conditions } else { conditions.at_most(16) }
}

fn admission(old: bool, most_pod_sets: usize) -> Schema {
    let delayed = if old { text() } else { one_of(&["Pending", "Ready"]).at_most(7) };
    let assignment = object([
        pod_set_name().default("main"),
        field("flavors", map(reference())),
        field("resourceUsage", map(quantity())),
        count(),
        field("topologyAssignment", if old { domains() } else { topology_assignment() }),
        field("delayedTopologyRequest", delayed),
    ]);
    let needed: (&[&str], &[&str]) = if old { (&["name"], &["clusterQueue", "podSetAssignments"]) } else { (&[], &[]) };
    let assignments = by_name(assignment.needs(needed.0), most_pod_sets);
    object([field("clusterQueue", reference()), field("podSetAssignments", assignments)]).needs(needed.1)
}

/// A topology assignment of v1beta1.
fn domains() -> Schema {
    let domain = object([
        field("count", int32_from(1)).required(),
        field("values", list(text()).at_least(1).at_most(16)).required(),
    ]);
    object([
        field("levels", list(text()).at_least(1).at_most(16)).required(),
        field("domains", list(domain)).required(),
    ])
}

const ONE_OF_TWO: (&str, &str) = (
    "exactly one of the fields in [universal individual] must be set",
    "has(self.individual) ? !has(self.universal) : has(self.universal)",
);

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
    let values = object([field("universal", text().at_most(63)), field("individual", individual)]);
    let values = values.rule(ONE_OF_TWO.0, ONE_OF_TWO.1, one_of_two);
    let pod_counts = object([
        field("universal", int32_from(1)),
        field("individual", list(int32_from(1)).at_least(1).at_most(100_000)),
    ])
    .rule(ONE_OF_TWO.0, ONE_OF_TWO.1, one_of_two);
    let slice = object([
        field("domainCount", int32_from(1)).required(),
        field("podCounts", pod_counts).required(),
        field("valuesPerLevel", list(values).at_least(1).at_most(16)).required(),
    ])
    .rule(
        "podCounts.individual must have length equal to domainCount",
        "has(self.podCounts.individual) ? self.domainCount == size(self.podCounts.individual) : true",
        |slice| {
            let counts = &slice["podCounts"];
            Ok(!has(counts, "individual") || is_domain_count(slice, items(counts, "individual").len())?)
        },
    )
    .rule(
        "valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice",
        "!self.valuesPerLevel.exists(values, \
         has(values.individual) && self.domainCount != size(values.individual.roots))",
        |slice| {
            let individual = items(slice, "valuesPerLevel").iter().filter_map(|values| values.get("individual"));
            rule::all(individual, |values| is_domain_count(slice, items(values, "roots").len()).into())
        },
    );
    object([
        field("levels", list(text().at_most(317)).at_least(1).at_most(16)).required(),
        field("slices", list(slice).at_most(1000)).required(),
    ])
    .rule(
        "valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
        "!self.slices.exists(slice, size(slice.valuesPerLevel) != size(self.levels))",
        |assignment| {
            let n_levels = items(assignment, "levels").len();
            items(assignment, "slices").iter().all(|slice| items(slice, "valuesPerLevel").len() == n_levels)
        },
    )
}

fn is_domain_count(slice: &Value, n: usize) -> Result<bool, Outcome> {
    rule::has_integer(slice, "domainCount")?;
    Ok(slice["domainCount"].as_u64() == u64::try_from(n).ok())
}

fn admission_check(old: bool, most_pod_sets: usize) -> Schema {
    let update = object([
        pod_set_name().required(),
        field("labels", map(text())),
        field("annotations", map(text())),
        field("nodeSelector", map(text())),
        field("tolerations", tolerations()),
    ]);
    object([
        field("name", text().at_least(usize::from(!old)).at_most(316)).required(),
        field("state", one_of(&["Pending", "Ready", "Retry", "Rejected"])).required(),
        field("lastTransitionTime", time()).required(),
        field("message", text().at_most(32768)).required(),
        field("requeueAfterSeconds", int32_from(0)),
        field("retryCount", int32_from(0)),
        field("podSetUpdates", list(update).at_most(most_pod_sets)),
    ])
}

fn evictions(old: bool) -> Schema {
    let eviction = object([
        field("reason", text().at_most(316)).required(),
        field("underlyingCause", text().at_most(316)).required(),
        count().required(),
    ]);
    let evictions = list(eviction).unique_by(&["reason", "underlyingCause"]);
    if old { evictions } else { evictions.at_most(256) }
}

fn preemption_gate() -> Schema {
    object([
        field("name", text().at_least(1).at_most(63)).required(),
        field("position", one_of(&["Closed", "Open"])).required(),
        field("lastTransitionTime", time()).required(),
    ])
}
