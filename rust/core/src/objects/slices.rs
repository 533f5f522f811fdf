//! Slices of an elastic workload, from annotations and pod sets (rules/09 §2.3).

use crate::objects::{PodSet, Workload};

/// Annotation with the key of the slice that a workload replaces.
pub const REPLACEMENT_FOR: &str = "kueue.x-k8s.io/workload-slice-replacement-for";

/// Annotation of the workloads of elastic jobs.
const ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";

/// Does a workload belong to an elastic job?
pub(crate) fn is_elastic(workload: &Workload) -> bool {
    workload.meta.details.annotations.get(ELASTIC_JOB).is_some_and(|value| value == "true")
}

/// Has a slice shrunk: some pod set has fewer pods than before, and none has more?
pub(crate) fn scaled_down(before: &[PodSet], now: &[PodSet]) -> bool {
    let fewer = |a: &[PodSet], b: &[PodSet]| a.iter().any(|a| b.iter().any(|b| a.name == b.name && a.count < b.count));
    fewer(now, before) && !fewer(before, now)
}

/// Namespace and name of the slice that a workload replaces.
pub(crate) fn replaced_key(workload: &Workload) -> Option<(&str, &str)> {
    workload.meta.details.annotations.get(REPLACEMENT_FOR)?.split_once('/')
}
