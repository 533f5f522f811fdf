//! Small worlds for tests of topology: two hosts, and workloads that need one.

use super::{World, at, meta, quantity, workload};
use crate::objects::config::Config;
use crate::objects::{
    ConditionStatus, Node, NodeReady, Object, PodSet, ResourceFlavor, Topology, TopologyRequest, Workload,
};
use crate::topology::tree::HOSTNAME;

/// A ready host.
pub fn node(name: &str, cpus: &str) -> Node {
    let mut node = Node { meta: meta(name), ..Node::default() };
    node.meta.labels = [(HOSTNAME.to_owned(), name.to_owned())].into();
    node.ready = Some(NodeReady { status: ConditionStatus::True, since: at(0) });
    node.allocatable = [("cpu", cpus), ("pods", "110")].map(|(k, v)| (k.to_owned(), quantity(v))).into_iter().collect();
    node
}

/// A flavor whose nodes are its hosts.
pub fn hosts(flavor: &str) -> Object {
    Object::ResourceFlavor(ResourceFlavor {
        meta: meta(flavor),
        topology_name: "hosts".to_owned(),
        ..ResourceFlavor::default()
    })
}

/// A world whose flavor `default` has hosts `a` and `b` with 4 CPUs each.
pub fn world() -> World {
    world_with(Config::default())
}

/// The same with these settings.
pub fn world_with(config: Config) -> World {
    let mut world = World::new(config);
    world.apply([
        Object::Topology(Topology { meta: meta("hosts"), levels: vec![HOSTNAME.to_owned()] }),
        hosts("default"),
        Object::Node(node("a", "4")),
        Object::Node(node("b", "4")),
    ]);
    world
}

/// Pods of one CPU each, on one host.
pub fn pods(name: &str, count: i32) -> Workload {
    let mut asked = workload(name, "1");
    let mut sets: Vec<PodSet> = asked.pod_sets.to_vec();
    sets[0].count = count;
    let request = TopologyRequest { required: Some(HOSTNAME.to_owned()), ..TopologyRequest::default() };
    sets[0].topology_request = Some(Box::new(request));
    asked.pod_sets = sets.into();
    asked
}

/// The placement of a workload, as `host:count`.
pub fn place(world: &World, name: &str) -> String {
    let Some(admission) = &world.get(name).status.admission else { return "nowhere".to_owned() };
    let Some(place) = &admission.pod_set_assignments[0].topology_assignment else {
        return "without a place".to_owned();
    };
    let domains = place.domains.iter().map(|it| format!("{}:{}", it.values.join("/"), it.count));
    domains.collect::<Vec<_>>().join(" ")
}
