//! Defaults outside the schemas: namespaces, changes by Kueue's webhooks, LimitRanges, requests of pods.
//!
//! Schemas hold the defaults of single fields (rules/01 §1-6).

use kueuecore::base::gates::{Gate, Gates};
use kueuecore::base::shared::Shared;
use kueuecore::objects::{
    LimitRangeItem, Node, Object, Pod, PodSpec, ResourceList, Time, Workload, WorkloadMeta, WorkloadStatus,
};
use serde_json::{Map, Value};

use crate::kinds::Kind;

/// Sets namespace `default` on a namespaced object without one, as kubectl does, and removes the namespace of a
/// cluster-scoped object, as the API server does. Returns the removed namespace.
pub fn namespace(kind: Kind, object: &mut Value) -> Option<Value> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let metadata = metadata.as_object_mut()?;
    let named = metadata.get("namespace").is_some_and(|namespace| !namespace.is_null() && namespace != "");
    if kind.is_namespaced() && !named {
        metadata.insert("namespace".to_owned(), Value::from("default"));
    }
    if !kind.is_namespaced() && named { metadata.remove("namespace") } else { None }
}

/// Finalizer that keeps a ClusterQueue or ResourceFlavor from being deleted while in use.
const IN_USE: &str = "kueue.x-k8s.io/resource-in-use";

/// Changes a new object as Kueue's mutating webhooks do (rules/01 §1, §4, §6).
pub fn webhooks(kind: Kind, object: &mut Value, gates: &Gates) {
    match kind {
        Kind::ClusterQueue | Kind::ResourceFlavor => add_finalizer(object),
        Kind::Workload if !gates.enabled(Gate::PartialAdmission) => {
            let pod_sets = object.pointer_mut("/spec/podSets").and_then(Value::as_array_mut);
            for pod_set in pod_sets.into_iter().flatten().filter_map(Value::as_object_mut) {
                pod_set.remove("minCount");
            }
        }
        _ => {}
    }
}

fn add_finalizer(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|it| !it.contains(&Value::from(IN_USE))) {
        finalizers.push(Value::from(IN_USE));
    }
}

/// Fills in LimitRanges and the requests of pods, as an API server does.
pub fn complete(object: &mut Object) {
    match object {
        Object::LimitRange(range) => range.limits.iter_mut().for_each(limit_range_item),
        Object::Pod(pod) => pod_requests(&mut pod.spec),
        _ => {}
    }
}

/// A missing request defaults to the limit; that of the pod itself only if no container requests the resource.
fn pod_requests(spec: &mut PodSpec) {
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        fill(&mut container.resources.requests, &container.resources.limits);
    }
    if let Some(resources) = &mut spec.resources {
        let requested = |name: &String| spec.containers.iter().any(|it| it.resources.requests.contains_key(name));
        let limits = resources.limits.iter().filter(|(name, _)| !requested(name));
        fill(&mut resources.requests, &limits.map(|(name, limit)| (name.clone(), limit.clone())).collect());
    }
}

/// For containers: a missing default limit is the maximum, a missing default request the default limit, else the
/// minimum.
fn limit_range_item(item: &mut LimitRangeItem) {
    if item.kind != "Container" {
        return;
    }
    fill(&mut item.default, &item.max);
    fill(&mut item.default_request, &item.default);
    fill(&mut item.default_request, &item.min);
}

fn fill(resources: &mut ResourceList, from: &ResourceList) {
    for (name, quantity) in from {
        resources.entry(name.clone()).or_insert_with(|| quantity.clone());
    }
}

/// Sets what an API server sets when it stores an object: the creation time of a new one; on an update, identity and
/// status of the stored one, and the next generation if the spec of a Workload changed.
pub fn storing(stored: Option<&Object>, object: &mut Object, now: Time) {
    if let Object::Workload(new) = object {
        let old = stored.and_then(|old| if let Object::Workload(old) = old { Some(&**old) } else { None });
        return storing_workload(old, new, now);
    }
    match (stored, &mut *object) {
        (Some(Object::Node(old)), Object::Node(new)) => keep_node_status(old, new),
        (Some(Object::Pod(old)), Object::Pod(new)) => keep_pod_status(old, new),
        _ => {}
    }
    let Some(meta) = object.meta_mut() else { return };
    let old = stored.and_then(Object::meta);
    if let Some(old) = old.filter(|_| meta.uid.is_empty()) {
        meta.uid.clone_from(&old.uid);
    }
    stamp(&mut meta.created, &mut meta.generation, old.map(|old| (old.created, old.generation)), now);
}

fn storing_workload(stored: Option<&Workload>, new: &mut Workload, now: Time) {
    if let Some(old) = stored {
        if *new.status == WorkloadStatus::default() {
            new.status.clone_from(&old.status);
        }
        let spec_of = |w: &Workload| Workload { meta: WorkloadMeta::default(), status: Shared::default(), ..w.clone() };
        let changed = spec_of(old) != spec_of(new);
        let generation = old.meta.generation.saturating_add(i64::from(changed));
        new.meta.generation = new.meta.generation.max(generation);
        if new.meta.key.uid().is_empty() {
            new.meta.key = old.meta.key.clone();
        }
    }
    let WorkloadMeta { created, generation, .. } = &mut new.meta;
    stamp(created, generation, stored.map(|old| (old.meta.created, old.meta.generation)), now);
}

/// A node without a status keeps the stored one.
fn keep_node_status(old: &Node, new: &mut Node) {
    if new.allocatable.is_empty() && new.condition_statuses.is_empty() {
        new.allocatable.clone_from(&old.allocatable);
        new.condition_statuses.clone_from(&old.condition_statuses);
        new.ready = old.ready;
    }
}

/// A pod without a status keeps the stored one, and a bound pod stays on its node.
fn keep_pod_status(old: &Pod, new: &mut Pod) {
    for (new, old) in [(&mut new.phase, &old.phase), (&mut new.node_name, &old.node_name)] {
        if new.is_empty() {
            new.clone_from(old);
        }
    }
}

/// An object keeps its creation time, and its generation unless it names another; a new object gets both.
fn stamp(created: &mut Time, generation: &mut i64, stored: Option<(Time, i64)>, now: Time) {
    match stored {
        Some((time, before)) => {
            *created = time;
            if *generation == 0 {
                *generation = before;
            }
        }
        None => {
            if *created == Time::ABSENT {
                // Kubernetes stores times in whole seconds.
                *created = Time(now.0.div_euclid(1_000_000_000).saturating_mul(1_000_000_000));
            }
            *generation = (*generation).max(1);
        }
    }
}
