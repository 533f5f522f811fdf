//! Flavor assignment of one workload.

use std::collections::BTreeMap;

use kueuecore::assign::{
    Assignment, Attempt, Candidate, Context, Nomination, Oracle, PodSetAssignment, Possibility, ReplacedPodSet,
    assign as assign_flavors, messages,
};
use kueuecore::base::amount::Amount;
use kueuecore::base::changes::Change;
use kueuecore::base::gates::Gates;
use kueuecore::base::ids::{FlavorResourceId, QueueId, ResourceId, WorkloadId};
use kueuecore::base::names::Names;
use kueuecore::objects::PodSet;
use kueuecore::objects::config::Config;
use kueuecore::objects::resource_names::resource_value;
use kueuecore::objects::variants::allowed_flavors;
use kueuecore::pods::totals::Totals;
use kueuecore::quota::tree::{Column, Row, Tree};
use kueuecore::state::State;
use kueuecore::status::messages as words;
use serde_json::{Map, Value, json};

use super::values::{
    by_flavor, entries, flavor_amounts, flavors_of, integer, is_true, items, quantity, requests, text, texts,
};
use super::{Answer, Case};

/// Kind `assign`.
pub(super) fn assign(case: &Case<'_>) -> Answer {
    let input = case.input;
    let mut config = case.config.clone();
    if is_true(input, "enableFairSharing") {
        config.fair_sharing.get_or_insert_default();
    }
    let mut state = case.state_with(config);
    for name in texts(&input["deletedFlavors"]) {
        let flavor = state.flavor(name);
        state.objects.flavors[flavor] = None;
    }
    for (name, usage) in entries(&input["usage"]) {
        let queue = state.find_queue(name).ok_or_else(|| format!("no ClusterQueue {name}"))?;
        let usage = flavor_amounts(&mut state, usage)?;
        let node = state.queues[queue].node.ok_or("a ClusterQueue without a node")?;
        state.ledger.forest.charge(node, &usage, true, &state.names);
    }
    let queue = state.find_queue(text(input, "clusterQueue")?).ok_or("no such ClusterQueue")?;
    let workload = state.store_workload(case.workload("workload")?);
    state.refresh_sites();
    for (flavor, usage) in entries(&input["tasUsage"]) {
        let stands = super::topology::stand(&mut state, flavor, usage)?;
        state.nodes.sites.try_with(&stands, false);
    }
    let node = state.queues[queue].node.ok_or("a ClusterQueue without a node")?;
    let mut oracle = Recorded::read(&mut state, &input["oracle"])?;
    let replaced = replaced_slice(&mut state, &input["replaceWorkloadSlice"])?;
    let nomination = nomination(&mut state, &input["nominationMapping"]);
    state.ledger.forest.flush(&state.names);
    let (tree, row) = state.ledger.forest.locate(node);
    let record = state.workloads.get(workload);
    let allowed = allowed_flavors(&record.workload);
    let of_one_pod = state.of_one_pod(workload);
    let candidate = Candidate {
        pod_sets: &record.spec.adjusted,
        totals: &record.totals,
        of_one_pod: &of_one_pod,
        resume: None,
        allowed_flavors: allowed.as_deref(),
        replaced_slice: replaced.as_deref(),
        nomination: nomination.as_ref(),
        places: &[],
    };
    let context = Context {
        names: &state.names,
        flavors: &state.objects.flavors,
        config: &state.config,
        queue: &state.queues[queue].rules,
        row,
        sites: &state.nodes.sites,
    };
    let mut assignment = assign_flavors(&context, state.ledger.forest.tree_mut(tree), &candidate, None, &mut oracle);
    state.place(queue, workload, &mut assignment);
    let mut answer = dump(&state.names, &assignment, &state.workloads.get(workload).spec.adjusted, &state.config);
    answer["tasUsage"] = tas_usage(&state, (queue, workload), &assignment);
    Ok(answer)
}

/// What the assignment takes from nodes.
fn tas_usage(state: &State, of: (QueueId, WorkloadId), assignment: &Assignment) -> Value {
    let mut usage = Map::new();
    for stand in state.net_stands(of, assignment) {
        for flavor in &stand.flavors {
            let of_flavor = usage.entry(state.names.flavors[*flavor].clone()).or_insert_with(|| json!([]));
            for (id, count) in stand.domains() {
                let requests: Map<String, Value> = stand
                    .per_pod
                    .iter()
                    .filter(|(name, _)| *name != "pods")
                    .map(|(name, value)| (name.clone(), super::values::amount(name, Amount::new(*value))))
                    .collect();
                let values: Vec<&str> = id.split(',').collect();
                let entry = json!({"values": values, "count": count, "singlePodRequests": requests});
                of_flavor.as_array_mut().into_iter().for_each(|list| list.push(entry.clone()));
            }
        }
    }
    Value::Object(usage)
}

/// What preemption finds in the case.
struct Recorded {
    results: BTreeMap<FlavorResourceId, (Possibility, u32)>,
    default: (Possibility, u32),
}

impl Oracle for Recorded {
    fn simulate(&mut self, tree: &mut Tree, _: Row, column: Column, _: Amount, _: u32) -> (Possibility, u32) {
        self.results.get(&tree.columns()[column]).copied().unwrap_or(self.default)
    }
}

