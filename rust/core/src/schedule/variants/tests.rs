use super::*;
use crate::base::gates::Gates;
use crate::base::releases::Release;
use crate::objects::config::Config;
use crate::objects::variants::PARENT;
use crate::objects::{Object, OwnerReference, ResourceGroup};
use crate::testing::{World, at, cluster_queue, flavor, local_queue, meta, workload};

/// ClusterQueue `cq` with 10 CPUs of each of three flavors, the first preferred.
fn world(last_acceptable: Option<&str>) -> World {
    let gates = Gates::set_from_names(Release::default(), [("ConcurrentAdmission", true)]).expect("a gate");
    let mut world = World::new(Config { gates, ..Config::default() });
    world.apply([flavor("best"), flavor("good"), flavor("cheap")]);
    let quota = cluster_queue("any", "10").resource_groups[0].flavors[0].clone();
    world.change_cluster_queue(|cq| {
        let flavors = ["best", "good", "cheap"].map(|name| {
            let mut flavor = quota.clone();
            name.clone_into(&mut flavor.name);
            flavor
        });
        cq.resource_groups =
            vec![ResourceGroup { covered_resources: vec!["cpu".to_owned()], flavors: flavors.to_vec() }];
        "{}".clone_into(&mut cq.concurrent_admission_policy);
        cq.last_acceptable_flavor = last_acceptable.map(str::to_owned);
    });
    world
}

fn variant(flavor: &str) -> Workload {
    let mut variant = workload(flavor, "4");
    variant.meta.details.annotations.insert(ALLOWED_FLAVORS.to_owned(), flavor.to_owned());
    variant.meta.details.owners = vec![OwnerReference {
        api_version: "kueue.x-k8s.io/v1beta2".to_owned(),
        kind: "Workload".to_owned(),
        name: "parent".to_owned(),
        uid: "uid-parent".to_owned(),
        controller: true,
    }];
    variant
}

fn admitted(decision: &Decision) -> Vec<&str> {
    decision.admissions.iter().map(|a| a.key.name()).collect()
}

#[test]
fn a_variant_stands_back_while_a_better_one_is_admitted() {
    let mut world = world(None);
    world.submit(variant("best"));
    assert_eq!(admitted(&world.cycle()), ["best"]);
    world.submit(variant("cheap"));
    assert!(admitted(&world.cycle()).is_empty());
    assert_eq!(
        world.condition("cheap", "QuotaReserved"),
        "False PendingEvaluation: A more favorable variant is already admitted"
    );
}

#[test]
fn a_parent_is_not_queued_before_it_is_labelled() {
    let mut world = world(None);
    world.submit(workload("unlabelled", "4"));
    assert!(admitted(&world.cycle()).is_empty());
    // Nor if its LocalQueue is created later.
    assert!(world.engine.state.delete_local_queue("ns", "lq"));
    world.apply([Object::LocalQueue(local_queue("lq", "cq"))]);
    assert!(admitted(&world.cycle()).is_empty());
}

#[test]
fn a_variant_gets_only_its_allowed_flavors() {
    let mut world = world(None);
    world.submit(variant("cheap"));
    let decision = world.cycle();
    let flavors = &decision.admissions[0].admission.pod_set_assignments[0].flavors;
    assert_eq!(flavors.values().collect::<Vec<_>>(), ["cheap"], "the first that has room is `best`");
}

#[test]
fn a_better_variant_evicts_the_one_that_runs_and_takes_its_place_when_it_has_stopped() {
    let mut world = world(Some("good"));
    world.submit(variant("cheap"));
    world.cycle();
    world.submit(variant("good"));
    let decision = world.cycle();
    assert!(admitted(&decision).is_empty());
    assert_eq!((decision.preemptions[0].key.name(), decision.preemptions[0].reason), ("cheap", "FlavorMigration"));
    assert_eq!(
        world.condition("cheap", "Evicted"),
        "True FlavorMigration: Evicted to accommodate a workload (UID: uid-good) due to migration to more favorable \
         resource flavor"
    );
    assert_eq!(world.condition("cheap", "Preempted"), "");
    let (id, now) = (world.id("cheap"), at(30));
    world.engine.release(id, now);
    assert_eq!(admitted(&world.cycle()), ["good"]);
}

#[test]
fn a_variant_does_not_move_beyond_the_last_acceptable_flavor() {
    let mut world = world(Some("best"));
    world.submit(variant("cheap"));
    world.cycle();
    world.submit(variant("good"));
    assert!(world.cycle().preemptions.is_empty());
    assert_eq!(
        world.condition("good", "QuotaReserved"),
        "False PendingEvaluation: Target flavor is below LastAcceptableFlavorName"
    );
}

#[test]
fn a_parent_is_never_queued_and_holds_no_quota_of_its_own() {
    let mut world = world(None);
    let mut parent = workload("parent", "4");
    parent.meta.details.labels.insert(PARENT.to_owned(), "true".to_owned());
    world.submit(parent);
    assert_eq!(world.cycle().cycle, 0);
    world.submit(variant("best"));
    world.cycle();
    let status = world.get("best").status.clone();
    world.change("parent", |w| w.status = status);
    assert_eq!(world.engine.state.workloads.get(world.id("parent")).cached_in(), None);
}

#[test]
fn without_the_gate_variants_are_independent() {
    let mut world = World::new(Config::default());
    world.apply([Object::Namespace(meta("ns"))]);
    for name in ["one", "other"] {
        world.submit(Workload { meta: workload(name, "4").meta, ..variant("default") });
        assert_eq!(admitted(&world.cycle()), [name]);
    }
}
