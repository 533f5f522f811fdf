//! Pod templates: the fields that scheduling reads.

use kueuecore::objects::{
    Container, NodeSelectorTerm, PodResourceClaim, PodSpec, PodTemplate, PreferredTerm, Requirement, ResourceList,
    Resources, StringMap, Toleration,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::meta::RequirementWire;
use crate::read::{canonical, list, maybe, maybe_resources, nil, part, resources, text};

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct TemplateWire {
    #[serde(deserialize_with = "nil")]
    metadata: TemplateMeta,
    #[serde(deserialize_with = "part::<_, PodSpecWire, _>")]
    spec: PodSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TemplateMeta {
    #[serde(deserialize_with = "nil")]
    labels: StringMap,
    #[serde(deserialize_with = "nil")]
    annotations: StringMap,
}

impl From<TemplateWire> for PodTemplate {
    fn from(wire: TemplateWire) -> Self {
        PodTemplate { labels: wire.metadata.labels, annotations: wire.metadata.annotations, spec: wire.spec }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpecWire {
    #[serde(deserialize_with = "list::<_, ContainerWire, _>")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "list::<_, ContainerWire, _>")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "nil")]
    node_selector: StringMap,
    #[serde(deserialize_with = "affinity")]
    affinity: Affinity,
    #[serde(deserialize_with = "list::<_, TolerationWire, _>")]
    tolerations: Vec<Toleration>,
    runtime_class_name: Option<String>,
    #[serde(deserialize_with = "nil")]
    priority_class_name: String,
    priority: Option<i32>,
    #[serde(deserialize_with = "maybe_resources")]
    overhead: Option<ResourceList>,
    #[serde(deserialize_with = "maybe::<_, ResourcesWire, _>")]
    resources: Option<Resources>,
    topology_spread_constraints: Value,
    resource_claims: Value,
}

impl From<PodSpecWire> for PodSpec {
    fn from(wire: PodSpecWire) -> Self {
        let resource_claims = wire.resource_claims.as_array().into_iter().flatten().map(resource_claim).collect();
        let opaque = opaque([
            ("affinity", wire.affinity.whole),
            ("topologySpreadConstraints", wire.topology_spread_constraints),
            ("resourceClaims", wire.resource_claims),
        ]);
        PodSpec {
            init_containers: wire.init_containers,
            containers: wire.containers,
            node_selector: wire.node_selector,
            required_node_affinity: wire.affinity.required_terms,
            preferred_node_affinity: wire.affinity.preferred_terms,
            tolerations: wire.tolerations,
            runtime_class_name: wire.runtime_class_name,
            priority_class_name: wire.priority_class_name,
            priority: wire.priority,
            overhead: wire.overhead,
            resources: wire.resources,
            resource_claims,
            opaque,
        }
    }
}

/// The claim and the template that an entry of `resourceClaims` names.
fn resource_claim(entry: &Value) -> PodResourceClaim {
    let name = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    PodResourceClaim { claim_name: name("resourceClaimName"), template_name: name("resourceClaimTemplateName") }
}

/// The parts that are present, as one JSON object; empty when there is none.
fn opaque(parts: [(&str, Value); 3]) -> String {
    let mut fields = Map::new();
    for (name, value) in parts {
        if !canonical(&value).is_empty() {
            fields.insert(name.to_owned(), value);
        }
    }
    canonical(&Value::Object(fields))
}

#[derive(Default)]
struct Affinity {
    whole: Value,
    required_terms: Option<Vec<NodeSelectorTerm>>,
    preferred_terms: Vec<PreferredTerm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AffinityWire {
    #[serde(deserialize_with = "nil")]
    node_affinity: NodeAffinityWire,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinityWire {
    #[serde(deserialize_with = "maybe::<_, NodeSelectorWire, _>")]
    required_during_scheduling_ignored_during_execution: Option<NodeSelectorWire>,
    #[serde(deserialize_with = "list::<_, PreferredWire, _>")]
    preferred_during_scheduling_ignored_during_execution: Vec<PreferredTerm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelectorWire {
    #[serde(deserialize_with = "list::<_, TermWire, _>")]
    node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TermWire {
    #[serde(deserialize_with = "list::<_, RequirementWire, _>")]
    match_expressions: Vec<Requirement>,
    #[serde(deserialize_with = "list::<_, RequirementWire, _>")]
    match_fields: Vec<Requirement>,
}

impl From<TermWire> for NodeSelectorTerm {
    fn from(wire: TermWire) -> Self {
        NodeSelectorTerm { match_expressions: wire.match_expressions, match_fields: wire.match_fields }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PreferredWire {
    #[serde(deserialize_with = "nil")]
    weight: i32,
    #[serde(deserialize_with = "part::<_, TermWire, _>")]
    preference: NodeSelectorTerm,
}

impl From<PreferredWire> for PreferredTerm {
    fn from(wire: PreferredWire) -> Self {
        PreferredTerm { weight: wire.weight, term: wire.preference }
    }
}

/// Reads the affinity twice: whole, for equality, and its node terms.
fn affinity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Affinity, D::Error> {
    let whole = Value::deserialize(deserializer)?;
    let wire: AffinityWire = nil(&whole).map_err(D::Error::custom)?;
    let required = wire.node_affinity.required_during_scheduling_ignored_during_execution;
    let required_terms = required.map(|selector| selector.node_selector_terms);
    let preferred_terms = wire.node_affinity.preferred_during_scheduling_ignored_during_execution;
    Ok(Affinity { whole, required_terms, preferred_terms })
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ContainerWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "part::<_, ResourcesWire, _>")]
    resources: Resources,
    #[serde(deserialize_with = "nil")]
    restart_policy: String,
    #[serde(deserialize_with = "text")]
    ports: String,
}

impl From<ContainerWire> for Container {
    fn from(wire: ContainerWire) -> Self {
        Container {
            name: wire.name,
            resources: wire.resources,
            sidecar: wire.restart_policy == "Always",
            ports: wire.ports,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ResourcesWire {
    #[serde(deserialize_with = "resources")]
    requests: ResourceList,
    #[serde(deserialize_with = "resources")]
    limits: ResourceList,
}

impl From<ResourcesWire> for Resources {
    fn from(wire: ResourcesWire) -> Self {
        Resources { requests: wire.requests, limits: wire.limits }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TolerationWire {
    #[serde(deserialize_with = "nil")]
    key: String,
    #[serde(deserialize_with = "nil")]
    operator: String,
    #[serde(deserialize_with = "nil")]
    value: String,
    #[serde(deserialize_with = "nil")]
    effect: String,
    toleration_seconds: Option<i64>,
}

impl From<TolerationWire> for Toleration {
    fn from(wire: TolerationWire) -> Self {
        Toleration {
            key: wire.key,
            operator: wire.operator,
            value: wire.value,
            effect: wire.effect,
            toleration_seconds: wire.toleration_seconds,
        }
    }
}
