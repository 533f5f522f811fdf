//! Failed and recovered nodes, tested through an engine.

use super::{TOPOLOGY_GATE, WORKLOAD, terminated_by_kueue};
use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::EVICTED;
use crate::objects::config::Config;
use crate::objects::{ConditionStatus, Kind, NodeReady, Object, Pod, Taint, Toleration, Workload};
use crate::testing::hosts::{node, place, pods, world, world_with};
use crate::testing::{World, at, namespaced};
use crate::topology::tree::HOSTNAME;

/// `x` is placed on host `a`.
fn placed(mut world: World) -> World {
    world.submit(pods("x", 3));
    world.cycle();
    assert_eq!(place(&world, "x"), "a:3");
    world
}

/// Reports host `a` as ready or not since now, with these taints.
fn report(world: &mut World, is_ready: bool, taints: &[&str]) -> Vec<String> {
    let mut host = node("a", "4");
    let status = if is_ready { ConditionStatus::True } else { ConditionStatus::False };
    host.ready = Some(NodeReady { status, since: world.now });
    let taint = |key: &&str| Taint { key: (*key).to_owned(), effect: "NoExecute".to_owned(), ..Taint::default() };
    host.taints = taints.iter().map(taint).collect();
    world.apply([Object::Node(host)]);
    world.reconcile()
}

fn pod(name: &str, host: &str, phase: &str) -> Pod {
    let mut pod = Pod { meta: namespaced(name), node_name: host.to_owned(), phase: phase.to_owned(), ..Pod::default() };
    pod.meta.annotations = [(WORKLOAD.to_owned(), "x".to_owned())].into();
    pod
}

fn failed(world: &World) -> Vec<String> {
    world.get("x").status.rare.unhealthy_nodes.clone()
}

#[test]
fn an_unready_host_is_replaced_in_a_second_pass() {
    let mut world = placed(world());
    world.now = at(20);
    assert_eq!(report(&mut world, false, &[]), [""; 0]);
    assert_eq!(failed(&world), ["a"]);
    assert_eq!(world.engine.state.next_wake(world.now), Some(at(21)));
    world.now = at(21);
    let decision = world.cycle();
    assert_eq!((decision.placed.len(), decision.evictions.len()), (1, 0));
    assert_eq!((place(&world, "x"), failed(&world)), ("b:3".to_owned(), vec![]));
}

#[test]
fn a_recovered_host_is_unmarked_but_the_second_pass_still_runs() {
    let mut world = placed(world());
    world.now = at(20);
    report(&mut world, false, &[]);
    report(&mut world, true, &[]);
    assert!(failed(&world).is_empty());
    world.now = at(21);
    world.cycle();
    assert_eq!(place(&world, "x"), "b:3");
}

#[test]
fn a_host_fails_only_once_its_pods_have_ended() {
    for (phase, deleting, expected) in
        [("Running", false, 0), ("Running", true, 1), ("Succeeded", false, 1), ("Failed", false, 1)]
    {
        let mut world = placed(world());
        let mut it = pod("p", "a", phase);
        it.meta.deleting = deleting;
        // Kueue's own pods are not counted a second time.
        it.meta.annotations.insert("kueue.x-k8s.io/podset-required-topology".to_owned(), HOSTNAME.to_owned());
        world.apply([Object::Pod(it.into())]);
        report(&mut world, false, &[]);
        assert_eq!(failed(&world).len(), expected, "{phase} {deleting}");
    }
}

#[test]
fn without_the_pod_termination_gate_a_host_fails_after_thirty_seconds() {
    let gates = Gates::default().with(Gate::TASReplaceNodeOnPodTermination, false);
    let mut world = placed(world_with(Config { gates, ..Config::default() }));
    world.now = at(20);
    report(&mut world, false, &[]);
    assert!(failed(&world).is_empty());
    assert_eq!(world.engine.state.next_wake(world.now), Some(at(50)));
    world.now = at(49);
    world.reconcile();
    assert!(failed(&world).is_empty());
    world.now = at(50);
    world.reconcile();
    assert_eq!(failed(&world), ["a"]);
}

#[test]
fn a_deleted_host_fails_and_a_second_failure_evicts() {
    let mut world = world();
    let mut asked = pods("x", 6);
    let mut sets = asked.pod_sets.to_vec();
    if let Some(request) = &mut sets[0].topology_request {
        request.required = None;
        request.unconstrained = Some(true);
    }
    asked.pod_sets = sets.into();
    world.submit(asked);
    world.cycle();
    assert_eq!(place(&world, "x"), "a:4 b:2");
    world.delete(Kind::Node, "a");
    assert_eq!(world.reconcile(), [""; 0]);
    assert_eq!(failed(&world), ["a"]);
    world.delete(Kind::Node, "b");
    let message = "Workload eviction triggered due to multiple TAS assigned node failures, including: a, b";
    assert_eq!(world.reconcile(), [format!("Normal EvictedDueToNodeFailures: {message}")]);
    assert_eq!(world.condition("x", EVICTED), format!("True NodeFailures: {message}"));
    assert!(failed(&world).is_empty());
}

