//! The cache, operation by operation.

use std::collections::BTreeSet;

use kueuecore::base::key::Key;
use kueuecore::objects::Object;
use kueuecore::quota::tree::Tree;
use kueuecore::state::State;
use kueuecore::state::records::{Owner, QueueRecord};
use kueuecore_wire::decode::decode_value;
use serde_json::{Map, Value, json};

use super::quota::{Node, reserving};
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
    Ok(json!({"states": states}))
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
                    state.queues[queue].reserving().into_iter().map(|each| state.workloads.get(each).key().clone()),
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
    for (id, owner) in state.ledger.owned_nodes() {
        let node = Node::of(state, id);
        match owner {
            Owner::Queue(of) => _ = queues.insert(state.names.queues[of].to_string(), queue(&node, &state.queues[of])),
            Owner::Cohort(of) => _ = cohorts.insert(state.names.cohorts[of].clone(), cohort(&node)),
        }
    }
    json!({"clusterQueues": queues, "cohorts": cohorts})
}

fn queue(node: &Node<'_>, record: &QueueRecord) -> Value {
    let (state, id) = (node.state, node.id);
    json!({
        "status": record.status_name(),
        "cohort": node.parent_name(),
        "workloads": reserving(state, record),
        "usage": node.column(Tree::usage),
        "subtreeQuota": node.column(Tree::subtree_quota),
        "admittedUsage": by_flavor(&state.names, record.admitted_usage.iter().map(|(fr, amount)| (*fr, *amount))),
        "admittedWorkloads": record.n_admitted,
        "allocatableResourceGeneration": state.ledger.forest.generation(id),
        "fairWeight": state.ledger.forest.weight(id),
    })
}

fn cohort(node: &Node<'_>) -> Value {
    let (state, id) = (node.state, node.id);
    let name = |child| match state.ledger.owner(child)? {
        Owner::Queue(queue) => Some(state.names.queues[queue].as_str()),
        Owner::Cohort(_) => None,
    };
    let queues: BTreeSet<&str> = state.ledger.forest.child_queues(id).filter_map(name).collect();
    json!({
        "parent": node.parent_name(),
        "subtreeQuota": node.column(Tree::subtree_quota),
        "usage": node.column(Tree::usage),
        "hasCycle": state.ledger.forest.has_cycle(id),
        "clusterQueues": queues,
    })
}
