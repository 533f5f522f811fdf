//! ResourceFlavor, Topology, AdmissionCheck, priority classes, and the kinds of Kubernetes itself.

use kueuecore::objects::{
    AdmissionCheck, Condition, ConditionStatus, LimitRange, LimitRangeItem, Meta, PriorityClass, ResourceFlavor,
    ResourceList, RuntimeClass, StringMap, Taint, Toleration, Topology,
};
use serde::Deserialize;

use super::meta::MetaWire;
use super::pod::TolerationWire;
use super::status::ConditionWire;
use crate::read::{list, nil, part, resources};

/// An object of which only the metadata is read.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct MetaOnly {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    pub(crate) metadata: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct FlavorWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: FlavorSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FlavorSpec {
    #[serde(deserialize_with = "nil")]
    node_labels: StringMap,
    #[serde(deserialize_with = "list::<_, TaintWire, _>")]
    node_taints: Vec<Taint>,
    #[serde(deserialize_with = "list::<_, TolerationWire, _>")]
    tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nil")]
    topology_name: String,
}

impl From<FlavorWire> for ResourceFlavor {
    fn from(wire: FlavorWire) -> Self {
        ResourceFlavor {
            meta: wire.metadata,
            node_labels: wire.spec.node_labels,
            node_taints: wire.spec.node_taints,
            tolerations: wire.spec.tolerations,
            topology_name: wire.spec.topology_name,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct TaintWire {
    #[serde(deserialize_with = "nil")]
    key: String,
    #[serde(deserialize_with = "nil")]
    value: String,
    #[serde(deserialize_with = "nil")]
    effect: String,
}

impl From<TaintWire> for Taint {
    fn from(wire: TaintWire) -> Self {
        Taint { key: wire.key, value: wire.value, effect: wire.effect }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct TopologyWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: TopologySpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TopologySpec {
    #[serde(deserialize_with = "list::<_, LevelWire, _>")]
    levels: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LevelWire {
    #[serde(deserialize_with = "nil")]
    node_label: String,
}

impl From<LevelWire> for String {
    fn from(wire: LevelWire) -> Self {
        wire.node_label
    }
}

impl From<TopologyWire> for Topology {
    fn from(wire: TopologyWire) -> Self {
        Topology { meta: wire.metadata, levels: wire.spec.levels }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct CheckWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: CheckSpec,
    #[serde(deserialize_with = "nil")]
    status: CheckStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CheckSpec {
    #[serde(deserialize_with = "nil")]
    controller_name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CheckStatus {
    #[serde(deserialize_with = "list::<_, ConditionWire, _>")]
    conditions: Vec<Condition>,
}

impl From<CheckWire> for AdmissionCheck {
    fn from(wire: CheckWire) -> Self {
        let conditions = &wire.status.conditions;
        let active = conditions.iter().any(|c| c.kind.as_str() == "Active" && c.status == ConditionStatus::True);
        AdmissionCheck { meta: wire.metadata, controller_name: wire.spec.controller_name, active }
    }
}

/// `WorkloadPriorityClass` and `PriorityClass`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PriorityClassWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    value: i32,
    #[serde(deserialize_with = "nil")]
    global_default: bool,
}

impl From<PriorityClassWire> for PriorityClass {
    fn from(wire: PriorityClassWire) -> Self {
        PriorityClass { meta: wire.metadata, value: wire.value, global_default: wire.global_default }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct LimitRangeWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: LimitRangeSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LimitRangeSpec {
    #[serde(deserialize_with = "list::<_, LimitWire, _>")]
    limits: Vec<LimitRangeItem>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LimitWire {
    #[serde(deserialize_with = "nil", rename = "type")]
    kind: String,
    #[serde(deserialize_with = "resources")]
    max: ResourceList,
    #[serde(deserialize_with = "resources")]
    min: ResourceList,
    #[serde(deserialize_with = "resources")]
    default: ResourceList,
    #[serde(deserialize_with = "resources")]
    default_request: ResourceList,
    #[serde(deserialize_with = "resources")]
    max_limit_request_ratio: ResourceList,
}

impl From<LimitWire> for LimitRangeItem {
    fn from(wire: LimitWire) -> Self {
        LimitRangeItem {
            kind: wire.kind,
            max: wire.max,
            min: wire.min,
            default: wire.default,
            default_request: wire.default_request,
            max_limit_request_ratio: wire.max_limit_request_ratio,
        }
    }
}

impl From<LimitRangeWire> for LimitRange {
    fn from(wire: LimitRangeWire) -> Self {
        LimitRange { meta: wire.metadata, limits: wire.spec.limits }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct RuntimeClassWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    overhead: OverheadWire,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OverheadWire {
    #[serde(deserialize_with = "resources")]
    pod_fixed: ResourceList,
}

impl From<RuntimeClassWire> for RuntimeClass {
    fn from(wire: RuntimeClassWire) -> Self {
        RuntimeClass { meta: wire.metadata, overhead: wire.overhead.pod_fixed }
    }
}
