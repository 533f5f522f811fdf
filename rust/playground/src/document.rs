//! What `kueuecore run -o json` writes, without the fields that Python works out: `note`, `notPlaced`, `why`, and
//! messages of our own where Kueue has none.

use std::collections::BTreeMap;

use kueuecore::base::key::Key;
use kueuecore::base::releases::Release;
use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore::objects::time::format_time;
use kueuecore::schedule::decision::{Admitted, Event, Preempted};
use kueuecore_wire::{encode, report};
use serde_json::{Value, json};

use crate::json::{Json, items, ordered, text_at};
use crate::prepare::{is_workload, key_of};
use crate::settle::Settled;

/// Version of the command's documents.
const SCHEMA: u64 = 1;
const STATUSES: [&str; 5] = ["Undecided", "Pending", "QuotaReserved", "Admitted", "Finished"];
const QUOTA: [&str; 13] = [
    "kind",
    "name",
    "parent",
    "flavor",
    "resource",
    "nominal",
    "borrowingLimit",
    "lendingLimit",
    "subtreeQuota",
    "usage",
    "available",
    "potentialAvailable",
    "borrowed",
];

/// What a run was given and did.
pub struct Facts<'a> {
    pub settled: &'a Settled,
    pub given: &'a [Value],
    pub now: Time,
}

/// The fields at the start of every document.
pub fn head(now: Time) -> Vec<(&'static str, Json)> {
    vec![
        ("schema", Json::from(SCHEMA)),
        ("kueuecore", Json::from(env!("CARGO_PKG_VERSION"))),
        ("kueue", Json::Object(vec![("version", Json::from(format!("v{}", Release::default())))])),
        ("now", Json::from(format_time(now))),
    ]
}

/// The outcome of a run.
pub fn document(engine: &mut Engine, facts: &Facts<'_>) -> Json {
    let (capacity, placements) = (report::capacity_rows(&mut engine.state), report::placement_rows(&mut engine.state));
    let state = &engine.state;
    let rows: Vec<Value> = workload_rows(engine);
    let positions = positions(engine);
    let workloads: Vec<Json> = rows.iter().map(|row| workload(row, facts, &positions, &placements)).collect();
    let counts = STATUSES.iter().filter_map(|status| {
        let n = rows.iter().filter(|row| status_of(row, facts).0 == *status).count();
        (n > 0).then(|| (*status, Json::from(n)))
    });
    let next_wake = state.next_wake(facts.now).map_or(Value::Null, |time| json!(format_time(time)));
    let queues = report::cluster_queue_names(state);
    let preemptions = facts.settled.decisions.iter().flat_map(|it| &it.preemptions);
    let mut fields = head(facts.now);
    fields.extend([
        ("ending", Json::from(facts.settled.ending)),
        ("cycles", Json::from(facts.settled.decisions.len())),
        ("nextWake", Json::Plain(next_wake)),
        ("counts", Json::Object(counts.collect())),
        ("workloads", Json::List(workloads)),
        ("preemptions", preemptions.map(preemption).collect()),
        ("clusterQueues", queues.iter().map(|name| cluster_queue(engine, name)).collect()),
        ("quota", report::quota_rows(state).into_iter().map(|row| ordered(&Value::Object(row), &QUOTA)).collect()),
        ("capacity", items(&capacity).iter().map(capacity_row).collect()),
        ("events", facts.settled.events.iter().map(event).collect()),
    ]);
    Json::Object(fields)
}

