use super::*;
use crate::base::key::Key;
use crate::objects::config::{AdmissionFairSharing, Config, RequeuingTimestamp, WaitForPodsReady};
use crate::objects::{ConditionStatus, Node, NodeReady, Object, Preemption, PreemptionPolicy, Workload};
use crate::simulate::{Change, Happening, JobPlan, Options, PodsPlan, Run, Step, Turn, tests};
use crate::testing::{SECOND, World, at, hosts, workload};

const OPTIONS: Options =
    Options { eviction_ns: 3 * SECOND, keeps_cycles: false, keeps_finished: false, ..tests::OPTIONS };

/// Jobs of two priorities, more than fit, each with its own time, checkpoints and pods; some are deleted.
fn happenings() -> Vec<Happening> {
    let create = |n: i64| {
        let priority = Some(if n % 3 == 0 { 9 } else { 0 });
        let workload = Workload { priority, ..workload(&format!("w{n}"), &(1 + n % 4).to_string()) };
        let object = Box::new(Object::Workload(Box::new(workload)));
        let fails_ns = (n % 5 == 0).then_some(4 * SECOND);
        let pods = PodsPlan { ready_ns: vec![Some(n % 3 * SECOND)], fails_ns, recovers_ns: Some(SECOND) };
        let (run_ns, saves_ns) = (Some((5 + n % 11) * SECOND), (n % 2 == 0).then_some(2 * SECOND));
        let job = JobPlan { run_ns, saves_ns, pods: Some(Box::new(pods)), ..JobPlan::default() };
        Happening { at: at(10 + n), change: Change::Create { object, job } }
    };
    let delete = |n: i64| Happening { at: at(13 + n), change: Change::Delete(Key::new("ns", &format!("w{n}"), "")) };
    (0..40).map(create).chain((0..40).step_by(7).map(delete)).collect()
}

/// Settings, and whether pods are placed on nodes.
fn configs() -> [(Config, bool); 4] {
    let waits = WaitForPodsReady {
        timeout_ns: 3 * SECOND,
        recovery_timeout_ns: Some(2 * SECOND),
        unscheduled_timeout_ns: None,
        block_admission: true,
        requeuing_timestamp: RequeuingTimestamp::default(),
        backoff_limit_count: None,
        backoff_base_seconds: 4,
        backoff_max_seconds: 60,
    };
    let sampling = AdmissionFairSharing { usage_sampling_interval_ns: 5 * SECOND, ..AdmissionFairSharing::default() };
    [
        (Config::default(), false),
        (Config { wait_for_pods_ready: Some(waits), ..Config::default() }, false),
        (Config { admission_fair_sharing: Some(sampling), ..Config::default() }, false),
        (Config::default(), true),
    ]
}

/// A run that is about to begin.
fn begun((config, has_nodes): &(Config, bool), options: Options) -> (World, Simulation) {
    let mut world = if *has_nodes { hosts::world_with(config.clone()) } else { World::new(config.clone()) };
    world.change_cluster_queue(|queue| {
        let within_cluster_queue = PreemptionPolicy::LowerPriority;
        queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
    });
    world.submit(workload("there", "2"));
    let mut simulation = Simulation::new(options, at(10));
    simulation.happened(&mut world.engine);
    assert_eq!(simulation.follow(&mut world.engine), None);
    simulation.schedule(happenings());
    if *has_nodes {
        simulation.schedule(node_failures());
    }
    (world, simulation)
}

/// Host `a` fails and comes back repeatedly.
fn node_failures() -> Vec<Happening> {
    let change = |n: i64| {
        let status = if n % 2 == 0 { ConditionStatus::False } else { ConditionStatus::True };
        let ready = Some(NodeReady { status, since: at(14 + 5 * n) });
        let node = Node { ready, ..hosts::node("a", "4") };
        Happening { at: at(14 + 5 * n), change: Change::Update(Box::new(Object::Node(node))) }
    };
    (0..10).map(change).collect()
}

/// Everything observable of a run at its end.
fn all(world: &mut World, simulation: &Simulation) -> (String, Vec<u8>) {
    let Run { ending, end, n_cycles, log } = simulation.record(&world.engine);
    (format!("{ending:?} {end:?} {n_cycles} {log:?}"), world.engine.save(b""))
}

