//! Fills in the defaults of a pod spec, before its requests are counted (rules/01 §7.3 step 1, rules/10 §4.6).

use crate::base::changes::{Change, Changes};
use crate::objects::{LimitRangeItem, PodSpec, ResourceList, Resources};

use super::limit_range::LimitRangeSummary;
use super::lists::keep_first;

/// Fills in the overhead of the runtime class, own limits as missing requests, and the defaults of the LimitRanges, in
/// this order.
///
/// `overhead_of` gives the `overhead.podFixed` of a RuntimeClass by name; an unknown class adds none.
pub(crate) fn adjust<'a>(
    pod: &mut PodSpec,
    overhead_of: impl Fn(&str) -> Option<&'a ResourceList>,
    limits: &LimitRangeSummary,
    changes: Changes,
) {
    fill_overhead(pod, overhead_of);
    let own_limits_first = changes.has(Change::OwnLimitsBeforeDefaults);
    if own_limits_first {
        limits_as_requests(pod);
    }
    if let Some(item) = limits.container() {
        for container in pod.init_containers.iter_mut().chain(&mut pod.containers) {
            fill_defaults(&mut container.resources, item);
        }
    }
    if let (Some(resources), Some(item)) = (&mut pod.resources, limits.pod()) {
        fill_defaults(resources, item);
    }
    if !own_limits_first {
        limits_as_requests(pod);
    }
}

fn limits_as_requests(pod: &mut PodSpec) {
    for container in pod.init_containers.iter_mut().chain(&mut pod.containers) {
        use_limits_as_requests(&mut container.resources);
    }
    if let Some(resources) = &mut pod.resources {
        use_limits_as_requests(resources);
    }
}

fn fill_overhead<'a>(pod: &mut PodSpec, overhead_of: impl Fn(&str) -> Option<&'a ResourceList>) {
    if pod.overhead.as_ref().is_some_and(|overhead| !overhead.is_empty()) {
        return;
    }
    let overhead = pod.runtime_class_name.as_deref().and_then(overhead_of).filter(|overhead| !overhead.is_empty());
    if let Some(overhead) = overhead {
        pod.overhead = Some(overhead.clone());
    }
}

fn fill_defaults(resources: &mut Resources, item: &LimitRangeItem) {
    keep_first(&mut resources.limits, &item.default);
    keep_first(&mut resources.requests, &item.default_request);
}

fn use_limits_as_requests(resources: &mut Resources) {
    keep_first(&mut resources.requests, &resources.limits);
}