impl Recorded {
    fn read(state: &mut State, oracle: &Value) -> Result<Self, String> {
        let mut results = BTreeMap::new();
        for result in items(&oracle["results"]) {
            let flavor = state.flavor(text(result, "flavor")?);
            let resource = state.names.resource(text(result, "resource")?);
            results.insert(state.names.flavor_resource(flavor, resource), possibility(result)?);
        }
        Ok(Self { results, default: possibility(&oracle["default"])? })
    }
}

fn possibility(result: &Value) -> Result<(Possibility, u32), String> {
    let all = [Possibility::NoCandidates, Possibility::Preempt, Possibility::Reclaim];
    let name = text(result, "possibility")?;
    let found = all.into_iter().find(|p| p.as_str() == name).ok_or_else(|| format!("no possibility: {name}"))?;
    let level = u32::try_from(integer(result, "borrowing")?).map_err(|e| e.to_string())?;
    Ok((found, level))
}

fn replaced_slice(state: &mut State, slice: &Value) -> Result<Option<Vec<ReplacedPodSet>>, String> {
    if slice.is_null() {
        return Ok(None);
    }
    let mut replaced = Vec::new();
    for pod_set in items(&slice["totalRequests"]) {
        let mut requests = Vec::new();
        for (name, given) in entries(&pod_set["requests"]) {
            requests.push((state.names.resource(name), resource_value(name, &quantity(given)?)));
        }
        let count = i32::try_from(integer(pod_set, "count")?).map_err(|e| e.to_string())?;
        let flavors = flavors_of(state, &pod_set["flavors"]);
        let totals = Totals { count, requests, flavors };
        replaced.push(ReplacedPodSet { name: text(pod_set, "name")?.to_owned(), totals });
    }
    Ok(Some(replaced))
}

fn nomination(state: &mut State, mapping: &Value) -> Option<Nomination> {
    let mapping = mapping.as_object()?;
    let of = |(name, flavors): (&String, &Value)| (name.clone(), flavors_of(state, flavors).into_iter().collect());
    Some(mapping.iter().map(of).collect())
}

fn dump(names: &Names, assignment: &Assignment, pod_sets: &[PodSet], config: &Config) -> Value {
    let (gates, by_pod_set) = (&config.gates, config.changes.has(Change::GroupMembersMayBeApart));
    let tried = |tried: &[(ResourceId, i32)]| -> Value {
        tried.iter().map(|&(resource, index)| (names.resource_text(resource).to_owned(), json!(index))).collect()
    };
    json!({
        "mode": assignment.mode().as_str(),
        "borrowing": assignment.borrowing,
        "noFitReason": assignment.no_fit_reason.as_str(),
        "message": messages::assignment(names, assignment, &pod_sets.to_vec().into()).text(),
        "usage": by_flavor(names, assignment.usage.iter().map(|(fr, amount)| (*fr, *amount))),
        "lastTriedFlavorIdx": assignment.progress(by_pod_set).iter().map(|each| tried(each)).collect::<Vec<_>>(),
        "podSets": assignment.pod_sets().iter().map(|ps| pod_set(names, ps, pod_sets, gates)).collect::<Vec<_>>(),
    })
}

fn pod_set(names: &Names, assigned: &PodSetAssignment, pod_sets: &[PodSet], gates: &Gates) -> Value {
    let flavors: Map<String, Value> = assigned
        .flavors
        .iter()
        .map(|choice| {
            let entry = json!({
                "flavor": names.flavors[choice.flavor],
                "mode": choice.mode.as_str(),
                "triedFlavorIdx": choice.tried_index,
                "borrow": choice.level,
            });
            (names.resource_text(choice.resource).to_owned(), entry)
        })
        .collect();
    json!({
        "name": pod_sets[assigned.index].name,
        "count": assigned.count,
        "mode": assigned.mode().as_str(),
        "flavors": flavors,
        "reasons": words::sorted_reasons(&names.lexicon(), &assigned.reasons),
        "error": assigned.error,
        "requests": requests(names, &assigned.requests),
        "attempts": messages::by_flavor_name(names, &assigned.attempts).into_iter().map(|a| attempt(names, a)).collect::<Vec<_>>(),
        "topologyAssignment": assigned.place.as_ref().map(|place| super::topology::encoded("", place, gates)),
        "delayedTopologyRequest": assigned.delayed.map(|each| each.as_str()),
    })
}

fn attempt(names: &Names, attempt: &Attempt) -> Value {
    json!({
        "flavor": names.flavors[attempt.flavor],
        "mode": attempt.mode.as_str(),
        "borrow": attempt.level,
        "reasons": words::attempt_reasons(&names.lexicon(), &attempt.reasons),
        "noFitReason": attempt.no_fit_reason.as_str(),
        "preemptionPossibility": attempt.possibility.map(Possibility::as_str),
    })
}

/// Kind `scheduling_hash`.
pub(super) fn scheduling_hash(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    let mut shapes = Vec::new();
    for workload in items(&case.input["workloads"]) {
        let id: WorkloadId = state.store_workload(super::workload(workload)?);
        shapes.push(state.workloads.row(id).shape);
    }
    Ok(json!({"same": shapes.windows(2).all(|pair| pair[0] == pair[1])}))
}
