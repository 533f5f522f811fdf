use super::*;
use crate::objects::{ClusterQueue, Meta, Preemption, PreemptionPolicy, Workload};
use crate::testing::{World, cluster_queue, local_queue, meta, workload};

fn world() -> World {
    World::new(Config::default())
}

#[test]
fn a_reservation_is_not_forgotten_in_the_name_of_a_deleted_workload() {
    let mut world = world();
    world.submit(workload("first", "1"));
    world.cycle();
    world.delete(Kind::Workload, "first");
    world.submit(workload("second", "1"));
    let (id, now) = (world.id("second"), world.now);
    assert!(!world.engine.forget(id, false, now));
    assert_eq!(world.engine.state.workloads.get(id).key.1, "second");
}

#[test]
fn who_looks_for_a_head_and_finds_none_has_none_in_flight() {
    let mut world = world();
    world.submit(workload("w", "1"));
    let id = world.id("w");
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    let pending = &mut world.engine.state.queues[queue].pending;
    let heads = [pending.pop(|_| 0.0), pending.pop(|_| 0.0)];
    assert_eq!((heads, pending.is_inflight(id)), ([Some(id), None], false));
}

#[test]
fn a_newer_version_from_outside_stands_whatever_becomes_of_the_reservation() {
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
fn a_cluster_queue_that_is_being_deleted_when_first_seen_admits_nothing() {
    let mut world = world();
    world.delete(Kind::ClusterQueue, "cq");
    world.submit(workload("w", "1"));
    let deleting = ClusterQueue { meta: Meta { deleting: true, ..meta("cq") }, ..cluster_queue("cq", "10") };
    world.apply([Object::ClusterQueue(deleting)]);
    assert_eq!(world.cycle().admissions.len(), 0);
}

#[test]
fn who_finds_its_targets_taken_looks_for_others_in_its_own_cohort_alone() {
    let mut world = world();
    for cohort in ["x", "y"] {
        for (name, cpu) in [("borrower", "0"), ("p1", "4"), ("p2", "4")] {
            let name = format!("{cohort}-{name}");
            let preemption = Some(Preemption { reclaim_within_cohort: PreemptionPolicy::Any, ..Preemption::default() });
            let queue = ClusterQueue { cohort_name: cohort.to_owned(), preemption, ..cluster_queue(&name, cpu) };
            world.apply([Object::ClusterQueue(queue), Object::LocalQueue(local_queue(&name, &name))]);
        }
    }
    let submit = |world: &mut World, name: &str, queue: &str| {
        world.submit(Workload { queue_name: queue.to_owned(), ..workload(name, "4") });
    };
    for name in ["v1", "v2"] {
        for cohort in ["x", "y"] {
            submit(&mut world, &format!("{cohort}-{name}"), &format!("{cohort}-borrower"));
        }
        assert_eq!(world.cycle().admissions.len(), 2);
    }
    for name in ["x-p1", "x-p2", "y-p1", "y-p2"] {
        submit(&mut world, name, name);
    }
    let decision = world.cycle();
    let mut victims: Vec<&str> = decision.preemptions.iter().map(|p| p.key.1.as_str()).collect();
    victims.sort_unstable();
    assert_eq!(victims, ["x-v1", "x-v2", "y-v1", "y-v2"]);
}
