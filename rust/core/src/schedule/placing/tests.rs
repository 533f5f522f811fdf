//! Placement in cycles, tested through an engine.

use crate::objects::conditions::{ADMITTED, EVICTED};
use crate::objects::config::Config;
use crate::objects::{
    AdmissionCheck, CheckState, ConditionStatus, Kind, Node, NodeReady, Object, Pod, Preemption, PreemptionPolicy,
    ReclaimablePod, Workload,
};
use crate::testing::hosts::{hosts, node, place, pods, world};
use crate::testing::{World, at, cluster_queue, meta, namespaced, quantity, resource_group, rules, workload};

fn preempts(world: &mut World) {
    world.change_cluster_queue(|queue| {
        let within_cluster_queue = PreemptionPolicy::LowerPriority;
        queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
    });
}

/// A host of a workload has failed.
fn fail(world: &mut World, name: &str, host: &str) {
    world.change(name, |workload| workload.status.rare.unhealthy_nodes = vec![host.to_owned()]);
}

fn reasons(decision: &crate::schedule::decision::Decision) -> Vec<String> {
    decision.events.iter().map(|event| event.reason.to_string()).collect()
}

#[test]
fn pods_get_one_host_and_the_next_pods_another() {
    let mut world = world();
    for name in ["x", "y"] {
        world.submit(pods(name, 3));
        world.cycle();
    }
    assert_eq!((place(&world, "x"), place(&world, "y")), ("a:3".to_owned(), "b:3".to_owned()));
    world.submit(pods("z", 2));
    let kept = world.cycle().pending.remove(0);
    let nowhere = "couldn't assign flavors to pod set main: topology \"hosts\" allows to fit only 1 out of 2 pod(s)";
    assert!(kept.message.text().starts_with(nowhere), "{}", kept.message);
    world.delete(Kind::Workload, "x");
    world.cycle();
    assert_eq!(place(&world, "z"), "a:2");
}

#[test]
fn fragmented_free_capacity_leads_to_preemption() {
    let mut world = world();
    preempts(&mut world);
    for (name, second) in [("x", 10), ("y", 11)] {
        world.now = at(second);
        world.submit(pods(name, 3));
        world.cycle();
    }
    world.submit(Workload { priority: Some(1), ..pods("z", 2) });
    let victims = world.cycle().preemptions;
    assert_eq!(victims.iter().map(|it| it.key.name()).collect::<Vec<_>>(), ["y"], "the younger one");
}

#[test]
fn nothing_is_preempted_if_even_empty_hosts_are_too_small() {
    let mut world = world();
    preempts(&mut world);
    world.submit(pods("x", 3));
    world.cycle();
    world.submit(Workload { priority: Some(1), ..pods("w", 5) });
    let decision = world.cycle();
    assert_eq!((decision.preemptions.len(), decision.pending[0].reason), (0, "TopologyPlacementFailed"));
}

#[test]
fn heads_of_one_cycle_get_different_places() {
    let mut world = world();
    let other = Object::ClusterQueue(cluster_queue("other", "10"));
    world.apply([other, Object::LocalQueue(crate::testing::local_queue("other", "other"))]);
    world.submit(pods("x", 3));
    world.submit(Workload { queue_name: "other".into(), ..pods("y", 3) });
    assert_eq!(world.cycle().admissions.len(), 2);
    assert_eq!((place(&world, "x"), place(&world, "y")), ("a:3".to_owned(), "b:3".to_owned()));
}

#[test]
fn flavors_over_the_same_hosts_share_them() {
    let mut world = world();
    let mut other = cluster_queue("other", "10");
    other.resource_groups = vec![resource_group(&["cpu"], &[("spare", "10")])];
    world.apply([
        hosts("spare"),
        Object::ClusterQueue(other),
        Object::LocalQueue(crate::testing::local_queue("other", "other")),
    ]);
    world.submit(pods("x", 4));
    world.cycle();
    world.submit(Workload { queue_name: "other".into(), ..pods("y", 4) });
    world.cycle();
    assert_eq!((place(&world, "x"), place(&world, "y")), ("a:4".to_owned(), "b:4".to_owned()));
}

#[test]
fn pods_not_placed_by_kueue_take_room_until_they_end() {
    let mut world = world();
    let mut pod = Pod { meta: namespaced("p"), node_name: "a".to_owned(), ..Pod::default() };
    pod.spec = workload("p", "3").pod_sets[0].template.spec.clone();
    world.apply([Object::Pod(Box::new(pod.clone()))]);
    world.submit(pods("x", 4));
    world.cycle();
    assert_eq!(place(&world, "x"), "b:4");
    world.submit(pods("y", 4));
    assert_eq!(world.cycle().admissions.len(), 0);
    world.apply([Object::Pod(Box::new(Pod { phase: "Succeeded".to_owned(), ..pod.clone() }))]);
    assert!(!world.engine.state.nodes.sites.is_stale, "only its node changes");
    world.cycle();
    assert_eq!(place(&world, "y"), "a:4", "those who found no room are tried again");
    pod.spec.containers[0].resources.requests.insert("example.com/licence".to_owned(), quantity("1"));
    world.apply([Object::Pod(Box::new(pod))]);
    assert!(world.engine.state.nodes.sites.is_stale, "no node has what it asks for");
}

