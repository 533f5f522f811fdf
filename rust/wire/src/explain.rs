//! Why a workload waits, as JSON: codes and amounts from which the caller builds sentences.

use kueuecore::assign::Attempt;
use kueuecore::base::amount::Amount;
use kueuecore::base::ids::{FlavorResourceId, LocalQueueId};
use kueuecore::engine::ahead::{Ahead, Precedence};
use kueuecore::engine::explain::{Asked, Explanation, FlavorTrial, PodSetTrials};
use kueuecore::objects::config::PreemptionStrategy;
use kueuecore::quota::forest::NodeId;
use kueuecore::quota::levels::Level;
use kueuecore::state::State;
use kueuecore::state::records::Owner;
use kueuecore::state::searches::{Comparison, Contender, Search, Tie};
use kueuecore::status::messages::attempt_reasons;
use serde_json::{Value, json};

use crate::report::{quantity, used};

/// What was tried for each pod set, and which candidates the preemption searches took or spared.
#[must_use]
pub fn explanation(explained: &Explanation) -> Value {
    let state = &explained.engine.state;
    let pod_sets: Vec<Value> = explained.pod_sets.iter().map(|it| pod_set(state, it)).collect();
    let searches: Vec<Value> = explained.searches.iter().map(|it| search(state, it)).collect();
    let replaces = explained.replaces.map(|slice| {
        let record = state.workloads.get(slice);
        let uses = record.charge.as_deref().map(|charge| charge.usage.iter().copied());
        json!({
            "namespace": record.key().namespace(),
            "name": record.key().name(),
            "uses": amounts(state, uses.into_iter().flatten()),
        })
    });
    let ahead: Vec<Value> = explained.ahead.iter().map(|it| ahead_of(state, it)).collect();
    json!({"podSets": pod_sets, "searches": searches, "replaces": replaces, "ahead": ahead})
}

fn ahead_of(state: &State, ahead: &Ahead) -> Value {
    // An infinite usage is `null`.
    let usage = |(queue, usage): (LocalQueueId, f64)| {
        let (namespace, name) = &state.names.local_queues[queue];
        json!({"namespace": namespace, "name": name.as_str(), "usage": usage})
    };
    let key = state.workloads.get(ahead.workload).key();
    let (why, priority, since, usages) = match ahead.why {
        Precedence::Usage { theirs, ours } => ("Usage", None, None, vec![usage(theirs), usage(ours)]),
        Precedence::Sticky => ("Sticky", None, None, Vec::new()),
        Precedence::Priority(priority) => ("Priority", Some(priority), None, Vec::new()),
        Precedence::Time(time) => ("Time", None, Some(time.0), Vec::new()),
        Precedence::Uid => ("Uid", None, None, Vec::new()),
    };
    json!({
        "namespace": key.namespace(),
        "name": key.name(),
        "why": why,
        "priority": priority,
        "since": since,
        "usages": usages,
    })
}

fn pod_set(state: &State, pod_set: &PodSetTrials) -> Value {
    let flavor = |id| state.names.flavors[id].clone();
    let mut reasons = attempt_reasons(&state.names.lexicon(), &pod_set.reasons);
    reasons.extend(pod_set.error.clone());
    json!({
        "index": pod_set.index,
        "reasons": reasons,
        "trials": pod_set.trials.iter().map(|it| trial(state, it)).collect::<Vec<_>>(),
        "notTried": pod_set.not_tried.iter().map(|id| flavor(*id)).collect::<Vec<_>>(),
        "unavailable": pod_set.unavailable.iter().map(|id| state.names.resource_text(*id)).collect::<Vec<_>>(),
    })
}

fn trial(state: &State, trial: &FlavorTrial) -> Value {
    let Attempt { flavor, mode, level, possibility, reasons, .. } = &trial.attempt;
    json!({
        "flavor": state.names.flavors[*flavor],
        "mode": mode.as_str(),
        "isChosen": trial.is_chosen,
        "borrowingLevel": level,
        "preemption": possibility.map(|it| it.as_str()),
        "reasons": attempt_reasons(&state.names.lexicon(), reasons),
        "asked": trial.asked.iter().map(|it| asked(state, it)).collect::<Vec<_>>(),
    })
}

fn parts(state: &State, fr: FlavorResourceId) -> (String, String) {
    let (flavor, resource) = state.names.parts(fr);
    (state.names.flavors[flavor].clone(), state.names.resource_text(resource).to_owned())
}

