//! The observable state of an engine, and the first difference between two.

use kueuecore::base::ids::WorkloadId;
use kueuecore::base::key::Key;
use kueuecore::engine::Engine;
use kueuecore::objects::ConditionStatus;
use kueuecore::objects::conditions;
use kueuecore::schedule::decision::Event;
use kueuecore::status::stage::Stage;
use kueuecore_wire::{encode, report};
use serde_json::{Map, Value, json};

const PARTS: [&str; 3] = ["statuses", "quota", "order"];

/// Statuses of the workloads, quota of the nodes, and the order of the queues: an object of objects.
pub struct Seen(pub Value);

impl Seen {
    /// Nothing at all.
    pub fn nothing() -> Self {
        Self(json!({"statuses": {}, "quota": {}, "order": {}}))
    }

    /// The observable state of an engine.
    pub fn of(engine: &Engine) -> Self {
        let state = &engine.state;
        let statuses = state.workloads.iter().map(|(_, record)| {
            let status = encode::workload_status(&record.workload.status, &state.config.gates);
            (key(record.key()), by_type(status))
        });
        let rows = report::quota_rows(state).into_iter();
        // A tree with a cycle is not recomputed: its numbers mean nothing (rules/02 §4 rule 5).
        let quota = rows.filter(|row| !is_in_cycle(engine, row)).map(|row| {
            let cell = format!(
                "{} {}: {} of {}",
                of(&row, "kind"),
                of(&row, "name"),
                of(&row, "resource"),
                of(&row, "flavor")
            );
            let amounts = ["usage", "nominal", "subtreeQuota", "available", "potentialAvailable"];
            (cell, Value::Array(amounts.map(|name| row[name].clone()).to_vec()))
        });
        let order = report::cluster_queue_names(state).into_iter().map(|name| {
            let rows = report::pending_workloads(state, &name).unwrap_or_default();
            let place = |row: &Value| {
                let [namespace, name] = ["namespace", "name"].map(|it| row[it].as_str().unwrap_or_default());
                json!([format!("{namespace}/{name}"), row["place"]])
            };
            (name, rows.iter().map(place).collect())
        });
        Self(json!({
            "statuses": statuses.collect::<Map<_, _>>(),
            "quota": quota.collect::<Map<_, _>>(),
            "order": order.collect::<Map<_, _>>(),
        }))
    }

    /// Applies the changes in an answer: new or changed values; null removes one.
    pub fn change(&mut self, answer: &Value) {
        for name in PARTS {
            let part = self.0[name].as_object_mut().expect("a part is an object");
            for (key, value) in answer[name].as_object().into_iter().flatten() {
                if value.is_null() {
                    part.remove(key);
                } else {
                    part.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// The part of an answer that concerns only the move.
pub fn told_in(answer: &Value) -> Value {
    let mut told = answer.as_object().expect("an object").clone();
    told.retain(|name, _| !PARTS.contains(&name.as_str()));
    Value::Object(told)
}

fn of<'a>(row: &'a Map<String, Value>, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn is_in_cycle(engine: &Engine, row: &Map<String, Value>) -> bool {
    let (state, name) = (&engine.state, of(row, "name"));
    let node = if of(row, "kind") == "Cohort" {
        state.names.cohorts.find(name).and_then(|id| state.cohorts[id].node)
    } else {
        state.find_queue(name).and_then(|id| state.queues[id].node)
    };
    node.is_some_and(|node| state.ledger.forest.has_cycle(node))
}

/// A status with its conditions by type, since their order does not matter, and without empty fields.
fn by_type(mut status: Value) -> Value {
    let fields = status.as_object_mut().expect("a status is an object");
    fields.retain(|_, value| *value != json!({}));
    if let Some(conditions) = fields.remove("conditions") {
        let mut of_type = Map::new();
        for mut condition in conditions.as_array().expect("a list").iter().cloned() {
            let of = condition.as_object_mut().and_then(|it| it.remove("type")).expect("a type");
            of_type.insert(of.as_str().expect("a text").to_owned(), condition);
        }
        fields.insert("conditions".to_owned(), Value::Object(of_type));
    }
    status
}

/// `namespace/name`.
pub fn key(of: &Key) -> String {
    of.to_string()
}

/// An event of a cycle.
pub fn event(of: &Event) -> Value {
    json!([of.kind, of.reason, key(&of.key), of.text().as_str()])
}

/// An event written between cycles.
pub fn row(of: &Event) -> Value {
    json!([key(&of.key), of.reason, of.kind, of.text().as_str()])
}

/// Values sorted by their text.
pub fn sorted(mut values: Vec<Value>) -> Value {
    values.sort_by_cached_key(Value::to_string);
    Value::Array(values)
}

/// Does a workload hold quota?
pub fn holds_quota(engine: &Engine, id: WorkloadId) -> bool {
    matches!(engine.stage(id), Stage::QuotaReserved | Stage::Admitted)
}

/// Is the condition Evicted of a workload True?
pub fn is_evicted(engine: &Engine, id: WorkloadId) -> bool {
    let conditions = &engine.state.workloads.get(id).workload.status.conditions;
    conditions::find(conditions, conditions::EVICTED).is_some_and(|it| it.status == ConditionStatus::True)
}

/// Where two values first differ: the reference's, then the engine's.
pub fn first_difference(reference: &Value, engine: &Value, path: &str) -> Option<String> {
    match (reference, engine) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            names.into_iter().find_map(|name| {
                let (one, other) = (one.get(name).unwrap_or(&Value::Null), other.get(name).unwrap_or(&Value::Null));
                first_difference(one, other, &format!("{path}.{name}"))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| first_difference(one, other, &format!("{path}[{index}]")))
        }
        _ if reference == engine => None,
        _ => Some(format!("{path}: the reference says {reference}, the engine {engine}")),
    }
}