#[test]
fn a_taint_fails_a_host_unless_tolerated_for_good() {
    let tolerates = |seconds| Toleration {
        key: "k".to_owned(),
        operator: "Exists".to_owned(),
        toleration_seconds: seconds,
        ..Toleration::default()
    };
    for (tolerations, expected) in [(vec![], 1), (vec![tolerates(None)], 0), (vec![tolerates(Some(60))], 1)] {
        let mut world = world();
        let mut asked: Workload = pods("x", 3);
        let mut sets = asked.pod_sets.to_vec();
        sets[0].template.spec.tolerations.clone_from(&tolerations);
        asked.pod_sets = sets.into();
        world.submit(asked);
        world.cycle();
        report(&mut world, true, &["k"]);
        assert_eq!(failed(&world).len(), expected, "{tolerations:?}");
    }
    let mut off = placed(world_with(Config {
        gates: Gates::default().with(Gate::TASReplaceNodeOnNodeTaints, false),
        ..Config::default()
    }));
    report(&mut off, true, &["k"]);
    assert!(failed(&off).is_empty());
}

#[test]
fn pods_waiting_for_a_failed_host_are_failed() {
    let mut world = placed(world());
    let mut waits = pod("waits", "", "Pending");
    waits.spec.node_selector = [(HOSTNAME.to_owned(), "a".to_owned())].into();
    let mut gated = Pod { scheduling_gates: vec![TOPOLOGY_GATE.to_owned()], ..waits.clone() };
    gated.meta.name = "gated".to_owned();
    // It runs, so the host has not failed for the workload.
    let mut runs = pod("runs", "a", "Running");
    runs.meta.annotations.insert("kueue.x-k8s.io/podset-required-topology".to_owned(), HOSTNAME.to_owned());
    world.apply([Object::Pod(waits.into()), Object::Pod(gated.into()), Object::Pod(runs.into())]);
    report(&mut world, true, &["k"]);
    let phase = |name| world.engine.state.nodes.cluster.pod("ns", name).map(|pod| pod.phase.clone());
    assert_eq!([phase("waits"), phase("gated"), phase("runs")].map(Option::unwrap), ["Failed", "Pending", "Running"]);
    assert!(failed(&world).is_empty());
    let failed_pods = world.engine.take_failed_pods();
    assert_eq!(failed_pods, [("ns".to_owned(), "waits".to_owned(), terminated_by_kueue(world.now))]);
    assert!(world.engine.take_failed_pods().is_empty());
}

/// A pod of `x` that Kueue has placed on host `a`.
fn placed_pod(name: &str, host: &str, phase: &str) -> Pod {
    let mut pod = pod(name, host, phase);
    pod.meta.annotations.insert("kueue.x-k8s.io/podset-required-topology".to_owned(), HOSTNAME.to_owned());
    pod.spec.node_selector = [(HOSTNAME.to_owned(), "a".to_owned())].into();
    pod
}

#[test]
fn a_host_is_checked_again_when_its_last_pod_ends() {
    for ends in [|pod: &mut Pod| pod.meta.deleting = true, |pod: &mut Pod| pod.phase = "Failed".to_owned()] {
        let mut world = placed(world());
        let mut runs = placed_pod("p", "a", "Running");
        world.apply([Object::Pod(runs.clone().into())]);
        report(&mut world, false, &[]);
        assert!(failed(&world).is_empty());
        ends(&mut runs);
        world.apply([Object::Pod(runs.into())]);
        world.reconcile();
        assert_eq!(failed(&world), ["a"]);
    }
    let mut world = placed(world());
    world.apply([Object::Pod(placed_pod("p", "a", "Running").into())]);
    report(&mut world, false, &[]);
    world.delete(Kind::Pod, "p");
    world.reconcile();
    assert_eq!(failed(&world), ["a"]);
}

#[test]
fn a_late_pod_for_a_failed_host_is_failed_until_it_is_deleted() {
    let mut world = placed(world());
    world.apply([Object::Pod(placed_pod("runs", "a", "Running").into())]);
    report(&mut world, true, &["k"]);
    for name in ["late", "gone"] {
        world.apply([Object::Pod(placed_pod(name, "", "Pending").into())]);
        world.reconcile();
    }
    world.delete(Kind::Pod, "gone");
    let failed_pods = world.engine.take_failed_pods();
    assert_eq!(failed_pods.iter().map(|it| it.1.as_str()).collect::<Vec<_>>(), ["late"]);
}

#[test]
fn without_the_replacement_gate_node_failures_are_ignored() {
    let gates = Gates::default().with(Gate::TASFailedNodeReplacement, false);
    let mut world = placed(world_with(Config { gates, ..Config::default() }));
    report(&mut world, false, &[]);
    assert!(failed(&world).is_empty());
}
