use std::collections::BTreeMap;

use super::*;
use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{QUOTA_RESERVED, condition};
use crate::objects::config::FairSharing;
use crate::objects::{
    Admission, CheckState, ClusterQueue, Cohort, ConditionStatus, LimitRange, LimitRangeItem, Meta, PodSet,
    PodSetAssignment, Preemption, PreemptionPolicy, ReclaimablePod, StopPolicy, TopologyRequest, Workload,
};
use crate::state::PendingWork;
use crate::testing::{
    World, check, cluster_queue, flavor, local_queue, meta, quantity, resource_group, rules, workload,
};

fn world() -> World {
    World::new(Config::default())
}

#[test]
fn forgetting_a_reservation_does_not_hit_a_new_workload_in_the_same_slot() {
    let mut world = world();
    world.submit(workload("first", "1"));
    world.cycle();
    world.delete(Kind::Workload, "first");
    world.submit(workload("second", "1"));
    let (id, now) = (world.id("second"), world.now);
    assert!(!world.engine.forget(id, false, now));
    assert_eq!(world.engine.state.workloads.get(id).key().name(), "second");
}

#[test]
fn popping_an_empty_queue_leaves_nothing_in_flight() {
    let mut world = world();
    world.submit(workload("w", "1"));
    let id = world.id("w");
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    let State { queues, pending: PendingWork { places, .. }, .. } = &mut world.engine.state;
    let pending = &mut queues[queue].pending;
    let heads = [pending.pop(places, |_| 0.0), pending.pop(places, |_| 0.0)];
    assert_eq!((heads, pending.is_inflight(id)), ([Some(id), None], false));
}

#[test]
fn a_newer_version_replaces_an_unconfirmed_reservation() {
    let mut world = world();
    world.submit(workload("w", "1"));
    world.cycle();
    world.submit(workload("w", "2"));
    let (id, now) = (world.id("w"), world.now);
    assert!(!world.engine.forget(id, false, now));
    assert_eq!(world.engine.stage(id), Stage::Pending);
    let admission = &world.cycle().admissions[0].admission;
    let usage = &admission.pod_set_assignments[0].resource_usage["cpu"];
    assert_eq!(usage.to_string(), "2");
}

#[test]
fn a_reservation_in_a_missing_cluster_queue_stays_counted_in_the_old_one() {
    let mut world = world();
    world.submit(workload("w", "1"));
    world.cycle();
    let id = world.id("w");
    let counted = |world: &World| world.engine.state.workloads.get(id).cached_in();
    let queue = world.engine.state.find_queue("cq");
    let name = |workload: &mut Workload, name: &'static str| {
        let admission = workload.status.admission.as_deref().cloned().expect("it is admitted");
        workload.status.admission = Some(Admission { cluster_queue: name.into(), ..admission }.into());
    };
    assert_eq!(counted(&world), queue);
    world.change("w", |workload| name(workload, "nowhere"));
    assert_eq!(counted(&world), queue);
    world.apply([Object::ClusterQueue(cluster_queue("nowhere", "4"))]);
    assert_eq!(counted(&world), world.engine.state.find_queue("nowhere"));
    world.delete(Kind::ClusterQueue, "nowhere");
    assert_eq!(counted(&world), None);
    world.change("w", |workload| name(workload, "cq"));
    assert_eq!(counted(&world), queue);
}

#[test]
fn reservations_stay_unconfirmed_across_cycles_if_writes_are_followed() {
    for follows in [false, true] {
        let mut world = world();
        if follows {
            assert!(world.engine.take_written().is_empty());
        }
        world.submit(workload("w", "1"));
        world.cycle();
        world.submit(workload("v", "1"));
        world.cycle();
        let (w, v, now) = (world.id("w"), world.id("v"), world.now);
        assert_eq!(world.engine.take_written(), if follows { vec![v, w] } else { vec![] });
        assert_eq!(world.engine.forget(w, false, now), follows);
        assert_eq!(world.engine.stage(w), if follows { Stage::Pending } else { Stage::Admitted });
        assert!(world.engine.confirm(v));
        assert!(!world.engine.forget(v, false, now) && !world.engine.confirm(v));
    }
}

