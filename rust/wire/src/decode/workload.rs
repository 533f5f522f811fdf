//! Workload: metadata and spec (rules/01 §6).

use kueuecore::base::shared::Shared;
use kueuecore::objects::{Meta, PodSet, PodTemplate, PriorityClassRef, TopologyRequest, Workload, WorkloadStatus};
use serde::Deserialize;

use super::meta::MetaWire;
use super::pod::TemplateWire;
use super::status::StatusWire;
use super::topology::RequestWire;
use crate::read::{list, maybe, nil, part};

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WorkloadWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: SpecWire,
    #[serde(deserialize_with = "part::<_, StatusWire, _>")]
    status: WorkloadStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SpecWire {
    #[serde(deserialize_with = "list::<_, PodSetWire, _>")]
    pod_sets: Vec<PodSet>,
    #[serde(deserialize_with = "nil")]
    queue_name: String,
    #[serde(deserialize_with = "maybe::<_, ClassRefWire, _>")]
    priority_class_ref: Option<PriorityClassRef>,
    priority: Option<i32>,
    active: Option<bool>,
    maximum_execution_time_seconds: Option<i32>,
    #[serde(deserialize_with = "list::<_, NameWire, _>")]
    preemption_gates: Vec<String>,
}

impl From<WorkloadWire> for Workload {
    fn from(wire: WorkloadWire) -> Self {
        let spec = wire.spec;
        Workload {
            meta: wire.metadata.into(),
            pod_sets: spec.pod_sets.into(),
            queue_name: spec.queue_name.into(),
            priority_class: spec.priority_class_ref.map(Into::into),
            priority: spec.priority,
            active: spec.active,
            maximum_execution_time_seconds: spec.maximum_execution_time_seconds,
            preemption_gates: Shared::of(spec.preemption_gates),
            status: Shared::of(wire.status),
        }
    }
}

/// An entry of which only the name is kept.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct NameWire {
    #[serde(deserialize_with = "nil")]
    name: String,
}

impl From<NameWire> for String {
    fn from(wire: NameWire) -> Self {
        wire.name
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClassRefWire {
    #[serde(deserialize_with = "nil")]
    group: String,
    #[serde(deserialize_with = "nil")]
    kind: String,
    #[serde(deserialize_with = "nil")]
    name: String,
}

impl From<ClassRefWire> for PriorityClassRef {
    fn from(wire: ClassRefWire) -> Self {
        PriorityClassRef { group: wire.group, kind: wire.kind, name: wire.name }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSetWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    count: i32,
    min_count: Option<i32>,
    #[serde(deserialize_with = "part::<_, TemplateWire, _>")]
    template: PodTemplate,
    #[serde(deserialize_with = "maybe::<_, RequestWire, _>")]
    topology_request: Option<Box<TopologyRequest>>,
}

impl From<PodSetWire> for PodSet {
    fn from(wire: PodSetWire) -> Self {
        PodSet {
            name: wire.name,
            count: wire.count,
            min_count: wire.min_count,
            template: wire.template,
            topology_request: wire.topology_request,
        }
    }
}
