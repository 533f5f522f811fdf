//! Why a workload waits, as JSON: codes and amounts from which the caller builds sentences.

use kueuecore::assign::Attempt;
use kueuecore::base::amount::Amount;
use kueuecore::base::ids::FlavorResourceId;
use kueuecore::engine::explain::{Asked, Explanation, FlavorTrial, PodSetTrials};
use kueuecore::quota::levels::Level;
use kueuecore::state::State;
use kueuecore::state::records::Owner;
use kueuecore::state::searches::Search;
use kueuecore::status::messages::attempt_reasons;
use serde_json::{Value, json};

use crate::report::{quantity, used};

/// What was tried for each pod set, and which candidates the preemption searches took or spared.
#[must_use]
pub fn explanation(explained: &Explanation) -> Value {
    let state = &explained.engine.state;
    let pod_sets: Vec<Value> = explained.pod_sets.iter().map(|it| pod_set(state, it)).collect();
    let searches: Vec<Value> = explained.searches.iter().map(|it| search(state, it)).collect();
    json!({"podSets": pod_sets, "searches": searches})
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
    let contested = search.contested.iter().map(|fr| parts(state, *fr));
    let holders = search.holders.iter().map(|holder| {
        let record = state.workloads.get(holder.workload);
        let uses = record.charge.as_deref().map(|charge| &charge.usage);
        let amounts = uses.into_iter().flat_map(|uses| uses.iter()).filter(|(fr, _)| search.contested.contains(fr));
        let amounts = amounts.map(|&(fr, amount)| {
            let (flavor, resource) = parts(state, fr);
            json!({"flavor": flavor, "resource": resource, "amount": used(&resource, amount)})
        });
        json!({
            "namespace": record.key().namespace(),
            "name": record.key().name(),
            "clusterQueue": state.names.queues[holder.queue].as_str(),
            "priority": record.row.priority,
            "uses": amounts.collect::<Vec<_>>(),
            "fate": search.fate(holder).name(),
        })
    });
    json!({
        "contested": contested.map(|(flavor, resource)| json!({"flavor": flavor, "resource": resource})).collect::<Vec<_>>(),
        "isFound": !search.targets.is_empty(),
        "holders": holders.collect::<Vec<_>>(),
    })
}