#[test]
fn a_cluster_queue_first_seen_while_being_deleted_admits_nothing() {
    let mut world = world();
    world.delete(Kind::ClusterQueue, "cq");
    world.submit(workload("w", "1"));
    let deleting = ClusterQueue { meta: Meta { deleting: true, ..meta("cq") }, ..cluster_queue("cq", "10") };
    world.apply([Object::ClusterQueue(deleting)]);
    assert_eq!(world.cycle().admissions.len(), 0);
}

#[test]
fn an_entry_with_taken_targets_finds_others_in_its_own_cohort() {
    let mut world = world();
    for cohort in ["x", "y"] {
        for (name, cpu) in [("borrower", "0"), ("p1", "4"), ("p2", "4"), ("p3", "4")] {
            let name = format!("{cohort}-{name}");
            let preemption = Some(Preemption { reclaim_within_cohort: PreemptionPolicy::Any, ..Preemption::default() });
            let queue = ClusterQueue { cohort_name: cohort.to_owned(), preemption, ..cluster_queue(&name, cpu) };
            world.apply([Object::ClusterQueue(queue), Object::LocalQueue(local_queue(&name, &name))]);
        }
    }
    let submit = |world: &mut World, name: &str, queue: &str| {
        world.submit(Workload { queue_name: queue.to_owned().into(), ..workload(name, "4") });
    };
    for name in ["v1", "v2", "v3"] {
        for cohort in ["x", "y"] {
            submit(&mut world, &format!("{cohort}-{name}"), &format!("{cohort}-borrower"));
        }
        assert_eq!(world.cycle().admissions.len(), 2);
    }
    for name in ["x-p1", "x-p2", "x-p3", "y-p1", "y-p2", "y-p3"] {
        submit(&mut world, name, name);
    }
    let decision = world.cycle();
    let mut victims: Vec<&str> = decision.preemptions.iter().map(|p| p.key.name()).collect();
    victims.sort_unstable();
    assert_eq!(victims, ["x-v1", "x-v2", "x-v3", "y-v1", "y-v2", "y-v3"]);
    let again: Vec<_> = decision.target_recomputations.iter().map(|(queue, counts)| (queue.as_str(), counts)).collect();
    let found = BTreeMap::from([("new_targets", 1)]);
    assert_eq!(again, [("x-p2", &found), ("x-p3", &found), ("y-p2", &found), ("y-p3", &found)]);
}

#[test]
fn a_cycle_counts_retried_parked_workloads_with_and_without_heads() {
    let mut world = world();
    world.submit(workload("running", "10"));
    world.cycle();
    for name in ["one", "two"] {
        world.submit(workload(name, "1"));
    }
    let parks = world.cycle();
    assert_eq!((parks.unparked, parks.has_changed_something()), (0, true));
    let finish = |world: &mut World| {
        let (id, now) = (world.id("running"), world.now);
        world.engine.finish(id, "Succeeded", "", now);
    };
    let mut stopped = World { engine: world.engine.fork(), now: world.now };
    finish(&mut world);
    let tries = world.cycle();
    assert_eq!((tries.unparked, tries.admissions.len()), (2, 1));
    stopped.change_cluster_queue(|queue| queue.stop_policy = StopPolicy::Hold);
    finish(&mut stopped);
    let idle = stopped.cycle();
    assert_eq!((idle.unparked, idle.pending.len(), idle.has_changed_something()), (2, 0, true));
}

#[test]
fn a_closed_preemption_gate_holds_back_a_preemption() {
    for (is_on, names) in [(true, vec![]), (false, vec!["low"])] {
        let gates = Gates::default().with(Gate::MultiKueueOrchestratedPreemption, is_on);
        let mut world = World::new(Config { gates, ..Config::default() });
        world.change_cluster_queue(|queue| {
            let within_cluster_queue = PreemptionPolicy::LowerPriority;
            queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
        });
        world.submit(workload("low", "10"));
        world.cycle();
        world.submit(Workload {
            priority: Some(1),
            preemption_gates: vec!["ask".to_owned()].into(),
            ..workload("high", "10")
        });
        let decision = world.cycle();
        let preempted: Vec<&str> = decision.preemptions.iter().map(|it| it.key.name()).collect();
        assert_eq!(preempted, names);
        assert_eq!(decision.pending.iter().any(|it| it.reason == "AdmissionGated"), is_on);
    }
}

