//! The pending queue of a ClusterQueue, operation by operation.

use kueuecore::base::changes::Change;
use kueuecore::base::gates::Gate;
use kueuecore::base::ids::{Id, LocalQueueId, QueueId, ShapeId, WorkloadId};
use kueuecore::objects::{LocalQueue, Object, ResourceList};
use kueuecore::queue::{Pending, Places, RequeueReason, Returned};
use kueuecore::state::State;
use kueuecore::state::admission_fair_sharing::{Account, local_queue_usage};
use kueuecore::state::records::FlushRequest;
use serde_json::{Map, Value, json};

use super::preempt::key;
use super::values::{entries, items, quantity, text};
use super::{Answer, Case, read, workload};

/// The operations of one ClusterQueue's queue; those of Kueue's queue manager are not covered.
const KNOWN: [&str; 8] =
    ["update", "push", "pop", "delete", "requeue", "flushInadmissible", "bulkMoveHash", "setConsumedResources"];
/// Shapes that a case names get ids from here on, apart from computed ones.
const FIRST_NAMED_SHAPE: usize = 1 << 20;

/// Kind `queue`, unless it needs more than a ClusterQueue.
pub(super) fn queue(case: &Case<'_>) -> Answer {
    let ops = items(&case.input["ops"]);
    if !ops.iter().all(|op| op["op"].as_str().is_some_and(|name| KNOWN.contains(&name))) {
        return Ok(None);
    }
    // A single queue knows no weights, and no objects that are only in the API.
    let objects = case.objects.iter().cloned().filter_map(|object| match object {
        Object::LocalQueue(queue) => Some(Object::LocalQueue(LocalQueue { fair_weight: None, ..queue })),
        Object::Workload(_) => None,
        object => Some(object),
    });
    let state = case.state_with(case.config.clone(), objects.collect());
    let mut world = World { state, queues: Vec::new(), shapes: Vec::new() };
    let mut states = Vec::new();
    for op in ops {
        let result = world.run(op)?;
        let queues: Map<String, Value> = world.queues.iter().map(|name| (name.clone(), world.dump(name))).collect();
        states.push(json!({"clusterQueues": queues, "result": result}));
    }
    Ok(Some(json!({"states": states})))
}

struct World {
    state: State,
    /// The names of the ClusterQueues so far.
    queues: Vec<String>,
    /// The named shapes.
    shapes: Vec<String>,
}

impl World {
    fn run(&mut self, op: &Value) -> Result<Value, String> {
        if op["op"] == "setConsumedResources" {
            self.set_consumed(op)?;
            return Ok(Value::Null);
        }
        let name = text(op, "clusterQueue")?.to_owned();
        let queue = self.state.queue(&name);
        if !self.queues.contains(&name) {
            self.queues.push(name);
        }
        match text(op, "op")? {
            "update" => {
                self.state.apply(read(&op["object"])?);
                self.state.pending.flush_requests.clear();
            }
            "push" => self.push(queue, op)?,
            "pop" => {
                let usage = usages(&self.state);
                let popped = self.state.queues[queue].pending.pop(&mut self.state.pending.places, usage);
                if let Some(id) = popped {
                    let record = self.state.workloads.get_mut(id);
                    record.evaluated_generation = record.row.generation;
                }
                return Ok(json!(popped.map_or(String::new(), |id| key(&self.state, id))));
            }
            "delete" => {
                let (namespace, name) = text(op, "key")?.split_once('/').ok_or("no key")?;
                if let Some(id) = self.state.workloads.find(namespace, name) {
                    self.state.queues[queue].pending.delete(&mut self.state.pending.places, id);
                }
            }
            "requeue" => return self.requeue(queue, op),
            "flushInadmissible" => {
                self.state.pending.flush_requests.insert(FlushRequest::Queue(queue));
                return Ok(json!(self.state.flush()));
            }
            "bulkMoveHash" => {
                let shape = self.shape(text(op, "schedulingHash")?);
                let parked = self.state.queues[queue]
                    .pending
                    .park_shape(&mut self.state.pending.places, shape, "")
                    .unwrap_or_default();
                return Ok(json!(parked.iter().map(|parked| parked.len()).sum::<usize>()));
            }
            other => return Err(format!("no operation: {other}")),
        }
        Ok(Value::Null)
    }

