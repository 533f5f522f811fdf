//! What Kueue's gauge metrics show of an engine, as JSON (rules/09 §10). Numbers are in whole units; null is infinite.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::amount::Amount;
use kueuecore::base::gates::Gate;
use kueuecore::base::ids::{CohortId, FlavorResourceId, LocalQueueId, QueueId, ShapeId, WorkloadId};
use kueuecore::objects::conditions;
use kueuecore::objects::variants::is_variant;
use kueuecore::objects::{ConditionStatus, Workload};
use kueuecore::quota::forest::NodeId;
use kueuecore::state::State;
use kueuecore::state::queue_counts::LocalUsage;
use kueuecore::state::records::{Owner, QueueRecord};
use kueuecore::status::reasons;
use kueuecore::status::stage::Stage;
use serde_json::{Map, Value, json};

/// Counts: in the heap or in flight, and parked.
type Waiting = [usize; 2];

/// Counts from one pass over the workloads.
#[derive(Default)]
struct Counts {
    waiting_in: BTreeMap<LocalQueueId, Waiting>,
    finished_in: BTreeMap<LocalQueueId, usize>,
    finished_of: BTreeMap<QueueId, usize>,
    shapes: BTreeMap<QueueId, [BTreeSet<ShapeId>; 2]>,
    requested: BTreeMap<QueueId, BTreeMap<String, i64>>,
    unadmitted: BTreeMap<(LocalQueueId, String, String), usize>,
    /// The place of each pending or admitted workload, if requested.
    places: Vec<Value>,
}

/// Gauges of queues and cohorts: `clusterQueues`, `localQueues`, `cohorts`, `unadmitted`. With `lists_workloads` also
/// `workloads`: namespace, name, LocalQueue, ClusterQueue and place of those that are pending or admitted.
#[must_use]
pub fn gauges(state: &State, lists_workloads: bool) -> Value {
    let counts = counts(state, lists_workloads);
    let mut reserved: BTreeMap<NodeId, BTreeMap<FlavorResourceId, Amount>> = BTreeMap::new();
    let mut queues = Vec::new();
    for (id, record) in state.queues.ids().zip(state.queues.iter()) {
        if let (Some(_), Some(node)) = (&record.object, record.node) {
            add_reserved(state, node, &mut reserved);
            queues.push(cluster_queue(state, id, record, node, &counts));
        }
    }
    let local_queues: Vec<Value> = state.local_queues.ids().filter_map(|id| local_queue(state, id, &counts)).collect();
    let cohorts: Vec<Value> = state.cohorts.ids().filter_map(|id| cohort(state, id, &reserved)).collect();
    let unadmitted = counts.unadmitted.iter().map(|((local_queue, reason, cause), n)| {
        let (namespace, name) = &state.names.local_queues[*local_queue];
        let queue = state.local_queues[*local_queue].running().map_or("", |object| object.cluster_queue.as_str());
        json!([namespace, name.as_str(), queue, reason, cause, n])
    });
    json!({
        "clusterQueues": queues,
        "localQueues": local_queues,
        "cohorts": cohorts,
        "unadmitted": unadmitted.collect::<Vec<_>>(),
        "workloads": counts.places,
    })
}

fn counts(state: &State, lists_workloads: bool) -> Counts {
    let mut counts = Counts::default();
    for (id, record) in state.workloads.iter() {
        let local_queue = record.row.local_queue;
        let waits = waiting_in(state, id);
        if let Some((queue, place)) = waits {
            counts.waiting_in.entry(local_queue).or_default()[place] += 1;
            if let Some(shape) = record.row.shape {
                counts.shapes.entry(queue).or_default()[place].insert(shape);
            }
            let requested = counts.requested.entry(queue).or_default();
            for &(resource, value) in record.totals.iter().flat_map(|totals| &totals.requests) {
                let name = state.names.resource_text(resource);
                match requested.get_mut(name) {
                    Some(total) => *total = total.saturating_add(value),
                    None => drop(requested.insert(name.to_owned(), value)),
                }
            }
        }
        let charge = record.charge.as_ref().filter(|charge| charge.admitted);
        if lists_workloads && let Some(queue) = waits.map(|(queue, _)| queue).or(charge.map(|charge| charge.queue)) {
            let place = waits.map_or("admitted", |(_, place)| if place == 0 { "active" } else { "inadmissible" });
            let (namespace, name) = (record.key().namespace(), record.key().name());
            let queues = [record.workload.queue_name.as_str(), state.names.queues[queue].as_str()];
            counts.places.push(json!([namespace, name, queues[0], queues[1], place]));
        }
        count_stage(state, local_queue, &record.workload, &mut counts);
    }
    counts
}

/// The ClusterQueue in which a workload waits, and how; in an inactive one all workloads count as parked.
fn waiting_in(state: &State, id: WorkloadId) -> Option<(QueueId, usize)> {
    let queue = state.workloads.row(id).queued_in?;
    let record = &state.queues[queue];
    let is_active = record.pending.is_inflight(id) || record.pending.is_active(&state.pending.places, id);
    Some((queue, usize::from(!is_active || record.status_name() != "active")))
}