#[test]
fn pod_sets_of_one_group_get_one_flavor_for_their_total() {
    let gates = Gates::default().with(Gate::TopologyAwareScheduling, false);
    for (group, expected) in [(Some("all"), ["large", "large"]), (None, ["default", "large"])] {
        let mut world = World::new(Config { gates, ..Config::default() });
        world.apply([flavor("large")]);
        world.change_cluster_queue(|queue| {
            queue.resource_groups[0] = resource_group(&["cpu"], &[("default", "10"), ("large", "20")]);
        });
        let mut both = workload("both", "6");
        let topology = TopologyRequest { pod_set_group_name: group.map(str::to_owned), ..TopologyRequest::default() };
        both.pod_sets[0].topology_request = Some(topology.into());
        let second = PodSet { name: "second".to_owned(), ..both.pod_sets[0].clone() };
        both.pod_sets.push(second);
        world.submit(both);
        let admission = &world.cycle().admissions[0].admission;
        let flavors: Vec<&str> = admission.pod_set_assignments.iter().map(|it| it.flavors["cpu"].as_str()).collect();
        assert_eq!(flavors, expected);
    }
}

#[test]
fn an_admitted_workload_has_no_scan_progress() {
    let mut world = world();
    world.apply([flavor("other")]);
    world.change_cluster_queue(|queue| {
        queue.resource_groups[0] = resource_group(&["cpu"], &[("default", "10"), ("other", "10")]);
    });
    world.submit(workload("w", "1"));
    world.cycle();
    assert!(world.engine.state.workloads.get(world.id("w")).resume.is_none());
}

#[test]
fn a_workload_updated_outside_any_queue_starts_with_the_first_flavor() {
    for (changes, is_kept) in [(false, true), (true, false)] {
        let mut world = world();
        world.submit(workload("w", "1"));
        let id = world.id("w");
        world.engine.state.workloads.get_mut(id).resume = Some(Box::default());
        world.change("w", |_| ());
        world.delete(Kind::ClusterQueue, "cq");
        if changes {
            world.change("w", |_| ());
        }
        world.apply([Object::ClusterQueue(cluster_queue("cq", "10"))]);
        assert_eq!(world.engine.state.workloads.get(id).resume.is_some(), is_kept);
    }
}

/// Cohort `x` with ClusterQueues `a`, `b`, and `z`, whose quota is unlimited.
fn unlimited_cohort() -> World {
    let mut world = World::new(Config { fair_sharing: Some(FairSharing::default()), ..Config::default() });
    for (name, cpu) in [("a", "10"), ("b", "10"), ("z", "10P")] {
        let within_cluster_queue = PreemptionPolicy::LowerPriority;
        let preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
        let queue = ClusterQueue { cohort_name: "x".to_owned(), preemption, ..cluster_queue(name, cpu) };
        world.apply([Object::ClusterQueue(queue), Object::LocalQueue(local_queue(name, name))]);
    }
    world
}

#[test]
fn a_saturated_sum_stays_reduced_until_the_cycle_ends() {
    let mut world = unlimited_cohort();
    let of =
        |queue: &str, name: &str, cpu: &str| Workload { queue_name: queue.to_owned().into(), ..workload(name, cpu) };
    let admitted = |world: &mut World| -> Vec<String> {
        world.cycle().admissions.iter().map(|admission| admission.key.name().to_owned()).collect()
    };
    for (queue, name, cpu) in [("a", "low", "5"), ("z", "huge", "10P")] {
        world.submit(of(queue, name, cpu));
        assert_eq!(admitted(&mut world), [name]);
    }
    let usage = |world: &World| {
        let node =
            world.engine.state.find_queue("a").and_then(|a| world.engine.state.queues[a].node).expect("it exists");
        let (tree, _) = world.engine.state.ledger.forest.locate(node);
        let tree = world.engine.state.ledger.forest.tree(tree);
        (0..tree.n_rows()).map(|row| tree.usage(row, 0)).max().expect("it has rows")
    };
    assert!(usage(&world).is_unlimited());
    // Alone, `small` finds all quota in use.
    world.submit(of("b", "small", "5"));
    assert_eq!(admitted(&mut world), Vec::<String>::new());
    // While shares are computed as if `big` were in, its usage saturates the sums of all others, and takes them with it
    // when removed.
    world.submit(Workload { priority: Some(9), ..of("a", "big", "10P") });
    world.submit(of("b", "other", "4"));
    assert_eq!(admitted(&mut world), ["other"]);
    assert!(usage(&world).is_unlimited());
}

