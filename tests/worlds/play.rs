//! Plays the moves of a scenario, as `kueuecore.testing.Play` does.

use std::collections::BTreeMap;

use kueuecore::base::gates::Gates;
use kueuecore::base::ids::WorkloadId;
use kueuecore::base::key::Key;
use kueuecore::base::releases::Release;
use kueuecore::base::shared::Shared;
use kueuecore::engine::Engine;
use kueuecore::objects::{Kind, Object, Time, WorkloadStatus};
use kueuecore::schedule::decision::{Decision, Event};
use kueuecore_wire::configuration::Configuration;
use kueuecore_wire::decode::Door;
use kueuecore_wire::encode;
use kueuecore_wire::intake::intake;
use kueuecore_wire::time::parse_time;
use serde_json::{Value, json};

use crate::seen::{event, holds_quota, is_evicted, key, row, sorted};

const SECOND_NS: i64 = 1_000_000_000;
/// The engine is saved and loaded every this many moves.
const RELOADED: usize = 3;

/// An engine and the clock of a scenario.
pub struct Play {
    pub engine: Engine,
    now: Time,
    n_moves: usize,
}

impl Play {
    /// An engine with the objects of a scenario.
    pub fn of(scenario: &Value) -> Self {
        let now = parse_time("2026-01-01T00:00:00Z").expect("a time");
        let mut play =
            Self { engine: Engine::new(configuration(&scenario["configuration"]).for_simulation()), now, n_moves: 0 };
        play.apply(&scenario["objects"]);
        play
    }

    /// Plays one move and returns its results without empty ones.
    pub fn go(&mut self, given: &Value) -> Value {
        self.now.0 += (1 + given["seconds"].as_i64().unwrap_or(0)) * SECOND_NS;
        let kind = text(given, "move");
        let mut told = json!({});
        let mut missing = false;
        match kind {
            "apply" => self.apply(&given["object"]),
            "delete" => {
                let (namespace, name) = names(given);
                let kind = Kind::kept(text(given, "kind")).expect("a kind that can be deleted");
                missing = !self.engine.delete(kind, namespace, name, self.now);
            }
            "finish" => match self.find(given) {
                Some(id) => _ = self.engine.finish(id, "Succeeded", "Job finished successfully", self.now),
                None => missing = true,
            },
            "evict" => match self.find(given) {
                Some(id) => self.evict(id, text(given, "reason")),
                None => missing = true,
            },
            "cycle" | "linger" => {
                let before: BTreeMap<Key, _> = self
                    .engine
                    .state
                    .workloads
                    .iter()
                    .map(|(_, it)| (it.key().clone(), it.workload.status.clone()))
                    .collect();
                let mut forgetful = self.engine.fork();
                forgetful.state.evaluates_always = true;
                let decision = self.engine.cycle(self.now);
                let anew = forgetful.cycle(self.now);
                assert_eq!(format!("{decision:?}"), format!("{anew:?}"), "a remembered verdict changes a decision");
                told = of_cycle(&decision);
                self.hear_of(&decision, &before);
            }
            "fork" => self.engine = self.engine.fork(),
            "wait" => {}
            other => panic!("no such move: {other}"),
        }
        if kind == "cycle" {
            self.stop_evicted_jobs();
        }
        told["written"] = sorted(self.reconcile(kind != "linger").iter().map(row).collect());
        if missing {
            told["missing"] = json!(true);
        }
        self.n_moves += 1;
        if self.n_moves.is_multiple_of(RELOADED) {
            self.reload();
        }
        let nothing = [json!([]), json!({})];
        told.as_object_mut().expect("an object").retain(|_, value| !nothing.contains(value));
        told
    }

    /// Saves the engine and continues with the one loaded from the bytes.
    fn reload(&mut self) {
        let saved = self.engine.save(b"");
        let (mut loaded, _) = Engine::load(&saved).expect("what was saved");
        assert!(loaded.save(b"") == saved, "what is loaded is saved in other bytes");
        self.engine = loaded;
    }

    fn apply(&mut self, objects: &Value) {
        let taken = intake(&self.engine, objects.to_string().as_bytes(), Door::People, self.now);
        let taken = taken.expect("nothing is refused");
        self.engine.apply(taken.objects.into_iter().map(|(object, _)| object).collect(), self.now);
    }

    fn find(&self, given: &Value) -> Option<WorkloadId> {
        let (namespace, name) = names(given);
        self.engine.state.workloads.find(namespace, name)
    }

