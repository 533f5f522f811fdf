mod unadmitted;

use proptest::prelude::*;

use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{ADMITTED, DEACTIVATION_TARGET, EVICTED, QUOTA_RESERVED, REQUEUED};
use crate::objects::config::Config;
use crate::objects::{
    CheckState, ClusterQueue, Kind, LimitRange, LimitRangeItem, Meta, Object, PodResourceClaim, RequeueState,
    StopPolicy, Time, Workload,
};
use crate::status::admissible::ADMISSION_GATED_BY;
use crate::testing::{SECOND, World, at, check, cluster_queue, flavor, local_queue, meta, rules, workload};

const NO_EVENTS: [&str; 0] = [];
const DOES_NOT_FIT: &str = "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, \
                            previously considered podsets requests (0) + current podset request (11) > maximum \
                            capacity (10)";

fn world() -> World {
    World::new(Config::default())
}

fn world_with(gate: Gate, on: bool) -> World {
    World::new(Config { gates: Gates::default().with(gate, on), ..Config::default() })
}

/// A world with checks `a` and `b` on ClusterQueue `cq`, and `w` that has reserved quota.
fn reserved() -> World {
    let mut world = world();
    world.apply([check("a"), check("b")]);
    world.change_cluster_queue(|cq| cq.admission_checks = rules(&["a", "b"]));
    world.submit(workload("w", "1"));
    world.cycle();
    assert_eq!(world.reconcile(), NO_EVENTS);
    world
}

/// A world in which `w` is admitted.
fn admitted() -> World {
    let mut world = world();
    world.submit(workload("w", "1"));
    world.cycle();
    assert_eq!(world.reconcile(), NO_EVENTS);
    world.now = at(100);
    world
}

fn ready(world: &mut World) {
    world.answer("w", "a", CheckState::Ready, "");
    world.answer("w", "b", CheckState::Ready, "");
}

/// The job of `w` has stopped.
fn release(world: &mut World) {
    let id = world.id("w");
    assert!(world.engine.release(id, world.now));
}

fn is_waiting(world: &World) -> bool {
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    let state = &world.engine.state;
    state.queues[queue].pending.is_active(&state.pending.places, world.id("w"))
}

#[test]
fn a_reserved_workload_lists_its_checks_and_is_admitted_once_all_are_ready() {
    let mut world = world();
    world.apply([check("a"), check("b")]);
    world.change_cluster_queue(|cq| cq.admission_checks = rules(&["b", "a"]));
    world.submit(workload("w", "1"));
    world.cycle();
    assert_eq!(world.condition("w", ADMITTED), "");
    world.reconcile();
    let listed: Vec<_> =
        world.get("w").status.rare.admission_checks.iter().map(|c| (c.name.as_str(), c.state)).collect();
    assert_eq!(listed, [("a", CheckState::Pending), ("b", CheckState::Pending)]);
    let waiting = "False UnsatisfiedAdmissionChecks: The workload has not all checks ready";
    assert_eq!(world.condition("w", ADMITTED), waiting);

    world.now = at(42);
    world.answer("w", "a", CheckState::Ready, "");
    assert_eq!(world.reconcile(), NO_EVENTS);
    world.answer("w", "b", CheckState::Ready, "");
    assert_eq!(
        world.reconcile(),
        ["Normal Admitted: Admitted by ClusterQueue cq, wait time since reservation was 32s"]
    );
    assert_eq!(world.condition("w", ADMITTED), "True Admitted: The workload is admitted");
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    assert_eq!(world.engine.state.queues[queue].n_admitted, 1);
}

#[test]
fn checks_can_be_ready_before_quota_is_reserved() {
    let mut world = world();
    world.apply([check("a")]);
    world.change_cluster_queue(|cq| cq.admission_checks = rules(&["a"]));
    world.submit(workload("w", "1"));
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.get("w").status.rare.admission_checks.len(), 1);
    world.answer("w", "a", CheckState::Ready, "");
    assert!(world.cycle().admissions[0].is_admitted);
}

