//! Objects of the preferred versions: the core's types say how their fields are read, here is where those are.

use kueuecore::base::shared::Shared;
use kueuecore::objects::fields::{maybe_resources, names, resources};
use kueuecore::objects::{
    AdmissionCheck, ClusterQueue, Condition, ConditionStatus, Container, LocalQueue, Meta, Node, NodeReady, Object,
    Pod, PodSpec, ResourceList, Resources, StringMap, Workload, WorkloadStatus,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Source, devices};
use crate::kinds::Kind;
use crate::shaped::Shaped;

/// An object with these fields in its spec and its status.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Whole<S, T> {
    metadata: Meta,
    spec: S,
    status: T,
}

/// An object of which only the spec matters.
#[derive(Deserialize, Default)]
#[serde(default)]
struct WithSpec<S> {
    metadata: Meta,
    spec: S,
}

/// An object of which only the metadata matters.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    metadata: Meta,
}

/// Reads an object of the preferred version.
pub(crate) fn object<S: Source>(kind: Kind, source: S) -> Result<Object, S::Error> {
    match kind {
        Kind::Workload => workload(source),
        Kind::ClusterQueue => from_spec(source, cluster_queue),
        Kind::Cohort => from_spec(source, Object::Cohort),
        Kind::LocalQueue => from_parts(source, local_queue),
        Kind::ResourceFlavor => from_spec(source, Object::ResourceFlavor),
        Kind::Topology => from_spec(source, Object::Topology),
        Kind::AdmissionCheck => from_parts(source, admission_check),
        Kind::WorkloadPriorityClass => source.read().map(Object::WorkloadPriorityClass),
        Kind::PriorityClass => source.read().map(Object::PriorityClass),
        Kind::LimitRange => from_spec(source, Object::LimitRange),
        Kind::RuntimeClass => source.read().map(Object::RuntimeClass),
        Kind::ResourceClaimTemplate => from_spec(source, devices::claim_template),
        Kind::DeviceClass => from_spec(source, Object::DeviceClass),
        Kind::Node => from_parts(source, node),
        Kind::Pod => from_parts(source, pod),
        Kind::Namespace => named(source, Object::Namespace),
        Kind::ProvisioningRequestConfig => named(source, Object::ProvisioningRequestConfig),
        Kind::MultiKueueConfig => named(source, Object::MultiKueueConfig),
        Kind::MultiKueueCluster => named(source, Object::MultiKueueCluster),
        Kind::PreemptionConfig => named(source, Object::PreemptionConfig),
    }
}

fn named<S: Source>(source: S, make: fn(Meta) -> Object) -> Result<Object, S::Error> {
    source.read().map(|read: Named| make(read.metadata))
}

fn from_spec<S: Source, T>(source: S, make: impl FnOnce(T) -> Object) -> Result<Object, S::Error>
where
    T: DeserializeOwned + Default,
{
    let WithSpec { metadata, spec }: WithSpec<T> = source.read()?;
    Ok(with_meta(metadata, make(spec)))
}

fn from_parts<S: Source, T, U>(source: S, make: impl FnOnce(T, U) -> Object) -> Result<Object, S::Error>
where
    T: DeserializeOwned + Default,
    U: DeserializeOwned + Default,
{
    let Whole { metadata, spec, status }: Whole<T, U> = source.read()?;
    Ok(with_meta(metadata, make(spec, status)))
}

fn with_meta(metadata: Meta, mut object: Object) -> Object {
    if let Some(meta) = object.meta_mut() {
        *meta = metadata;
    }
    object
}

fn workload<S: Source>(source: S) -> Result<Object, S::Error> {
    let Whole { metadata, spec, status }: Whole<Workload, WorkloadStatus> = source.read()?;
    let status = Shared::of(with_updates(status));
    Ok(Object::Workload(Box::new(Workload { meta: metadata.into(), status, ..spec })))
}

/// Reads what a status says of admission checks and pods, of which the text is kept as well.
pub(super) fn with_updates(mut status: WorkloadStatus) -> WorkloadStatus {
    if status.rare.admission_checks.iter().any(|check| !check.pod_set_updates.is_empty()) {
        for check in &mut status.rare.admission_checks {
            let updates = serde_json::from_str(&check.pod_set_updates);
            check.updates = updates.map(|Shaped(updates)| updates).unwrap_or_default();
        }
    }
    status
}

fn cluster_queue(mut queue: ClusterQueue) -> Object {
    queue.last_acceptable_flavor = last_acceptable_flavor(&queue.concurrent_admission_policy);
    Object::ClusterQueue(queue)
}

fn last_acceptable_flavor(policy: &str) -> Option<String> {
    let policy: serde_json::Value = serde_json::from_str(policy).ok()?;
    Some(policy.pointer("/migration/constraints/lastAcceptableFlavorName")?.as_str()?.to_owned())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LocalQueueStatus {
    fair_sharing: LocalQueueFairSharing,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LocalQueueFairSharing {
    admission_fair_sharing_status: Option<Account>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Account {
    #[serde(deserialize_with = "resources")]
    consumed_resources: ResourceList,
}

fn local_queue(queue: LocalQueue, status: LocalQueueStatus) -> Object {
    let account = status.fair_sharing.admission_fair_sharing_status;
    Object::LocalQueue(LocalQueue { consumed_resources: account.map(|account| account.consumed_resources), ..queue })
}

/// The status of an AdmissionCheck or a Node.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "resources")]
    allocatable: ResourceList,
    conditions: Vec<Condition>,
}

fn admission_check(check: AdmissionCheck, status: Status) -> Object {
    let is_active = |it: &Condition| it.kind.as_str() == "Active" && it.status == ConditionStatus::True;
    Object::AdmissionCheck(AdmissionCheck { active: status.conditions.iter().any(is_active), ..check })
}

fn node(node: Node, Status { allocatable, conditions }: Status) -> Object {
    let ready = conditions.iter().find(|condition| condition.kind.as_str() == "Ready");
    Object::Node(Node {
        ready: ready.map(|ready| NodeReady { status: ready.status, since: ready.last_transition }),
        allocatable,
        condition_statuses: conditions.iter().rev().map(|it| (it.kind.as_str().to_owned(), it.status)).collect(),
        ..node
    })
}

/// What is read of a pod's own spec, which is less than of a pod template.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BoundSpec {
    node_name: String,
    #[serde(deserialize_with = "names::deserialize")]
    scheduling_gates: Vec<String>,
    init_containers: Vec<BoundContainer>,
    containers: Vec<BoundContainer>,
    node_selector: StringMap,
    #[serde(deserialize_with = "maybe_resources")]
    overhead: Option<ResourceList>,
    resources: Option<Resources>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BoundContainer {
    resources: Resources,
    restart_policy: String,
}

impl From<BoundContainer> for Container {
    fn from(read: BoundContainer) -> Self {
        Container { resources: read.resources, sidecar: read.restart_policy == "Always", ..Container::default() }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

fn pod(spec: BoundSpec, status: PodStatus) -> Object {
    let containers = |read: Vec<BoundContainer>| read.into_iter().map(Container::from).collect();
    Object::Pod(Box::new(Pod {
        node_name: spec.node_name,
        phase: status.phase,
        scheduling_gates: spec.scheduling_gates,
        spec: PodSpec {
            init_containers: containers(spec.init_containers),
            containers: containers(spec.containers),
            node_selector: spec.node_selector,
            overhead: spec.overhead,
            resources: spec.resources,
            ..PodSpec::default()
        },
        ..Pod::default()
    }))
}
