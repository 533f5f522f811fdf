//! Topology assignments, nodes and pods.

use std::collections::BTreeMap;

use kueuecore::objects::{
    ConditionStatus, Container, Node, Object, PodSpec, Resources, Time, TopologyAssignment, TopologyDomain,
};
use serde_json::{Value, json};

use super::*;
use crate::encode::topology::assignment as encoded;

fn decoded(value: &Value) -> Object {
    crate::decode::decode_value(value).unwrap_or_else(|rejection| panic!("{rejection}"))
}

fn read(assignment: &Value) -> Result<TopologyAssignment, String> {
    typed_value(assignment).map_err(|error| error.detail)
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
    let absent = admission(&json!({"podSetAssignments": [{"topologyAssignment": null}]})).expect("well formed");
    assert_eq!(absent.pod_set_assignments[0].topology_assignment, None);
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
