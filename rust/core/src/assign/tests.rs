use super::Totals;
use crate::base::names::Names;
use crate::base::quantity::Quantity;
use crate::engine::Engine;
use crate::objects::config::Config;
use crate::objects::{
    ClusterQueue, Container, FlavorQuotas, LabelSelector, LocalQueue, Meta, NodeSelectorTerm, Object, PodSet,
    Requirement, ResourceFlavor, ResourceGroup, ResourceQuota, Resources, Time, Topology, TopologyRequest, Workload,
};
use crate::testing::{World, flavor, resource_group, workload};

fn meta(namespace: &str, name: &str) -> Meta {
    Meta { namespace: namespace.to_owned(), name: name.to_owned(), ..Meta::default() }
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).expect("a quantity")
}

/// Quota for 9 units of each of these resources in flavor `plain`.
fn group(resources: &[&str]) -> ResourceGroup {
    let quota = |name: &&str| ResourceQuota {
        name: (*name).to_owned(),
        nominal_quota: quantity("9"),
        borrowing_limit: None,
        lending_limit: None,
    };
    let plain = FlavorQuotas { name: "plain".to_owned(), resources: resources.iter().map(quota).collect() };
    ResourceGroup { covered_resources: resources.iter().map(|r| (*r).to_owned()).collect(), flavors: vec![plain] }
}

/// One pod that requests one `cpu`, or nothing.
fn pod_set(requests_cpu: bool, topology: bool) -> PodSet {
    let mut pod_set = PodSet { name: "main".to_owned(), count: 1, ..PodSet::default() };
    let requests = if requests_cpu { [("cpu".to_owned(), quantity("1"))].into() } else { [].into() };
    let resources = Resources { requests, ..Resources::default() };
    pod_set.template.spec.containers = vec![Container { resources, ..Container::default() }];
    pod_set.topology_request =
        topology.then(|| TopologyRequest { required: Some("rack".to_owned()), ..TopologyRequest::default() }.into());
    pod_set
}

/// The message of a pending workload with one pod set; empty if it is admitted.
fn message(groups: Vec<ResourceGroup>, pod_set: PodSet) -> String {
    message_of(groups, vec![pod_set])
}

/// The same for several pod sets.
fn message_of(groups: Vec<ResourceGroup>, pod_sets: Vec<PodSet>) -> String {
    let mut engine = Engine::new(Config::default());
    let queue = ClusterQueue {
        meta: meta("", "cq"),
        resource_groups: groups,
        namespace_selector: Some(LabelSelector::default()),
        ..ClusterQueue::default()
    };
    let local = LocalQueue { meta: meta("ns", "lq"), cluster_queue: "cq".to_owned(), ..LocalQueue::default() };
    let workload = Workload {
        meta: meta("ns", "wl").into(),
        queue_name: "lq".into(),
        pod_sets: pod_sets.into(),
        ..Workload::default()
    };
    let objects = vec![
        Object::Namespace(meta("", "ns")),
        Object::ResourceFlavor(ResourceFlavor { meta: meta("", "plain"), ..ResourceFlavor::default() }),
        Object::ClusterQueue(queue),
        Object::LocalQueue(local),
        Object::Workload(Box::new(workload)),
    ];
    engine.apply(objects, Time(0));
    let decision = engine.cycle(Time(0));
    assert!(decision.undecided.is_empty(), "no flavor has a topology, so nothing is left open");
    decision.pending.first().map(|kept| kept.message.to_string()).unwrap_or_default()
}

#[test]
fn totals_are_scaled_only_to_another_count_and_never_from_none() {
    let resource = Names::default().resource("cpu");
    let totals = |count| Totals { count, requests: vec![(resource, 7)], ..Totals::default() };
    assert_eq!(totals(2).scaled_to(2), totals(2), "not rounded");
    assert_eq!(totals(0).scaled_to(5), totals(0));
    assert_eq!(totals(2).scaled_to(4).requests, [(resource, 12)]);
}

#[test]
fn pods_with_a_topology_request_skip_flavors_without_one() {
    let expected = "couldn't assign flavors to pod set main: Flavor \"plain\" does not support TopologyAwareScheduling";
    assert_eq!(message(vec![group(&["cpu"])], pod_set(true, true)), expected);
    assert_eq!(message(vec![group(&["cpu"])], pod_set(true, false)), "");
}

#[test]
fn pods_without_requests_fail_where_topology_is_asked_for_and_no_flavor_has_one() {
    let expected = "failed to assign flavors to pod set main: workload requires Topology, but there is no TAS cache \
                    information";
    assert_eq!(message(vec![group(&["cpu"])], pod_set(false, true)), expected);
    // A ClusterQueue without any flavor counts as topology-aware.
    assert_eq!(message(Vec::new(), pod_set(false, false)), expected);
    assert_eq!(message(vec![group(&["cpu"])], pod_set(false, false)), "");
}

