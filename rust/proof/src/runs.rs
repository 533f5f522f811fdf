//! Whole simulations, compared with recorded runs of Kueue.

use std::collections::BTreeMap;
use std::sync::Arc;

use kueuecore::base::amount::Amount;
use kueuecore::base::ids::FlavorId;
use kueuecore::objects::Time;
use kueuecore::simulate::{Cycle, Ending, Options, Run, Simulation, Step, Timers, Turn};
use kueuecore::state::State;
use kueuecore_wire::decode::Door;
use kueuecore_wire::scenario::happenings;
use kueuecore_wire::time::parse_time;
use kueuecore_wire::{encode, report};
use serde_json::{Map, Value, json};

use super::late_checks::LateChecks;
use super::live::{Live, events};
use super::values::{amount, integer, items};
use super::{Answer, lines};

const SECOND_NS: i64 = 1_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// A finished run.
struct Played {
    live: Live,
    run: Run,
}

/// Kind `trace`: everything is compared, including messages.
pub(super) fn trace(case: &Value, interrupted: &mut dyn FnMut() -> bool) -> Answer {
    let Some(played) = play(case, true, interrupted)? else { return Ok(None) };
    let (mut cycles, mut quiet) = (Vec::new(), Vec::new());
    for cycle in &played.run.log.cycles {
        let mut entry = played.shown(cycle);
        entry["messages"] = events(&cycle.decision).collect();
        let admitted = cycle.decision.admissions.iter().map(|it| {
            let mut granted = json!({
                "key": it.key.to_string(),
                "clusterQueue": it.admission.cluster_queue.as_str(),
                "podSets": pod_sets(&encode::admission(&it.admission, &played.live.engine.state.config.gates)),
            });
            if it.at != cycle.time {
                granted["t"] = played.seconds(it.at);
            }
            granted
        });
        entry["admitted"] = sorted(admitted);
        entry["inadmissible"] = cycle.parked.iter().map(ToString::to_string).collect();
        let gates = &played.live.engine.state.config.gates;
        let placed = cycle.decision.placed.iter();
        let assigned = placed.map(
            |it| json!({"key": it.key.to_string(), "podSets": pod_sets(&encode::admission(&it.admission, gates))}),
        );
        let evicted = cycle.decision.evictions.iter().map(|it| {
            let mut evicted = json!({"key": it.key.to_string(), "reason": it.reason});
            if it.again {
                evicted["again"] = json!(true);
            }
            evicted
        });
        let replaced = cycle.decision.replaced.iter();
        let finished = replaced.map(|it| json!({"key": it.key.to_string(), "reason": "WorkloadSliceReplaced"}));
        let more = [("assigned", sorted(assigned)), ("evicted", sorted(evicted)), ("finished", sorted(finished))];
        for (field, rows) in more.into_iter().filter(|(_, rows)| !items(rows).is_empty()) {
            entry[field] = rows;
        }
        let lists = ["admitted", "preempting", "inadmissible", "assigned", "evicted", "finished"];
        let has_decided = lists.iter().any(|it| !items(&entry[it]).is_empty());
        if has_decided {
            cycles.push(entry);
        } else {
            quiet.push(json!({"n": entry["n"], "t": entry["t"], "messages": entry["messages"]}));
        }
    }
    Ok(Some(json!({"cycles": cycles, "quietMessages": quiet, "final": played.end()})))
}

/// Kind `scale`: which workload got quota when, for runs too large to compare in detail.
pub(super) fn scale(case: &Value, interrupted: &mut dyn FnMut() -> bool) -> Answer {
    let Some(played) = play(case, false, interrupted)? else { return Ok(None) };
    let run = &played.run;
    let mut cycles = Vec::new();
    for cycle in &run.log.cycles {
        let mut entry = played.shown(cycle);
        let mut admitted: Vec<String> = cycle.decision.admissions.iter().map(|it| it.key.to_string()).collect();
        admitted.sort();
        entry["admitted"] = json!(admitted);
        entry["newlyInadmissible"] = json!(cycle.n_parked);
        cycles.push(entry);
    }
    let count = |of: fn(&Cycle) -> usize| run.log.cycles.iter().map(of).sum::<usize>();
    Ok(Some(json!({
        "cycles": cycles,
        "final": {
            "t": played.seconds(run.end),
            "cycles": run.n_cycles,
            "admissions": count(|it| it.decision.admissions.len()),
            "preemptions": count(|it| it.decision.preemptions.len()),
            "finished": run.log.steps.iter().filter(|(_, step, _)| *step == Step::Finished).count(),
        },
    })))
}

