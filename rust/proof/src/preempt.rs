//! The victims of one workload's preemption, and what is written to them.

use kueuecore::assign::{
    Assignment, AttemptList, Candidate, Choices, FlavorChoice, Mode, PodSetAssignment, Requests, Usage,
};
use kueuecore::base::ids::{QueueId, WorkloadId};
use kueuecore::preempt::{Demand, find_targets};
use kueuecore::schedule::decision::Decision;
use kueuecore::state::State;
use kueuecore::workloads::charge::Target;
use kueuecore_wire::encode;
use serde_json::{Value, json};

use super::values::{entries, integer, items, text};
use super::{Answer, Case};

/// Kind `preempt`.
pub(super) fn preempt(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    let queue = state.find_queue(text(case.input, "clusterQueue")?).ok_or("no such ClusterQueue")?;
    let workload = state.store_workload(case.workload("workload")?);
    if state.workloads.get(workload).workload.status.admission.is_some() {
        let totals = state.reserved_totals(workload);
        state.workloads.get_mut(workload).totals = totals;
    }
    let assignment = assignment(&mut state, workload, &case.input["assignment"])?;
    state.ledger.forest.flush(&state.names);
    let targets = targets(&mut state, queue, workload, &assignment);
    let mut decision = Decision::default();
    for &target in &targets {
        state.write_preemption(target, workload, queue, case.now, &mut decision);
    }
    Ok(Some(dump(&state, &targets)))
}

/// The victims of a workload with this assignment.
pub(super) fn targets(state: &mut State, queue: QueueId, workload: WorkloadId, assignment: &Assignment) -> Vec<Target> {
    let preemptor = state.preemptor(queue, workload);
    let mut tree = state.ledger.forest.lend_tree(preemptor.tree);
    let record = state.workloads.get(workload);
    let candidate = Candidate {
        pod_sets: &record.spec.adjusted,
        totals: &record.totals,
        of_one_pod: &[],
        resume: None,
        allowed_flavors: None,
        replaced_slice: None,
        nomination: None,
        places: &[],
    };
    let requests = assignment.requests_to_preempt_for(&candidate, &state.names, state.config.changes);
    let demand = Demand::of_assignment(assignment, &requests, &tree);
    let targets = find_targets(&state.world(), &mut tree, &preemptor, &demand);
    state.ledger.forest.return_tree(preemptor.tree, tree);
    targets
}

pub(super) fn key(state: &State, id: WorkloadId) -> String {
    state.workloads.get(id).key().to_string()
}

pub(super) fn assignment(state: &mut State, workload: WorkloadId, given: &Value) -> Result<Assignment, String> {
    let mut pod_sets = Vec::new();
    for pod_set in items(&given["podSets"]) {
        let name = text(pod_set, "name")?;
        let adjusted = &state.workloads.get(workload).spec.adjusted;
        let index = adjusted.iter().position(|ps| ps.name == name).ok_or_else(|| format!("no pod set {name}"))?;
        let mut flavors = Choices::new();
        for (resource, choice) in entries(&pod_set["flavors"]) {
            let (resource, flavor) = (state.names.resource(resource), state.flavor(text(choice, "flavor")?));
            flavors.push(FlavorChoice {
                resource,
                flavor,
                pair: state.names.find_flavor_resource(flavor, resource),
                mode: mode(text(choice, "mode")?)?,
                level: 0,
                tried_index: 0,
            });
        }
        pod_sets.push(PodSetAssignment {
            index,
            count: i32::try_from(integer(pod_set, "count")?).map_err(|e| e.to_string())?,
            requests: Requests::new(),
            flavors,
            reasons: Vec::new(),
            error: None,
            attempts: AttemptList::new(),
            place: None,
            delayed: None,
        });
    }
    Ok(Assignment::new(pod_sets, Usage::default(), 0))
}

fn mode(name: &str) -> Result<Mode, String> {
    let all = [Mode::NoFit, Mode::Preempt, Mode::DeferredFit, Mode::Fit];
    all.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| format!("no mode: {name}"))
}

fn dump(state: &State, targets: &[Target]) -> Value {
    let mut by_key: Vec<(String, WorkloadId)> = targets.iter().map(|t| (key(state, t.workload), t.workload)).collect();
    by_key.sort();
    let status =
        |id: WorkloadId| encode::workload_status(&state.workloads.get(id).workload.status, &state.config.gates);
    json!({
        "ordered": true,
        "targets": targets.iter().map(|t| json!({
            "key": key(state, t.workload),
            "reason": t.reason,
            "clusterQueue": state.names.queues[t.queue].as_str(),
        })).collect::<Vec<_>>(),
        "preempted": targets.len(),
        "workloads": by_key.iter().map(|(key, id)| json!({"key": key, "status": status(*id)})).collect::<Vec<_>>(),
    })
}
