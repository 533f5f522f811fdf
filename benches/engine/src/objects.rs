//! The objects that states are made of: namespace `ns`, flavors without labels, a LocalQueue for each ClusterQueue.

use kueuecore::base::quantity::Quantity;
use kueuecore::engine::Engine;
use kueuecore::objects::conditions::{ADMITTED, QUOTA_RESERVED};
use kueuecore::objects::config::Config;
use kueuecore::objects::{
    Admission, ClusterQueue, Cohort, Condition, ConditionStatus, Container, FlavorQuotas, LabelSelector, LocalQueue,
    Meta, Object, PodSet, PodSetAssignment, Preemption, PreemptionPolicy, ResourceFlavor, ResourceGroup, ResourceQuota,
    Time, Workload,
};

/// 2026-01-01T00:00:00Z.
pub const BASE: Time = Time(1_767_225_600_000_000_000);

/// So many seconds before [`BASE`].
pub fn before_base(seconds: usize) -> Time {
    Time(BASE.0 - i64::try_from(seconds).expect("a few million seconds") * 1_000_000_000)
}

/// A quantity that is known to be one.
pub fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}

/// Resources with a quantity of each.
pub type Quantities<'a> = &'a [(&'a str, &'a str)];

/// An engine with these objects.
pub fn engine(config: Config, objects: Vec<Object>) -> Engine {
    let mut engine = Engine::new(config);
    engine.apply(objects, BASE);
    engine
}

/// Metadata of a cluster-scoped object.
pub fn meta(name: &str) -> Meta {
    Meta { name: name.to_owned(), uid: format!("uid-{name}"), created: BASE, generation: 1, ..Meta::default() }
}

/// Namespace `ns` and flavors of these names.
pub fn basics<'a>(flavors: impl IntoIterator<Item = &'a str>) -> Vec<Object> {
    let flavors = flavors.into_iter();
    let flavors = flavors.map(|name| Object::ResourceFlavor(ResourceFlavor { meta: meta(name), ..Default::default() }));
    std::iter::once(Object::Namespace(meta("ns"))).chain(flavors).collect()
}

/// Flavors with the same quota of each resource in all of them.
pub fn group<'a>(flavors: impl IntoIterator<Item = &'a str>, nominal: Quantities<'_>) -> ResourceGroup {
    let quota = |&(name, quota): &(&str, &str)| ResourceQuota {
        name: name.to_owned(),
        nominal_quota: quantity(quota),
        borrowing_limit: None,
        lending_limit: None,
    };
    let resources: Vec<ResourceQuota> = nominal.iter().map(quota).collect();
    let flavors = flavors.into_iter();
    ResourceGroup {
        covered_resources: nominal.iter().map(|(name, _)| (*name).to_owned()).collect(),
        flavors: flavors.map(|name| FlavorQuotas { name: name.to_owned(), resources: resources.clone() }).collect(),
    }
}

/// A Cohort below another (none: a root).
pub fn cohort(name: &str, parent: &str, groups: Vec<ResourceGroup>) -> Object {
    Object::Cohort(Cohort {
        meta: meta(name),
        parent_name: parent.to_owned(),
        resource_groups: groups,
        ..Cohort::default()
    })
}

/// Nobody is preempted.
pub const NEVER: (PreemptionPolicy, PreemptionPolicy) = (PreemptionPolicy::Never, PreemptionPolicy::Never);
/// Lower priority within the ClusterQueue, anything within the cohort.
pub const LOWER_AND_ANY: (PreemptionPolicy, PreemptionPolicy) =
    (PreemptionPolicy::LowerPriority, PreemptionPolicy::Any);

/// A ClusterQueue for every namespace, with its LocalQueue. `policies`: withinClusterQueue and reclaimWithinCohort.
pub fn queue(
    name: &str,
    cohort: &str,
    groups: Vec<ResourceGroup>,
    policies: (PreemptionPolicy, PreemptionPolicy),
) -> [Object; 2] {
    let cluster_queue = ClusterQueue {
        meta: meta(name),
        cohort_name: cohort.to_owned(),
        resource_groups: groups,
        namespace_selector: Some(LabelSelector::default()),
        preemption: Some(Preemption {
            within_cluster_queue: policies.0,
            reclaim_within_cohort: policies.1,
            ..Preemption::default()
        }),
        ..ClusterQueue::default()
    };
    let local_queue = LocalQueue {
        meta: Meta { namespace: "ns".to_owned(), ..meta(name) },
        cluster_queue: name.to_owned(),
        ..LocalQueue::default()
    };
    [Object::ClusterQueue(cluster_queue), Object::LocalQueue(local_queue)]
}

/// Pods that ask for the same each.
pub fn pod_set(name: &str, n_pods: i32, requests: Quantities<'_>) -> PodSet {
    let mut container = Container { name: "main".to_owned(), ..Container::default() };
    for &(resource, amount) in requests {
        container.resources.requests.insert(resource.to_owned(), quantity(amount));
    }
    let mut pod_set = PodSet { name: name.to_owned(), count: n_pods, ..PodSet::default() };
    pod_set.template.spec.containers.push(container);
    pod_set
}

/// The `number`th workload of a state, pending in the LocalQueue of a ClusterQueue, created `number` + 1 seconds before
/// [`BASE`]. Its UID is spread, so that the order of UIDs is not that of creation.
pub fn workload(number: usize, queue: &str, priority: i32, pod_sets: Vec<PodSet>) -> Workload {
    let spread = (number as u64).wrapping_mul(2_654_435_761) % (1 << 32);
    let meta = Meta {
        name: format!("w{number}"),
        namespace: "ns".to_owned(),
        uid: format!("{spread:08x}-0000-0000-0000-{number:012x}"),
        created: before_base(number + 1),
        generation: 1,
        ..Meta::default()
    };
    Workload {
        meta: meta.into(),
        pod_sets: pod_sets.into(),
        queue_name: queue.to_owned().into(),
        priority: Some(priority),
        ..Workload::default()
    }
}

/// The same workload with one pod set of one pod, Admitted in the ClusterQueue that it waits for. `flavors`: resource and
/// flavor.
pub fn admitted(mut workload: Workload, flavors: Quantities<'_>, at: Time) -> Workload {
    let pod_set = &workload.pod_sets[0];
    let assignment = PodSetAssignment {
        name: pod_set.name.clone(),
        flavors: flavors.iter().map(|&(resource, flavor)| (resource.to_owned(), flavor.to_owned())).collect(),
        resource_usage: pod_set.template.spec.containers[0].resources.requests.clone(),
        count: Some(pod_set.count),
        ..PodSetAssignment::default()
    };
    let admission =
        Admission { cluster_queue: workload.queue_name.clone(), pod_set_assignments: vec![assignment].into() };
    let status = &mut workload.status;
    status.admission = Some(admission.into());
    status.conditions = [(QUOTA_RESERVED, "QuotaReserved"), (ADMITTED, "Admitted")]
        .map(|(kind, reason)| Condition {
            kind: kind.into(),
            status: ConditionStatus::True,
            reason: reason.into(),
            last_transition: at,
            observed_generation: 1,
            ..Condition::default()
        })
        .to_vec()
        .into();
    workload
}

/// As something to apply.
pub fn object(workload: Workload) -> Object {
    Object::Workload(Box::new(workload))
}
