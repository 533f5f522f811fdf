use crate::objects::conditions::{self, condition};
use crate::objects::config::{Config, FairSharing};
use crate::objects::{ClusterQueue, ConditionStatus, Object, Preemption, PreemptionPolicy, StopPolicy, Workload};
use crate::testing::{World, at, cluster_queue, local_queue, resource_group, workload};

/// Cohort `x` with 6 CPUs, all of ClusterQueue `cq`: 3 are used by its workload `own`, 3 are lent to `borrower`, and
/// `new` of a higher priority needs 3.
fn world() -> World {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.cohort_name = "x".to_owned();
        queue.resource_groups = vec![resource_group(&["cpu"], &[("default", "6")])];
        let (reclaim_within_cohort, within_cluster_queue) = (PreemptionPolicy::Any, PreemptionPolicy::LowerPriority);
        queue.preemption = Some(Preemption { reclaim_within_cohort, within_cluster_queue, ..Preemption::default() });
    });
    let other = ClusterQueue { cohort_name: "x".to_owned(), ..cluster_queue("other", "0") };
    world.apply([Object::ClusterQueue(other), Object::LocalQueue(local_queue("other", "other"))]);
    world.submit(Workload { priority: Some(-1), ..workload("own", "3") });
    world.submit(Workload { queue_name: "other".into(), ..workload("borrower", "3") });
    world.cycle();
    world.submit(Workload { priority: Some(1), ..workload("new", "3") });
    world
}

/// The workloads preempted in the next cycle.
fn preempted(world: &mut World) -> Vec<String> {
    world.cycle().preemptions.iter().map(|preempted| preempted.key.name().to_owned()).collect()
}

#[test]
fn a_queue_below_nominal_reclaims_lent_quota_before_preempting_its_own() {
    assert_eq!(preempted(&mut world()), ["borrower"]);
}

#[test]
fn a_stopped_queue_gives_nothing_back() {
    let mut world = world();
    let stop_policy = StopPolicy::Hold;
    let other = ClusterQueue { cohort_name: "x".to_owned(), stop_policy, ..cluster_queue("other", "0") };
    world.apply([Object::ClusterQueue(other)]);
    assert_eq!(preempted(&mut world), ["own"]);
}

#[test]
fn evicted_workloads_are_the_first_candidates_in_any_queue() {
    let mut world = world();
    let (kind, now) = (conditions::EVICTED, world.now);
    world.change("own", |own| {
        own.status.conditions.set(condition(kind, ConditionStatus::True, "Preempted", "it goes", now, 0));
    });
    assert_eq!(preempted(&mut world), Vec::<String>::new(), "it is only waited for");
    assert!(world.condition("new", "QuotaReserved").ends_with("Pending the preemption of 1 workload(s)"));
}

#[test]
fn between_equal_shares_the_queue_with_the_first_candidate_gives_way() {
    let mut world = World::new(Config { fair_sharing: Some(FairSharing::default()), ..Config::default() });
    world.change_cluster_queue(|queue| {
        queue.cohort_name = "x".to_owned();
        let reclaim_within_cohort = PreemptionPolicy::Any;
        queue.preemption = Some(Preemption { reclaim_within_cohort, ..Preemption::default() });
    });
    for (name, priority) in [("a", 5), ("b", -5)] {
        let queue = ClusterQueue { cohort_name: "x".to_owned(), ..cluster_queue(name, "0") };
        world.apply([Object::ClusterQueue(queue), Object::LocalQueue(local_queue(name, name))]);
        world.submit(Workload { queue_name: name.into(), priority: Some(priority), ..workload(name, "5") });
    }
    assert_eq!(world.cycle().admissions.len(), 2);
    world.submit(workload("new", "5"));
    assert_eq!(preempted(&mut world), ["b"]);
}

/// Workloads of these priorities and amounts run in `cq`, which has 10 CPUs.
fn running(config: Config, amounts: &[(&str, i32, &str)]) -> World {
    let mut world = World::new(config);
    let lower = PreemptionPolicy::LowerPriority;
    let preemption = Preemption { within_cluster_queue: lower, ..Preemption::default() };
    world.change_cluster_queue(|queue| queue.preemption = Some(preemption));
    for (name, priority, cpu) in amounts {
        world.submit(Workload { priority: Some(*priority), ..workload(name, cpu) });
        assert_eq!(world.cycle().admissions.len(), 1);
    }
    world
}

fn victims(world: &mut World, preemptor: Workload) -> Vec<String> {
    let answer = world.engine.what_if(Workload { priority: Some(100), ..preemptor }, at(20)).expect("a new name");
    answer.preemptions.iter().map(|preempted| preempted.key.name().to_owned()).collect()
}

#[test]
fn an_unneeded_victim_is_dropped_even_if_a_larger_one_of_its_queue_is_too() {
    let mut world = running(Config::default(), &[("a", 1, "1"), ("b", 2, "6"), ("c", 3, "3")]);
    assert_eq!(victims(&mut world, workload("x", "8")), ["c", "b"], "the last comes to the place of the first");
}