#[test]
fn a_stopped_queue_cancels_a_reservation_without_evicting() {
    for policy in [StopPolicy::Hold, StopPolicy::HoldAndDrain] {
        let mut local = reserved();
        local.change_local_queue(|lq| lq.stop_policy = policy);
        let mut whole = reserved();
        whole.change_cluster_queue(|cq| cq.stop_policy = policy);
        for (mut world, message) in [(local, "LocalQueue lq is inactive"), (whole, "ClusterQueue cq is inactive")] {
            assert_eq!(world.reconcile(), NO_EVENTS);
            assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False Suspended: {message}"));
            assert_eq!(world.condition("w", ADMITTED), "False NoReservation: The workload has no reservation");
            assert_eq!((world.condition("w", EVICTED), world.condition("w", REQUEUED)), <_>::default());
            assert_eq!(world.get("w").status.admission, None);
            let queue = world.engine.state.find_queue("cq").expect("it exists");
            assert!(world.engine.state.queues[queue].reserving().is_empty());
        }
    }
}

#[test]
fn without_observability_a_cancelled_reservation_is_inadmissible() {
    let mut world = world_with(Gate::UnadmittedWorkloadsObservability, false);
    world.apply([check("a")]);
    world.change_cluster_queue(|cq| cq.admission_checks = rules(&["a"]));
    world.submit(workload("w", "1"));
    world.cycle();
    world.reconcile();
    world.change_cluster_queue(|cq| cq.meta.deleting = true);
    world.reconcile();
    // The ClusterQueue is inactive now, which the next pass reports.
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False Inadmissible: ClusterQueue cq is inactive");
    assert_eq!(world.get("w").status.admission, None);
}

#[test]
fn hold_lets_admitted_workloads_run() {
    let mut world = admitted();
    world.change_cluster_queue(|cq| cq.stop_policy = StopPolicy::Hold);
    world.change_local_queue(|lq| lq.stop_policy = StopPolicy::Hold);
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", EVICTED), "");
}

#[test]
fn draining_evicts_admitted_workloads_and_a_restart_requeues_them() {
    type Set = fn(&mut World, StopPolicy);
    let table: [(Set, &str); 2] = [
        (|w, policy| w.change_cluster_queue(|cq| cq.stop_policy = policy), "ClusterQueue"),
        (|w, policy| w.change_local_queue(|lq| lq.stop_policy = policy), "LocalQueue"),
    ];
    for (set, kind) in table {
        let mut world = admitted();
        set(&mut world, StopPolicy::HoldAndDrain);
        let event = format!("Normal EvictedDueTo{kind}Stopped: The {kind} is stopped");
        assert_eq!(world.reconcile(), [event]);
        assert_eq!(world.condition("w", EVICTED), format!("True {kind}Stopped: The {kind} is stopped"));
        // The quota is held until the job has stopped.
        assert_eq!(world.condition("w", QUOTA_RESERVED), "True QuotaReserved: Quota reserved in ClusterQueue cq");
        release(&mut world);
        world.reconcile();
        assert_eq!(world.condition("w", REQUEUED), format!("False {kind}Stopped: The {kind} is stopped"));
        let lower = if kind == "LocalQueue" { "lq" } else { "cq" };
        assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False Suspended: {kind} {lower} is inactive"));
        assert_eq!(world.get("w").status.rare.accumulated_past_execution_time_seconds, Some(90));

        world.now = at(200);
        set(&mut world, StopPolicy::None);
        assert_eq!(world.reconcile(), NO_EVENTS);
        let restarted = format!("True {kind}Restarted: The {kind} was restarted after being stopped");
        assert_eq!(world.condition("w", REQUEUED), restarted);
        assert!(is_waiting(&world));
        assert_eq!(world.cycle().admissions.len(), 1);
    }
}

#[test]
fn a_cluster_queue_does_not_drain_a_held_local_queue() {
    let mut world = admitted();
    world.change_local_queue(|lq| lq.stop_policy = StopPolicy::Hold);
    world.change_cluster_queue(|cq| cq.stop_policy = StopPolicy::HoldAndDrain);
    assert_eq!(world.reconcile(), NO_EVENTS);
    world.change_local_queue(|_| {});
    assert_eq!(world.reconcile(), ["Normal EvictedDueToClusterQueueStopped: The ClusterQueue is stopped"]);
}

#[test]
fn an_admitted_workload_survives_the_deletion_of_its_queues() {
    let mut world = admitted();
    world.delete(Kind::LocalQueue, "lq");
    world.delete(Kind::ClusterQueue, "cq");
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", ADMITTED), "True Admitted: The workload is admitted");
}

