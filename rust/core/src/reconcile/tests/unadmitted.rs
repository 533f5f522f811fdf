//! Conditions of workloads without quota.

use super::*;

#[test]
fn a_new_workload_has_conditions_only_with_explicit_status() {
    let mut quiet = world();
    quiet.submit(workload("w", "1"));
    assert_eq!(quiet.reconcile(), NO_EVENTS);
    assert!(quiet.get("w").status.conditions.is_empty());

    let mut explicit = world_with(Gate::UnadmittedWorkloadsExplicitStatus, true);
    explicit.submit(workload("w", "1"));
    explicit.reconcile();
    let expected = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    assert_eq!(explicit.condition("w", QUOTA_RESERVED), expected);
    assert_eq!(explicit.condition("w", ADMITTED), "False NoReservation: The workload has no reservation");
}

#[test]
fn a_missing_or_stopped_queue_is_reported_by_the_first_matching_row() {
    type Change = fn(&mut World);
    let table: [(Change, &str, &str); 6] = [
        (|w| w.delete(Kind::LocalQueue, "lq"), "Misconfigured", "LocalQueue lq doesn't exist"),
        (|w| w.change_local_queue(|lq| lq.stop_policy = StopPolicy::Hold), "Suspended", "LocalQueue lq is inactive"),
        (|w| w.delete(Kind::ClusterQueue, "cq"), "Misconfigured", "ClusterQueue cq doesn't exist"),
        (
            |w| w.change_cluster_queue(|cq| cq.stop_policy = StopPolicy::HoldAndDrain),
            "Suspended",
            "ClusterQueue cq is inactive",
        ),
        (
            |w| assert!(w.engine.delete(Kind::ResourceFlavor, "", "default", w.now)),
            "Suspended",
            "ClusterQueue cq is inactive",
        ),
        (
            |w| {
                w.change_cluster_queue(|cq| cq.stop_policy = StopPolicy::Hold);
                w.change_local_queue(|lq| lq.stop_policy = StopPolicy::HoldAndDrain);
            },
            "Suspended",
            "LocalQueue lq is inactive",
        ),
    ];
    for (change, reason, message) in table {
        for (observable, reason) in [(true, reason), (false, "Inadmissible")] {
            let mut world = world_with(Gate::UnadmittedWorkloadsObservability, observable);
            world.submit(workload("w", "1"));
            change(&mut world);
            assert_eq!(world.reconcile(), NO_EVENTS);
            assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False {reason}: {message}"));
            let admitted = if observable { "False NoReservation: The workload has no reservation" } else { "" };
            assert_eq!(world.condition("w", ADMITTED), admitted);
        }
    }
}

#[test]
fn a_workload_is_pending_evaluation_once_its_blocker_is_gone() {
    let mut world = world();
    let mut elsewhere = workload("w", "1");
    elsewhere.queue_name = "other".into();
    world.submit(elsewhere);
    world.reconcile();
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False Misconfigured: LocalQueue other doesn't exist");
    world.apply([Object::LocalQueue(local_queue("other", "cq"))]);
    world.reconcile();
    let expected = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
    assert_eq!(world.cycle().admissions.len(), 1);
}

#[test]
fn namespace_mismatches_and_invalid_requests_are_reported() {
    let mut mismatch = world();
    mismatch.change_cluster_queue(|cq| cq.namespace_selector = None);
    mismatch.submit(workload("w", "1"));
    mismatch.reconcile();
    let expected = "False Misconfigured: workload namespace doesn't match ClusterQueue selector";
    assert_eq!(mismatch.condition("w", QUOTA_RESERVED), expected);

    let mut above_limit = world();
    let mut greedy = workload("w", "2");
    let resources = &mut greedy.pod_sets[0].template.spec.containers[0].resources;
    resources.limits.insert("cpu".to_owned(), crate::testing::quantity("1"));
    above_limit.submit(greedy);
    above_limit.reconcile();
    let expected = "False Misconfigured: resources validation failed: \
                    spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests must not exceed \
                    its limits";
    assert_eq!(above_limit.condition("w", QUOTA_RESERVED), expected);
}

