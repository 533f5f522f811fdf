//! The statuses of Kueue's other kinds (rules/01 §1-3). Decisions do not depend on them.

use kueuecore::base::changes::Change;

use super::flavor::{node_labels, node_taints, resource_groups};
use super::status;
use super::{
    Field, Schema, Served, field, fields, int32, int64, list, map, object, quantity, reference, text, texts, time,
};

/// Counts, usages and shares of a ClusterQueue.
pub(super) fn cluster_queue(served: Served) -> Schema {
    let old = served.old;
    let usages = || usages(&["total", "borrowed"], 64);
    let queue =
        object(counts(old)).with([field("flavorsReservation", usages()), field("flavorsUsage", usages()), share(old)]);
    if !old {
        return queue.with(effective_quotas(served)).lists_alone();
    }
    let workload = object(fields(&["name", "namespace"], text)).needs(&["name", "namespace"]);
    let pending =
        object([field("clusterQueuePendingWorkload", list(workload)), field("lastChangeTime", time()).required()]);
    queue.with([field("pendingWorkloadsStatus", pending)]).lists_alone()
}

/// The same for a LocalQueue.
pub(super) fn local_queue(served: Served) -> Schema {
    let old = served.old;
    let most = if served.has(Change::LocalQueueStatusLimit64) { 64 } else { 16 };
    let usages = || usages(&["total"], most);
    // Its usage has bounds in both versions.
    let queue = object(counts(old)).with([field("flavorsReservation", usages()), share(true)]);
    if !old {
        return queue.with([field("flavorsUsage", usages())]).lists_alone();
    }
    let topology = object([
        field("name", reference()).required(),
        field("levels", list(text()).at_least(1).at_most(16)).required(),
    ]);
    let flavor = object([
        field("name", reference()).required(),
        field("resources", texts().at_most(most).unique()),
        field("nodeLabels", node_labels()),
        field("nodeTaints", node_taints()),
        field("topology", topology),
    ]);
    let flavors = list(flavor).at_most(most).unique_by(&["name"]);
    queue.with([field("flavorUsage", usages()), field("flavors", flavors)]).lists_alone()
}

/// The share of a Cohort.
pub(super) fn cohort(served: Served) -> Schema {
    object([share(served.old)]).with(effective_quotas(served)).lists_alone()
}

/// The quotas that take the place of those of the spec.
fn effective_quotas(served: Served) -> Option<Field> {
    let is_known = !served.old && served.has(Change::SchemaFieldsOf020);
    is_known.then(|| field("effectiveQuotas", object([field("resourceGroups", resource_groups())])))
}

/// A status with nothing but conditions.
pub(super) fn with_conditions(old: bool) -> Schema {
    object([field("conditions", status::conditions(old))]).lists_alone()
}

fn counts(old: bool) -> impl Iterator<Item = Field> {
    let counts = fields(&["pendingWorkloads", "reservingWorkloads", "admittedWorkloads"], int32);
    counts.chain([field("conditions", status::conditions(old))])
}

/// Usage of each flavor, under these names; at most so many flavors, and resources of each.
fn usages(amounts: &[&'static str], most: usize) -> Schema {
    let resource = object([field("name", text()).required()]).with(fields(amounts, quantity));
    let usage = object([
        field("name", reference()).required(),
        field("resources", list(resource).at_most(most).unique_by(&["name"])).required(),
    ]);
    list(usage).at_most(most).unique_by(&["name"])
}

/// The share that fair sharing uses, and the usage so far.
fn share(with_history: bool) -> Field {
    let share = object([field("weightedShare", int64()).required()]);
    if !with_history {
        return field("fairSharing", share);
    }
    let used = object([field("consumedResources", map(quantity())).required(), field("lastUpdate", time()).required()]);
    field("fairSharing", share.with([field("admissionFairSharingStatus", used)]))
}