/// What each cycle decided.
pub fn cycles(engine: &Engine, settled: &Settled) -> Json {
    let name = |key: &Key| Json::from(format!("{}/{}", key.namespace(), key.name()));
    let admitted = |it: &Admitted| {
        let admission = encode::admission(&it.admission, &engine.state.config.gates);
        Json::Object(vec![
            ("workload", name(&it.key)),
            ("clusterQueue", Json::Plain(admission["clusterQueue"].clone())),
            ("podSets", items(&admission["podSetAssignments"]).iter().map(assignment).collect()),
            ("isAdmitted", Json::from(it.is_admitted)),
        ])
    };
    let cycles = settled.decisions.iter().map(|decision| {
        let pending = decision.pending.iter().map(|it| {
            Json::Object(vec![
                ("workload", name(&it.key)),
                ("clusterQueue", Json::from(it.queue.to_string())),
                ("message", Json::from(it.message.to_string())),
            ])
        });
        Json::Object(vec![
            ("cycle", Json::from(decision.cycle)),
            ("admissions", decision.admissions.iter().map(admitted).collect()),
            ("placed", decision.placed.iter().map(admitted).collect()),
            ("preemptions", decision.preemptions.iter().map(preemption).collect()),
            ("pending", pending.collect()),
        ])
    });
    cycles.collect()
}

/// The rows of all workloads, by namespace and name.
fn workload_rows(engine: &Engine) -> Vec<Value> {
    let mut all: Vec<_> = engine.state.workloads.iter().map(|(id, record)| (record.key().clone(), id)).collect();
    all.sort();
    all.into_iter().map(|(_, id)| report::workload_row(&engine.state, id)).collect()
}

type Position = BTreeMap<(String, String), Value>;

/// Where each queued workload stands in its ClusterQueue.
fn positions(engine: &Engine) -> Position {
    let queues = report::cluster_queue_names(&engine.state);
    let pending = queues.iter().filter_map(|name| report::pending_workloads(&engine.state, name));
    pending.flatten().map(|row| (row_key(&row), row["positionInClusterQueue"].clone())).collect()
}

fn row_key(row: &Value) -> (String, String) {
    (text_at(row, &["namespace"]).to_owned(), text_at(row, &["name"]).to_owned())
}

/// One word for its state, and Kueue's message or what is undecided.
fn status_of(row: &Value, facts: &Facts<'_>) -> (String, String) {
    match facts.settled.undecided.get(&row_key(row)) {
        Some((field, message)) if row["stage"] == "Pending" => ("Undecided".to_owned(), format!("{field}: {message}")),
        _ => (text_at(row, &["stage"]).to_owned(), text_at(row, &["message"]).to_owned()),
    }
}

fn workload(row: &Value, facts: &Facts<'_>, positions: &Position, placements: &Value) -> Json {
    let (status, message) = status_of(row, facts);
    let key = row_key(row);
    let assignments = items(&row["status"]["admission"]["podSetAssignments"]).iter().map(|assigned| {
        let is_its = |it: &&Value| row_key(it) == key && it["podSet"] == assigned["name"];
        let Json::Object(mut fields) = assignment(assigned) else { unreachable!("it has fields") };
        fields.push(("placement", items(placements).iter().find(is_its).map_or(Json::Plain(Value::Null), placement)));
        Json::Object(fields)
    });
    let nodes = items(&row["status"]["unhealthyNodes"]).iter().map(|node| Json::Plain(node["name"].clone()));
    let checks = items(&row["status"]["admissionChecks"]).iter().map(|check| {
        let since = text_at(check, &["lastTransitionTime"]);
        Json::Object(vec![
            ("name", Json::from(text_at(check, &["name"]))),
            ("state", Json::from(text_at(check, &["state"]))),
            ("message", Json::from(text_at(check, &["message"]))),
            ("since", Json::text_or_null(since)),
            ("retryCount", Json::from(check["retryCount"].as_i64().unwrap_or_default())),
        ])
    });
    Json::Object(vec![
        ("namespace", Json::Plain(row["namespace"].clone())),
        ("name", Json::Plain(row["name"].clone())),
        ("owner", Json::text_or_null(&owner(facts.given, &key))),
        ("localQueue", Json::Plain(row["localQueue"].clone())),
        ("clusterQueue", Json::Plain(row["clusterQueue"].clone())),
        ("priority", Json::Plain(row["priority"].clone())),
        ("status", Json::from(status)),
        ("place", Json::Plain(row["place"].clone())),
        ("positionInClusterQueue", Json::Plain(positions.get(&key).cloned().unwrap_or(Value::Null))),
        ("reason", Json::Plain(row["reason"].clone())),
        ("message", Json::from(message)),
        ("podSets", assignments.collect()),
        ("failedNodes", nodes.collect()),
        ("admissionChecks", checks.collect()),
    ])
}

