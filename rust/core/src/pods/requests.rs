//! The requests of a whole pod (rules/01 §7.3 step 2).

use std::borrow::Cow;

use crate::base::changes::{Change, Changes};
use crate::objects::resource_names::{CPU, HUGE_PAGES_PREFIX, MEMORY};
use crate::objects::{Container, PodSpec, ResourceList};

use super::lists::{add, keep_max};

/// What one pod needs: containers and sidecars together, or more while an init container runs; pod-level requests
/// raise that; plus the overhead of its runtime. Zero entries stay.
#[must_use]
pub(crate) fn pod_requests(pod: &PodSpec, changes: Changes) -> ResourceList {
    let mut total = container_requests(pod, |container| Cow::Borrowed(&container.resources.requests));
    if let Some(resources) = &pod.resources {
        let at_pod_level = resources.requests.iter().filter(|(name, _)| is_pod_level(name));
        let at_pod_level: ResourceList =
            at_pod_level.map(|(name, quantity)| (name.clone(), quantity.clone())).collect();
        if changes.has(Change::ContainersBoundPodLevelRequests) {
            keep_max(&mut total, &at_pod_level);
        } else {
            total.extend(at_pod_level);
        }
    }
    if let Some(overhead) = &pod.overhead {
        add(&mut total, overhead);
    }
    total
}

/// The same without what is said of the pod as a whole; `asked` is what counts of a container.
pub(crate) fn container_requests<'a>(
    pod: &'a PodSpec,
    asked: impl Fn(&'a Container) -> Cow<'a, ResourceList>,
) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &pod.containers {
        add(&mut total, &asked(container));
    }
    let (mut sidecars, mut starting) = (ResourceList::new(), ResourceList::new());
    for container in &pod.init_containers {
        let requests = asked(container);
        if container.sidecar {
            add(&mut total, &requests);
            add(&mut sidecars, &requests);
            keep_max(&mut starting, &sidecars);
        } else {
            // What it needs together with the sidecars that run already.
            let mut together = requests.into_owned();
            add(&mut together, &sidecars);
            keep_max(&mut starting, &together);
        }
    }
    keep_max(&mut total, &starting);
    total
}

/// Resources that can be requested at pod level.
fn is_pod_level(resource: &str) -> bool {
    resource == CPU || resource == MEMORY || resource.starts_with(HUGE_PAGES_PREFIX)
}
