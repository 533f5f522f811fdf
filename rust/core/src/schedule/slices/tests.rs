use crate::base::gates::Gates;
use crate::base::releases::Release;
use crate::objects::config::Config;
use crate::objects::slices::REPLACEMENT_FOR;
use crate::objects::{ClusterQueue, Object, Preemption, PreemptionPolicy, Workload};
use crate::testing::{World, at, cluster_queue, flavor, local_queue, quantity, resource_group, workload};

/// Slice `name` with this many pods of 1 CPU, replacing `ns/old` if that is not empty.
fn slice(name: &str, pods: i32, old: &str) -> Workload {
    let mut workload = workload(name, "1");
    workload.pod_sets[0].count = pods;
    if !old.is_empty() {
        workload.meta.details.annotations.insert(REPLACEMENT_FOR.to_owned(), format!("ns/{old}"));
    }
    workload
}

fn running(config: Config, pods: i32) -> World {
    let mut world = World::new(config);
    world.submit(slice("old", pods, ""));
    assert_eq!(world.cycle().admissions.len(), 1);
    world.now = at(20);
    world
}

fn usage(world: &World) -> i64 {
    let state = &world.engine.state;
    let (tree, row) = state.ledger.forest.locate(state.queues[state.find_queue("cq").unwrap()].node.unwrap());
    state.ledger.forest.tree(tree).usage(row, 0).get()
}

#[test]
fn a_larger_slice_replaces_the_old_one() {
    let mut world = running(Config::default(), 6);
    world.change("old", |w| w.status.rare.cluster_name = Some("worker".to_owned()));
    world.submit(slice("new", 10, "old"));
    let decision = world.cycle();
    assert_eq!(decision.admissions[0].key.name(), "new");
    assert_eq!((decision.replaced[0].key.name(), decision.replaced[0].successor.name()), ("old", "new"));
    assert_eq!(
        world.condition("old", "Finished"),
        "True WorkloadSliceReplaced: Replaced to accommodate a workload (UID: uid-new, JobUID: ) due to workload slice \
         aggregation"
    );
    assert!(decision.preemptions.is_empty());
    assert_eq!(world.get("new").status.rare.cluster_name.as_deref(), Some("worker"));
    assert_eq!(usage(&world), 10_000);
}

#[test]
fn only_what_a_slice_adds_to_the_old_one_is_charged_per_pod_set() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.cohort_name = "all".to_owned();
        queue.resource_groups[0] = resource_group(&["cpu", "memory"], &[("default", "3")]);
    });
    let next = ClusterQueue { cohort_name: "all".to_owned(), ..cluster_queue("next", "1") };
    world.apply([Object::ClusterQueue(next), Object::LocalQueue(local_queue("next", "next"))]);
    // One pod set asks for CPUs, the other for memory.
    let two = |name: &str, old: &str| {
        let mut workload = slice(name, if old.is_empty() { 1 } else { 3 }, old);
        let mut other = workload.pod_sets[0].clone();
        other.name = "other".to_owned();
        let requests = &mut other.template.spec.containers[0].resources.requests;
        *requests = [("memory".to_owned(), quantity("1"))].into();
        workload.pod_sets.push(other);
        workload
    };
    world.submit(two("old", ""));
    assert_eq!(world.cycle().admissions.len(), 1);
    world.submit(two("new", "old"));
    // The next one in the cycle can use what it has not taken.
    world.submit(Workload { queue_name: "next".into(), priority: Some(-1), ..workload("after", "1") });
    let decision = world.cycle();
    let admitted: Vec<&str> = decision.admissions.iter().map(|admission| admission.key.name()).collect();
    assert_eq!((admitted, decision.replaced.len(), usage(&world)), (vec!["new", "after"], 1, 3_000));
}

#[test]
fn the_old_slice_runs_on_while_the_new_one_does_not_fit() {
    let mut world = running(Config::default(), 6);
    world.submit(slice("new", 11, "old"));
    let decision = world.cycle();
    assert!(decision.admissions.is_empty() && decision.replaced.is_empty());
    assert_eq!((world.condition("old", "Finished").as_str(), usage(&world)), ("", 6_000));
}

