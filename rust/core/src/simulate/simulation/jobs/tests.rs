//! Pods on nodes that fail, while Kueue waits for pods (rules/07 §6).

use crate::objects::conditions::{EVICTED, PODS_READY, find};
use crate::objects::config::{Config, RequeuingTimestamp, WaitForPodsReady};
use crate::objects::{ConditionStatus, Kind, Node, NodeReady, Object, Taint, Time};
use crate::simulate::job_plan::PodsPlan;
use crate::simulate::tests::OPTIONS;
use crate::simulate::{Change, Happening, JobPlan, Simulation};
use crate::testing::hosts::{node, pods, world_with};
use crate::testing::{SECOND, World, at};

/// Workload `x` on host `a`, with room on `b`; its pods stay on a failed node for 40 s.
fn running(ready_seconds: i64) -> (World, Simulation) {
    let waits = WaitForPodsReady {
        timeout_ns: 60 * SECOND,
        recovery_timeout_ns: Some(20 * SECOND),
        unscheduled_timeout_ns: None,
        block_admission: false,
        requeuing_timestamp: RequeuingTimestamp::Eviction,
        backoff_limit_count: None,
        backoff_base_seconds: 60,
        backoff_max_seconds: 60,
    };
    let mut world = world_with(Config { wait_for_pods_ready: Some(waits), ..Config::default() });
    let mut simulation = Simulation::new(OPTIONS, at(10));
    simulation.happened(&mut world.engine);
    assert_eq!(simulation.follow(&mut world.engine), None);
    let plan = PodsPlan { ready_ns: vec![Some(ready_seconds * SECOND)], ..PodsPlan::default() };
    let lingers_ns = Some(40 * SECOND);
    let job = JobPlan { run_ns: Some(100 * SECOND), pods: Some(plan.into()), lingers_ns, ..JobPlan::default() };
    let object = Box::new(Object::Workload(Box::new(pods("x", 3))));
    simulation.schedule(vec![Happening { at: at(10), change: Change::Create { object, job } }]);
    (world, simulation)
}

fn host(seconds: i64, status: ConditionStatus, taints: &[&str]) -> Happening {
    let taint = |key: &&str| Taint { key: (*key).to_owned(), effect: "NoExecute".to_owned(), ..Taint::default() };
    let taints = taints.iter().map(taint).collect();
    let node = Node { ready: Some(NodeReady { status, since: at(seconds) }), taints, ..node("a", "4") };
    Happening { at: at(seconds), change: Change::Update(Box::new(Object::Node(node))) }
}

/// Condition PodsReady of `x` up to a second: is it True, its reason, and since which second.
fn readiness(world: &mut World, simulation: &mut Simulation, until: i64) -> (bool, String, i64) {
    simulation.advance(&mut world.engine, Some(at(until)), |_| false);
    let found = find(&world.get("x").status.conditions, PODS_READY).expect("it has been admitted");
    let Time(since) = found.last_transition;
    (found.status == ConditionStatus::True, found.reason.to_string(), since / SECOND)
}

fn said(status: bool, reason: &str, since: i64) -> (bool, String, i64) {
    (status, reason.to_owned(), since)
}

#[test]
fn pods_are_not_ready_while_their_node_is_not() {
    let (mut world, mut run) = running(0);
    run.schedule(vec![host(20, ConditionStatus::False, &[]), host(30, ConditionStatus::True, &[])]);
    assert_eq!(readiness(&mut world, &mut run, 15), said(true, "Started", 10));
    assert_eq!(readiness(&mut world, &mut run, 25), said(false, "WaitForRecovery", 20));
    assert_eq!(readiness(&mut world, &mut run, 35), said(true, "Recovered", 30));
}

#[test]
fn a_taint_alone_leaves_pods_ready_and_readiness_counts_whatever_the_taints() {
    let (mut world, mut run) = running(0);
    let taints = &["down"][..];
    let changes = [(20, ConditionStatus::True), (25, ConditionStatus::False), (30, ConditionStatus::True)];
    run.schedule(changes.map(|(seconds, status)| host(seconds, status, taints)).into());
    assert_eq!(readiness(&mut world, &mut run, 22), said(true, "Started", 10));
    assert_eq!(readiness(&mut world, &mut run, 27), said(false, "WaitForRecovery", 25));
    assert_eq!(readiness(&mut world, &mut run, 32), said(true, "Recovered", 30));
}

#[test]
fn the_recovery_timeout_evicts_a_job_whose_node_does_not_return() {
    let (mut world, mut run) = running(0);
    run.schedule(vec![host(20, ConditionStatus::Unknown, &[])]);
    readiness(&mut world, &mut run, 41);
    let evicted = find(&world.get("x").status.conditions, EVICTED).expect("it is evicted");
    assert_eq!((&*evicted.reason, evicted.last_transition), ("PodsReadyTimeout", at(40)));
}

#[test]
fn pods_on_another_node_are_ready_after_their_time() {
    let (mut world, mut run) = running(5);
    let change = Change::Remove { kind: Kind::Node, namespace: String::new(), name: "a".to_owned() };
    run.schedule(vec![Happening { at: at(20), change }]);
    assert_eq!(readiness(&mut world, &mut run, 20), said(false, "WaitForRecovery", 20));
    assert_eq!(readiness(&mut world, &mut run, 25), said(false, "WaitForRecovery", 20));
    assert_eq!(readiness(&mut world, &mut run, 35), said(true, "Recovered", 26));
}

#[test]
fn a_job_does_not_begin_before_the_node_of_its_first_pods_is_back() {
    let (mut world, mut run) = running(10);
    run.schedule(vec![host(15, ConditionStatus::False, &[]), host(30, ConditionStatus::True, &[])]);
    assert_eq!(readiness(&mut world, &mut run, 25), said(false, "WaitForStart", 10));
    assert_eq!(readiness(&mut world, &mut run, 35), said(true, "Started", 30));
    run.advance(&mut world.engine, None, |_| false);
    assert_eq!(run.now(), at(130));
}