/// Counts a workload as finished or as not admitted. A stopped LocalQueue has neither.
fn count_stage(state: &State, local_queue: LocalQueueId, workload: &Workload, counts: &mut Counts) {
    let Some(object) = state.local_queues[local_queue].running() else { return };
    match Stage::of(workload) {
        Stage::Finished if !(state.gate(Gate::ConcurrentAdmission) && is_variant(workload)) => {
            *counts.finished_in.entry(local_queue).or_default() += 1;
            if let Some(queue) = state.find_queue(&object.cluster_queue) {
                *counts.finished_of.entry(queue).or_default() += 1;
            }
        }
        Stage::Pending | Stage::QuotaReserved if !is_variant(workload) && !workload.meta.details.deleting => {
            let find = |kind| conditions::find(&workload.status.conditions, kind);
            let reason = find(conditions::ADMITTED).map_or(reasons::NO_RESERVATION, |it| it.reason.as_str());
            let cause = match find(conditions::QUOTA_RESERVED) {
                None => reasons::PENDING_EVALUATION,
                Some(it) if it.status == ConditionStatus::True => "",
                Some(it) => it.reason.as_str(),
            };
            *counts.unadmitted.entry((local_queue, reason.to_owned(), cause.to_owned())).or_default() += 1;
        }
        _ => {}
    }
}

/// Adds what a ClusterQueue holds to the cohorts above it. Lending limits do not count here.
fn add_reserved(state: &State, node: NodeId, reserved: &mut BTreeMap<NodeId, BTreeMap<FlavorResourceId, Amount>>) {
    if state.ledger.forest.has_cycle(node) {
        return;
    }
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    for above in state.ledger.forest.path(node).skip(1) {
        let total = reserved.entry(above).or_default();
        for (column, &fr) in tree.columns().iter().enumerate() {
            let usage = tree.usage(row, column);
            if usage != Amount::ZERO {
                let sum = total.entry(fr).or_default();
                *sum = sum.plus(usage);
            }
        }
    }
}

fn cluster_queue(state: &State, id: QueueId, record: &QueueRecord, node: NodeId, counts: &Counts) -> Value {
    let pending = &record.pending;
    let n_active = pending.n_active() + usize::from(pending.inflight().is_some());
    let is_active = record.status_name() == "active";
    let waiting =
        if is_active { [n_active, pending.n_inadmissible()] } else { [0, n_active + pending.n_inadmissible()] };
    let mut row = json!({
        "name": state.names.queues[id].as_str(),
        "cohort": record.object.as_ref().map_or("", |object| object.cohort_name.as_str()),
        "parent": parent(state, node),
        "root": root(state, node),
        "status": record.status_name(),
        "pending": waiting,
        "reserving": record.n_reserving,
        "admitted": record.n_admitted,
        "finished": counts.finished_of.get(&id).copied().unwrap_or_default(),
        "pendingResources": pending_resources(state, record, counts.requested.get(&id)),
        "quotas": quotas(state, record, node),
    });
    if state.gate(Gate::SchedulingEquivalenceHashing) {
        let n_shapes = counts.shapes.get(&id).map_or([0, 0], |shapes| [shapes[0].len(), shapes[1].len()]);
        row["shapes"] = json!(n_shapes);
    }
    put_share(state, node, &mut row);
    row
}

fn put_share(state: &State, node: NodeId, row: &mut Value) {
    if state.config.fair_sharing.is_some() {
        let (tree, at) = state.ledger.forest.locate(node);
        let resources = state.ledger.forest.resources_of(tree);
        let share = state.ledger.forest.tree(tree).share(at, state.ledger.forest.weight(node), resources, &[]);
        row["weightedShare"] = finite(share.weighted());
    }
}

/// Pending requests by resource; the resources of the ClusterQueue are always listed.
fn pending_resources(
    state: &State,
    record: &QueueRecord,
    requested: Option<&BTreeMap<String, i64>>,
) -> Map<String, Value> {
    let pairs = record.node.into_iter().flat_map(|node| state.ledger.forest.quotas(node).keys());
    let own = pairs.map(|&pair| state.names.resource_text(state.names.parts(pair).1));
    let mut all: Map<String, Value> = own.map(|name| (name.to_owned(), json!(0.0))).collect();
    for (name, &value) in requested.into_iter().flatten() {
        // Kueue makes a Quantity of it, whose value is a product with a power of ten.
        let units = if name == "cpu" { float(value) * 1e-3 } else { float(value) };
        all.insert(name.clone(), json!(units));
    }
    all
}