#[test]
fn new_nodes_retry_workloads_without_a_place() {
    let mut world = world();
    world.submit(pods("x", 5));
    world.cycle();
    world.apply([Object::Node(node("c", "8"))]);
    world.cycle();
    assert_eq!(place(&world, "x"), "c:5");
    let unready = Node { ready: Some(NodeReady { status: ConditionStatus::False, since: at(9) }), ..node("a", "4") };
    world.apply([Object::Node(unready)]);
    world.submit(pods("y", 4));
    world.cycle();
    assert_eq!(place(&world, "y"), "b:4");
}

#[test]
fn a_failed_host_is_replaced_a_second_later() {
    let mut world = world();
    world.submit(pods("x", 3));
    world.cycle();
    fail(&mut world, "x", "a");
    assert_eq!(world.cycle().placed.len(), 0, "not at once");
    world.now = at(11);
    let decision = world.cycle();
    assert_eq!((decision.admissions.len(), decision.placed.len()), (0, 1));
    assert_eq!((place(&world, "x"), reasons(&decision)), ("b:3".to_owned(), Vec::<String>::new()));
    assert!(world.get("x").status.rare.unhealthy_nodes.is_empty());
    assert!(world.condition("x", ADMITTED).starts_with("True"));
}

#[test]
fn a_pod_set_whose_pods_are_done_keeps_its_failed_host_and_gets_its_count() {
    let mut world = world();
    world.submit(pods("x", 2));
    world.cycle();
    world.change("x", |it| it.status.rare.reclaimable_pods = vec![ReclaimablePod { name: "main".into(), count: 2 }]);
    fail(&mut world, "x", "a");
    world.now = at(11);
    let placed = world.cycle().placed;
    assert_eq!(placed.iter().map(|it| it.admission.pod_set_assignments[0].count).collect::<Vec<_>>(), [Some(0)]);
    assert_eq!(place(&world, "x"), "a:2");
    assert!(world.get("x").status.rare.unhealthy_nodes.is_empty());
}

#[test]
fn without_a_replacement_the_workload_is_evicted_or_tried_again() {
    for fails_fast in [true, false] {
        let gate = crate::base::gates::Gate::TASFailedNodeReplacementFailFast;
        let gates = Config::default().gates.with(gate, fails_fast);
        let mut world = world();
        world.engine.state.config.gates = gates;
        for name in ["x", "y"] {
            world.submit(pods(name, 3));
            world.cycle();
        }
        fail(&mut world, "x", "a");
        world.now = at(11);
        let decision = world.cycle();
        if fails_fast {
            let message = "Workload was evicted as there was no replacement for unhealthy node(s): a";
            assert_eq!(reasons(&decision), ["EvictedDueToNodeFailures"]);
            assert_eq!(decision.evictions[0].message.text(), message);
            assert_eq!(world.condition("x", EVICTED), format!("True NodeFailures: {message}"));
        } else {
            assert_eq!(reasons(&decision), ["SecondPassFailed"]);
            world.now = at(12);
            assert!(reasons(&world.cycle()).is_empty(), "it comes again after two seconds");
            world.now = at(13);
            assert_eq!(reasons(&world.cycle()), ["SecondPassFailed"]);
            assert_eq!(place(&world, "x"), "a:3");
        }
    }
}

#[test]
fn the_place_of_pods_that_wait_for_provisioning_is_found_once_the_check_is_ready() {
    let mut world = world();
    let controller_name = "kueue.x-k8s.io/provisioning-request".to_owned();
    world.apply([Object::AdmissionCheck(AdmissionCheck { meta: meta("prov"), controller_name, active: true })]);
    world.change_cluster_queue(|queue| queue.admission_checks = rules(&["prov"]));
    world.submit(pods("x", 3));
    world.cycle();
    assert_eq!(place(&world, "x"), "without a place");
    world.reconcile();
    world.answer("x", "prov", CheckState::Ready, "");
    world.now = at(11);
    let decision = world.cycle();
    assert_eq!((decision.placed.len(), reasons(&decision)), (1, vec!["Admitted".to_owned()]));
    assert_eq!(place(&world, "x"), "a:3");
    let admission = world.get("x").status.admission.clone().expect("it has quota");
    assert_eq!(admission.pod_set_assignments[0].delayed_topology_request, "Ready");
}

#[test]
fn a_workload_with_quota_in_its_status_occupies_its_place_from_the_start() {
    let mut world = world();
    world.submit(pods("x", 3));
    world.cycle();
    let x = world.engine.state.workload_object(world.id("x"));
    let mut again = crate::testing::hosts::world();
    again.submit(x);
    again.submit(pods("y", 3));
    again.cycle();
    assert_eq!(place(&again, "y"), "b:3");
}