    /// Kueue evicts only workloads that hold quota. The job stops at once.
    fn evict(&mut self, id: WorkloadId, reason: &str) {
        if holds_quota(&self.engine, id) {
            let reason = if reason.is_empty() { "Preempted" } else { reason };
            self.engine.evict(id, reason, "", self.now);
            self.engine.release(id, self.now);
        }
    }

    /// Applies what a cycle has written, as a controller sees it through a watch.
    fn hear_of(&mut self, decision: &Decision, before: &BTreeMap<Key, Shared<WorkloadStatus>>) {
        let admitted = decision.admissions.iter().map(|it| &it.key);
        let preempted = decision.preemptions.iter().map(|it| &it.key);
        for key in admitted.chain(preempted).chain(decision.pending.iter().map(|it| &it.key)) {
            let state = &self.engine.state;
            let id = state.workloads.find(key.namespace(), key.name()).expect("a workload that was decided on");
            if state.workloads.get(id).workload.status != before[key] {
                let object = Object::Workload(Box::new(state.workload_object(id)));
                self.engine.apply(vec![object], self.now);
            }
        }
    }

    fn stop_evicted_jobs(&mut self) {
        let all: BTreeMap<Key, WorkloadId> =
            self.engine.state.workloads.iter().map(|(id, record)| (record.key().clone(), id)).collect();
        for id in all.into_values() {
            if holds_quota(&self.engine, id) && is_evicted(&self.engine, id) {
                self.engine.release(id, self.now);
            }
        }
    }

    fn reconcile(&mut self, stops: bool) -> Vec<Event> {
        let mut written = Vec::new();
        loop {
            let events = self.engine.reconcile(self.now);
            if events.is_empty() {
                return written;
            }
            written.extend(events);
            assert!(written.len() < 1000, "what is written outside of cycles comes to no end");
            if stops {
                self.stop_evicted_jobs();
            }
        }
    }
}

fn configuration(settings: &Value) -> Configuration {
    let Some(settings) = settings.as_object() else { return Configuration::default() };
    let mut file = settings.clone();
    file.insert("apiVersion".to_owned(), json!("config.kueue.x-k8s.io/v1beta2"));
    file.insert("kind".to_owned(), json!("Configuration"));
    let file = Value::Object(file).to_string();
    Configuration::read(file.as_bytes(), &BTreeMap::new(), Release::default()).expect("a valid Configuration")
}

fn of_cycle(decision: &Decision) -> Value {
    let of_pod_set = |of: &Value| {
        let none = json!({});
        let [flavors, usage] = ["flavors", "resourceUsage"].map(|name| of.get(name).unwrap_or(&none).clone());
        json!([of["name"], of["count"], flavors, usage])
    };
    let admissions: Vec<Value> = decision
        .admissions
        .iter()
        .map(|it| {
            // The topology, which the gates affect, is not compared.
            let admission = encode::admission(&it.admission, &Gates::default());
            let pod_sets = admission["podSetAssignments"].as_array().expect("a list");
            json!({
                "key": key(&it.key),
                "clusterQueue": admission["clusterQueue"],
                "isAdmitted": it.is_admitted,
                "podSets": pod_sets.iter().map(of_pod_set).collect::<Vec<_>>(),
            })
        })
        .collect();
    let preemptions: Vec<Value> = decision
        .preemptions
        .iter()
        .map(|it| {
            json!({
                "key": key(&it.key),
                "preemptor": key(&it.preemptor),
                "reason": it.reason,
                "message": it.message.text(),
            })
        })
        .collect();
    // Heads are taken in no fixed order, and several threads write events.
    let mut pending: Vec<_> = decision.pending.iter().collect();
    pending.sort_by_key(|it| &it.key);
    let pending: Vec<Value> = pending
        .iter()
        .map(
            |it| json!({"key": key(&it.key), "reason": it.reason, "message": it.message.text(), "isParked": it.parked}),
        )
        .collect();
    json!({
        "admissions": admissions,
        "preemptions": preemptions,
        "pending": pending,
        "parked": sorted(decision.parked_keys().map(|it| json!(key(it))).collect()),
        "events": sorted(decision.events.iter().map(event).collect()),
        "skippedPreemptions": decision.skipped_preemptions,
        "targetRecomputations": decision.target_recomputations,
    })
}

fn names(given: &Value) -> (&str, &str) {
    let key = text(given, "key");
    key.rsplit_once('/').unwrap_or(("", key))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}
