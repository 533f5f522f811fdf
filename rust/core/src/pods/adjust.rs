//! Fills in the defaults of a pod spec, before its requests are counted (rules/01 §7.3 step 1, rules/10 §4.6).

use crate::objects::{LimitRangeItem, PodSpec, ResourceList, Resources};

use super::limit_range::LimitRangeSummary;
use super::lists::keep_first;

/// Fills in the overhead of the runtime class, the defaults of the LimitRanges, and limits as missing requests, in
/// this order: a default request wins over the container's own limit.
///
/// `overhead_of` gives the `overhead.podFixed` of a RuntimeClass by name; an unknown class adds none.
pub(crate) fn adjust<'a>(
    pod: &mut PodSpec,
    overhead_of: impl Fn(&str) -> Option<&'a ResourceList>,
    limits: &LimitRangeSummary,
) {
    fill_overhead(pod, overhead_of);
    if let Some(item) = limits.container() {
        for container in pod.init_containers.iter_mut().chain(&mut pod.containers) {
            fill_defaults(&mut container.resources, item);
        }
    }
    if let (Some(resources), Some(item)) = (&mut pod.resources, limits.pod()) {
        fill_defaults(resources, item);
    }
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
