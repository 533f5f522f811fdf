//! Variants of a workload, one per flavor, from labels and annotations (rules/09 §4.4).

use crate::base::gates::{Gate, Gates};
use crate::objects::{OwnerReference, Workload};

/// Annotation that limits a variant to some flavors (concurrent admission).
pub(crate) const ALLOWED_FLAVORS: &str = "kueue.x-k8s.io/workload-allowed-resource-flavors";
/// Label of a workload that has variants for its flavors.
pub(crate) const PARENT: &str = "kueue.x-k8s.io/concurrent-admission-parent";

/// Does it leave scheduling to its variants? Such a workload is never queued.
pub(crate) fn is_parent(workload: &Workload, gates: Gates) -> bool {
    gates.enabled(Gate::ConcurrentAdmission)
        && workload.meta.details.labels.get(PARENT).is_some_and(|value| value == "true")
}

/// The workload that it is a variant of.
pub fn parent(workload: &Workload) -> Option<&OwnerReference> {
    workload.meta.details.owners.iter().find(|o| o.kind == "Workload" && o.api_version == "kueue.x-k8s.io/v1beta2")
}

/// Is it a variant of another workload?
pub fn is_variant(workload: &Workload) -> bool {
    parent(workload).is_some_and(|owner| !owner.name.is_empty())
}

/// The flavors to which a variant is limited, if it is one (concurrent admission).
pub fn allowed_flavors(workload: &Workload) -> Option<Vec<String>> {
    let text = workload.meta.details.annotations.get(ALLOWED_FLAVORS)?;
    Some(text.split(',').map(|name| name.trim().to_owned()).collect())
}
