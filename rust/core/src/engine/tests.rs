use super::*;
use crate::objects::{ClusterQueue, Meta};
use crate::testing::{World, cluster_queue, meta, workload};

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