#[test]
fn limits_set_by_a_limit_range_are_reported_only_by_a_cycle() {
    let mut world = world();
    let mut item = LimitRangeItem { kind: "Container".to_owned(), ..LimitRangeItem::default() };
    item.default.insert("cpu".to_owned(), crate::testing::quantity("1"));
    let meta = crate::testing::namespaced("limits");
    world.apply([Object::LimitRange(LimitRange { meta, limits: vec![item] })]);
    world.submit(workload("w", "2"));
    world.cycle();
    let expected = "False Misconfigured: resources validation failed: \
                spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests must not exceed its \
                limits";
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
    world.reconcile();
    let expected = "False PendingEvaluation: Workload is pending evaluation in the scheduling queue";
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
}

#[test]
fn the_result_of_a_cycle_stays_until_the_next_one() {
    let mut world = world();
    world.submit(workload("w", "11"));
    world.cycle();
    let expected = format!("False ExceedsMaxQuota: {DOES_NOT_FIT}");
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
    world.reconcile();
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
}

#[test]
fn a_bypassed_workload_gets_the_reason_of_its_equivalent() {
    let mut world = world_with(Gate::UnadmittedWorkloadsExplicitStatus, true);
    world.submit(workload("first", "11"));
    world.submit(workload("second", "11"));
    world.cycle();
    world.reconcile();
    assert_eq!(world.condition("first", QUOTA_RESERVED), format!("False ExceedsMaxQuota: {DOES_NOT_FIT}"));
    let bypassed = "Bypassed scheduling evaluation because an equivalent workload recently failed";
    assert_eq!(world.condition("second", QUOTA_RESERVED), format!("False ExceedsMaxQuota: {bypassed}"));
}

#[test]
fn without_observability_a_bypassed_workload_gets_no_reason() {
    let gates = Gates::default()
        .with(Gate::UnadmittedWorkloadsExplicitStatus, true)
        .with(Gate::UnadmittedWorkloadsObservability, false);
    let mut world = World::new(Config { gates, ..Config::default() });
    world.submit(workload("first", "11"));
    world.submit(workload("second", "11"));
    world.cycle();
    world.reconcile();
    assert_eq!(world.condition("first", QUOTA_RESERVED), format!("False Pending: {DOES_NOT_FIT}"));
    assert_eq!(world.condition("second", QUOTA_RESERVED), "");
}

#[test]
fn an_admission_gate_and_its_removal_are_reported() {
    let mut world = world();
    let mut gated = workload("w", "1");
    gated.meta.details.annotations.insert(ADMISSION_GATED_BY.to_owned(), "audit".to_owned());
    world.submit(gated);
    assert_eq!(world.reconcile(), ["Normal AdmissionGated: Workload admission is gated by: audit"]);
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False AdmissionGated: Admission is gated by: audit");
    assert_eq!(world.cycle().cycle, 0);
    world.change("w", |w| w.meta.details.annotations.extend([(ADMISSION_GATED_BY.to_owned(), "budget".to_owned())]));
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False AdmissionGated: Admission is gated by: budget");
    world.change("w", |w| w.meta.details.annotations.clear());
    assert_eq!(world.reconcile(), ["Normal AdmissionGateCleared: Admission gate cleared, workload is now admissible"]);
    let expected = "False PendingEvaluation: AdmissionGatedBy cleared, waiting for quota reservation";
    assert_eq!(world.condition("w", QUOTA_RESERVED), expected);
    assert_eq!(world.cycle().admissions.len(), 1);
}

#[test]
fn a_missing_queue_is_reported_before_an_admission_gate() {
    let mut world = world();
    let mut gated = workload("w", "1");
    gated.meta.details.annotations.insert(ADMISSION_GATED_BY.to_owned(), "audit".to_owned());
    world.submit(gated);
    world.reconcile();
    world.delete(Kind::LocalQueue, "lq");
    assert_eq!(world.reconcile(), NO_EVENTS);
    assert_eq!(world.condition("w", QUOTA_RESERVED), "False Misconfigured: LocalQueue lq doesn't exist");
    world.change_local_queue(|_| {});
    assert_eq!(world.reconcile(), ["Normal AdmissionGated: Workload admission is gated by: audit"]);
}