fn owner(state: &State, owner: Owner) -> (&'static str, String) {
    match owner {
        Owner::Queue(id) => ("ClusterQueue", state.names.queues[id].to_string()),
        Owner::Cohort(id) => ("Cohort", state.names.cohorts[id].clone()),
    }
}

fn asked(state: &State, asked: &Asked) -> Value {
    let (_, resource) = parts(state, asked.fr);
    let verdict = match () {
        () if asked.exceeds_maximum() => "ExceedsMaximum",
        () if asked.is_contested() => "Contested",
        () => "Fits",
    };
    let kept = asked.kept.iter().map(|(of, free)| {
        let (kind, name) = owner(state, *of);
        json!({"kind": kind, "name": name, "free": used(&resource, *free)})
    });
    json!({
        "resource": resource,
        "amount": used(&resource, asked.amount),
        "potential": quantity(&resource, asked.potential),
        "verdict": verdict,
        "levels": asked.levels.iter().map(|(of, it)| level(state, &resource, *of, it)).collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
    })
}

fn level(state: &State, resource: &str, of: Owner, level: &Level) -> Value {
    let (kind, name) = owner(state, of);
    let amount = |it: Amount| quantity(resource, it);
    let Level { quota, subtree, usage, needed, available, missing, binds, .. } = level;
    json!({
        "kind": kind,
        "name": name,
        "nominal": amount(quota.nominal),
        "borrowingLimit": quota.borrowing_limit.map_or(Value::Null, amount),
        "lendingLimit": quota.lending_limit.map_or(Value::Null, amount),
        "subtreeQuota": amount(*subtree),
        "usage": used(resource, *usage),
        "needed": used(resource, *needed),
        "available": amount(*available),
        "missing": used(resource, *missing),
        "binds": binds.map(|it| it.name()),
    })
}

fn search(state: &State, search: &Search) -> Value {
    let holders = search.holders.iter().map(|holder| {
        let record = state.workloads.get(holder.workload);
        let uses = record.charge.as_deref().map(|charge| charge.usage.iter().copied());
        let uses = uses.into_iter().flatten().filter(|(fr, _)| search.contested.contains(fr));
        json!({
            "namespace": record.key().namespace(),
            "name": record.key().name(),
            "clusterQueue": state.names.queues[holder.queue].as_str(),
            "priority": record.row.priority,
            "uses": amounts(state, uses),
            "fate": search.fate(holder).name(),
            "comparisons": search.comparisons(holder).iter().map(|it| comparison(state, it)).collect::<Vec<_>>(),
            "ties": search.ties(holder).iter().map(|it| tie(state, it)).collect::<Vec<_>>(),
        })
    });
    json!({
        "contested": search.contested.iter().map(|fr| parts(state, *fr)).collect::<Vec<_>>(),
        "asksForPlace": search.asks_for_place,
        "isFound": !search.targets.is_empty(),
        "holders": holders.collect::<Vec<_>>(),
    })
}

/// Flavor, resource and amount.
fn amounts(state: &State, uses: impl Iterator<Item = (FlavorResourceId, Amount)>) -> Vec<Value> {
    uses.map(|(fr, amount)| {
        let (flavor, resource) = parts(state, fr);
        json!([flavor, resource, used(&resource, amount)])
    })
    .collect()
}

fn node(state: &State, id: NodeId) -> Value {
    let (kind, name) = owner(state, state.owner(id).expect("shares are compared of nodes with owners"));
    json!({"kind": kind, "name": name})
}

/// An infinite share is `null`.
fn contender(state: &State, contender: &Contender) -> Value {
    let Contender { node: of, now, then } = contender;
    json!({
        "node": node(state, *of),
        "now": now.weighted(),
        "then": then.weighted(),
        "unweightedNow": now.ratio,
        "unweightedThen": then.ratio,
    })
}

fn comparison(state: &State, comparison: &Comparison) -> Value {
    let strategy = match comparison.strategy {
        PreemptionStrategy::LessThanOrEqualToFinalShare => "LessThanOrEqualToFinalShare",
        PreemptionStrategy::LessThanInitialShare => "LessThanInitialShare",
    };
    json!({
        "strategy": strategy,
        "ours": contender(state, &comparison.ours),
        "theirs": contender(state, &comparison.theirs),
        "order": comparison.order() as i8,
        "passes": comparison.passes,
    })
}

fn tie(state: &State, tie: &Tie) -> Value {
    let equals: Vec<Value> = tie.equals.iter().map(|(id, _)| node(state, *id)).collect();
    json!({"node": node(state, tie.node), "equals": equals})
}