#[test]
fn shapes_of_short_lived_workloads_are_forgotten() {
    let mut world = world();
    world.submit(workload("first", "11"));
    world.cycle();
    world.delete(Kind::Workload, "first");
    world.submit(workload("stays", "12"));
    for n in 0..3000 {
        let name = format!("w{n}");
        world.submit(workload(&name, &format!("{}m", 20_000 + n)));
        world.delete(Kind::Workload, &name);
    }
    assert!(world.engine.state.workloads.n_kept() < 2000, "{}", world.engine.state.workloads.n_kept());
    // The marked verdict is still known: the first workload had this shape and did not fit.
    world.submit(workload("second", "11"));
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    let State { queues, pending: PendingWork { places, .. }, .. } = &world.engine.state;
    let pending = &queues[queue].pending;
    assert!(pending.is_inadmissible(places, world.id("second")) && pending.is_active(places, world.id("stays")));
}

#[test]
fn pod_sets_are_adjusted_to_the_current_limit_ranges() {
    let mut world = world();
    for cpu in ["2", "3"] {
        let mut item = LimitRangeItem { kind: "Container".to_owned(), ..LimitRangeItem::default() };
        item.default_request.insert("cpu".to_owned(), quantity(cpu));
        let meta = crate::testing::namespaced("limits");
        world.apply([Object::LimitRange(LimitRange { meta, limits: vec![item] })]);
        let mut silent = workload(cpu, "1");
        silent.pod_sets[0].template.spec.containers[0].resources.requests.clear();
        world.submit(silent);
        let usage = world.cycle().admissions.remove(0).admission.pod_set_assignments[0].resource_usage["cpu"].clone();
        assert_eq!(usage.text(), cpu);
    }
}

/// Kueue considers reclaimed pods only of admitted workloads (rules/05 §3.1).
#[test]
fn reclaimed_pods_of_an_admitted_workload_retry_parked_ones() {
    let mut world = world();
    world.apply([check("c")]);
    world.change_cluster_queue(|queue| queue.admission_checks = rules(&["c"]));
    let mut large = workload("large", "3");
    large.pod_sets[0].count = 3;
    world.submit(large);
    world.cycle();
    world.submit(workload("small", "4"));
    world.cycle();
    let give_back = |world: &mut World, count: i32| {
        let pods = ReclaimablePod { name: "main".to_owned(), count };
        world.change("large", |workload| workload.status.rare.reclaimable_pods = vec![pods]);
        world.cycle().admissions.len()
    };
    assert_eq!(give_back(&mut world, 1), 0);
    world.answer("large", "c", CheckState::Ready, "");
    world.reconcile();
    assert_eq!(give_back(&mut world, 2), 1);
}