#[test]
fn other_workloads_are_preempted_for_the_difference_but_not_the_old_slice() {
    let mut world = running(Config::default(), 4);
    let preemption = Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() };
    world.change_cluster_queue(|cq| cq.preemption = Some(preemption));
    let mut low = workload("low", "6");
    low.priority = Some(-1);
    world.submit(low);
    world.cycle();
    world.submit(slice("new", 5, "old"));
    let decision = world.cycle();
    let victims: Vec<&str> = decision.preemptions.iter().map(|p| p.key.name()).collect();
    assert_eq!(victims, ["low"]);
    assert!(decision.replaced.is_empty());
    assert!(
        decision.pending.is_empty() || decision.pending[0].message.text().ends_with("the preemption of 1 workload(s)")
    );
}

#[test]
fn a_slice_gets_the_flavor_of_the_old_one() {
    let mut world = running(Config::default(), 6);
    world.apply([flavor("spare")]);
    world.change_cluster_queue(|cq| {
        let mut spare = cluster_queue("other", "50").resource_groups[0].flavors[0].clone();
        spare.name = "spare".to_owned();
        cq.resource_groups[0].flavors.push(spare);
    });
    world.submit(slice("new", 11, "old"));
    assert!(world.cycle().admissions.is_empty());
    world.submit(slice("unrelated", 12, ""));
    assert_eq!(world.cycle().admissions.len(), 1);
}

#[test]
fn without_the_gate_or_in_another_queue_it_is_a_workload_like_any_other() {
    let off = [("ElasticJobsViaWorkloadSlices", false)];
    let gates = Gates::set_from_names(Release::default(), off).expect("a gate");
    let mut world = running(Config { gates, ..Config::default() }, 6);
    world.submit(slice("new", 10, "old"));
    assert!(world.cycle().admissions.is_empty());

    let mut world = running(Config::default(), 6);
    world.apply([
        Object::ClusterQueue(cluster_queue("elsewhere", "10")),
        Object::LocalQueue(crate::testing::local_queue("lq2", "elsewhere")),
    ]);
    let mut new = slice("new", 10, "old");
    new.queue_name = "lq2".into();
    world.submit(new);
    let decision = world.cycle();
    assert_eq!((decision.admissions.len(), decision.replaced.len()), (1, 0));
}

#[test]
fn quota_released_by_a_slice_retries_waiting_workloads() {
    let mut world = running(Config::default(), 8);
    world.submit(workload("next", "5"));
    world.cycle();
    assert_eq!(world.cycle().cycle, 0);
    let mut smaller = world.engine.state.workload_object(world.id("old"));
    smaller.pod_sets[0].count = 4;
    world.submit(smaller);
    assert_eq!(world.cycle().admissions.len(), 1);
}

#[test]
fn a_reservation_that_was_not_written_leaves_the_old_slice_running() {
    let mut world = running(Config::default(), 6);
    world.submit(slice("new", 10, "old"));
    world.cycle();
    let (id, now) = (world.id("new"), world.now);
    assert!(world.engine.forget(id, false, now));
    assert_eq!((world.condition("old", "Finished").as_str(), usage(&world)), ("", 6_000));
    assert_eq!(world.cycle().replaced.len(), 1);
    assert_eq!(usage(&world), 10_000);
}

#[test]
fn a_larger_slice_preempts_only_for_what_it_takes_beyond_the_old_one() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        let within_cluster_queue = PreemptionPolicy::LowerPriority;
        queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
    });
    world.submit(slice("old", 1, ""));
    world.submit(Workload { priority: Some(-1), ..workload("low", "2") });
    world.submit(Workload { priority: Some(1), ..workload("high", "7") });
    for _ in 0..3 {
        assert_eq!(world.cycle().admissions.len(), 1);
    }
    world.submit(slice("new", 3, "old"));
    let decision = world.cycle();
    let preempted: Vec<&str> = decision.preemptions.iter().map(|it| it.key.name()).collect();
    assert_eq!(preempted, ["low"], "two CPUs more, not three");
}
