//! Topology requests of pod sets, and their assignments (rules/08 §2, §15).

mod compact;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::fields::always;
use compact::CompactAssignment;
pub use compact::MAX_REPEATED;

/// `podSets[].topologyRequest` (rules/08 §2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologyRequest {
    pub required: Option<String>,
    pub preferred: Option<String>,
    /// `false` also requests topology, without naming a level.
    pub unconstrained: Option<bool>,
    pub pod_index_label: Option<String>,
    pub sub_group_index_label: Option<String>,
    pub sub_group_count: Option<i32>,
    pub pod_set_group_name: Option<String>,
    #[serde(rename = "podSetSliceRequiredTopology")]
    pub slice_required_topology: Option<String>,
    #[serde(rename = "podSetSliceSize")]
    pub slice_size: Option<i32>,
    /// `podsetSliceRequiredTopologyConstraints`, the widest first.
    #[serde(rename = "podsetSliceRequiredTopologyConstraints")]
    pub constraints: Vec<SliceConstraint>,
}

/// One layer of slices: each slice of `size` pods stays in one domain of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SliceConstraint {
    #[serde(serialize_with = "always")]
    pub topology: String,
    #[serde(serialize_with = "always")]
    pub size: i32,
}

impl TopologyRequest {
    /// Does it request topology, rather than only numbering or grouping pods (rules/08 §2.2)?
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        self.required.is_some()
            || self.preferred.is_some()
            || self.unconstrained.is_some()
            || self.slice_required_topology.is_some()
            || self.slice_size.is_some()
            || !self.constraints.is_empty()
    }

    /// The layers of slices, the widest first: level and pods of each (rules/08 §2.1). An absent size is 0.
    #[must_use]
    pub fn layers(&self) -> SmallVec<[(&str, i32); 3]> {
        if self.constraints.is_empty() {
            let only = self.slice_required_topology.as_deref();
            return only.map(|topology| (topology, self.slice_size.unwrap_or(0))).into_iter().collect();
        }
        self.constraints.iter().map(|layer| (layer.topology.as_str(), layer.size)).collect()
    }
}

/// `topologyAssignment` of a pod set, one entry per domain (rules/08 §15.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "CompactAssignment")]
pub struct TopologyAssignment {
    /// Node labels, the widest level first.
    pub levels: Vec<String>,
    pub domains: Vec<TopologyDomain>,
}

/// A number of pods in one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopologyDomain {
    /// A value for each level: mostly just the hostname. Copies share them.
    pub values: SmallVec<[Arc<str>; 1]>,
    pub count: i32,
}

impl TopologyDomain {
    /// A number of pods in the domain of these values.
    pub fn new<T: Into<Arc<str>>>(values: impl IntoIterator<Item = T>, count: i32) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: impl FnOnce(&mut TopologyRequest)) -> TopologyRequest {
        let mut request = TopologyRequest::default();
        set(&mut request);
        request
    }

    #[test]
    fn a_topology_request_is_explicit_if_it_asks_for_levels_or_slices() {
        let rack = || Some("rack".to_owned());
        for (asked, expected) in [
            (request(|_| ()), false),
            (request(|it| it.pod_index_label = rack()), false),
            (request(|it| it.sub_group_index_label = rack()), false),
            (request(|it| it.sub_group_count = Some(2)), false),
            (request(|it| it.pod_set_group_name = rack()), false),
            (request(|it| it.required = rack()), true),
            (request(|it| it.preferred = rack()), true),
            (request(|it| it.unconstrained = Some(false)), true),
            (request(|it| it.slice_required_topology = rack()), true),
            (request(|it| it.slice_size = Some(2)), true),
            (request(|it| it.constraints = vec![SliceConstraint::default()]), true),
        ] {
            assert_eq!(asked.is_explicit(), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_list_of_layers_wins_over_the_two_fields() {
        let mut asked = request(|it| it.slice_size = Some(2));
        assert!(asked.layers().is_empty());
        asked.slice_required_topology = Some("rack".to_owned());
        assert_eq!(asked.layers().as_slice(), [("rack", 2)]);
        asked.slice_size = None;
        assert_eq!(asked.layers().as_slice(), [("rack", 0)]);
        let layer = |topology: &str, size| SliceConstraint { topology: topology.to_owned(), size };
        asked.constraints = vec![layer("block", 8), layer("host", 4)];
        assert_eq!(asked.layers().as_slice(), [("block", 8), ("host", 4)]);
    }
}
