//! `spec` of a pod as it is written: [`PodSpec`] keeps parts of an affinity, and some parts only as text.

use serde::Deserialize;

use super::{Container, PodResourceClaim, PodSpec, Resources};
use crate::objects::fields::{as_text, lenient, maybe_resources, whole};
use crate::objects::kinds::{NodeSelectorTerm, PreferredTerm, ResourceList, StringMap, Toleration};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenPodSpec {
    init_containers: Vec<Container>,
    containers: Vec<Container>,
    node_selector: StringMap,
    #[serde(deserialize_with = "whole")]
    affinity: (String, Affinity),
    tolerations: Vec<Toleration>,
    runtime_class_name: Option<String>,
    priority_class_name: String,
    priority: Option<i32>,
    #[serde(deserialize_with = "maybe_resources")]
    overhead: Option<ResourceList>,
    resources: Option<Resources>,
    #[serde(deserialize_with = "as_text::deserialize")]
    topology_spread_constraints: String,
    #[serde(deserialize_with = "whole")]
    resource_claims: (String, Claims),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    node_affinity: NodeAffinity,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    preferred_during_scheduling_ignored_during_execution: Vec<PreferredTerm>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Claims of a wrong shape count as none: until they could be charged, nobody looked at them.
#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Claims(#[serde(deserialize_with = "lenient")] Vec<Claim>);

#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Claim(#[serde(deserialize_with = "lenient")] PodResourceClaim);

impl From<WrittenPodSpec> for PodSpec {
    fn from(written: WrittenPodSpec) -> Self {
        let (affinity, Affinity { node_affinity }) = written.affinity;
        let (claims, Claims(of_claims)) = written.resource_claims;
        let spread = written.topology_spread_constraints;
        let opaque = [("affinity", affinity), ("resourceClaims", claims), ("topologySpreadConstraints", spread)];
        PodSpec {
            init_containers: written.init_containers,
            containers: written.containers,
            node_selector: written.node_selector,
            required_node_affinity: node_affinity
                .required_during_scheduling_ignored_during_execution
                .map(|selector| selector.node_selector_terms),
            preferred_node_affinity: node_affinity.preferred_during_scheduling_ignored_during_execution,
            tolerations: written.tolerations,
            runtime_class_name: written.runtime_class_name,
            priority_class_name: written.priority_class_name,
            priority: written.priority,
            overhead: written.overhead,
            resources: written.resources,
            resource_claims: of_claims.into_iter().map(|claim| claim.0).collect(),
            opaque: object_of(opaque),
        }
    }
}

/// The parts that are present as one object, as text; empty when there is none.
fn object_of<const N: usize>(parts: [(&str, String); N]) -> String {
    let present = parts.iter().filter(|(_, text)| !text.is_empty());
    let fields: Vec<String> = present.map(|(name, text)| format!("\"{name}\":{text}")).collect();
    if fields.is_empty() { String::new() } else { format!("{{{}}}", fields.join(",")) }
}
