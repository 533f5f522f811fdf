//! The observable state of an engine, as JSON: two engines with the same JSON are the same to every caller.

use kueuecore::engine::Engine;
use kueuecore::state::State;
use kueuecore_wire::report;
use serde_json::{Value, json};

/// Everything that an engine reports.
#[must_use]
pub fn observe(engine: &Engine) -> Value {
    let state = &engine.state;
    let queues: Vec<Value> = report::cluster_queue_names(state)
        .iter()
        .map(|name| json!([name, report::cluster_queue_status(state, name), report::pending_workloads(state, name)]))
        .collect();
    let local_queues: Vec<Value> = state
        .names
        .local_queues
        .iter()
        .filter_map(|(namespace, name)| {
            report::local_queue_status(state, namespace, name).map(|status| json!([namespace, name.as_str(), status]))
        })
        .collect();
    json!({
        "workloads": workloads(state),
        "clusterQueues": queues,
        "localQueues": local_queues,
        "accounts": report::local_queue_accounts(state),
        "quota": report::quota_rows(state),
    })
}

fn workloads(state: &State) -> Vec<Value> {
    state.workloads.iter().map(|(id, _)| report::workload_row(state, id)).collect()
}