#[test]
fn a_rejected_check_deactivates_and_outranks_a_retry() {
    let mut world = reserved();
    world.answer("w", "b", CheckState::Retry, "");
    world.answer("w", "a", CheckState::Rejected, "no such nodes");
    let why = "AdmissionCheck in Rejected state: \"a\" (no such nodes)";
    let evicted = format!("The workload is deactivated due to {why}");
    assert_eq!(
        world.reconcile(),
        [
            format!("Warning AdmissionCheckRejected: Deactivated due to {why}"),
            format!("Normal EvictedDueToDeactivatedDueToAdmissionCheck: {evicted}"),
        ]
    );
    assert_eq!(world.condition("w", EVICTED), format!("True DeactivatedDueToAdmissionCheck: {evicted}"));
    assert_eq!(world.condition("w", DEACTIVATION_TARGET), "");
    let w = world.get("w");
    assert_eq!((w.active, w.meta.generation), (Some(false), 2));
    let reset = &w.status.rare.admission_checks[0];
    assert_eq!(
        (reset.state, reset.message.as_str()),
        (CheckState::Pending, "Reset to Pending after eviction. Previously: Rejected")
    );
    let eviction = &w.status.rare.evictions[0];
    assert_eq!((eviction.reason.as_str(), eviction.underlying_cause.as_str()), ("Deactivated", "AdmissionCheck"));
    release(&mut world);
    world.reconcile();
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False Deactivated: The workload is deactivated");
    assert!(!is_waiting(&world));
}

#[test]
fn a_retry_evicts_and_names_every_retrying_check() {
    let mut world = reserved();
    ready(&mut world);
    world.reconcile();
    world.answer("w", "b", CheckState::Retry, "later");
    world.answer("w", "a", CheckState::Retry, "");
    let message = "Evicted due to AdmissionChecks in Retry state: \"a\"; \"b\" (later)";
    assert_eq!(world.reconcile(), [format!("Normal EvictedDueToAdmissionCheck: {message}")]);
    assert_eq!(world.get("w").status.rare.admission_checks[0].retry_count, Some(1));
    world.now = at(300);
    release(&mut world);
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "True BackoffFinished: The workload backoff was finished");
    // The message of the eviction stays until the next cycle.
    assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False PendingEvaluation: {message}"));
    assert!(is_waiting(&world));
}

#[test]
fn a_retry_with_a_delay_keeps_the_quota_until_it_is_over() {
    let mut world = reserved();
    world.answer("w", "a", CheckState::Retry, "");
    world.change("w", |w| w.status.rare.admission_checks[0].requeue_after_seconds = Some(60));
    assert_eq!(world.reconcile(), NO_EVENTS);
    let state = RequeueState { count: None, requeue_at: Some(at(70)) };
    assert_eq!(world.get("w").status.rare.requeue_state, Some(state));
    assert_eq!((world.condition("w", EVICTED), world.engine.state.next_wake(world.now)), (String::new(), Some(at(70))));
    world.now = at(70);
    let message = "Evicted due to AdmissionCheck in Retry state: \"a\"";
    assert_eq!(world.reconcile(), [format!("Normal EvictedDueToAdmissionCheck: {message}")]);
    release(&mut world);
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "True BackoffFinished: The workload backoff was finished");
    assert_eq!((world.engine.state.next_wake(world.now), is_waiting(&world)), (None, true));
}

#[test]
fn a_workload_is_not_queued_during_its_backoff() {
    let mut world = admitted();
    let (id, now) = (world.id("w"), world.now);
    assert!(world.engine.evict(id, "PodsReadyTimeout", "slow", now));
    world.change("w", |w| {
        w.status.rare.requeue_state = Some(RequeueState { count: Some(1), requeue_at: Some(at(160)) });
    });
    release(&mut world);
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "False PodsReadyTimeout: slow");
    assert_eq!(world.engine.state.next_wake(world.now), Some(at(160)));
    world.now = at(159);
    world.reconcile();
    assert!(!is_waiting(&world));
    world.now = at(160);
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "True BackoffFinished: The workload backoff was finished");
    let state = RequeueState { count: Some(1), requeue_at: None };
    assert_eq!((world.get("w").status.rare.requeue_state.clone(), is_waiting(&world)), (Some(state), true));
}

