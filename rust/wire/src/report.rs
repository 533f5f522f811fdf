//! The engine's state as JSON: statuses as the API server would show them, queues, quota and usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use kueuecore::assign::Usage;
use kueuecore::base::amount::Amount;
use kueuecore::base::ids::{CohortId, FlavorId, FlavorResourceId, LocalQueueId, WorkloadId};
use kueuecore::base::text::Text;
use kueuecore::objects::conditions;
use kueuecore::objects::resource_names::quantity_from_value;
use kueuecore::objects::{LocalQueue, ResourceGroup, StopPolicy};
use kueuecore::quota::forest::NodeId;
use kueuecore::quota::usage_report::{FlavorUsage, flavor_usages};
use kueuecore::state::State;
use kueuecore::state::admission_fair_sharing::Account;
use kueuecore::state::changed_queues::Changed;
use kueuecore::state::queue_counts::LocalUsage;
use kueuecore::state::records::QueueRecord;
use kueuecore::state::site_report::{DomainCapacity, PlacedPods, Placement, Room};
use kueuecore::status::stage::Stage;
use serde_json::{Map, Value, json};

use crate::encode;
use crate::time::format_time;

/// A quantity of a resource as Kueue writes it; unlimited is null.
pub(crate) fn quantity(resource: &str, amount: Amount) -> Value {
    if amount.is_unlimited() { Value::Null } else { used(resource, amount) }
}

/// As [`quantity`], but for usage: a saturated sum is still a number.
pub(crate) fn used(resource: &str, amount: Amount) -> Value {
    Value::String(quantity_from_value(resource, amount.get(), false).to_string())
}

fn usage_list(report: &[FlavorUsage], with_borrowed: bool) -> Value {
    let resources = |flavor: &FlavorUsage| -> Vec<Value> {
        flavor
            .resources
            .iter()
            .map(|r| {
                let mut entry = json!({"name": r.name, "total": used(&r.name, r.total)});
                if with_borrowed {
                    entry["borrowed"] = used(&r.name, r.borrowed);
                }
                entry
            })
            .collect()
    };
    report.iter().map(|f| json!({"name": f.name, "resources": resources(f)})).collect()
}

fn pair(state: &State, flavor: &str, resource: &str) -> Option<FlavorResourceId> {
    let flavor = state.names.flavors.find(flavor)?;
    state.names.find_flavor_resource(flavor, state.names.find_resource(resource)?)
}

/// `status` of a ClusterQueue (rules/01 §1). `None` if there is no such object.
#[must_use]
pub fn cluster_queue_status(state: &State, name: &str) -> Option<Value> {
    let id = state.find_queue(name)?;
    let record = &state.queues[id];
    let object = record.object.as_ref()?;
    let node = record.node?;
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let column = |flavor: &str, resource: &str| pair(state, flavor, resource).and_then(|fr| tree.column(fr));
    let nominal = |f: &str, r: &str| column(f, r).map_or(Amount::ZERO, |c| tree.nominal(row, c));
    let reserved = |f: &str, r: &str| column(f, r).map_or(Amount::ZERO, |c| tree.usage(row, c));
    let admitted = |f: &str, r: &str| pair(state, f, r).map(|fr| record.admitted_usage.get(fr)).unwrap_or_default();
    let has_cohort = !object.cohort_name.is_empty();
    let pending = &record.pending;
    let mut status = json!({
        "flavorsReservation": usage_list(&flavor_usages(&object.resource_groups, has_cohort, reserved, nominal), true),
        "flavorsUsage": usage_list(&flavor_usages(&object.resource_groups, has_cohort, admitted, nominal), true),
        "pendingWorkloads": pending.n_active() + pending.n_inadmissible() + usize::from(pending.inflight().is_some()),
        "reservingWorkloads": record.n_reserving,
        "admittedWorkloads": record.n_admitted,
    });
    if let Some(activeness) = &record.activeness {
        status["conditions"] = json!([{
            "type": "Active",
            "status": if activeness.is_active() { "True" } else { "False" },
            "reason": activeness.reason,
            "message": activeness.message,
        }]);
    }
    if state.config.fair_sharing.is_some() {
        status["fairSharing"] = json!({"weightedShare": share(state, node)});
    }
    Some(status)
}

/// The rounded weighted share of a node (rules/02 §6).
fn share(state: &State, node: NodeId) -> i64 {
    let (tree, row) = state.ledger.forest.locate(node);
    let resources = state.ledger.forest.resources_of(tree);
    state.ledger.forest.tree(tree).share(row, state.ledger.forest.weight(node), resources, &[]).rounded()
}