#[test]
fn counts_are_reduced_only_with_the_partial_admission_gate() {
    for (is_on, count) in [(true, Some(10)), (false, None)] {
        let gates = Gates::default().with(Gate::PartialAdmission, is_on);
        let mut world = World::new(Config { gates, ..Config::default() });
        let mut large = workload("large", "1");
        (large.pod_sets[0].count, large.pod_sets[0].min_count) = (12, Some(1));
        world.submit(large);
        let decision = world.cycle();
        let counts: Vec<_> = decision.admissions.iter().map(|it| it.admission.pod_set_assignments[0].count).collect();
        assert_eq!(counts, count.map(Some).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_cluster_queue_on_a_cycle_of_cohorts_has_a_tree_of_its_own() {
    let mut world = world();
    let below =
        |name: &str, parent: &str| Cohort { meta: meta(name), parent_name: parent.to_owned(), ..Cohort::default() };
    world.change_cluster_queue(|queue| queue.cohort_name = "a".to_owned());
    let next = ClusterQueue { cohort_name: "a".to_owned(), ..cluster_queue("next", "1") };
    world.apply([Object::Cohort(below("a", "b")), Object::ClusterQueue(next)]);
    let rows = |world: &World| {
        let state = &world.engine.state;
        let node = state.queues[state.find_queue("cq").expect("it exists")].node.expect("it has an object");
        let (tree, _) = state.ledger.forest.locate(node);
        state.ledger.forest.tree(tree).n_rows()
    };
    assert_eq!(rows(&world), 4, "two ClusterQueues and two Cohorts");
    world.apply([Object::Cohort(below("b", "a"))]);
    assert_eq!(rows(&world), 1);
    world.apply([Object::Cohort(below("b", ""))]);
    assert_eq!(rows(&world), 4);
}

#[test]
fn zero_usage_in_a_flavor_without_quota_does_not_affect_other_charges() {
    let mut world = world();
    for (name, flavor) in [("first", "gone"), ("second", "other")] {
        let mut reserved = workload(name, "1");
        let idle = PodSet { name: "idle".to_owned(), ..reserved.pod_sets[0].clone() };
        reserved.pod_sets.push(idle);
        let used = |pod_set: &str, flavor: &str, cpu: &str| PodSetAssignment {
            name: pod_set.to_owned(),
            count: Some(1),
            flavors: [("cpu".to_owned(), flavor.to_owned())].into(),
            resource_usage: [("cpu".to_owned(), quantity(cpu))].into(),
            ..PodSetAssignment::default()
        };
        let pod_set_assignments = vec![used("main", flavor, "2"), used("idle", "unused", "0")];
        let admission = Admission { cluster_queue: "cq".into(), pod_set_assignments: pod_set_assignments.into() };
        reserved.status.admission = Some(admission.into());
        let status = ConditionStatus::True;
        reserved.status.conditions.set(condition(QUOTA_RESERVED, status, "QuotaReserved", "", world.now, 1));
        world.submit(reserved);
    }
    let state = &world.engine.state;
    let node = state.queues[state.find_queue("cq").expect("it exists")].node.expect("it has an object");
    let (tree, row) = state.ledger.forest.locate(node);
    let tree = state.ledger.forest.tree(tree);
    let used: i64 = (0..tree.columns().len()).map(|column| tree.usage(row, column).get()).sum();
    assert_eq!(used, 4_000);
}

#[test]
fn a_fork_and_its_original_are_independent() {
    let mut origin = world();
    for n in 0..600 {
        origin.submit(workload(&format!("w{n}"), &format!("{}m", 50 + n % 7)));
    }
    origin.cycle();
    let write_everywhere = |world: &mut World| {
        world.now = Time(world.now.0 + 1_000_000_000);
        world.cycle();
        let (running, now) = (world.id("w0"), world.now);
        assert!(world.engine.finish(running, "Succeeded", "", now));
        world.delete(Kind::Workload, "w300");
        world.submit(workload("new", "9"));
        world.submit(Workload { priority: Some(3), ..workload("w599", "1") });
        let in_cohort = ClusterQueue { cohort_name: "cohort".to_owned(), ..cluster_queue("other", "5") };
        world.apply([
            Object::Namespace(meta("other")),
            flavor("other"),
            Object::Cohort(Cohort { meta: meta("cohort"), ..Cohort::default() }),
            Object::ClusterQueue(in_cohort),
            Object::LocalQueue(local_queue("other", "other")),
        ]);
        world.change_cluster_queue(|queue| queue.stop_policy = StopPolicy::Hold);
        world.engine.take_written();
        world.engine.reconcile(world.now);
    };
    let shown = |world: &World| format!("{:?}", world.engine);
    let mut fork = World { engine: origin.engine.fork(), now: origin.now };
    let mut second = World { engine: fork.engine.fork(), now: origin.now };
    let as_it_was = (shown(&origin), shown(&second));
    write_everywhere(&mut fork);
    assert!((shown(&origin), shown(&second)) == as_it_was, "what the fork does");
    let as_it_is = shown(&fork);
    write_everywhere(&mut origin);
    assert!((shown(&fork), shown(&second)) == (as_it_is, as_it_was.1), "what the original does");
    drop(origin);
    write_everywhere(&mut second);
    let answers = |world: &mut World| format!("{:?} {:?}", world.cycle(), world.engine.reconcile(world.now));
    assert_eq!(answers(&mut fork), answers(&mut second), "both have done the same");
}