/// Flavor, resource, nominal quota, limits, reserved and admitted usage, for what the spec names.
fn quotas(state: &State, record: &QueueRecord, node: NodeId) -> Vec<Value> {
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let cell = |(&pair, quota): (&FlavorResourceId, &kueuecore::quota::tree::Quota)| {
        let (flavor, resource) = flavor_and_resource(state, pair);
        let limit = |limit: Option<Amount>| limit.map_or(Value::Null, |amount| units(resource, amount));
        let reserved = tree.column(pair).map_or(Amount::ZERO, |column| tree.usage(row, column));
        json!([
            flavor,
            resource,
            units(resource, quota.nominal),
            limit(quota.borrowing_limit),
            limit(quota.lending_limit),
            units(resource, reserved),
            units(resource, record.admitted_usage.get(pair)),
        ])
    };
    state.ledger.forest.quotas(node).iter().map(cell).collect()
}

fn local_queue(state: &State, id: LocalQueueId, counts: &Counts) -> Option<Value> {
    let record = &state.local_queues[id];
    let object = record.object.as_ref()?;
    let (namespace, name) = &state.names.local_queues[id];
    let is_running = record.running().is_some();
    let queue = state.find_queue(&object.cluster_queue);
    let is_active = is_running && queue.is_some_and(|queue| state.queues[queue].is_active());
    let mut row = json!({
        "namespace": namespace,
        "name": name.as_str(),
        "clusterQueue": object.cluster_queue.as_str(),
        "isActive": is_active,
    });
    if is_running {
        row["pending"] = json!(counts.waiting_in.get(&id).copied().unwrap_or_default());
        row["finished"] = json!(counts.finished_in.get(&id).copied().unwrap_or_default());
        if state.admission_fair_sharing().is_some() && record.account.is_some() {
            row["fairSharingUsage"] = finite(state.local_queue_usage(id));
        }
    }
    if let Some(queue) = queue {
        let nothing = LocalUsage::default();
        let usage = state.queues[queue].usage_of(id).unwrap_or(&nothing);
        row["reserving"] = json!(usage.n_reserving);
        row["admitted"] = json!(usage.n_admitted);
        let pairs = state.queues[queue].node.into_iter().flat_map(|node| state.ledger.forest.quotas(node).keys());
        let amounts = pairs.map(|&pair| {
            let (flavor, resource) = flavor_and_resource(state, pair);
            let [reserved, admitted] = [&usage.reserved, &usage.admitted].map(|of| units(resource, of.get(pair)));
            json!([flavor, resource, reserved, admitted])
        });
        row["usage"] = Value::Array(amounts.collect());
    }
    Some(row)
}

/// A Cohort that exists or is referenced; in a tree with a cycle it has no numbers.
fn cohort(
    state: &State,
    id: CohortId,
    reserved: &BTreeMap<NodeId, BTreeMap<FlavorResourceId, Amount>>,
) -> Option<Value> {
    let record = &state.cohorts[id];
    let node = record.node.filter(|&node| !state.ledger.forest.has_cycle(node))?;
    let (tree, at) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let list = |amounts: &mut dyn Iterator<Item = (FlavorResourceId, Amount)>| -> Vec<Value> {
        let more = amounts.filter(|&(_, amount)| amount > Amount::ZERO);
        more.map(|(pair, amount)| {
            let (flavor, resource) = flavor_and_resource(state, pair);
            json!([flavor, resource, units(resource, amount)])
        })
        .collect()
    };
    let quotas = &mut tree.columns().iter().enumerate().map(|(column, &pair)| (pair, tree.subtree_quota(at, column)));
    let below = reserved.get(&node);
    let mut row = json!({
        "name": state.names.cohorts[id],
        "parent": parent(state, node),
        "root": root(state, node),
        "quotas": list(quotas),
        "reserved": list(&mut below.into_iter().flatten().map(|(&pair, &amount)| (pair, amount))),
    });
    if record.object.is_some() {
        put_share(state, node, &mut row);
    }
    Some(row)
}

fn cohort_name(state: &State, node: Option<NodeId>) -> &str {
    match node.and_then(|node| state.ledger.owner(node)) {
        Some(Owner::Cohort(id)) => &state.names.cohorts[id],
        _ => "",
    }
}

/// The cohort above a node; empty if there is none, or in a cycle.
fn parent(state: &State, node: NodeId) -> &str {
    cohort_name(state, state.ledger.forest.parent(node).filter(|_| !state.ledger.forest.has_cycle(node)))
}

/// The root cohort above a node, or itself if it is one; empty if there is none, or in a cycle.
fn root(state: &State, node: NodeId) -> &str {
    cohort_name(state, state.ledger.forest.root(node))
}

fn flavor_and_resource(state: &State, pair: FlavorResourceId) -> (&str, &str) {
    let (flavor, resource) = state.names.parts(pair);
    (&state.names.flavors[flavor], state.names.resource_text(resource))
}

#[allow(clippy::cast_precision_loss)] // as Kueue does it
fn float(value: i64) -> f64 {
    value as f64
}

/// An amount in whole units: Kueue divides milli-units of cpu by 1000.
fn units(resource: &str, amount: Amount) -> Value {
    if amount.is_unlimited() {
        return Value::Null;
    }
    json!(if resource == "cpu" { float(amount.get()) / 1000.0 } else { float(amount.get()) })
}

fn finite(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}