#[test]
fn a_run_resumed_from_any_checkpoint_ends_the_same() {
    for config in configs() {
        let (mut world, mut simulation) = begun(&config, OPTIONS);
        assert_eq!(
            simulation.advance(&mut world.engine, None, |_| false),
            Turn::Done(simulation.record(&world.engine).ending)
        );
        let expected = all(&mut world, &simulation);
        let n_preempted = simulation.log().steps.iter().filter(|it| it.1 == Step::Stopped).count();
        assert!(n_preempted > 3, "the run is of no use");
        let log = simulation.log();
        assert!(!log.preemptions.times.is_empty(), "{config:?}");
        assert_eq!(
            (log.placements.rows.times.len() > 40, log.nodes.times.len()),
            (config.1, if config.1 { 10 } else { 0 })
        );

        let (mut world, mut simulation) = begun(&config, OPTIONS);
        let (mut log, mut n_checkpoints) = (Vec::new(), 0);
        while !matches!(simulation.step(&mut world.engine), Turn::Done(_)) {
            let Some(saved) = simulation.checkpoint(&mut world.engine, b"note") else { continue };
            log.extend(simulation.log_part());
            simulation.kept();
            let (other, mut next) = begun(&config, OPTIONS);
            world = other;
            assert_eq!(next.resume(&mut world.engine, &saved, &log), Ok(()));
            assert_eq!(next.checkpoint(&mut world.engine, b"note").as_ref(), Some(&saved), "what is read is written");
            let numbers = |simulation: &mut Simulation| simulation.happened.len();
            assert_eq!(numbers(&mut next), next.n_scheduled as usize - next.happenings.len());
            (simulation, n_checkpoints) = (next, n_checkpoints + 1);
        }
        assert!(n_checkpoints > 40, "{n_checkpoints}");
        assert_eq!(all(&mut world, &simulation), expected);
    }
}

#[test]
fn checkpoints_do_not_grow_with_finished_jobs() {
    let mut world = World::new(Config::default());
    let mut simulation = Simulation::new(OPTIONS, at(10));
    let job = |n: i64| {
        let object = Box::new(Object::Workload(Box::new(workload(&format!("w{n:05}"), "4"))));
        let job = JobPlan { run_ns: Some(SECOND), ..JobPlan::default() };
        Happening { at: at(10 + 2 * n), change: Change::Create { object, job } }
    };
    simulation.schedule((0..1000).map(job).collect());
    let mut sizes = Vec::new();
    for until in [500, 1500] {
        simulation.advance(&mut world.engine, Some(at(until)), |_| false);
        sizes.push(simulation.checkpoint(&mut world.engine, b"").expect("between two cycles").len());
    }
    assert!(sizes[1] < sizes[0] + 100, "{sizes:?}");
}

#[test]
fn a_run_with_cycles_messages_or_open_questions_has_no_checkpoint() {
    for options in [Options { keeps_cycles: true, ..OPTIONS }, Options { keeps_messages: true, ..OPTIONS }] {
        let (mut world, simulation) = begun(&(Config::default(), false), options);
        assert_eq!(simulation.checkpoint(&mut world.engine, b""), None);
    }
    let (mut world, mut simulation) = begun(&(Config::default(), false), OPTIONS);
    simulation.ask(vec!["somebody".to_owned()]);
    assert_eq!(simulation.checkpoint(&mut world.engine, b""), None);
}

#[test]
fn a_refused_checkpoint_changes_nothing() {
    let config = (Config::default(), false);
    let (mut world, mut simulation) = begun(&config, OPTIONS);
    simulation.advance(&mut world.engine, Some(at(30)), |_| false);
    let saved = simulation.checkpoint(&mut world.engine, b"note").expect("between two cycles");
    let log = simulation.log_part();
    assert_eq!(Simulation::note_of(&saved).as_deref(), Ok(&b"note"[..]));

    let (mut world, mut simulation) = begun(&config, OPTIONS);
    let before = all(&mut world, &simulation);
    let mut refused = |saved: &[u8], log: &[u8]| {
        let refused = simulation.resume(&mut world.engine, saved, log).expect_err("no run").to_string();
        assert_eq!(all(&mut world, &simulation), before);
        refused
    };
    assert_eq!(
        refused(&world_bytes(), &log),
        "this is not a checkpoint of a run: name the file that was given as the checkpoint of one"
    );
    assert!(refused(&saved[..saved.len() - 1], &log).starts_with("this is not a whole save"));
    assert_eq!(refused(&saved, &log[..log.len() - 1]), "this is not the log of a run: byte 0: an incomplete part");
    let mut other = log.clone();
    *other.last_mut().expect("bytes") ^= 1;
    let changed = "this is not the log of a run: byte 0: the checksum of a part does not match";
    assert_eq!(refused(&saved, &other), changed);
    assert!(refused(&saved, b"").contains("a workload that is not in the log"));

    let mut world = World::new(config.0);
    let mut simulation = Simulation::new(OPTIONS, at(10));
    let fewer = simulation.resume(&mut world.engine, &saved, &log).expect_err("less is scheduled").to_string();
    assert!(fewer.contains("more has happened than was scheduled"), "{fewer}");
}

fn world_bytes() -> Vec<u8> {
    World::new(Config::default()).engine.save(b"")
}
