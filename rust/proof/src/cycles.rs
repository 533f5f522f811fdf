//! Single cycles, and series of cycles with events in between.

use std::collections::BTreeSet;

use kueuecore::objects::{Kind, Object};
use kueuecore_wire::{encode, report};
use serde_json::{Map, Value, json};

use super::Answer;
use super::live::{Live, events, key_of, without};
use super::values::{items, text, texts};

/// Kind `cycle`.
pub(super) fn cycle(case: &Value) -> Answer {
    let input = &case["input"];
    let mut live = begin(case)?;
    let mut answer = run(&mut live, input["admissionError"].as_str())?;
    let update = &input["concurrentUpdate"];
    if !update.is_null() {
        write_labels(&mut live, case, update, &mut answer)?;
    }
    Ok(Some(Value::Object(answer)))
}

/// Someone else writes labels while the scheduler writes the status: the object ends up with both.
fn write_labels(live: &mut Live, case: &Value, update: &Value, answer: &mut Map<String, Value>) -> Result<(), String> {
    let key = text(update, "key")?;
    let mut objects = items(&case["objects"]).iter();
    let mut written = objects.find(|it| it["kind"] == "Workload" && key_of(it) == key).ok_or("no Workload")?.clone();
    written["metadata"]["labels"] = update["labels"].clone();
    let workloads = live.workloads();
    written["status"] = workloads.iter().find(|it| it.key == key).ok_or("no Workload")?.status().clone();
    live.apply([&written])?;
    answer.extend(state(live));
    let mut workloads = answer["workloads"].as_array_mut().into_iter().flatten();
    let workload = workloads.find(|it| it["key"] == key).ok_or("no Workload")?;
    workload["labels"] = update["labels"].clone();
    Ok(())
}

/// Kind `cycles`.
pub(super) fn cycles(case: &Value) -> Answer {
    let mut live = begin(case)?;
    let mut cycles = Vec::new();
    for step in items(&case["input"]["steps"]) {
        match text(step, "op")? {
            "cycle" => cycles.push(run(&mut live, None)?),
            "update" => update_in_cache(&mut live, &step["object"])?,
            "delete" => {
                let key = text(step, "key")?;
                let (namespace, name) = key.split_once('/').unwrap_or((key, ""));
                let kind = Kind::kept(text(step, "kind")?).ok_or("no such kind")?;
                live.engine.delete(kind, namespace, name, live.now);
            }
            "requeueInadmissible" => {
                live.engine.state.now = live.now;
                live.engine.state.flush();
            }
            other => return Err(format!("no operation: {other}")),
        }
    }
    Ok(Some(json!({"cycles": cycles})))
}

/// Updates a ClusterQueue in the cache, but not in the queues.
fn update_in_cache(live: &mut Live, object: &Value) -> Result<(), String> {
    let state = &mut live.engine.state;
    if let Object::ClusterQueue(queue) = super::read(object)? {
        // Errors of Kueue's cache are not part of the case.
        let _ = state.put_cluster_queue(queue);
    }
    state.ledger.forest.flush(&state.names);
    Ok(())
}

/// The engine before the first cycle.
fn begin(case: &Value) -> Result<Live, String> {
    let input = &case["input"];
    let objects = items(&case["objects"]);
    let mut live = Live::empty(case)?;
    let with_usage: Vec<Value> = objects.iter().map(|it| with_usage(it, &input["localQueueUsage"])).collect();
    live.apply(&with_usage)?;
    let deleted: BTreeSet<(Option<&str>, Option<&str>)> =
        items(&input["deletedFromAPI"]).iter().map(|it| (it["kind"].as_str(), it["key"].as_str())).collect();
    for object in objects {
        if deleted.contains(&(object["kind"].as_str(), Some(&*key_of(object)))) {
            // The queues still know it, but its weight cannot be looked up.
            let mut weightless = object.clone();
            weightless["spec"] = without(&object["spec"], "fairSharing");
            live.apply([&weightless])?;
        }
    }
    for key in texts(&input["secondPass"]) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let id = live.find(namespace, name)?;
        live.engine.state.ready_for_second_pass(id);
    }
    Ok(live)
}

/// A restarted Kueue reads the usage of LocalQueues from their statuses.
fn with_usage(object: &Value, used: &Value) -> Value {
    let mut object = object.clone();
    let used = &used[key_of(&object)];
    if object["kind"] == "LocalQueue" && !used.is_null() {
        let status = json!({"consumedResources": used["consumed"], "lastUpdate": used["lastUpdate"]});
        object["status"] = json!({"fairSharing": {"admissionFairSharingStatus": status}});
    }
    object
}

/// Runs a cycle whose reservations cannot be written if there is an error.
fn run(live: &mut Live, admission_error: Option<&str>) -> Result<Map<String, Value>, String> {
    let decision = live.engine.cycle(live.now);
    let (mut refused, mut unwritten) = (BTreeSet::new(), Vec::new());
    if let Some(error) = admission_error {
        for admitted in decision.admissions.iter().chain(&decision.placed) {
            refused.insert(admitted.key.to_string());
            live.engine.forget(admitted.workload, error == "NotFound", live.now);
        }
        for evicted in &decision.evictions {
            refused.insert(evicted.key.to_string());
            live.engine.forget(evicted.workload, error == "NotFound", live.now);
            if error != "NotFound" {
                let message = evicted.unwritten.text();
                let key = evicted.key.to_string();
                unwritten
                    .push(json!({"type": "Warning", "reason": "SecondPassFailed", "key": key, "message": message}));
            }
        }
    }
    let mut answer = state(live);
    for slice in &decision.replaced {
        // Kueue's cache sees only through the watch, after the cycle, that the slice is finished.
        let id = live.find(slice.key.namespace(), slice.key.name())?;
        let state = &live.engine.state;
        let status = encode::workload_status(&state.workloads.get(id).workload.status, &state.config.gates);
        answer["admissions"][slice.key.to_string()] = status["admission"].clone();
    }
    let is_sent = |event: &Value| event["key"].as_str().is_some_and(|key| !refused.contains(key));
    answer.insert("events".to_owned(), events(&decision).filter(is_sent).chain(unwritten).collect());
    answer.insert("skippedPreemptions".to_owned(), json!(decision.skipped_preemptions));
    answer.insert("preemptionTargetRecomputations".to_owned(), json!(decision.target_recomputations));
    Ok(answer)
}

/// The state after a cycle.
fn state(live: &Live) -> Map<String, Value> {
    let workloads = live.workloads();
    let shown = workloads.iter().map(|it| json!({"key": it.key, "status": it.status()}));
    let accounts = report::local_queue_accounts(&live.engine.state);
    let used: Map<_, _> =
        accounts.iter().map(|(name, account)| (name.clone(), without(account, "lastUpdate"))).collect();
    let (queued, inadmissible) = live.places();
    let mut state = Map::new();
    state.insert("workloads".to_owned(), shown.collect());
    state.insert("admissions".to_owned(), live.admissions(&workloads).into_iter().collect());
    state.insert("queued".to_owned(), Value::Object(queued));
    state.insert("inadmissible".to_owned(), Value::Object(inadmissible));
    state.insert("localQueueUsage".to_owned(), Value::Object(used));
    state
}