/// The job of a Workload.
fn owner(given: &[Value], key: &(String, String)) -> String {
    let own = given.iter().filter(|it| is_workload(it));
    let mut own = own.filter(|it| key_of(it) == (key.0.as_str(), key.1.as_str()));
    let owner = own.next().and_then(|it| items(&it["metadata"]["ownerReferences"]).first());
    owner.map(|it| format!("{}/{}", text_at(it, &["kind"]), text_at(it, &["name"]))).unwrap_or_default()
}

fn assignment(assigned: &Value) -> Json {
    let map = |field: &str| Json::Plain(if assigned[field].is_object() { assigned[field].clone() } else { json!({}) });
    Json::Object(vec![
        ("name", Json::Plain(assigned["name"].clone())),
        ("count", Json::from(assigned["count"].as_i64().unwrap_or_default())),
        ("flavors", map("flavors")),
        ("resourceUsage", map("resourceUsage")),
    ])
}

fn placement(row: &Value) -> Json {
    let domains = items(&row["domains"]).iter().map(|domain| {
        let path = if items(&domain["path"]).is_empty() { Value::Null } else { domain["path"].clone() };
        Json::Object(vec![
            ("values", Json::Plain(domain["values"].clone())),
            ("path", Json::Plain(path)),
            ("count", Json::Plain(domain["count"].clone())),
        ])
    });
    Json::Object(vec![
        ("flavor", Json::Plain(row["flavor"].clone())),
        ("levels", Json::Plain(row["levels"].clone())),
        ("domains", domains.collect()),
    ])
}

fn preemption(it: &Preempted) -> Json {
    Json::Object(vec![
        ("namespace", Json::from(it.key.namespace())),
        ("name", Json::from(it.key.name())),
        ("clusterQueue", Json::from(it.queue.to_string())),
        ("preemptor", Json::from(format!("{}/{}", it.preemptor.namespace(), it.preemptor.name()))),
        ("reason", Json::from(it.reason)),
        ("message", Json::from(it.message.to_string())),
    ])
}

fn cluster_queue(engine: &Engine, name: &str) -> Json {
    let status = report::cluster_queue_status(&engine.state, name).unwrap_or_default();
    let active = items(&status["conditions"]).iter().find(|it| it["type"] == "Active").cloned().unwrap_or_default();
    Json::Object(vec![
        ("name", Json::from(name)),
        ("active", Json::from(active["status"] == "True")),
        ("reason", Json::from(text_at(&active, &["reason"]))),
        ("message", Json::from(text_at(&active, &["message"]))),
        ("pendingWorkloads", Json::Plain(status["pendingWorkloads"].clone())),
        ("reservingWorkloads", Json::Plain(status["reservingWorkloads"].clone())),
        ("admittedWorkloads", Json::Plain(status["admittedWorkloads"].clone())),
    ])
}

fn capacity_row(row: &Value) -> Json {
    let field = |name: &'static str, key: &str| (name, Json::Plain(row[key].clone()));
    Json::Object(vec![
        field("flavor", "flavor"),
        field("topology", "topology"),
        field("level", "level"),
        field("path", "path"),
        field("nodes", "nNodes"),
        field("resource", "resource"),
        field("allocatable", "allocatable"),
        field("outside", "outside"),
        field("used", "used"),
        field("free", "free"),
    ])
}

fn event(it: &Event) -> Json {
    Json::Object(vec![
        ("type", Json::from(it.kind)),
        ("reason", Json::from(it.reason.to_string())),
        ("namespace", Json::from(it.key.namespace())),
        ("name", Json::from(it.key.name())),
        ("message", Json::from(it.text().to_string())),
    ])
}
