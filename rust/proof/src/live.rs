//! Engines that run through cycles: built from a case, then inspected.

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore::schedule::decision::Decision;
use kueuecore_wire::decode::Door;
use kueuecore_wire::intake::intake;
use kueuecore_wire::report;
use kueuecore_wire::time::parse_time;
use serde_json::{Map, Value, json};

use super::values::{entries, items, text};
use super::{configuration_of, lines};

/// An engine at the beginning of a case, and the time of the case.
pub(super) struct Live {
    pub(super) engine: Engine,
    pub(super) now: Time,
}

/// Keys of workloads by ClusterQueue.
type Places = Map<String, Value>;

impl Live {
    /// An engine with the objects of a case, without what its `input` says.
    pub(super) fn new(case: &Value) -> Result<Self, String> {
        let mut live = Self::empty(case)?;
        live.apply(items(&case["objects"]))?;
        Ok(live)
    }

    /// An engine without objects.
    pub(super) fn empty(case: &Value) -> Result<Self, String> {
        let configuration = configuration_of(case)?;
        let now = parse_time(text(&case["config"], "now")?).ok_or("config.now is no time")?;
        Ok(Self { engine: Engine::new(configuration.for_simulation()), now })
    }

    /// Applies objects as a controller would.
    pub(super) fn apply<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) -> Result<(), String> {
        let mut data = String::new();
        for object in objects {
            data.push_str(&object.to_string());
            data.push('\n');
        }
        let decoded = intake(&self.engine, data.as_bytes(), Door::Trusted, self.now).map_err(|e| lines(&e))?;
        self.engine.apply(decoded.objects.into_iter().map(|(object, _)| object).collect(), self.now);
        Ok(())
    }

    pub(super) fn find(&self, namespace: &str, name: &str) -> Result<WorkloadId, String> {
        let found = self.engine.state.workloads.find(namespace, name);
        found.ok_or_else(|| format!("no Workload {namespace}/{name}"))
    }

    /// The workloads by key, in order.
    pub(super) fn workloads(&self) -> Vec<Seen> {
        let state = &self.engine.state;
        let mut all: Vec<_> = state.workloads.iter().map(|(id, record)| (record.key(), id)).collect();
        all.sort();
        all.into_iter().map(|(key, id)| Seen { key: key.to_string(), row: report::workload_row(state, id) }).collect()
    }

    /// Workloads that hold quota of an active ClusterQueue, with their admissions. Inactive ClusterQueues are in no
    /// snapshot.
    pub(super) fn admissions(&self, workloads: &[Seen]) -> Vec<(String, Value)> {
        let holds = |it: &&Seen| {
            matches!(it.row["stage"].as_str(), Some("QuotaReserved" | "Admitted"))
                && it.row["clusterQueue"].as_str().is_some_and(|name| self.is_active(name))
        };
        let admission = |it: &Seen| Some((it.key.clone(), it.status().get("admission")?.clone()));
        workloads.iter().filter(holds).filter_map(admission).collect()
    }

    /// The workloads waiting in each ClusterQueue, in order: in the heaps, and parked.
    pub(super) fn places(&self) -> (Places, Places) {
        let state = &self.engine.state;
        let (mut active, mut inadmissible) = (Places::new(), Places::new());
        for name in report::cluster_queue_names(state) {
            for row in report::pending_workloads(state, &name).unwrap_or_default() {
                let places = if row["place"] == "active" { &mut active } else { &mut inadmissible };
                let key = format!("{}/{}", row["namespace"].as_str().unwrap_or(""), row["name"].as_str().unwrap_or(""));
                let queue = places.entry(&name).or_insert_with(|| json!([]));
                queue.as_array_mut().expect("made as an array").push(Value::String(key));
            }
        }
        (active, inadmissible)
    }

    /// Is a ClusterQueue with this name active?
    pub(super) fn is_active(&self, name: &str) -> bool {
        let state = &self.engine.state;
        let queue = state.find_queue(name);
        queue.is_some_and(|queue| state.queues[queue].activeness.as_ref().is_some_and(|it| it.is_active()))
    }
}

/// The current state of a workload.
pub(super) struct Seen {
    pub(super) key: String,
    row: Value,
}

impl Seen {
    pub(super) fn status(&self) -> &Value {
        &self.row["status"]
    }
}

/// `namespace/name` of a manifest.
pub(super) fn key_of(manifest: &Value) -> String {
    let of = |field: &str| manifest["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", of("namespace"), of("name"))
}

/// An object without one of its fields.
pub(super) fn without(object: &Value, field: &str) -> Value {
    entries(object).filter(|(name, _)| *name != field).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The events of a decision.
pub(super) fn events(decision: &Decision) -> impl Iterator<Item = Value> {
    decision.events.iter().map(
        |it| json!({"type": it.kind, "reason": it.reason, "key": it.key.to_string(), "message": it.text().as_str()}),
    )
}