/// Plays a case, unless workloads are retried only once a second.
fn play(case: &Value, keeps_messages: bool, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Played>, String> {
    let config = &case["config"];
    if config["requeueBatchMs"].as_i64().is_some_and(|batch| batch != 0) {
        return Ok(None);
    }
    let mut live = Live::new(case)?;
    let options = Options {
        cycle_step_ns: integer(config, "cycleStepMs")? * MILLISECOND_NS,
        quiet_cycles: config["quietCycles"].as_u64().and_then(|cycles| usize::try_from(cycles).ok()),
        max_cycles: config["maxCycles"].as_u64(),
        eviction_ns: config["evictionSeconds"].as_i64().unwrap_or_default() * SECOND_NS,
        keeps_messages,
        keeps_cycles: true,
        keeps_finished: true,
        // The product uses the other rule; drawn cases ask for it.
        timers: if config["timers"] == "WhenDue" { Timers::WhenDue } else { Timers::AfterRound },
    };
    let text: String = items(&case["input"]["events"]).iter().map(|event| format!("{event}\n")).collect();
    let config = &live.engine.state.config;
    let happenings = happenings(text.as_bytes(), Door::Trusted, config, live.now, &[]).map_err(|e| lines(&e))?;
    let mut simulation = Simulation::new(options, live.now);
    simulation.schedule(happenings);
    let mut checks = LateChecks::of(case, &mut simulation);
    simulation.happened(&mut live.engine);
    // Runs with a topology were recorded by another loop: the last cycle ends the run, not the first one beyond.
    let is_placed = items(&case["objects"]).iter().any(|it| it["kind"] == "Topology");
    let last_cycle = options.max_cycles.filter(|_| is_placed);
    let ending = loop {
        if interrupted() {
            break Ending::Interrupted;
        }
        match (simulation.step(&mut live.engine), &mut checks) {
            (Turn::Done(ending), _) => break ending,
            (Turn::Ask(asked), Some(checks)) => checks.answer(&mut live.engine, &mut simulation, &asked),
            (Turn::Cycle, _) if Some(simulation.n_cycles()) == last_cycle => break Ending::CycleLimit,
            _ => {}
        }
    };
    let run = Run { ending, ..simulation.record(&live.engine) };
    match run.ending {
        Ending::Complete | Ending::CycleLimit => Ok(Some(Played { live, run })),
        Ending::Interrupted | Ending::OutOfTime => Err(format!("the run ended: {}", run.ending.name())),
    }
}

impl Played {
    /// Seconds since the beginning, as an integer if whole.
    fn seconds(&self, time: Time) -> Value {
        let after_ns = time.0 - self.live.now.0;
        let (whole, rest) = (after_ns.div_euclid(SECOND_NS), after_ns.rem_euclid(SECOND_NS));
        if rest == 0 { json!(whole) } else { json!(whole as f64 + rest as f64 / SECOND_NS as f64) }
    }

    fn seconds_of(&self, time: &Value) -> Value {
        time.as_str().and_then(parse_time).map_or(Value::Null, |time| self.seconds(time))
    }

    /// What both kinds compare of a cycle.
    fn shown(&self, cycle: &Cycle) -> Value {
        let preempting =
            cycle.decision.preemptions.iter().map(
                |it| json!({"key": it.key.to_string(), "reason": it.reason, "preemptor": it.preemptor.to_string()}),
            );
        json!({"n": cycle.number, "t": self.seconds(cycle.time), "preempting": sorted(preempting)})
    }

    /// The final state.
    fn end(&self) -> Value {
        let workloads = self.live.workloads();
        let admitted = self.live.admissions(&workloads).into_iter().map(|(key, admission)| {
            json!({"key": key, "clusterQueue": admission["clusterQueue"], "podSets": pod_sets(&admission)})
        });
        let statuses: Map<String, Value> =
            workloads.iter().map(|it| (it.key.clone(), self.recorded_status(it.status()))).collect();
        let accounts = report::local_queue_accounts(&self.live.engine.state);
        let local_queues: Map<String, Value> = accounts
            .into_iter()
            .map(|(name, account)| {
                let last = self.seconds_of(&account["lastUpdate"]);
                (
                    name,
                    json!({"consumed": account["consumed"], "penalty": account["pendingPenalty"], "lastUpdate": last}),
                )
            })
            .collect();
        let (queued, inadmissible) = self.live.places();
        let mut end = json!({
            "t": self.seconds(self.run.end),
            "cycles": self.run.n_cycles,
            "admitted": admitted.collect::<Vec<_>>(),
            "usage": self.usage("ClusterQueue"),
            "cohortUsage": self.usage("Cohort"),
            "queued": queued,
            "inadmissible": inadmissible,
            "statuses": statuses,
            "localQueues": local_queues,
        });
        let usage = topology_usage(&self.live.engine.state);
        if usage != json!({}) {
            end["topologyUsage"] = usage;
        }
        if self.run.ending == Ending::CycleLimit {
            end["stopped"] = json!("maxCycles");
        }
        end
    }

    /// Usage of the nodes of a kind that are in a snapshot; inactive ClusterQueues are not.
    fn usage(&self, kind: &str) -> Value {
        let mut usage = json!({});
        for row in report::quota_rows(&self.live.engine.state) {
            let [name, flavor, resource] =
                ["name", "flavor", "resource"].map(|it| row[it].as_str().unwrap_or_default());
            if row["kind"] == kind && row["usage"] != "0" && (kind == "Cohort" || self.live.is_active(name)) {
                usage[name][flavor][resource] = row["usage"].clone();
            }
        }
        usage
    }

    /// The part of a status that a recording keeps.
    fn recorded_status(&self, status: &Value) -> Value {
        let fields = ["type", "status", "reason", "message"];
        let condition =
            |it: &Value| fields.iter().map(|name| ((*name).to_owned(), it[name].clone())).collect::<Value>();
        let mut conditions: Vec<Value> = items(&status["conditions"]).iter().map(condition).collect();
        conditions.sort_by_key(|it| it["type"].as_str().map(str::to_owned));
        let is_finished = |it: &&Value| it["type"] == "Finished" && it["status"] == "True";
        let evictions = items(&status["schedulingStats"]["evictions"]);
        if let Some(finished) = conditions.iter().find(is_finished) {
            return json!({"conditions": [finished], "evictions": evictions});
        }
        let checks =
            items(&status["admissionChecks"]).iter().map(|it| json!({"name": it["name"], "state": it["state"]}));
        let requeue = &status["requeueState"];
        let mut shown = json!({
            "admissionChecks": checks.collect::<Vec<_>>(),
            "resourceRequests": items(&status["resourceRequests"]),
            "evictions": evictions,
            "conditions": conditions,
        });
        let unhealthy: Vec<Value> = items(&status["unhealthyNodes"]).iter().map(|it| it["name"].clone()).collect();
        if !unhealthy.is_empty() {
            shown["unhealthyNodes"] = Value::Array(unhealthy);
        }
        if !requeue["requeueAt"].is_null() {
            shown["requeueAt"] = self.seconds_of(&requeue["requeueAt"]);
        }
        if !requeue["count"].is_null() {
            shown["requeueCount"] = requeue["count"].clone();
        }
        shown
    }
}

/// Entries by their keys.
fn sorted(entries: impl Iterator<Item = Value>) -> Value {
    let mut entries: Vec<Value> = entries.collect();
    entries.sort_by_key(|it| it["key"].as_str().map(str::to_owned));
    Value::Array(entries)
}

fn pod_sets(admission: &Value) -> Vec<Value> {
    let pod_sets = items(&admission["podSetAssignments"]).iter();
    let shown = |it: &Value| {
        let flavors = it["flavors"].as_object().cloned().unwrap_or_default();
        let mut shown = json!({"name": it["name"], "count": it["count"], "flavors": flavors});
        for field in ["topologyAssignment", "delayedTopologyRequest"] {
            if !it[field].is_null() {
                shown[field] = it[field].clone();
            }
        }
        shown
    };
    pod_sets.map(shown).collect()
}

/// What placed workloads take from the nodes of each flavor.
fn topology_usage(state: &State) -> Value {
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
    for ((flavor, id, resource), value) in usage.into_iter().filter(|it| it.1 != 0) {
        shown[&state.names.flavors[flavor]][&*id][resource] = amount(resource, Amount::new(value));
    }
    shown
}