#[test]
fn deactivation_by_the_user_evicts_and_reactivation_requeues() {
    let mut world = admitted();
    world.change("w", |w| w.active = Some(false));
    let event = "Normal EvictedDueToDeactivated: The workload is deactivated";
    assert_eq!(world.reconcile(), [event]);
    assert_eq!(world.condition("w", EVICTED), "True Deactivated: The workload is deactivated");
    release(&mut world);
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "False Deactivated: The workload is deactivated");
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False Deactivated: The workload is deactivated");
    world.change("w", |w| w.active = Some(true));
    world.reconcile();
    assert_eq!(world.condition("w", REQUEUED), "True Reactivated: The workload was reactivated");
    let expected = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
    assert!(is_waiting(&world));
}

#[test]
fn a_retry_sets_no_backoff_for_an_inactive_workload() {
    let mut world = reserved();
    world.change("w", |w| w.active = Some(false));
    world.reconcile();
    world.answer("w", "a", CheckState::Retry, "");
    world.change("w", |w| w.status.rare.admission_checks[0].requeue_after_seconds = Some(60));
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.get("w").status.rare.requeue_state, None);
}

#[test]
fn a_pending_workload_is_deactivated_without_an_event() {
    let mut world = world();
    world.submit(Workload { active: Some(false), ..workload("w", "1") });
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", EVICTED), "True Deactivated: The workload is deactivated");
}

#[test]
fn exceeding_the_maximum_execution_time_deactivates() {
    let mut world = world();
    world.submit(Workload { maximum_execution_time_seconds: Some(60), ..workload("w", "1") });
    world.cycle();
    world.change("w", |w| w.status.rare.accumulated_past_execution_time_seconds = Some(20));
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.engine.state.next_wake(world.now), Some(at(50)));
    world.now = at(50);
    let message = "The workload is deactivated due to exceeding the maximum execution time";
    assert_eq!(
        world.reconcile(),
        [
            "Warning MaximumExecutionTimeExceeded: The maximum execution time (60s) exceeded".to_owned(),
            format!("Normal EvictedDueToDeactivatedDueToMaximumExecutionTimeExceeded: {message}"),
        ]
    );
    assert_eq!(world.get("w").status.rare.accumulated_past_execution_time_seconds, None);
    release(&mut world);
    world.reconcile();
    assert_eq!(world.engine.state.next_wake(world.now), None);
}

#[test]
fn a_workload_on_hold_stays_on_hold_without_its_queue() {
    let mut world = admitted();
    let hold = |w: &mut Workload| {
        let gates = Gates::default();
        crate::status::reservation::unset_quota_reservation(w, "OnHold", "scaled to zero", at(100), gates);
    };
    world.change("w", hold);
    world.delete(Kind::LocalQueue, "lq");
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False OnHold: scaled to zero");
}

#[test]
fn resource_claims_are_refused_without_their_gate() {
    let mut claims = workload("w", "1");
    let claim = PodResourceClaim { template_name: Some("t".to_owned()), ..PodResourceClaim::default() };
    claims.pod_sets[0].template.spec.resource_claims = vec![claim];
    let mut world = world_with(Gate::KueueDRAIntegration, false);
    world.submit(claims.clone());
    world.reconcile();
    let message = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled";
    assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False DRAResourcesUnresolved: {message}"));
    assert_eq!(world.condition("w", REQUEUED), format!("False DRAResourcesUnresolved: {message}"));
}

#[test]
fn a_workload_without_its_job_is_finished() {
    let mut orphan = workload("w", "1");
    orphan.meta.details.labels.insert("kueue.x-k8s.io/job-uid".to_owned(), "u".to_owned());
    let mut world = world();
    world.submit(orphan);
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", "Finished"), "True OwnerNotFound: The workload's owner no longer exists");
    assert!(!is_waiting(&world));
}

#[test]
fn preemption_gates_of_the_spec_get_a_state() {
    let mut world = world_with(Gate::MultiKueueOrchestratedPreemption, true);
    world.submit(Workload { preemption_gates: vec!["g".to_owned()].into(), ..workload("w", "1") });
    world.reconcile();
    let states = |w: &World| -> Vec<(String, String)> {
        w.get("w").status.rare.preemption_gates.iter().map(|g| (g.name.clone(), g.position.clone())).collect()
    };
    assert_eq!(states(&world), [("g".to_owned(), "Closed".to_owned())]);
    world.change("w", |w| w.preemption_gates.clear());
    world.reconcile();
    assert_eq!(states(&world), []);
}