    fn shape(&mut self, name: &str) -> ShapeId {
        let known = self.shapes.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.shapes.push(name.to_owned());
            self.shapes.len() - 1
        });
        ShapeId::from_index(FIRST_NAMED_SHAPE + index)
    }

    fn store(&mut self, op: &Value) -> Result<WorkloadId, String> {
        let id = self.state.store_workload(workload(&op["workload"])?);
        if let Some(name) = op["schedulingHash"].as_str() {
            self.state.workloads.get_mut(id).row.shape = Some(self.shape(name));
        }
        Ok(id)
    }

    fn push(&mut self, queue: QueueId, op: &Value) -> Result<(), String> {
        let object = workload(&op["workload"])?;
        let known = self.state.workloads.find(object.meta.key.namespace(), object.meta.key.name());
        let old = known.map(|id| self.state.workloads.get(id).before());
        let id = self.store(op)?;
        let relevant = old.is_none_or(|old| self.state.is_relevant_change(&old, self.state.workloads.get(id)));
        let item = self.state.item(id);
        self.state.queues[queue].pending.push_or_update(&mut self.state.pending.places, &item, relevant);
        Ok(())
    }

    fn requeue(&mut self, queue: QueueId, op: &Value) -> Result<Value, String> {
        let id = self.store(op)?;
        let generation = op["lastEvaluatedGeneration"].as_i64().unwrap_or_default();
        self.state.workloads.get_mut(id).evaluated_generation = generation;
        let reason = match op["immediate"].as_bool() {
            Some(true) => RequeueReason::FailedAfterNomination,
            _ => reason(text(op, "reason")?)?,
        };
        let indexes = items(&op["lastTriedFlavorIdx"]).iter().flat_map(entries);
        let pending_flavors = indexes.into_iter().any(|(_, index)| *index != json!(-1));
        let hashing = self.state.gate(Gate::SchedulingEquivalenceHashing);
        let item = self.state.item(id);
        let (pending, places) = (&mut self.state.queues[queue].pending, &mut self.state.pending.places);
        let place =
            |pending: &Pending, places: &Places| (pending.is_active(places, id), pending.is_inadmissible(places, id));
        let before = place(pending, places);
        let ends_stickiness = self.state.config.changes.has(Change::OtherResultsEndStickiness);
        let returned = Returned {
            reason,
            pending_flavors,
            generation,
            hashing,
            ends_stickiness,
            strict_queues_note: true,
            ..Returned::default()
        };
        pending.requeue(places, &item, &returned);
        Ok(json!(before != place(pending, places)))
    }

    fn set_consumed(&mut self, op: &Value) -> Result<(), String> {
        let (namespace, name) = text(op, "localQueue")?.split_once('/').ok_or("no key")?;
        let id = self.state.local_queue(namespace, name);
        let resources = entries(&op["resources"]).map(|(name, given)| Ok((name.clone(), quantity(given)?)));
        let consumed: Result<ResourceList, String> = resources.collect();
        let mut account = Account::default();
        account.consumed = consumed?;
        self.state.local_queues[id].account = Some(account);
        Ok(())
    }

    fn dump(&self, name: &str) -> Value {
        let Some(queue) = self.state.names.queues.find(name) else { return Value::Null };
        let pending = &self.state.queues[queue].pending;
        let (mut heap, mut places) = (pending.clone(), self.state.pending.places.clone());
        let active: Vec<String> =
            std::iter::from_fn(|| heap.pop(&mut places, usages(&self.state))).map(|id| key(&self.state, id)).collect();
        let mut inadmissible: Vec<String> = pending.inadmissible().map(|id| key(&self.state, id)).collect();
        inadmissible.sort();
        let mut shown = json!({"active": active, "inadmissible": inadmissible});
        for (id, record) in self.state.workloads.iter() {
            let generation = record.evaluated_generation;
            if pending.is_inflight(id) {
                shown["inflight"] = json!(key(&self.state, id));
            }
            if pending.is_preemptor(id, generation) {
                let sticky = !pending.key(&self.state.item(id)).not_sticky;
                shown["preemptor"] = json!({"key": key(&self.state, id), "sticky": sticky, "generation": generation});
            }
        }
        shown
    }
}

/// The current usage of LocalQueues.
fn usages(state: &State) -> impl Fn(LocalQueueId) -> f64 + use<> {
    let config = state.admission_fair_sharing();
    let usage = |config| {
        state.local_queues.iter().map(|queue| local_queue_usage(config, queue, state.config.changes)).collect()
    };
    let usages: Vec<f64> = config.map_or_else(Vec::new, usage);
    move |id| usages.get(id.index()).copied().unwrap_or_default()
}

fn reason(name: &str) -> Result<RequeueReason, String> {
    Ok(match name {
        "" => RequeueReason::Generic,
        "NamespaceMismatch" => RequeueReason::NamespaceMismatch,
        "NoFit" => RequeueReason::NoFit,
        "PreemptionNoCandidates" => RequeueReason::PreemptionNoCandidates,
        "PreemptionGated" => RequeueReason::PreemptionGated,
        "PendingPreemption" => RequeueReason::PendingPreemption,
        "PendingMigration" => RequeueReason::PendingMigration,
        "PreemptionFailed" => RequeueReason::PreemptionFailed,
        "FailedAfterNomination" => RequeueReason::FailedAfterNomination,
        other => return Err(format!("no reason: {other}")),
    })
}
