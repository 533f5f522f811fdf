//! Topology requests and assignments, nodes and pods (rules/08 §1, §2, §15).

use std::iter::repeat_n;
use std::sync::Arc;

use kueuecore::base::shared::Shared;
use kueuecore::objects::{
    Condition, Container, Meta, Node, NodeReady, Pod, PodSpec, ResourceList, Resources, SliceConstraint, StringMap,
    Taint, TopologyAssignment, TopologyDomain, TopologyRequest,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::meta::MetaWire;
use super::others::TaintWire;
use super::pod::ResourcesWire;
use super::status::ConditionWire;
use super::workload::NameWire;
use crate::read::{list, maybe, maybe_resources, nil, part, resources};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RequestWire {
    required: Option<String>,
    preferred: Option<String>,
    unconstrained: Option<bool>,
    pod_index_label: Option<String>,
    sub_group_index_label: Option<String>,
    sub_group_count: Option<i32>,
    pod_set_group_name: Option<String>,
    pod_set_slice_required_topology: Option<String>,
    pod_set_slice_size: Option<i32>,
    #[serde(deserialize_with = "list::<_, ConstraintWire, _>")]
    podset_slice_required_topology_constraints: Vec<SliceConstraint>,
}

impl From<RequestWire> for Box<TopologyRequest> {
    fn from(wire: RequestWire) -> Self {
        Box::new(TopologyRequest {
            required: wire.required,
            preferred: wire.preferred,
            unconstrained: wire.unconstrained,
            pod_index_label: wire.pod_index_label,
            sub_group_index_label: wire.sub_group_index_label,
            sub_group_count: wire.sub_group_count,
            pod_set_group_name: wire.pod_set_group_name,
            slice_required_topology: wire.pod_set_slice_required_topology,
            slice_size: wire.pod_set_slice_size,
            constraints: wire.podset_slice_required_topology_constraints,
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConstraintWire {
    #[serde(deserialize_with = "nil")]
    topology: String,
    #[serde(deserialize_with = "nil")]
    size: i32,
}

impl From<ConstraintWire> for SliceConstraint {
    fn from(wire: ConstraintWire) -> Self {
        SliceConstraint { topology: wire.topology, size: wire.size }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AssignmentWire {
    #[serde(deserialize_with = "nil")]
    levels: Vec<String>,
    #[serde(deserialize_with = "list::<_, SliceWire, _>")]
    slices: Vec<SliceWire>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SliceWire {
    #[serde(deserialize_with = "nil")]
    domain_count: i32,
    #[serde(deserialize_with = "nil")]
    pod_counts: CountsWire,
    #[serde(deserialize_with = "list::<_, ValuesWire, _>")]
    values_per_level: Vec<ValuesWire>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CountsWire {
    universal: Option<i32>,
    individual: Option<Vec<i32>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ValuesWire {
    universal: Option<String>,
    #[serde(deserialize_with = "maybe::<_, IndividualWire, _>")]
    individual: Option<IndividualWire>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct IndividualWire {
    #[serde(deserialize_with = "nil")]
    prefix: String,
    #[serde(deserialize_with = "nil")]
    suffix: String,
    #[serde(deserialize_with = "nil")]
    roots: Vec<String>,
}

/// How often a slice that lists nothing may repeat its only domain: a few bytes must not become gigabytes.
pub(crate) const MAX_REPEATED: usize = 16;

/// Reads `topologyAssignment`, one entry per domain.
pub(super) fn assignment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Shared<TopologyAssignment>>, D::Error> {
    let Some(wire) = maybe::<D, AssignmentWire, AssignmentWire>(deserializer)? else { return Ok(None) };
    let mut domains = Vec::new();
    for slice in wire.slices {
        slice.add_to(&mut domains, wire.levels.len()).map_err(D::Error::custom)?;
    }
    Ok(Some(TopologyAssignment { levels: wire.levels, domains }.into()))
}

impl SliceWire {
    /// Adds its domains. Rejected if its lists do not have the lengths that an API server enforces (rules/08 §16).
    fn add_to(self, domains: &mut Vec<TopologyDomain>, n_levels: usize) -> Result<(), String> {
        let n = usize::try_from(self.domain_count).unwrap_or(0);
        if self.values_per_level.len() != n_levels {
            return Err("valuesPerLevel must have the same length as the number of levels".to_owned());
        }
        let roots = self.values_per_level.iter().filter_map(|values| values.individual.as_ref());
        if roots.clone().any(|individual| individual.roots.len() != n) {
            return Err(format!("valuesPerLevel.individual must have {n} roots, as domainCount says"));
        }
        if self.pod_counts.individual.as_ref().is_some_and(|counts| counts.len() != n) {
            return Err(format!("podCounts.individual must have {n} entries, as domainCount says"));
        }
        if n > MAX_REPEATED && roots.count() == 0 && self.pod_counts.individual.is_none() {
            return Err(format!("domainCount must be at most {MAX_REPEATED} where all domains are the same"));
        }
        let counts = self.pod_counts.individual.unwrap_or_default();
        let all_alike = self.pod_counts.universal.unwrap_or(0);
        let first = domains.len();
        let count = |i: usize| counts.get(i).copied().unwrap_or(all_alike);
        domains.extend((0..n).map(|i| TopologyDomain { count: count(i), ..TopologyDomain::default() }));
        for values in self.values_per_level {
            let new = domains[first..].iter_mut().map(|domain| &mut domain.values);
            match values.individual {
                Some(IndividualWire { prefix, suffix, roots }) => {
                    new.zip(roots).for_each(|(values, root)| values.push(format!("{prefix}{root}{suffix}").into()));
                }
                None => {
                    let universal = repeat_n(Arc::from(values.universal.unwrap_or_default()), n);
                    new.zip(universal).for_each(|(values, value)| values.push(value));
                }
            }
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct NodeWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: NodeSpec,
    #[serde(deserialize_with = "nil")]
    status: NodeStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec {
    #[serde(deserialize_with = "nil")]
    unschedulable: bool,
    #[serde(deserialize_with = "list::<_, TaintWire, _>")]
    taints: Vec<Taint>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "resources")]
    allocatable: ResourceList,
    #[serde(deserialize_with = "list::<_, ConditionWire, _>")]
    conditions: Vec<Condition>,
}

impl From<NodeWire> for Node {
    fn from(wire: NodeWire) -> Self {
        let conditions = &wire.status.conditions;
        let ready = conditions.iter().find(|condition| condition.kind.as_str() == "Ready");
        Node {
            meta: wire.metadata,
            unschedulable: wire.spec.unschedulable,
            taints: wire.spec.taints,
            ready: ready.map(|ready| NodeReady { status: ready.status, since: ready.last_transition }),
            allocatable: wire.status.allocatable,
            condition_statuses: conditions.iter().rev().map(|it| (it.kind.as_str().to_owned(), it.status)).collect(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct PodWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: BoundSpecWire,
    #[serde(deserialize_with = "nil")]
    status: PodStatus,
}

/// What is read of a pod's own spec; pod templates are read in `pod.rs`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BoundSpecWire {
    #[serde(deserialize_with = "nil")]
    node_name: String,
    #[serde(deserialize_with = "list::<_, NameWire, _>")]
    scheduling_gates: Vec<String>,
    #[serde(deserialize_with = "list::<_, BoundContainerWire, _>")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "list::<_, BoundContainerWire, _>")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "nil")]
    node_selector: StringMap,
    #[serde(deserialize_with = "maybe_resources")]
    overhead: Option<ResourceList>,
    #[serde(deserialize_with = "maybe::<_, ResourcesWire, _>")]
    resources: Option<Resources>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BoundContainerWire {
    #[serde(deserialize_with = "part::<_, ResourcesWire, _>")]
    resources: Resources,
    #[serde(deserialize_with = "nil")]
    restart_policy: String,
}

impl From<BoundContainerWire> for Container {
    fn from(wire: BoundContainerWire) -> Self {
        Container { resources: wire.resources, sidecar: wire.restart_policy == "Always", ..Container::default() }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PodStatus {
    #[serde(deserialize_with = "nil")]
    phase: String,
}

impl From<PodWire> for Pod {
    fn from(wire: PodWire) -> Self {
        let spec = wire.spec;
        Pod {
            meta: wire.metadata,
            node_name: spec.node_name,
            phase: wire.status.phase,
            scheduling_gates: spec.scheduling_gates,
            spec: PodSpec {
                init_containers: spec.init_containers,
                containers: spec.containers,
                node_selector: spec.node_selector,
                overhead: spec.overhead,
                resources: spec.resources,
                ..PodSpec::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kueuecore::objects::{ConditionStatus, Object, Time};
    use serde_json::{Value, json};

    use super::*;
    use crate::encode::topology::assignment as encoded;

    fn decoded(value: &Value) -> Object {
        crate::decode::decode_value(value).unwrap_or_else(|rejection| panic!("{rejection}"))
    }

    #[derive(Deserialize)]
    struct Holder {
        #[serde(deserialize_with = "assignment")]
        it: Option<Shared<TopologyAssignment>>,
    }

    fn read(it: &Value) -> Result<TopologyAssignment, String> {
        let holder: Result<Holder, _> = serde_json::from_value(json!({"it": it}));
        holder.map(|holder| (*holder.it.expect("present")).clone()).map_err(|error| error.to_string())
    }

    fn one_slice(domain_count: usize, counts: Value, values: Value) -> Value {
        json!({"levels": ["host"],
               "slices": [{"domainCount": domain_count, "podCounts": counts, "valuesPerLevel": [values]}]})
    }

    #[test]
    fn slices_come_one_after_the_other_with_their_prefixes_and_suffixes() {
        let given = json!({"levels": ["rack", "host"], "slices": [
            {"domainCount": 2, "podCounts": {"individual": [1, 4]}, "valuesPerLevel": [
                {"universal": "r7"}, {"individual": {"prefix": "h-", "roots": ["1", ""], "suffix": ".eu"}}]},
            {"domainCount": 1, "podCounts": {"universal": 2}, "valuesPerLevel": [{"universal": "r8"}, {"universal": "h"}]},
        ]});
        let domain = |values: [&str; 2], count| TopologyDomain::new(values, count);
        let domains = vec![domain(["r7", "h-1.eu"], 1), domain(["r7", "h-.eu"], 4), domain(["r8", "h"], 2)];
        let expected = TopologyAssignment { levels: vec!["rack".to_owned(), "host".to_owned()], domains };
        assert_eq!(read(&given), Ok(expected.clone()));
        for by_prefix in [false, true] {
            assert_eq!(read(&encoded(&expected, by_prefix)), Ok(expected.clone()));
        }
    }

    #[test]
    fn an_assignment_without_slices_is_still_one() {
        assert_eq!(read(&json!({})), Ok(TopologyAssignment::default()));
        let holder: Holder = serde_json::from_value(json!({"it": null})).expect("well formed");
        assert_eq!(holder.it, None);
    }

    #[test]
    fn lists_of_other_lengths_are_refused() {
        let one = json!({"universal": 1});
        for (given, expected) in [
            (
                one_slice(2, one.clone(), json!({"individual": {"roots": ["a"]}})),
                "valuesPerLevel.individual must have 2 roots, as domainCount says",
            ),
            (
                one_slice(1, json!({"individual": [1, 2]}), json!({"universal": "a"})),
                "podCounts.individual must have 1 entries, as domainCount says",
            ),
            (
                json!({"levels": ["a", "b"], "slices": [{"domainCount": 1, "valuesPerLevel": [{"universal": "a"}]}]}),
                "valuesPerLevel must have the same length as the number of levels",
            ),
            (
                one_slice(2_000_000_000, one, json!({"universal": "a"})),
                "domainCount must be at most 16 where all domains are the same",
            ),
        ] {
            assert_eq!(read(&given), Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_is_read_is_written_so_that_it_reads_the_same() {
        let roots = |n: usize| json!({"individual": {"roots": vec!["a"; n]}});
        for n in [1, 16, 17, 40] {
            let given = read(&one_slice(n, json!({"universal": 3}), roots(n))).expect("well formed");
            assert_eq!(given.domains.len(), n);
            assert_eq!(read(&encoded(&given, true)), Ok(given));
        }
    }

    #[test]
    fn a_node_keeps_what_decides_where_pods_fit() {
        let heartbeat = "2026-01-02T00:00:00Z";
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": heartbeat});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"rack": "r1"}},
            "spec": {"unschedulable": true, "taints": [{"key": "spot", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
            "status": {"capacity": {"cpu": 9}, "allocatable": {"cpu": 8, "pods": "110"},
                "conditions": [condition("DiskPressure", "False"), condition("Ready", "Unknown")]}});
        let Object::Node(read) = decoded(&node) else { panic!("a Node") };
        assert_eq!(read.meta.labels["rack"], "r1");
        assert!(read.unschedulable);
        assert_eq!((read.taints[0].key.as_str(), read.taints[0].effect.as_str()), ("spot", "NoSchedule"));
        assert_eq!(read.allocatable["cpu"].to_string(), "8");
        let ready = read.ready.expect("present");
        assert_eq!((ready.status, ready.since), (ConditionStatus::Unknown, Time(1_767_225_600_000_000_000)));
        assert_eq!(read.condition_statuses["DiskPressure"], ConditionStatus::False);
        assert_eq!(decoded(&json!({"apiVersion": "v1", "kind": "Node"})), Object::Node(Node::default()));
    }

    #[test]
    fn a_pod_keeps_what_it_takes_from_its_node() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
            "spec": {"nodeName": "n1", "schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}, "overhead": {"cpu": "1"},
                "initContainers": [{"name": "i", "restartPolicy": "Always"}], "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": 2}}, "ports": [{"hostPort": 1}]}]},
            "status": {"phase": "Running"}});
        let Object::Pod(read) = decoded(&pod) else { panic!("a Pod") };
        assert_eq!((read.node_name.as_str(), read.phase.as_str()), ("n1", "Running"));
        assert_eq!(read.scheduling_gates, ["g"]);
        let container = Container {
            resources: Resources {
                requests: BTreeMap::from([("cpu".to_owned(), "2".parse().expect("a quantity"))]),
                ..Resources::default()
            },
            ..Container::default()
        };
        let spec = PodSpec {
            init_containers: vec![Container { sidecar: true, ..Container::default() }],
            containers: vec![container],
            node_selector: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            overhead: Some(BTreeMap::from([("cpu".to_owned(), "1".parse().expect("a quantity"))])),
            ..PodSpec::default()
        };
        assert_eq!(read.spec, spec);
    }
}