/// `status` of a Cohort: its share, with fair sharing. `None` if there is no such object.
#[must_use]
pub fn cohort_status(state: &State, name: &str) -> Option<Value> {
    let record = &state.cohorts[state.names.cohorts.find(name)?];
    record.object.as_ref()?;
    let mut status = json!({});
    if let Some(node) = record.node.filter(|_| state.config.fair_sharing.is_some()) {
        status["fairSharing"] = json!({"weightedShare": share(state, node)});
    }
    Some(status)
}

/// The condition Active of a LocalQueue (rules/01 §2).
fn local_activity(object: &LocalQueue, queue: Option<&QueueRecord>) -> Value {
    let (status, reason, message) = match queue {
        _ if object.stop_policy != StopPolicy::None => ("False", "Stopped", "LocalQueue is stopped"),
        None => ("False", "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"),
        Some(queue) if queue.is_active() => ("True", "Ready", "Can submit new workloads to localQueue"),
        Some(_) => ("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"),
    };
    json!([{"type": "Active", "status": status, "reason": reason, "message": message}])
}

/// `status.fairSharing` of a LocalQueue, if it has an account: the current account without entry penalties.
fn local_fair_sharing(account: &Account) -> Value {
    json!({
        "weightedShare": 0,
        "admissionFairSharingStatus": {
            "consumedResources": encode::resource_list(&account.consumed),
            "lastUpdate": format_time(account.last_update),
        },
    })
}

/// The accounts of admission fair sharing by `namespace/name` of their LocalQueues, with the entry penalties that are
/// not yet in the history (rules/09 §1.3).
#[must_use]
pub fn local_queue_accounts(state: &State) -> Map<String, Value> {
    let mut accounts = Map::new();
    for ((namespace, name), record) in state.names.local_queues.iter().zip(state.local_queues.iter()) {
        let Some(account) = &record.account else { continue };
        let mut entry = json!({
            "consumed": encode::resource_list(&account.consumed),
            "lastUpdate": format_time(account.last_update),
        });
        let penalty = account.penalty();
        if !penalty.is_empty() {
            entry["pendingPenalty"] = encode::resource_list(&penalty);
        }
        accounts.insert(format!("{namespace}/{name}"), entry);
    }
    accounts
}

/// `status` of a LocalQueue. `None` if there is no such object.
#[must_use]
pub fn local_queue_status(state: &State, namespace: &str, name: &str) -> Option<Value> {
    let id = state.names.find_local_queue(namespace, name)?;
    let object = state.local_queues[id].object.as_ref()?;
    let queue = state.find_queue(&object.cluster_queue).map(|queue| &state.queues[queue]);
    let mut status = json!({
        "conditions": local_activity(object, queue),
        "pendingWorkloads": state.n_pending_in(id),
    });
    // An account opened by a reservation has not yet read the history in the status.
    if let Some(account) = state.local_queues[id].account.as_ref().filter(|account| account.status_accounted) {
        status["fairSharing"] = local_fair_sharing(account);
    }
    let nothing = LocalUsage::default();
    let usage = queue.and_then(|queue| queue.usage_of(id)).unwrap_or(&nothing);
    let groups: &[ResourceGroup] =
        queue.and_then(|queue| queue.object.as_ref()).map_or(&[], |object| object.resource_groups.as_slice());
    let list = |of: &Usage| {
        let used = |f: &str, r: &str| pair(state, f, r).map(|fr| of.get(fr)).unwrap_or_default();
        usage_list(&flavor_usages(groups, false, used, |_, _| Amount::ZERO), false)
    };
    status["reservingWorkloads"] = json!(usage.n_reserving);
    status["admittedWorkloads"] = json!(usage.n_admitted);
    status["flavorsReservation"] = list(&usage.reserved);
    status["flavorsUsage"] = list(&usage.admitted);
    Some(status)
}

/// Kind, namespace and name of objects whose status may have changed (see `Engine::take_changed_queues`):
/// ClusterQueues, LocalQueues, Cohorts, each by name.
#[must_use]
pub fn changed_queues(state: &State, changed: &Changed) -> Vec<(&'static str, String, String)> {
    let queues = changed.queues.iter().map(|id| ("ClusterQueue", String::new(), state.names.queues[id].to_string()));
    let local_queues = changed.local_queues.iter().map(|id| {
        let (namespace, name) = &state.names.local_queues[id];
        ("LocalQueue", namespace.to_string(), name.to_string())
    });
    let cohorts = changed.cohorts.iter().map(|id| ("Cohort", String::new(), state.names.cohorts[id].clone()));
    [sorted(queues), sorted(local_queues), sorted(cohorts)].concat()
}

