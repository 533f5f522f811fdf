//! Statuses of ClusterQueues and LocalQueues; admission checks and conditions of a workload.

use kueuecore::objects::config::RequeuingTimestamp;
use kueuecore::objects::{AdmissionCheck, Meta, Object, Time};
use kueuecore::status::activeness::Activeness;
use kueuecore::status::checks::required_checks;
use kueuecore::status::{queue_time, reservation};
use kueuecore_wire::decode::decode_value;
use kueuecore_wire::encode;
use kueuecore_wire::report;
use kueuecore_wire::time::format_time;
use serde_json::json;

use super::values::{entries, is_true, text};
use super::{Answer, Case};

/// Kind `readiness`.
pub(super) fn readiness(case: &Case<'_>) -> Answer {
    let mut state = case.state();
    for (name, check) in entries(&case.input["admissionChecks"]) {
        state.apply(Object::AdmissionCheck(AdmissionCheck {
            meta: Meta { name: name.clone(), ..Meta::default() },
            controller_name: text(check, "controller")?.to_owned(),
            active: is_true(check, "active"),
        }));
    }
    let queue = state.find_queue(text(case.input, "clusterQueue")?);
    if let Some(queue) = queue.filter(|_| is_true(case.input, "terminate")) {
        state.terminate_cluster_queue(queue);
    }
    let found = queue.and_then(|queue| state.queues[queue].activeness.clone()).unwrap_or_else(Activeness::not_found);
    Ok(Some(json!({
        "status": if found.is_active() { "True" } else { "False" },
        "reason": found.reason,
        "message": found.message,
        "active": found.is_active(),
        "terminating": queue.is_some_and(|queue| state.queues[queue].terminating),
        "clusterQueueStatus": found.status.name(),
    })))
}

/// Kind `usage`.
pub(super) fn usage(case: &Case<'_>) -> Answer {
    let state = case.state();
    let status = match case.input["clusterQueue"].as_str() {
        Some(name) => report::cluster_queue_status(&state, name),
        None => {
            let key = text(case.input, "localQueue")?;
            let (namespace, name) = key.split_once('/').ok_or_else(|| format!("no key: {key}"))?;
            report::local_queue_status(&state, namespace, name)
        }
    };
    let mut status = status.ok_or("no such queue")?;
    Ok(Some(json!({
        "reservedResources": status["flavorsReservation"].take(),
        "reservingWorkloads": status["reservingWorkloads"].take(),
        "admittedResources": status["flavorsUsage"].take(),
        "admittedWorkloads": status["admittedWorkloads"].take(),
    })))
}

/// Kind `admission_checks`.
pub(super) fn admission_checks(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    match decode_value(&case.input["clusterQueue"]).map_err(|e| e.to_string())? {
        Object::ClusterQueue(queue) => {
            Ok(Some(json!({"admissionChecks": required_checks(&queue, &workload, case.config.changes)})))
        }
        _ => Err("not a ClusterQueue".to_owned()),
    }
}

/// Kind `queue_order_timestamp`.
pub(super) fn queue_order_timestamp(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let at = |requeuing| -> Option<String> {
        let time = queue_time::queue_order_timestamp(&workload, requeuing, case.config.gates);
        (time != Time::ABSENT).then(|| format_time(time))
    };
    Ok(Some(json!({"Eviction": at(RequeuingTimestamp::Eviction), "Creation": at(RequeuingTimestamp::Creation)})))
}

/// Kind `sync_admitted`.
pub(super) fn sync_admitted(case: &Case<'_>) -> Answer {
    let mut workload = case.workload("workload")?;
    let changed = reservation::sync_admitted(&mut workload, case.now, case.config.gates);
    Ok(Some(json!({"changed": changed, "status": encode::workload_status(&workload.status, &case.config.gates)})))
}