#[test]
fn no_pods_need_no_topology() {
    let none = PodSet { count: 0, ..pod_set(false, true) };
    assert_eq!(message(vec![group(&["cpu"])], none), "");
}

#[test]
fn a_topology_group_is_assigned_as_one_and_the_next_only_if_it_fits() {
    let pods = |name: &str, group: Option<&str>, count| {
        let mut pods = PodSet { name: name.to_owned(), count, ..pod_set(true, false) };
        let pod_set_group_name = group.map(str::to_owned);
        pods.topology_request = Some(TopologyRequest { pod_set_group_name, ..TopologyRequest::default() }.into());
        pods
    };
    let why = |set: &str, before: u32, count: u32| {
        format!(
            "couldn't assign flavors to pod set {set}: insufficient quota for cpu in flavor plain, previously considered \
             podsets requests ({before}) + current podset request ({count}) > maximum capacity (9)"
        )
    };
    let of =
        |group, last| message_of(vec![self::group(&["cpu"])], vec![pods("a", group, 5), pods("b", group, 4), last]);
    assert_eq!(of(Some("g"), pods("c", None, 0)), "");
    assert_eq!(of(Some("g"), pods("c", None, 1)), why("c", 9, 1));
    assert_eq!(of(Some("g"), pods("c", Some("g"), 1)), [why("a", 0, 10), why("b", 0, 10), why("c", 0, 10)].join("; "));
    assert_eq!(of(Some("g"), pods("c", Some("h"), 1)), why("c", 9, 1));
    let failing = vec![pods("a", Some("g"), 5), pods("b", Some("g"), 5), pods("c", None, 10)];
    assert_eq!(
        message_of(vec![group(&["cpu"])], failing),
        [why("a", 0, 10), why("b", 0, 10)].join("; "),
        "who comes after a group that does not fit is not looked at"
    );
}

#[test]
fn pods_without_a_topology_request_skip_topology_flavors() {
    let mut world = World::new(Config::default());
    let racks = ResourceFlavor { meta: meta("", "racks"), topology_name: "t".to_owned(), ..ResourceFlavor::default() };
    world.apply([
        Object::Topology(Topology { meta: meta("", "t"), levels: vec!["rack".to_owned()] }),
        Object::ResourceFlavor(racks),
    ]);
    world.change_cluster_queue(|queue| {
        queue.resource_groups = vec![resource_group(&["cpu"], &[("racks", "9"), ("default", "9")])];
    });
    world.submit(workload("w", "1"));
    let decision = world.cycle();
    let flavors = &decision.admissions[0].admission.pod_set_assignments[0].flavors;
    assert_eq!(flavors.values().collect::<Vec<_>>(), ["default"]);
}

/// A flavor with a zone.
fn in_zone(name: &str) -> Object {
    let node_labels = [("zone".to_owned(), "1".to_owned())].into();
    Object::ResourceFlavor(ResourceFlavor { meta: meta("", name), node_labels, ..ResourceFlavor::default() })
}

/// Gives a pod set an affinity on zones that cannot be evaluated.
fn asks_for_a_strange_zone(pod_set: &mut PodSet) {
    let expression = Requirement { key: "zone".to_owned(), operator: "Like".to_owned(), values: Vec::new() };
    let term = NodeSelectorTerm { match_expressions: vec![expression], ..NodeSelectorTerm::default() };
    pod_set.template.spec.required_node_affinity = Some(vec![term]);
}

#[test]
fn pod_sets_that_cannot_be_evaluated_report_only_the_error() {
    let mut world = World::new(Config::default());
    world.apply([in_zone("default")]);
    world.submit(workload("first", "6"));
    world.cycle();
    let mut second = workload("second", "5");
    let mut strange = PodSet { name: "strange".to_owned(), ..second.pod_sets[0].clone() };
    asks_for_a_strange_zone(&mut strange);
    second.pod_sets = vec![second.pod_sets[0].clone(), strange].into();
    world.submit(second);
    let message = world.cycle().pending[0].message.to_string();
    assert!(message.starts_with("failed to assign flavors to pod set strange: "), "{message}");
}

#[test]
fn a_flavor_that_cannot_be_evaluated_does_not_suit() {
    let mut world = World::new(Config::default());
    world.apply([in_zone("default"), flavor("gpus")]);
    world.change_cluster_queue(|queue| queue.resource_groups.push(resource_group(&["gpu"], &[("gpus", "9")])));
    let mut strange = workload("w", "1");
    let pod_set = &mut strange.pod_sets[0];
    pod_set.template.spec.containers[0].resources.requests.insert("gpu".to_owned(), quantity("1"));
    asks_for_a_strange_zone(pod_set);
    world.submit(strange);
    assert_eq!(world.cycle().pending[0].reason, "NoMatchingFlavor");
}
