//! Admission checks, conditions and the queue time of a workload.

use kueuecore::objects::config::RequeuingTimestamp;
use kueuecore::objects::{Object, Time};
use kueuecore::status::checks::required_checks;
use kueuecore::status::{queue_time, reservation};
use kueuecore_wire::decode::decode_value;
use kueuecore_wire::encode;
use kueuecore_wire::time::format_time;
use serde_json::json;

use super::{Answer, Case};

/// Kind `admission_checks`.
pub(super) fn admission_checks(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    match decode_value(&case.input["clusterQueue"]).map_err(|e| e.to_string())? {
        Object::ClusterQueue(queue) => {
            Ok(json!({"admissionChecks": required_checks(&queue, &workload, case.config.changes)}))
        }
        _ => Err("not a ClusterQueue".to_owned()),
    }
}

/// Kind `queue_order_timestamp`.
pub(super) fn queue_order_timestamp(case: &Case<'_>) -> Answer {
    let workload = case.workload("workload")?;
    let at = |requeuing| -> Option<String> {
        let time = queue_time::queue_order_timestamp(&workload, requeuing, case.config.gates, false);
        (time != Time::ABSENT).then(|| format_time(time))
    };
    Ok(json!({"Eviction": at(RequeuingTimestamp::Eviction), "Creation": at(RequeuingTimestamp::Creation)}))
}

/// Kind `sync_admitted`.
pub(super) fn sync_admitted(case: &Case<'_>) -> Answer {
    let mut workload = case.workload("workload")?;
    let changed = reservation::sync_admitted(&mut workload, case.now, case.config.gates);
    Ok(json!({"changed": changed, "status": encode::workload_status(&workload.status, &case.config.gates)}))
}