/// Applies one of many changes to a world.
fn happen(world: &mut World, what: u8, which: u8) {
    let name = ["u", "v", "w"][usize::from(which % 3)];
    let policy = [StopPolicy::None, StopPolicy::Hold, StopPolicy::HoldAndDrain][usize::from(which % 3)];
    let known = world.engine.state.workloads.find("ns", name).is_some();
    match what {
        0 => world.submit(workload(name, ["1", "6", "11"][usize::from(which / 3 % 3)])),
        1 | 2 => drop(world.cycle()),
        3 => world.change_local_queue(|lq| lq.stop_policy = policy),
        4 => drop(world.engine.delete(Kind::LocalQueue, "ns", "lq", world.now)),
        5 => world.apply([Object::ClusterQueue(ClusterQueue {
            stop_policy: policy,
            admission_checks: rules(&["a"][..usize::from(which / 3 % 2)]),
            ..cluster_queue("cq", "10")
        })]),
        6 => drop(world.engine.delete(Kind::ClusterQueue, "", "cq", world.now)),
        7 => drop(world.engine.delete(Kind::ResourceFlavor, "", "default", world.now)),
        8 => world.apply([flavor("default")]),
        9 => world.apply([check("a")]),
        10 => drop(world.engine.delete(Kind::AdmissionCheck, "", "a", world.now)),
        11 if known => {
            let state = [CheckState::Ready, CheckState::Retry, CheckState::Rejected][usize::from(which / 3 % 3)];
            world.answer(name, "a", state, "");
            world
                .change(name, |w| w.status.rare.admission_checks[0].requeue_after_seconds = Some(i32::from(which) - 9));
        }
        12 if known => world.change(name, |w| w.active = Some(which >= 9)),
        13 if known => drop(world.engine.release(world.id(name), world.now)),
        14 if known => drop(world.engine.delete(Kind::Workload, "ns", name, world.now)),
        15 => drop(world.engine.delete(Kind::Namespace, "", "ns", world.now)),
        16 => world.apply([Object::Namespace(meta("ns"))]),
        17 if known => world.change(name, |w| w.maximum_execution_time_seconds = Some(i32::from(which) + 1)),
        18 if known => world.change(name, |w| {
            w.meta
                .details
                .annotations
                .insert(ADMISSION_GATED_BY.to_owned(), "x"[..usize::from(which / 3 % 2)].to_owned());
        }),
        19 => world.apply([Object::ClusterQueue(ClusterQueue {
            meta: Meta { deleting: true, ..meta("cq") },
            ..cluster_queue("cq", "10")
        })]),
        20 if known => drop(world.engine.forget(world.id(name), which >= 9, world.now)),
        _ => world.now = Time(world.now.0 + i64::from(which) * SECOND),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// [`World::reconcile`] also runs a pass over every workload that is not due, and asserts that it writes nothing.
    #[test]
    fn a_pass_writes_nothing_for_workloads_that_are_not_due(
        history in proptest::collection::vec((0..24_u8, 0..18_u8), 1..60),
        granular: bool,
        explicit: bool,
    ) {
        let gates = Gates::default()
            .with(Gate::UnadmittedWorkloadsObservability, granular)
            .with(Gate::UnadmittedWorkloadsExplicitStatus, explicit);
        let mut world = World::new(Config { gates, ..Config::default() });
        for (what, which) in history {
            happen(&mut world, what, which);
            world.reconcile();
            let wake = world.engine.state.next_wake(world.now);
            let earliest = world.engine.state.workloads.iter().filter_map(|(id, _)| world.engine.state.wake(id, world.now));
            prop_assert_eq!(wake, earliest.min());
        }
    }
}

#[test]
fn workloads_parked_with_their_shape_are_due() {
    let gates = Gates::default().with(Gate::UnadmittedWorkloadsObservability, true);
    let mut world = World::new(Config { gates, ..Config::default() });
    for (what, which) in [(0, 8), (0, 7), (5, 3), (11, 4), (9, 0), (1, 0), (1, 0)] {
        happen(&mut world, what, which);
        world.reconcile();
    }
}
