//! Small functions: amounts, priorities, positions in a scan, searches for counts, paths, messages.

use kueuecore::assign::{Resume, search_counts};
use kueuecore::base::amount::Amount;
use kueuecore::base::gates::Gate;
use kueuecore::base::ids::{Id, ShapeId};
use kueuecore::objects::priority::{PRIORITY_BOOST, effective_priority, priority_boost};
use kueuecore::quota::forest::NodeId;
use kueuecore::quota::share::Share;
use kueuecore::state::State;
use kueuecore::state::records::Owner;
use kueuecore::status::admissible::backoff_expired;
use kueuecore::status::messages;
use serde_json::{Value, json};

use super::quota::float;
use super::values::{entries, integer, items, text};
use super::{Answer, Case};

fn amount(value: &Value) -> Result<Amount, String> {
    match value.as_i64() {
        Some(units) => Ok(Amount::new(units)),
        None if value == "unlimited" => Ok(Amount::UNLIMITED),
        None => Err(format!("no amount: {value}")),
    }
}

fn show(amount: Amount) -> Value {
    if amount.is_unlimited() { json!("unlimited") } else { json!(amount.get()) }
}

/// Kind `amount_arithmetic`.
pub(super) fn amount_arithmetic(case: &Case<'_>) -> Answer {
    let mut results = Vec::new();
    for op in items(&case.input["ops"]) {
        let (a, b) = (amount(&op["a"])?, amount(&op["b"])?);
        results.push(match text(op, "op")? {
            "add" => show(a.plus(b)),
            "sub" => show(a.minus(b)),
            "cmp" => json!(a.cmp(&b) as i8),
            other => return Err(format!("no operation: {other}")),
        });
    }
    Ok(Some(json!({"results": results})))
}

/// Kind `effective_priority`.
pub(super) fn effective(case: &Case<'_>) -> Answer {
    Ok(Some(json!({"priority": effective_priority(&case.workload("workload")?, case.config.gates)})))
}

/// Kind `priority_boost`.
pub(super) fn boost(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let given = workload
        .meta
        .details
        .annotations
        .get(PRIORITY_BOOST)
        .filter(|_| case.config.gates.enabled(Gate::PriorityBoost));
    let is_wrong = given.is_some_and(|text| text.parse::<i32>().is_err());
    Ok(Some(json!({"boost": priority_boost(&workload, case.config.gates), "error": is_wrong})))
}

/// Kind `backoff_expired`.
pub(super) fn expired(case: &Case<'_>) -> Answer {
    Ok(Some(json!({"expired": backoff_expired(&case.workload("workload")?, case.now)})))
}

/// Kind `preemption_message`.
pub(super) fn preemption_message(case: &Case<'_>) -> Answer {
    let preemptor = case.workload("preemptor")?;
    let given = |key| text(case.input, key);
    let message =
        messages::preempted(&preemptor.meta, given("reason")?, given("preemptorPath")?, given("preempteePath")?);
    Ok(Some(json!({"message": message})))
}

/// Kind `weighted_share`.
pub(super) fn weighted_share(case: &Case<'_>) -> Answer {
    let number = |key: &str| case.input[key].as_f64().ok_or_else(|| format!("{key} is no number"));
    let share = Share {
        weight: number("fairWeight")?,
        ratio: number("unweightedRatio")?,
        dominant: None,
        borrowed: Vec::new(),
    };
    Ok(Some(json!({"weightedShare": float(share.weighted())})))
}

/// Kind `partial_admission_search`.
pub(super) fn partial_admission_search(case: &Case<'_>) -> Answer {
    let pod_sets = json!({
        "apiVersion": super::KUEUE,
        "kind": "Workload",
        "spec": {"podSets": case.input["podSets"]},
    });
    let pod_sets = super::workload(&pod_sets)?.pod_sets;
    let limit = integer(case.input, "countLimit")?;
    let sum = |counts: &[i32]| counts.iter().copied().map(i64::from).sum::<i64>();
    let mut probes = Vec::new();
    let found = search_counts(&pod_sets, |counts| {
        probes.push(counts.to_vec());
        (sum(counts) <= limit).then(|| counts.to_vec())
    });
    let count = found.as_deref().map_or(0, sum);
    Ok(Some(json!({"found": found.is_some(), "count": count, "counts": found, "probes": probes})))
}

/// Kind `pending_flavors`.
pub(super) fn pending_flavors(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    let mut resume = Resume::default();
    for pod_set in items(&case.input["lastTriedFlavorIdx"]) {
        let index = |value: &Value| value.as_i64().and_then(|index| i32::try_from(index).ok()).unwrap_or_default();
        resume.tried.push(entries(pod_set).map(|(name, at)| (state.names.resource(name), index(at))).collect());
    }
    Ok(Some(json!({"pendingFlavors": resume.has_pending_flavors()})))
}

/// Kind `last_assignment_outdated`. Shapes are numbered by their position among the hashes of the case.
pub(super) fn last_assignment_outdated(case: &Case<'_>) -> Answer {
    let (input, last) = (case.input, &case.input["last"]);
    let hashes = [last, input].map(|of| of["schedulingHash"].as_str().unwrap_or_default());
    let shape = |hash: &str| {
        let is_known = !hash.is_empty() && hash != "unknown";
        hashes.iter().position(|other| *other == hash).filter(|_| is_known).map(ShapeId::from_index)
    };
    let cycle = |of: &Value| u64::try_from(integer(of, "schedulingCycle")?).map_err(|e| e.to_string());
    let resume = Resume {
        tried: Default::default(),
        generation: integer(last, "clusterQueueGeneration")?,
        cycle: cycle(last)?,
        shape: shape(hashes[0]),
    };
    let preserve = case.config.gates.enabled(Gate::FlavorFungibilityPreserveScanProgress);
    let generation = integer(input, "clusterQueueGeneration")?;
    Ok(Some(json!({"outdated": resume.is_outdated(generation, cycle(input)?, shape(hashes[1]), preserve)})))
}

/// Kind `ancestors`: of a ClusterQueue those between it and the root, of a Cohort from itself to the root.
pub(super) fn ancestors(case: &Case<'_>) -> Answer {
    let state = case.state();
    let (node, is_cohort) = match case.input["cohort"].as_str() {
        Some(name) => (state.names.cohorts.find(name).and_then(|id| state.cohorts[id].node), true),
        None => (state.find_queue(text(case.input, "clusterQueue")?).and_then(|id| state.queues[id].node), false),
    };
    let Some(node) = node else { return Ok(Some(json!({"ancestors": [], "error": ""}))) };
    if state.ledger.forest.has_cycle(node) {
        return Ok(Some(json!({"ancestors": [], "error": "cohort has a cycle"})));
    }
    let mut names: Vec<&str> = state.ledger.forest.path(node).filter_map(|node| cohort_name(&state, node)).collect();
    if !is_cohort {
        names.pop();
    }
    Ok(Some(json!({"ancestors": names, "error": ""})))
}

fn cohort_name(state: &State, node: NodeId) -> Option<&str> {
    match state.ledger.owner(node)? {
        Owner::Cohort(id) => Some(&state.names.cohorts[id]),
        Owner::Queue(_) => None,
    }
}