/// Quota and usage of every node, as columns: one row per node and flavor-resource that the node or a descendant
/// declares or uses. Amounts are quantities in text; null means unlimited, or no limit set.
#[must_use]
pub fn quota_rows(state: &State) -> Vec<Map<String, Value>> {
    let mut rows = Vec::new();
    for name in sorted(state.names.queues.iter()) {
        let Some(id) = state.find_queue(name) else { continue };
        if let Some(node) = state.queues[id].node {
            node_rows(state, "ClusterQueue", name, node, &mut rows);
        }
    }
    for name in sorted(state.names.cohorts.iter()) {
        let id: Option<CohortId> = state.names.cohorts.find(name.as_str());
        if let Some(node) = id.and_then(|id| state.cohorts[id].node) {
            node_rows(state, "Cohort", name, node, &mut rows);
        }
    }
    rows
}

/// The names of the ClusterQueues that exist, sorted.
#[must_use]
pub fn cluster_queue_names(state: &State) -> Vec<String> {
    sorted(state.names.queues.iter())
        .into_iter()
        .filter(|name| state.find_queue(name).is_some())
        .map(Text::to_string)
        .collect()
}

fn sorted<T: Ord>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn node_rows(state: &State, kind: &str, name: &str, node: NodeId, rows: &mut Vec<Map<String, Value>>) {
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let parent = state.ledger.forest.parent(node).and_then(|p| state.ledger.owner(p)).and_then(|owner| match owner {
        kueuecore::state::records::Owner::Cohort(id) => Some(state.names.cohorts[id].clone()),
        kueuecore::state::records::Owner::Queue(_) => None,
    });
    let mut of_node: Vec<(String, String, usize)> = Vec::new();
    for (column, &fr) in tree.columns().iter().enumerate() {
        if tree.is_declared(row, column) || tree.usage(row, column) != Amount::ZERO {
            let (flavor, resource) = state.names.parts(fr);
            of_node.push((state.names.flavors[flavor].clone(), state.names.resource_text(resource).to_owned(), column));
        }
    }
    of_node.sort();
    for (flavor, resource, column) in of_node {
        let quota = tree.quota(row, column);
        let amount = |a: Amount| quantity(&resource, a);
        let over = tree.usage(row, column).minus(tree.subtree_quota(row, column)).max(Amount::ZERO);
        let borrowed = if parent.is_some() { over } else { Amount::ZERO };
        let value = json!({
            "kind": kind,
            "name": name,
            "parent": parent,
            "flavor": flavor,
            "resource": resource,
            "nominal": amount(quota.nominal),
            "borrowingLimit": quota.borrowing_limit.map_or(Value::Null, amount),
            "lendingLimit": quota.lending_limit.map_or(Value::Null, amount),
            "subtreeQuota": amount(tree.subtree_quota(row, column)),
            "usage": used(&resource, tree.usage(row, column)),
            "available": amount(tree.available(row, column)),
            "potentialAvailable": amount(tree.potential_available(row, column)),
            "borrowed": used(&resource, borrowed),
        });
        if let Value::Object(map) = value {
            rows.push(map);
        }
    }
}

/// Capacity of every domain of every flavor with known nodes, one row per resource (rules/08 §4): flavors by name,
/// levels from the top, domains in path order, resources by name. Amounts are quantities in text.
#[must_use]
pub fn capacity_rows(state: &mut State) -> Value {
    let rows = |domain: &DomainCapacity| -> Vec<Value> {
        let amount = |resource: &str, value: i64| quantity_from_value(resource, value, false).to_string();
        let row = |resource: &str, room: &Room| {
            json!({
                "flavor": domain.flavor,
                "topology": domain.topology,
                "level": domain.level,
                "path": domain.path,
                "nNodes": domain.n_nodes,
                "resource": resource,
                "allocatable": amount(resource, room.allocatable),
                "outside": amount(resource, room.outside),
                "used": amount(resource, room.used),
                "free": amount(resource, room.free()),
            })
        };
        domain.resources.iter().map(|(resource, room)| row(resource, room)).collect()
    };
    state.domain_capacities().iter().flat_map(rows).collect()
}

/// Where the pods of admitted workloads with a topology assignment are placed.
#[must_use]
pub fn placement_rows(state: &mut State) -> Value {
    let domain = |it: &PlacedPods| json!({"values": it.values, "path": it.path.as_deref().unwrap_or_default(), "count": it.count});
    let row = |it: &Placement| {
        json!({
            "namespace": it.workload.0,
            "name": it.workload.1,
            "podSet": it.pod_set,
            "flavor": it.flavor,
            "levels": it.levels,
            "domains": it.domains.iter().map(domain).collect::<Vec<_>>(),
        })
    };
    state.placements().iter().map(row).collect()
}

