use crate::base::gates::{Gate, Gates};
use crate::base::ids::LocalQueueId;
use crate::objects::config::{AdmissionFairSharing, Config};
use crate::objects::{Kind, Object, Preemption, PreemptionPolicy, StopPolicy, Time, Workload};
use crate::state::admission_fair_sharing::Account;
use crate::testing::{World, at, check, cluster_queue, local_queue, quantity, rules, workload};

const MINUTE_NS: i64 = 60_000_000_000;

/// Half-life and interval of five minutes: a penalty is half of a workload's requests.
fn config() -> Config {
    let fair =
        AdmissionFairSharing { usage_half_life_ns: 5 * MINUTE_NS, usage_sampling_interval_ns: 5 * MINUTE_NS, ..fair() };
    Config { admission_fair_sharing: Some(fair), ..Config::default() }
}

fn fair() -> AdmissionFairSharing {
    AdmissionFairSharing::default()
}

/// LocalQueues `a` and `b` of usage-based ClusterQueue `fair` with 100 CPUs.
fn world_with(config: Config) -> World {
    let mut world = World::new(config);
    let mut queue = cluster_queue("fair", "100");
    queue.usage_based_admission = true;
    world.apply([
        Object::ClusterQueue(queue),
        Object::LocalQueue(local_queue("a", "fair")),
        Object::LocalQueue(local_queue("b", "fair")),
    ]);
    world
}

fn world() -> World {
    world_with(config())
}

fn of(local_queue: &str, name: &str, cpu: &str) -> Workload {
    Workload { queue_name: local_queue.to_owned().into(), ..workload(name, cpu) }
}

fn id(world: &World, name: &str) -> LocalQueueId {
    world.engine.state.names.find_local_queue("ns", name).expect("a LocalQueue of this name")
}

fn account<'a>(world: &'a World, name: &str) -> Option<&'a Account> {
    world.engine.state.local_queues[id(world, name)].account.as_ref()
}

/// History and penalty in CPUs; empty if there is none.
fn cpus(world: &World, name: &str) -> [String; 2] {
    let Some(account) = account(world, name) else { return Default::default() };
    [&account.consumed, &account.penalty()].map(|list| list.get("cpu").map_or(String::new(), ToString::to_string))
}

fn admitted(world: &mut World) -> Vec<String> {
    world.cycle().admissions.iter().map(|admission| admission.key.name().to_owned()).collect()
}

#[test]
fn the_local_queue_admitted_last_waits_for_the_others() {
    let mut world = world();
    for (queue, name) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")] {
        world.submit(of(queue, name, "10"));
    }
    assert_eq!(admitted(&mut world), ["a1"]);
    assert_eq!((cpus(&world, "a"), cpus(&world, "b")), (["".into(), "5".into()], ["".into(), "".into()]));
    assert_eq!(admitted(&mut world), ["b1"]);
    assert_eq!(admitted(&mut world), ["a2"]);
}

#[test]
fn usage_outranks_priority_only_with_the_gate() {
    for (is_on, expected) in [(true, ["b1", "a1"]), (false, ["a1", "b1"])] {
        let mut config = config();
        config.gates = config.gates.with(Gate::AdmissionFairSharing, is_on);
        let mut world = world_with(config);
        let mut busy = local_queue("a", "fair");
        busy.consumed_resources = Some([("cpu".to_owned(), quantity("1"))].into());
        world.apply([Object::LocalQueue(busy)]);
        world.submit(Workload { priority: Some(100), ..of("a", "a1", "10") });
        world.submit(of("b", "b1", "10"));
        assert_eq!([admitted(&mut world), admitted(&mut world)].concat(), expected, "{is_on}");
    }
}

#[test]
fn a_heavy_queue_may_use_more_and_a_weightless_one_goes_last() {
    let mut world = world();
    let weighted = |name: &str, weight: &str, cpu: &str| {
        let mut queue = local_queue(name, "fair");
        queue.fair_weight = Some(quantity(weight));
        queue.consumed_resources = Some([("cpu".to_owned(), quantity(cpu))].into());
        Object::LocalQueue(queue)
    };
    world.apply([weighted("a", "2", "3"), weighted("b", "1", "2"), weighted("c", "0", "0")]);
    for (queue, name) in [("c", "c1"), ("b", "b1"), ("a", "a1")] {
        world.submit(of(queue, name, "1"));
    }
    assert_eq!(admitted(&mut world), ["a1"]);
    world.apply([weighted("b", "0.1", "2"), weighted("c", "1", "0")]);
    assert_eq!(admitted(&mut world), ["c1"]);
}

#[test]
fn a_penalty_becomes_history_on_admission_and_history_decays() {
    let mut world = world();
    world.submit(of("a", "a1", "100"));
    world.cycle();
    assert_eq!(cpus(&world, "a"), ["", "50"]);
    world.reconcile();
    assert_eq!(cpus(&world, "a"), ["50", ""]);
    world.reconcile();
    assert_eq!(cpus(&world, "a"), ["50", ""]);
    world.now = Time(world.now.0 + 5 * MINUTE_NS);
    let lq = id(&world, "a");
    let next = world.engine.state.sample_local_queue(lq, world.now);
    assert_eq!((cpus(&world, "a"), next), (["75".into(), "".into()], Some(Time(world.now.0 + 5 * MINUTE_NS))));
}

