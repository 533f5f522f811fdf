//! The requests of a whole pod (rules/01 §7.3 step 2).

use crate::objects::resource_names::{CPU, HUGE_PAGES_PREFIX, MEMORY};
use crate::objects::{Container, PodSpec, ResourceList};

use super::lists::{add, keep_max};

/// What one pod needs: containers and sidecars together, or more while an init container runs; pod-level requests
/// replace that; plus the overhead of its runtime. Zero entries stay.
#[must_use]
pub(crate) fn pod_requests(pod: &PodSpec) -> ResourceList {
    let mut total = container_requests(pod);
    if let Some(resources) = &pod.resources {
        let at_pod_level = resources.requests.iter().filter(|(name, _)| is_pod_level(name));
        total.extend(at_pod_level.map(|(name, quantity)| (name.clone(), quantity.clone())));
    }
    if let Some(overhead) = &pod.overhead {
        add(&mut total, overhead);
    }
    total
}

fn container_requests(pod: &PodSpec) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &pod.containers {
        add(&mut total, &container.resources.requests);
    }
    let (mut sidecars, mut starting) = (ResourceList::new(), ResourceList::new());
    for container in &pod.init_containers {
        let requests = &container.resources.requests;
        if container.sidecar {
            add(&mut total, requests);
            add(&mut sidecars, requests);
            keep_max(&mut starting, &sidecars);
        } else {
            keep_max(&mut starting, &beside(container, &sidecars));
        }
    }
    keep_max(&mut total, &starting);
    total
}

/// What an init container needs together with the sidecars already running.
fn beside(container: &Container, sidecars: &ResourceList) -> ResourceList {
    let mut together = container.resources.requests.clone();
    add(&mut together, sidecars);
    together
}

/// Resources that can be requested at pod level.
fn is_pod_level(resource: &str) -> bool {
    resource == CPU || resource == MEMORY || resource.starts_with(HUGE_PAGES_PREFIX)
}
