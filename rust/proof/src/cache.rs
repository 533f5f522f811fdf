//! The cache, operation by operation.

use std::collections::BTreeSet;

use kueuecore::base::amount::Amount;
use kueuecore::base::key::Key;
use kueuecore::objects::Object;
use kueuecore::quota::forest::NodeId;
use kueuecore::quota::tree::{Column, Row, Tree};
use kueuecore::state::State;
use kueuecore::state::records::{Owner, QueueRecord};
use kueuecore_wire::decode::decode_value;
use serde_json::{Map, Value, json};

use super::values::{by_flavor, items, text};
use super::{Answer, Case};

/// Kind `cache_ops`.
pub(super) fn cache_ops(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    let (mut states, mut orphans) = (Vec::new(), BTreeSet::new());
    for op in items(&case.input["ops"]) {
        let error = run(&mut state, op, &mut orphans)?;
        state.ledger.forest.flush(&state.names);
        let mut entry = dump(&state);
        if let Some(error) = error {
            entry["error"] = json!(error);
        }
        states.push(entry);
    }
    Ok(Some(json!({"states": states})))
}

/// Runs an operation and returns the error that Kueue's cache would report. `orphans` are workloads whose ClusterQueue
/// is gone.
fn run(state: &mut State, op: &Value, orphans: &mut BTreeSet<Key>) -> Result<Option<String>, String> {
    if op["object"].is_null() {
        return delete(state, text(op, "op")?, text(op, "name")?, orphans);
    }
    let result = match decode_value(&op["object"]).map_err(|e| e.to_string())? {
        Object::Cohort(cohort) => state.put_cohort(cohort).err(),
        Object::ClusterQueue(queue) => state.put_cluster_queue(queue).err(),
        Object::Workload(workload) => {
            let id = state.store_workload(*workload);
            state.put_cached(id);
            None
        }
        other => {
            state.apply(other);
            None
        }
    };
    Ok(result.map(|error| error.to_string()))
}

fn delete(state: &mut State, op: &str, name: &str, orphans: &mut BTreeSet<Key>) -> Result<Option<String>, String> {
    match op {
        "deleteCohort" => {
            state.delete_cohort(name);
        }
        "deleteClusterQueue" => {
            if let Some(queue) = state.find_queue(name) {
                orphans.extend(
                    state.queues[queue].reserving().into_iter().map(|it| state.workloads.get(it).key().clone()),
                );
            }
            state.delete_cluster_queue(name);
        }
        "terminateClusterQueue" => {
            if let Some(queue) = state.find_queue(name) {
                state.terminate_cluster_queue(queue);
            }
        }
        "deleteResourceFlavor" => {
            state.remove_flavor(name);
        }
        "deleteAdmissionCheck" => {
            state.remove_check(name);
        }
        "deleteWorkload" => {
            let (namespace, name) = name.split_once('/').ok_or_else(|| format!("no key: {name}"))?;
            if let Some(id) = state.workloads.find(namespace, name) {
                let is_orphan = orphans.contains(state.workloads.get(id).key());
                state.delete_workload(namespace, name);
                return Ok(is_orphan.then(|| "cluster queue not found".to_owned()));
            }
        }
        _ => return Err(format!("no operation: {op}")),
    }
    Ok(None)
}

fn dump(state: &State) -> Value {
    let (mut queues, mut cohorts) = (Map::new(), Map::new());
    for (node, owner) in state.ledger.owned_nodes() {
        match owner {
            Owner::Queue(id) => {
                queues.insert(state.names.queues[id].to_string(), queue(state, &state.queues[id], node));
            }
            Owner::Cohort(id) => {
                cohorts.insert(state.names.cohorts[id].clone(), cohort(state, node));
            }
        }
    }
    json!({"clusterQueues": queues, "cohorts": cohorts})
}

fn queue(state: &State, record: &QueueRecord, node: NodeId) -> Value {
    let keys = record.reserving().into_iter().map(|workload| state.workloads.get(workload).key());
    let mut keys: Vec<String> = keys.map(ToString::to_string).collect();
    keys.sort();
    json!({
        "status": record.status_name(),
        "cohort": state.ledger.forest.parent(node).map(|parent| name_of(state, parent)),
        "workloads": keys,
        "usage": column(state, node, Tree::usage),
        "subtreeQuota": column(state, node, Tree::subtree_quota),
        "admittedUsage": by_flavor(&state.names, record.admitted_usage.iter().map(|(fr, amount)| (*fr, *amount))),
        "admittedWorkloads": record.n_admitted,
        "allocatableResourceGeneration": state.ledger.forest.generation(node),
        "fairWeight": state.ledger.forest.weight(node),
    })
}

fn cohort(state: &State, node: NodeId) -> Value {
    let mut queues: Vec<&str> = state.ledger.forest.child_queues(node).map(|queue| name_of(state, queue)).collect();
    queues.sort_unstable();
    json!({
        "parent": state.ledger.forest.parent(node).map(|parent| name_of(state, parent)),
        "subtreeQuota": column(state, node, Tree::subtree_quota),
        "usage": column(state, node, Tree::usage),
        "hasCycle": state.ledger.forest.has_cycle(node),
        "clusterQueues": queues,
    })
}

fn name_of(state: &State, node: NodeId) -> &str {
    match state.ledger.owner(node) {
        Some(Owner::Queue(id)) => &state.names.queues[id],
        Some(Owner::Cohort(id)) => &state.names.cohorts[id],
        None => "",
    }
}

fn column(state: &State, node: NodeId, read: fn(&Tree, Row, Column) -> Amount) -> Value {
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let columns = tree.columns().iter().enumerate().map(|(column, fr)| (*fr, read(tree, row, column)));
    by_flavor(&state.names, columns.filter(|(_, amount)| *amount != Amount::ZERO))
}