#[test]
fn a_penalty_lasts_until_its_workload_finishes_or_leaves_the_queue() {
    type Step = fn(&mut World);
    let steps: [(&str, Step, &str); 7] = [
        ("evicted", |w| assert!(w.engine.evict(w.id("a1"), "Preempted", "", w.now)), "50"),
        ("deactivated", |w| w.change("a1", |a1| a1.active = Some(false)), "50"),
        (
            "deactivated and released",
            |w| {
                w.change("a1", |a1| a1.active = Some(false));
                w.change("a1", |a1| {
                    a1.status.conditions = crate::objects::Conditions::default();
                    a1.status.admission = None;
                });
            },
            "",
        ),
        ("finished", |w| assert!(w.engine.finish(w.id("a1"), "Succeeded", "", w.now)), ""),
        ("moved", |w| w.change("a1", |a1| a1.queue_name = "b".into()), ""),
        ("deleted", |w| w.delete(Kind::Workload, "a1"), ""),
        ("not written", |w| assert!(w.engine.forget(w.id("a1"), false, w.now)), ""),
    ];
    for (what, step, penalty) in steps {
        // With its gate, a reservation settles the penalty at once.
        let gates = Gates::default().with(Gate::AdmissionFairSharingAnchorAtQuotaReservation, false);
        let mut world = world_with(Config { gates, ..config() });
        world.apply([check("ready")]);
        let mut queue = cluster_queue("fair", "100");
        queue.usage_based_admission = true;
        queue.admission_checks = rules(&["ready"]);
        world.apply([Object::ClusterQueue(queue)]);
        world.submit(of("a", "a1", "100"));
        world.cycle();
        assert_eq!(cpus(&world, "a"), ["", "50"], "{what}");
        step(&mut world);
        assert_eq!(cpus(&world, "a"), ["", penalty], "{what}");
    }
}

#[test]
fn a_finished_workload_stops_adding_to_its_queues_history() {
    let mut world = world();
    world.submit(of("a", "a1", "40"));
    world.submit(of("b", "b1", "20"));
    world.cycle();
    world.cycle();
    world.reconcile();
    assert_eq!((cpus(&world, "a"), cpus(&world, "b")), (["20".into(), "".into()], ["10".into(), "".into()]));
    assert!(world.engine.finish(world.id("a1"), "Succeeded", "", world.now));
    for name in ["a", "b"] {
        let later = Time(world.now.0 + 5 * MINUTE_NS);
        let id = id(&world, name);
        world.engine.state.sample_local_queue(id, later);
    }
    assert_eq!((cpus(&world, "a"), cpus(&world, "b")), (["10".into(), "".into()], ["15".into(), "".into()]));
}

#[test]
fn only_usage_based_queues_charge() {
    let mut world = world();
    world.submit(workload("w", "1"));
    world.cycle();
    assert_eq!(account(&world, "lq"), None);
}

#[test]
fn a_sample_is_taken_once_an_interval_unless_a_penalty_is_open() {
    let mut world = world();
    let a = id(&world, "a");
    let minutes = |n: i64| Time(at(10).0 + n * MINUTE_NS);
    for (now, next) in [(0, 5), (2, 5), (5, 10), (9, 10), (12, 17)] {
        assert_eq!(world.engine.state.sample_local_queue(a, minutes(now)), Some(minutes(next)), "{now}");
    }
    world.now = minutes(13);
    world.submit(of("a", "a1", "100"));
    world.cycle();
    assert_eq!(world.engine.state.sample_local_queue(a, minutes(13)), Some(minutes(18)));
    world.apply([Object::LocalQueue(crate::objects::LocalQueue {
        stop_policy: StopPolicy::Hold,
        ..local_queue("a", "fair")
    })]);
    assert_eq!(world.engine.state.sample_local_queue(a, minutes(30)), None);
    world.delete(Kind::LocalQueue, "a");
    assert_eq!((world.engine.state.sample_local_queue(a, minutes(30)), account(&world, "a")), (None, None));
}

#[test]
fn without_a_half_life_there_is_no_history() {
    let mut config = config();
    config.admission_fair_sharing = Some(AdmissionFairSharing { usage_sampling_interval_ns: MINUTE_NS, ..fair() });
    let mut world = world_with(config);
    let mut busy = local_queue("a", "fair");
    busy.consumed_resources = Some([("cpu".to_owned(), quantity("8"))].into());
    world.apply([Object::LocalQueue(busy)]);
    assert_eq!(cpus(&world, "a"), ["8", ""]);
    let a = id(&world, "a");
    world.engine.state.sample_local_queue(a, Time(world.now.0 + MINUTE_NS));
    assert_eq!(cpus(&world, "a"), ["", ""]);
}

#[test]
fn rereading_the_same_status_counts_once() {
    let mut world = world();
    world.submit(of("a", "a1", "100"));
    world.cycle();
    for _ in 0..2 {
        let mut known = local_queue("a", "fair");
        known.consumed_resources = Some([("cpu".to_owned(), quantity("7"))].into());
        world.apply([Object::LocalQueue(known)]);
        assert_eq!(cpus(&world, "a"), ["7", "50"]);
    }
}

#[test]
fn the_local_queue_with_the_most_usage_is_preempted_first() {
    let mut world = world();
    let mut queue = cluster_queue("fair", "2");
    queue.usage_based_admission = true;
    queue.preemption =
        Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    world.apply([Object::ClusterQueue(queue)]);
    world.submit(Workload { priority: Some(1), ..of("a", "a1", "1") });
    world.submit(of("b", "b1", "1"));
    world.cycle();
    world.cycle();
    world.reconcile();
    let victim = |world: &World| {
        let mut world = World { engine: world.engine.clone(), now: world.now };
        world.submit(Workload { priority: Some(9), ..of("b", "high", "1") });
        world.cycle().preemptions.iter().map(|p| p.key.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(victim(&world), ["b1"]);
    let mut light = local_queue("a", "fair");
    light.fair_weight = Some(quantity("0.5"));
    world.apply([Object::LocalQueue(light)]);
    assert_eq!(victim(&world), ["a1"]);
}
