//! Pod sets of workloads: the parts of a pod template that scheduling reads (rules/01 §6).

mod written;

use serde::{Deserialize, Serialize};

use super::fields::{always, as_text, is_always, lenient, resources};
use super::kinds::{NodeSelectorTerm, PreferredTerm, ResourceList, StringMap, Toleration};
use super::topology::TopologyRequest;
use written::WrittenPodSpec;

/// One pod set of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSet {
    pub name: String,
    #[serde(serialize_with = "always")]
    pub count: i32,
    pub min_count: Option<i32>,
    #[serde(serialize_with = "always")]
    pub template: PodTemplate,
    /// Boxed, since few pod sets have one.
    pub topology_request: Option<Box<TopologyRequest>>,
}

/// `podSets[].template`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodTemplate {
    pub metadata: TemplateMetadata,
    #[serde(serialize_with = "always")]
    pub spec: PodSpec,
}

/// `metadata` of a pod template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default)]
pub struct TemplateMetadata {
    pub labels: StringMap,
    pub annotations: StringMap,
}

/// The fields of a pod spec that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(from = "WrittenPodSpec", rename_all = "camelCase")]
pub struct PodSpec {
    pub init_containers: Vec<Container>,
    pub containers: Vec<Container>,
    pub node_selector: StringMap,
    /// `affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`.
    #[serde(skip_serializing)]
    pub required_node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// `affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution`.
    #[serde(skip_serializing)]
    pub preferred_node_affinity: Vec<PreferredTerm>,
    pub tolerations: Vec<Toleration>,
    pub runtime_class_name: Option<String>,
    pub priority_class_name: String,
    pub priority: Option<i32>,
    /// `overhead`; `None` when absent.
    pub overhead: Option<ResourceList>,
    /// Pod-level `resources`.
    pub resources: Option<Resources>,
    /// `resourceClaims`, in order.
    #[serde(skip_serializing)]
    pub resource_claims: Vec<PodResourceClaim>,
    /// Fields that matter only for equality, as compact JSON with sorted keys: affinity, topologySpreadConstraints,
    /// resourceClaims. Empty when all are absent. They are written beside the others.
    #[serde(rename = "", with = "as_text")]
    pub opaque: String,
}

impl PodSpec {
    /// Does it name a claim or a claim template?
    #[must_use]
    pub(crate) fn claims_devices(&self) -> bool {
        self.resource_claims.iter().any(|claim| claim.claim_name.is_some() || claim.template_name.is_some())
    }
}

/// One entry of `resourceClaims` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct PodResourceClaim {
    /// `resourceClaimName`.
    #[serde(rename = "resourceClaimName", deserialize_with = "lenient")]
    pub claim_name: Option<String>,
    /// `resourceClaimTemplateName`.
    #[serde(rename = "resourceClaimTemplateName", deserialize_with = "lenient")]
    pub template_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    pub name: String,
    pub resources: Resources,
    /// `restartPolicy: Always` of an init container: a sidecar.
    #[serde(rename = "restartPolicy", with = "is_always")]
    pub sidecar: bool,
    /// `ports` as compact JSON with sorted keys, for equality; empty when absent.
    #[serde(with = "as_text")]
    pub ports: String,
}

/// `resources` of a container or a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resources {
    #[serde(deserialize_with = "resources")]
    pub requests: ResourceList,
    #[serde(deserialize_with = "resources")]
    pub limits: ResourceList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_claim_devices_by_claim_or_template() {
        let claims = |claim_name: Option<&str>, template_name: Option<&str>| {
            let [claim_name, template_name] = [claim_name, template_name].map(|name| name.map(str::to_owned));
            let resource_claims = vec![PodResourceClaim { claim_name, template_name }];
            PodSpec { resource_claims, ..PodSpec::default() }.claims_devices()
        };
        let all = [claims(Some("c"), None), claims(None, Some("t")), claims(None, None)];
        assert_eq!((all, PodSpec::default().claims_devices()), ([true, true, false], false));
    }
}