#[test]
fn among_equals_only_the_needed_ones_are_preempted() {
    let mut world =
        running(Config::default(), &[("a", 1, "2"), ("b", 2, "2"), ("c", 3, "2"), ("d", 4, "2"), ("e", 5, "2")]);
    assert_eq!(victims(&mut world, workload("x", "5")), ["a", "b", "c"]);
}

#[test]
fn a_request_beyond_all_quota_preempts_nothing() {
    let mut world = running(Config::default(), &[("a", 1, "1"), ("b", 2, "9")]);
    assert_eq!(victims(&mut world, workload("x", "10")), ["a", "b"]);
    assert_eq!(victims(&mut world, workload("x", "11")), Vec::<String>::new());
}

/// ClusterQueues in a cohort, with 3 CPUs each and this many workloads of one CPU; `cq` has 10 and runs nothing.
fn borrowers(config: Config, queues: &[(&str, usize)]) -> World {
    let mut world = World::new(config);
    let any = PreemptionPolicy::Any;
    let preemption = Preemption { reclaim_within_cohort: any, ..Preemption::default() };
    let in_cohort = |queue: ClusterQueue| ClusterQueue { cohort_name: "co".to_owned(), ..queue };
    world.change_cluster_queue(|queue| {
        *queue = in_cohort(queue.clone());
        queue.preemption = Some(preemption);
    });
    for (name, n_workloads) in queues {
        world.apply([
            Object::ClusterQueue(in_cohort(cluster_queue(name, "3"))),
            Object::LocalQueue(local_queue(name, name)),
        ]);
        for number in 0..*n_workloads {
            let queue_name = (*name).to_owned().into();
            world.submit(Workload { queue_name, ..workload(&format!("{name}{number}"), "1") });
            assert_eq!(world.cycle().admissions.len(), 1);
        }
    }
    world
}

#[test]
fn a_queue_gives_up_no_more_than_it_borrows() {
    let mut world = borrowers(Config::default(), &[("p", 5), ("q", 8), ("r", 3)]);
    assert_eq!(victims(&mut world, workload("x", "7")), ["p0", "p1", "q0", "q1"]);
}

#[test]
fn with_fair_sharing_the_greatest_share_is_preempted_first() {
    let fair = Config { fair_sharing: Some(FairSharing::default()), ..Config::default() };
    let mut world = borrowers(fair, &[("p", 5), ("q", 8), ("r", 3)]);
    assert_eq!(victims(&mut world, workload("x", "7")), ["q0", "q1", "q2", "p0"]);
}

#[test]
fn the_second_strategy_takes_one_of_a_queue_alone() {
    let mut world = World::new(Config { fair_sharing: Some(FairSharing::default()), ..Config::default() });
    let in_cohort = |queue: ClusterQueue| ClusterQueue { cohort_name: "x".to_owned(), ..queue };
    world.change_cluster_queue(|queue| {
        *queue = in_cohort(cluster_queue("cq", "0"));
        let (reclaim_within_cohort, within_cluster_queue) = (PreemptionPolicy::Any, PreemptionPolicy::LowerPriority);
        queue.preemption = Some(Preemption { reclaim_within_cohort, within_cluster_queue, ..Preemption::default() });
    });
    // All is lent by a ClusterQueue that runs nothing: 10 CPUs to one that gives 2 at a time, 3 to the preemptor's own.
    for queue in [cluster_queue("lender", "13"), cluster_queue("other", "0")] {
        world.apply([Object::ClusterQueue(in_cohort(queue)), Object::LocalQueue(local_queue("other", "other"))]);
    }
    for number in 0..5 {
        world.submit(Workload { queue_name: "other".into(), ..workload(&format!("o{number}"), "2") });
        assert_eq!(world.cycle().admissions.len(), 1);
    }
    world.submit(workload("own", "3"));
    assert_eq!(world.cycle().admissions.len(), 1);
    // With 5 more it has 8, as the other has without one of its workloads: the first strategy takes one of each.
    assert_eq!(victims(&mut world, workload("x", "5")), ["o0", "own"]);
    // With 6 more it has 9, so that its own workload goes first. Then it has 6, less than the other before and after one of
    // that goes, but the second strategy asks it for no more than one, which is not enough.
    assert_eq!(victims(&mut world, workload("x", "6")), Vec::<String>::new());
}

#[test]
fn a_search_continues_past_its_check_for_hopelessness() {
    let n_workloads = 600;
    for fair_sharing in [None, Some(FairSharing::default())] {
        let mut world = running(Config { fair_sharing, ..Config::default() }, &[]);
        world.change_cluster_queue(|queue| {
            queue.resource_groups = vec![resource_group(&["cpu"], &[("default", "610")])];
        });
        world.submit(Workload { priority: Some(200), ..workload("stays", "10") });
        for number in 0..n_workloads {
            world.submit(Workload { priority: Some(number % 3), ..workload(&format!("w{number}"), "1") });
        }
        while !world.cycle().admissions.is_empty() {}
        assert_eq!(victims(&mut world, workload("x", "600")).len(), 600);
        assert_eq!(victims(&mut world, workload("x", "600500m")), Vec::<String>::new());
    }
}