/// What placed workloads take from the nodes of each flavor: `{flavor: {domain: {resource: quantity}}}`. Other than in
/// [`capacity_rows`], flavors that share nodes do not count what others take.
#[must_use]
pub fn topology_usage(state: &State) -> Value {
    let mut usage: BTreeMap<(FlavorId, Arc<str>, &str), i64> = BTreeMap::new();
    for (_, record) in state.workloads.iter() {
        for stand in record.charge.iter().flat_map(|charge| charge.stands.iter()) {
            for flavor in stand.flavors.iter().filter(|flavor| state.nodes.sites.has(**flavor)) {
                for (id, n) in stand.domains() {
                    for (resource, value) in &*stand.per_pod {
                        *usage.entry((*flavor, Arc::clone(&id), resource)).or_default() += value * n;
                    }
                }
            }
        }
    }
    let mut shown = json!({});
    for ((flavor, id, resource), value) in usage.into_iter().filter(|(_, value)| *value != 0) {
        shown[&state.names.flavors[flavor]][&*id][resource] = used(resource, Amount::new(value));
    }
    shown
}

/// The pending workloads of a ClusterQueue in queue order, parked ones included (rules/12 §2). `None` if there is no
/// such object.
#[must_use]
pub fn pending_workloads(state: &State, name: &str) -> Option<Vec<Value>> {
    let queue = state.find_queue(name)?;
    let pending = &state.queues[queue].pending;
    let mut all: Vec<(WorkloadId, &str)> = pending.active().map(|id| (id, "active")).collect();
    all.extend(pending.inadmissible().map(|id| (id, "inadmissible")));
    let usage = |id: WorkloadId| match pending.is_usage_based {
        true => state.local_queue_usage(state.workloads.row(id).local_queue),
        false => 0.0,
    };
    let keyed = all.into_iter().map(|(id, place)| ((usage(id), pending.key(&state.item(id))), id, place));
    let mut keyed: Vec<_> = keyed.collect();
    keyed.sort_by(|(a, ..), (b, ..)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let mut in_local_queue: BTreeMap<LocalQueueId, usize> = BTreeMap::new();
    let rows = keyed.into_iter().enumerate().map(|(position, (_, id, place))| {
        let record = state.workloads.get(id);
        let local = in_local_queue.entry(record.row.local_queue).or_default();
        let row = json!({
            "namespace": record.key().namespace(),
            "name": record.key().name(),
            "priority": record.workload.priority.unwrap_or_default(),
            "localQueue": record.workload.queue_name.as_str(),
            "positionInClusterQueue": position,
            "positionInLocalQueue": *local,
            "place": place,
        });
        *local += 1;
        row
    });
    Some(rows.collect())
}

/// A word for the state of a workload, its ClusterQueue, and Kueue's message.
#[must_use]
pub fn workload_row(state: &State, id: WorkloadId) -> Value {
    let record = state.workloads.get(id);
    let workload = &record.workload;
    let stage = match Stage::of(workload) {
        Stage::Pending => "Pending",
        Stage::QuotaReserved => "QuotaReserved",
        Stage::Admitted => "Admitted",
        Stage::Finished => "Finished",
    };
    let admitted_by = workload.status.admission.as_ref().map(|a| a.cluster_queue.as_str());
    let queue = admitted_by.or_else(|| {
        let local_queue = state.local_queues[record.row.local_queue].object.as_ref()?;
        Some(local_queue.cluster_queue.as_str())
    });
    let condition = |kind| conditions::find(&workload.status.conditions, kind);
    let decisive = [conditions::FINISHED, conditions::EVICTED, conditions::ADMITTED, conditions::QUOTA_RESERVED]
        .into_iter()
        .filter_map(condition)
        .find(|c| c.status == kueuecore::objects::ConditionStatus::True)
        .filter(|_| stage != "Pending")
        .or_else(|| condition(conditions::QUOTA_RESERVED));
    let place = record.row.queued_in.map(|queue| {
        let pending = &state.queues[queue].pending;
        if pending.is_active(&state.pending.places, id) { "active" } else { "inadmissible" }
    });
    json!({
        "namespace": record.key().namespace(),
        "name": record.key().name(),
        "stage": stage,
        "localQueue": workload.queue_name.as_str(),
        "clusterQueue": queue,
        "priority": workload.priority.unwrap_or_default(),
        "isActive": workload.active != Some(false),
        "reason": decisive.map_or("", |c| c.reason.as_str()),
        "message": decisive.map(|c| c.text()).unwrap_or_default().as_str(),
        "place": place,
        "status": encode::workload_status(&workload.status, &state.config.gates),
    })
}
