use crate::conditions::{self, condition};
use crate::config::{Config, FairSharing};
use crate::objects::{ClusterQueue, ConditionStatus, Object, Preemption, PreemptionPolicy, Workload};
use crate::testing::{World, cluster_queue, local_queue, resource_group, workload};

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

/// Who is preempted in the next cycle.
fn preempted(world: &mut World) -> Vec<String> {
    world.cycle().preemptions.iter().map(|preempted| preempted.key.1.clone()).collect()
}

#[test]
fn below_its_nominal_quota_a_queue_takes_back_what_it_lent_before_it_preempts_its_own() {
    assert_eq!(preempted(&mut world()), ["borrower"]);
}

#[test]
fn those_on_their_way_out_are_the_first_candidates_wherever_they_are() {
    let mut world = world();
    let (kind, now) = (conditions::EVICTED, world.now);
    world.change("own", |own| {
        own.status.conditions.push(condition(kind, ConditionStatus::True, "Preempted", "it goes", now, 0));
    });
    assert_eq!(preempted(&mut world), Vec::<String>::new(), "it is only waited for");
    assert!(world.condition("new", "QuotaReserved").ends_with("Pending the preemption of 1 workload(s)"));
}

#[test]
fn of_two_queues_with_the_same_share_the_one_with_the_lesser_workload_gives() {
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
