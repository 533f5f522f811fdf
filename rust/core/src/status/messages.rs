//! Reason codes and names to the words that Kueue writes. No other file of the cycle has such text.

use crate::base::gates::Gates;
use crate::objects::priority::{base_priority, effective_priority};
use crate::objects::{Workload, WorkloadMeta};
use crate::status::reasons;

const SECOND_NS: i64 = 1_000_000_000;

/// Label with the UID of a workload's job.
pub(crate) const JOB_UID_LABEL: &str = "kueue.x-k8s.io/job-uid";
/// Condition messages and event messages of skipped entries (rules/05 §6).
pub(crate) const FAILED_CHECKS: &str = "The workload has failed admission checks";
/// The namespace does not match the selector of the ClusterQueue.
pub(crate) const NAMESPACE_MISMATCH: &str = "workload namespace doesn't match ClusterQueue selector";
/// Other entries of the cycle took what it needs.
pub(crate) const NO_LONGER_FITS: &str = "Workload no longer fits after processing another workload";
/// A preemption gate is closed.
pub(crate) const PREEMPTION_GATED: &str = "Workload requires preemption, but it's gated";
/// Its targets are the victims of another entry.
pub(crate) const OVERLAPPING_TARGETS: &str = "Workload has overlapping preemption targets with another workload";
/// It fits once the victims of other entries are gone.
pub(crate) const FITS_AFTER_PREEMPTIONS: &str = "Workload has overlapping preemption targets with another workload, but will \
                                          fit after these preemptions complete";
/// Not all admitted workloads are ready.
pub(crate) const WAITING_FOR_PODS_READY: &str = "waiting for all admitted workloads to be in PodsReady condition";

/// Another variant has a better flavor already (rules/09 §4.4).
pub(crate) const PREFERRED_VARIANT_ADMITTED: &str = "A more favorable variant is already admitted";
/// The ClusterQueue does not want a migration to this flavor.
pub(crate) const BELOW_LAST_ACCEPTABLE_FLAVOR: &str = "Target flavor is below LastAcceptableFlavorName";
/// What the message of a variant ends with while it waits for the one that it takes the place of.
pub(crate) const PENDING_MIGRATION: &str = ". Pending the migration of 1 workload(s)";

/// `spec.active` is false.
pub(crate) const DEACTIVATED: &str = "The workload is deactivated";
/// Parked with an equivalent workload that failed.
pub(crate) const BYPASSED: &str = "Bypassed scheduling evaluation because an equivalent workload recently failed";
/// Not looked at yet, or again.
pub(crate) const PENDING_EVALUATION: &str = "Workload is pending evaluation in the scheduling queue";

/// `ClusterQueue X is inactive`.
pub fn inactive(queue: &str) -> String {
    format!("ClusterQueue {queue} is inactive")
}

/// The namespace object is missing.
pub(crate) fn namespace_missing(namespace: &str) -> String {
    format!("workload namespace \"{namespace}\" does not exist: Namespace \"{namespace}\" not found")
}

/// The event of a quota reservation; `considered` are the flavors that were passed over, `wait_ns` since queued.
pub(crate) fn quota_reserved_event(queue: &str, wait_ns: i64, considered: &str) -> String {
    let wait = seconds(wait_ns);
    let (before, considered) = if considered.is_empty() { ("", "") } else { ("; Flavors considered: ", considered) };
    // Without the machinery of formats: every admission has one.
    ["Quota reserved in ClusterQueue ", queue, ", wait time since queued was ", &wait, "s", before, considered].concat()
}

/// The event of an admission; `wait_ns` since the reservation.
pub(crate) fn admitted_event(queue: &str, wait_ns: i64) -> String {
    ["Admitted by ClusterQueue ", queue, ", wait time since reservation was ", &seconds(wait_ns), "s"].concat()
}

/// Whole seconds as `%.0f` writes them, half of one to the even side.
fn seconds(ns: i64) -> String {
    // Past some days the float of Kueue may be on the other side of a half.
    if !(0..1 << 50).contains(&ns) {
        return format!("{:.0}", ns as f64 / 1e9);
    }
    let (whole, rest) = (ns / SECOND_NS, ns % SECOND_NS);
    let up = rest > SECOND_NS / 2 || (rest == SECOND_NS / 2 && whole % 2 == 1);
    (whole + i64::from(up)).to_string()
}

/// What is added to the message of a workload that preempts `n` others (rules/04 §8).
pub(crate) fn pending_preemption(n: usize) -> String {
    format!(". Pending the preemption of {n} workload(s)")
}

/// What a preemption is told to be for.
fn preemption_purpose(reason: &str) -> &'static str {
    match reason {
        reasons::IN_CLUSTER_QUEUE => "prioritization in the ClusterQueue",
        reasons::IN_COHORT_RECLAMATION => "reclamation within the cohort",
        reasons::IN_COHORT_FAIR_SHARING => "Fair Sharing within the cohort",
        reasons::IN_COHORT_RECLAIM_WHILE_BORROWING => "reclamation within the cohort while borrowing",
        _ => "UNKNOWN",
    }
}

/// The message of a preemption; the paths lead from the root cohort to the ClusterQueues (rules/04 §8).
pub fn preempted(preemptor: &WorkloadMeta, reason: &str, preemptor_path: &str, preemptee_path: &str) -> String {
    fn known(text: &str) -> &str {
        if text.is_empty() { "UNKNOWN" } else { text }
    }
    [
        "Preempted to accommodate a workload (UID: ",
        known(preemptor.key.uid()),
        ", JobUID: ",
        known(preemptor.details.labels.get(JOB_UID_LABEL).map_or("", String::as_str)),
        ") due to ",
        preemption_purpose(reason),
        "; preemptor path: ",
        known(preemptor_path),
        "; preemptee path: ",
        known(preemptee_path),
    ]
    .concat()
}

/// The message of a variant that is evicted for one with a better flavor (rules/09 §4.4).
pub(crate) fn migrated(uid: &str) -> String {
    format!("Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor")
}

/// The message of a slice that is finished because `successor` has its quota (rules/09 §2.3).
pub(crate) fn slice_replaced(successor: &WorkloadMeta) -> String {
    let job = successor.details.labels.get(JOB_UID_LABEL).map_or("", String::as_str);
    format!(
        "Replaced to accommodate a workload (UID: {}, JobUID: {job}) due to workload slice aggregation",
        successor.key.uid()
    )
}

/// Priorities of both sides, as the events of a preemption end (rules/04 §8).
pub fn priorities(preemptor: &Workload, preemptee: &Workload, gates: Gates) -> String {
    let of = |who: &str, workload: &Workload| {
        let (effective, base) = (effective_priority(workload, gates), base_priority(workload));
        format!("; {who} effective priority: {effective} (base: {base}, boost: {})", effective - i64::from(base))
    };
    of("preemptor", preemptor) + &of("preemptee", preemptee)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_as_the_float_is() {
        let halves = (0..60).flat_map(|n| [n, 86_400 * n, 100_003 * n]).map(|n| n * SECOND_NS + SECOND_NS / 2);
        let near = halves.flat_map(|ns| [ns - SECOND_NS / 2, ns - 1, ns, ns + 1]);
        let ends = [(1 << 50) - 1, 1 << 50, i64::MAX, i64::MIN, -1, -SECOND_NS / 2];
        for ns in near.chain(ends) {
            assert_eq!(seconds(ns), format!("{:.0}", ns as f64 / 1e9), "{ns}");
        }
    }
}
