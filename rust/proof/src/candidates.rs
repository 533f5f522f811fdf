//! Candidates for preemption: their order, and which of them a policy allows, both observed through the victims of a
//! preemption.

use kueuecore::objects::Object;
use kueuecore::objects::config::AdmissionFairSharing;
use kueuecore::state::State;
use kueuecore_wire::time::format_time;
use serde_json::{Value, json};

use super::preempt::{assignment, key, targets};
use super::values::{is_true, items, text};
use super::{Answer, Case, KUEUE, object, read, workload};

/// Kind `candidate_order`: one workload requests the quota of all others, so all must be preempted. Those in other
/// ClusterQueues have borrowed theirs.
pub(super) fn candidate_order(case: &Case<'_>) -> Answer {
    let own = text(case.input, "preemptorClusterQueue")?;
    let candidates = items(&case.input["candidates"]);
    let mut names = vec![own];
    let mut objects = vec![flavor()?];
    for candidate in candidates {
        let name = text(candidate, "clusterQueue")?;
        if !names.contains(&name) {
            names.push(name);
        }
        if let Some(usage) = candidate["localQueueFSUsage"].as_f64() {
            objects.push(local_queue(&candidate["workload"]["spec"]["queueName"], name, usage)?);
        }
    }
    for name in names {
        let nominal = if name == own { candidates.len() } else { 0 };
        objects.push(cluster_queue(name, nominal, "LowerPriority")?);
    }
    let now = format_time(case.now);
    for candidate in candidates {
        let queue = text(candidate, "clusterQueue")?;
        objects.push(read(&reserving(&candidate["workload"], queue, &now))?);
    }
    let mut config = case.config.clone();
    if is_true(case.input, "afsEnabled") {
        config.admission_fair_sharing.get_or_insert_with(AdmissionFairSharing::default);
    }
    let mut state = case.state_with(config, objects);
    let preemptor = json!({
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": "preemptor", "namespace": "preemptor"},
        "spec": {"priority": i32::MAX, "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [{}]}}}]},
    });
    Ok(Some(json!({"order": victims(&mut state, own, asking_for(&preemptor, candidates.len()))?})))
}

/// Kind `preemption_policy`: may the preemptor preempt the candidate in their ClusterQueue?
pub(super) fn preemption_policy(case: &Case<'_>) -> Answer {
    let candidate = reserving(&case.input["candidate"], "cq", &format_time(case.now));
    let queue = cluster_queue("cq", 1, text(case.input, "policy")?)?;
    let mut state = case.state_with(case.config.clone(), vec![flavor()?, queue, read(&candidate)?]);
    let victims = victims(&mut state, "cq", asking_for(&case.input["preemptor"], 1))?;
    Ok(Some(json!({"satisfied": !victims.is_empty()})))
}

/// The keys of the victims of a workload in a ClusterQueue, in order.
fn victims(state: &mut State, queue: &str, preemptor: Value) -> Result<Vec<String>, String> {
    let queue = state.find_queue(queue).ok_or("no such ClusterQueue")?;
    let preemptor = state.store_workload(workload(&preemptor)?);
    let flavors = json!({"cpu": {"flavor": "default", "mode": "Preempt"}});
    let given = json!({"podSets": [{"name": "main", "count": 1, "flavors": flavors}]});
    let assignment = assignment(state, preemptor, &given)?;
    state.ledger.forest.flush(&state.names);
    let targets = targets(state, queue, preemptor, &assignment);
    Ok(targets.iter().map(|target| key(state, target.workload)).collect())
}

fn flavor() -> Result<Object, String> {
    object("ResourceFlavor", &json!({"name": "default"}), &json!({}))
}

fn cluster_queue(name: &str, n_cpus: usize, within: &str) -> Result<Object, String> {
    let quota = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": n_cpus.to_string()}]});
    let spec = json!({
        "cohortName": "all",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "preemption": {"withinClusterQueue": within, "reclaimWithinCohort": "Any"},
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    });
    object("ClusterQueue", &json!({"name": name}), &spec)
}

fn local_queue(name: &Value, cluster_queue: &str, usage: f64) -> Result<Object, String> {
    let status = json!({"consumedResources": {"cpu": usage.to_string()}});
    read(&json!({
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": name},
        "spec": {"clusterQueue": cluster_queue},
        "status": {"fairSharing": {"admissionFairSharingStatus": status}},
    }))
}

fn asking_for(workload: &Value, n_cpus: usize) -> Value {
    let mut workload = workload.clone();
    workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": n_cpus.to_string()}});
    workload
}

/// A workload that holds one CPU of a ClusterQueue.
fn reserving(workload: &Value, cluster_queue: &str, now: &str) -> Value {
    let mut workload = asking_for(workload, 1);
    let assigned = json!({"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}});
    workload["status"]["admission"] = json!({"clusterQueue": cluster_queue, "podSetAssignments": [assigned]});
    let mut conditions = items(&workload["status"]["conditions"]).to_vec();
    if !conditions.iter().any(|condition| condition["type"] == "QuotaReserved") {
        conditions.push(json!({"type": "QuotaReserved", "status": "True", "lastTransitionTime": now}));
    }
    workload["status"]["conditions"] = Value::Array(conditions);
    workload
}
