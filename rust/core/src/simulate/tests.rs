use super::*;
use crate::base::key::Key;
use crate::objects::conditions;
use crate::objects::config::{AdmissionFairSharing, Config};
use crate::objects::{
    ClusterQueue, Object, Preemption, PreemptionPolicy, PriorityClassRef, QueueingStrategy, StopPolicy, Workload,
};
use crate::status::reasons;
use crate::testing::{SECOND, World, at, check, cluster_queue, local_queue, quantity, rules, workload};

pub(super) const OPTIONS: Options = Options {
    cycle_step_ns: SECOND,
    quiet_cycles: None,
    max_cycles: None,
    eviction_ns: 0,
    keeps_messages: false,
    keeps_cycles: true,
    keeps_finished: true,
    keeps_log: true,
    keeps_beat: false,
    timers: Timers::WhenDue,
};

fn runs(run_ns: Option<i64>) -> JobPlan {
    JobPlan { run_ns, ..JobPlan::default() }
}

fn create(seconds: i64, workload: Workload, run_seconds: i64) -> Happening {
    let object = Box::new(Object::Workload(Box::new(workload)));
    Happening { at: at(seconds), change: Change::Create { object, job: runs(Some(run_seconds * SECOND)) } }
}

fn update(seconds: i64, object: Object) -> Happening {
    Happening { at: at(seconds), change: Change::Update(Box::new(object)) }
}

fn key(name: &str) -> Key {
    Key::new("ns", name, "")
}

fn run(world: &mut World, happenings: Vec<Happening>, options: Options) -> Run {
    simulate(&mut world.engine, happenings, options, at(10), || false)
}

/// Seconds, step, and name.
fn steps(run: &Run) -> Vec<(i64, Step, &str)> {
    run.log.steps.iter().map(|(time, step, key)| (time.0 / SECOND, *step, run.log.key(*key).name())).collect()
}

#[test]
fn a_job_waits_until_another_ends() {
    let mut world = World::new(Config::default());
    let run = run(&mut world, vec![create(20, workload("b", "6"), 5), create(11, workload("a", "6"), 60)], OPTIONS);
    assert_eq!(
        steps(&run),
        [
            (11, Step::Created, "a"),
            (11, Step::Admitted, "a"),
            (20, Step::Created, "b"),
            (71, Step::Finished, "a"),
            (71, Step::Admitted, "b"),
            (76, Step::Finished, "b"),
        ]
    );
    assert_eq!((run.ending, run.end, run.n_cycles), (Ending::Complete, at(76), 3));
    assert_eq!((run.log.cycles[1].n_parked, run.log.cycles[1].parked.len()), (1, 0));
}

/// Two workloads in one ClusterQueue of which the second preempts the first.
fn preempting(eviction_seconds: i64) -> (World, Run) {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    });
    let urgent = Workload { priority: Some(9), ..workload("b", "6") };
    let happenings = vec![create(10, workload("a", "6"), 60), create(20, urgent, 5)];
    let run = run(&mut world, happenings, Options { eviction_ns: eviction_seconds * SECOND, ..OPTIONS });
    (world, run)
}

#[test]
fn the_log_names_victim_preemptor_and_reason() {
    let (_, run) = preempting(7);
    let log = &run.log.preemptions;
    assert_eq!((&log.times[..], &log.workloads[..], &log.preemptors[..]), (&[at(20).0][..], &[0][..], &[1][..]));
    let reason = reasons::OF_DECISIONS[usize::from(log.reasons[0])];
    assert_eq!((run.log.key(log.workloads[0]).name(), reason), ("a", "InClusterQueue"));
}

#[test]
fn an_evicted_job_resumes_from_its_last_checkpoint() {
    for (saves, expected) in [(None, 60), (Some(4), 52), (Some(10), 50), (Some(11), 60), (Some(3), 51)] {
        let mut world = World::new(Config::default());
        world.change_cluster_queue(|queue| {
            queue.preemption =
                Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
        });
        let job = JobPlan { saves_ns: saves.map(|it: i64| it * SECOND), ..runs(Some(60 * SECOND)) };
        let object = Box::new(Object::Workload(Box::new(workload("a", "6"))));
        let first = Happening { at: at(10), change: Change::Create { object, job } };
        let urgent = Workload { priority: Some(9), ..workload("b", "6") };
        let log = run(&mut world, vec![first, create(20, urgent, 5)], OPTIONS).log;
        let times = |wanted: Step| {
            let of_a = log.steps.iter().filter(|it| it.1 == wanted && it.2 == 0);
            of_a.map(|it| it.0).collect::<Vec<_>>()
        };
        let (admitted, finished) = (times(Step::Admitted), times(Step::Finished));
        assert_eq!((admitted.len(), finished[0].since(admitted[1])), (2, expected * SECOND), "{saves:?}");
    }
}

#[test]
fn a_partly_done_job_runs_the_rest_but_starts_over_after_an_eviction() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    });
    let has_run = || JobPlan { done_ns: 20 * SECOND, ..runs(Some(60 * SECOND)) };
    let appears = |seconds, name| {
        let object = Box::new(Object::Workload(Box::new(workload(name, "6"))));
        Happening { at: at(seconds), change: Change::Create { object, job: has_run() } }
    };
    let urgent = Workload { priority: Some(9), ..workload("urgent", "6") };
    let happenings = vec![appears(10, "a"), appears(100, "b"), create(110, urgent, 5)];
    let log = run(&mut world, happenings, OPTIONS).log;
    let times = |wanted: Step, number: u32| {
        let found = log.steps.iter().filter(|it| it.1 == wanted && it.2 == number);
        found.map(|it| it.0).collect::<Vec<_>>()
    };
    assert_eq!(times(Step::Finished, 0), [at(50)]);
    let (admitted, finished) = (times(Step::Admitted, 1), times(Step::Finished, 1));
    assert_eq!((admitted.len(), finished[0].since(admitted[1])), (2, 60 * SECOND));
}

#[test]
fn a_cycle_runs_at_the_planned_stop_of_a_job_that_already_ended() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
        queue.queueing_strategy = QueueingStrategy::StrictFIFO;
    });
    let urgent = |name, cpu| Workload { priority: Some(9), ..workload(name, cpu) };
    let happenings = vec![
        create(10, workload("a", "6"), 60),
        create(20, urgent("b", "6"), 60),
        create(21, urgent("big", "99"), 60),
        Happening { at: at(25), change: Change::Finish(key("a")) },
    ];
    let options = Options { eviction_ns: 7 * SECOND, quiet_cycles: Some(1), timers: Timers::AfterRound, ..OPTIONS };
    let run = run(&mut world, happenings, options);
    assert!(!steps(&run).contains(&(27, Step::Stopped, "a")), "{:?}", steps(&run));
    // At 10, 20, 21, 22 (b still waits), 25, 26 and 27; then at 85, when b ends.
    assert_eq!(run.n_cycles, 8, "{:?}", steps(&run));
}

#[test]
fn an_evicted_job_stops_and_starts_from_zero() {
    for (eviction_seconds, stopped, started) in [(0, 20, 21), (7, 27, 27)] {
        let (_, run) = preempting(eviction_seconds);
        assert_eq!(
            steps(&run)[2..],
            [
                (20, Step::Created, "b"),
                (stopped, Step::Stopped, "a"),
                (started, Step::Admitted, "b"),
                (started + 5, Step::Finished, "b"),
                (started + 5, Step::Admitted, "a"),
                (started + 65, Step::Finished, "a"),
            ]
        );
    }
}

#[test]
fn a_strict_fifo_head_is_retried_only_while_something_changes() {
    let mut world = World::new(Config::default());
    let queue =
        ClusterQueue { queueing_strategy: crate::objects::QueueingStrategy::StrictFIFO, ..cluster_queue("cq", "10") };
    world.apply([Object::ClusterQueue(queue)]);
    let run = run(&mut world, vec![create(11, workload("a", "11"), 1)], OPTIONS);
    // One flavor: two cycles without a visible change end the round.
    assert_eq!((run.n_cycles, run.end, run.log.cycles.len()), (2, at(13), 0));
}

#[test]
fn a_run_ends_at_its_cycle_limit_or_when_interrupted() {
    let happenings = || vec![create(11, workload("a", "1"), 1), create(30, workload("b", "1"), 1)];
    let limited = run(&mut World::new(Config::default()), happenings(), Options { max_cycles: Some(1), ..OPTIONS });
    assert_eq!((limited.ending, limited.n_cycles), (Ending::CycleLimit, 1));
    let mut n_asked = 0;
    let mut ask = || {
        n_asked += 1;
        n_asked > 3
    };
    let mut world = World::new(Config::default());
    let stopped = simulate(&mut world.engine, happenings(), OPTIONS, at(10), &mut ask);
    assert_eq!((stopped.ending, stopped.n_cycles), (Ending::Interrupted, 1));
}

#[test]
fn a_run_past_the_last_timestamp_ends_out_of_time() {
    // One after the other: the second would end beyond 64 bits.
    let most = i64::MAX / SECOND - 100;
    let happenings = || vec![create(11, workload("a", "6"), most), create(12, workload("b", "6"), most)];
    let late = run(&mut World::new(Config::default()), happenings(), OPTIONS);
    assert_eq!((late.ending, steps(&late).last()), (Ending::OutOfTime, Some(&(11 + most, Step::Admitted, "b"))));
    // A cycle that does not end in time.
    let slow = Options { cycle_step_ns: i64::MAX, ..OPTIONS };
    let late = run(&mut World::new(Config::default()), happenings(), slow);
    assert_eq!((late.ending, late.n_cycles), (Ending::OutOfTime, 0));
}

#[test]
fn checks_are_ready_once_quota_is_reserved() {
    let mut world = World::new(Config::default());
    world.apply([check("prov")]);
    world.change_cluster_queue(|queue| queue.admission_checks = rules(&["prov"]));
    let run = run(&mut world, vec![create(11, workload("a", "1"), 4)], OPTIONS);
    assert_eq!(steps(&run)[1..], [(11, Step::Admitted, "a"), (15, Step::Finished, "a")]);
}

#[test]
fn events_without_an_object_are_ignored() {
    let mut world = World::new(Config::default());
    let gone = |seconds, change| Happening { at: at(seconds), change };
    let happenings = vec![
        create(11, workload("a", "1"), 100),
        gone(12, Change::Finish(key("a"))),
        gone(13, Change::Finish(key("a"))),
        gone(14, Change::Delete(key("a"))),
        gone(15, Change::Delete(key("a"))),
        update(16, Object::Workload(Box::new(workload("a", "2")))),
    ];
    let run = run(&mut world, happenings, OPTIONS);
    assert_eq!(steps(&run)[2..], [(12, Step::Finished, "a"), (14, Step::Deleted, "a")]);
    assert!(world.engine.state.workloads.is_empty());
}

#[test]
fn a_workload_update_keeps_the_status_and_bumps_the_generation_only_for_a_new_spec() {
    let mut world = World::new(Config::default());
    let big = create(11, workload("a", "11"), 4);
    let same = update(12, Object::Workload(Box::new(workload("a", "11"))));
    let small = update(14, Object::Workload(Box::new(workload("a", "10"))));
    let run = run(&mut world, vec![big, same, small], OPTIONS);
    assert_eq!(steps(&run)[1..], [(14, Step::Admitted, "a"), (18, Step::Finished, "a")]);
    assert_eq!((run.n_cycles, world.get("a").meta.generation), (2, 2));
}

#[test]
fn an_update_without_changes_starts_no_cycle() {
    for (quota, n_cycles) in [("10", 1), ("9", 2)] {
        let mut world = World::new(Config::default());
        let queue = Object::ClusterQueue(cluster_queue("cq", quota));
        let run = run(&mut world, vec![create(11, workload("a", "11"), 4), update(12, queue)], OPTIONS);
        assert_eq!(run.n_cycles, n_cycles);
    }
}

#[test]
fn the_maximum_execution_time_stops_a_job_on_time() {
    let mut world = World::new(Config::default());
    let brief = Workload { maximum_execution_time_seconds: Some(30), ..workload("a", "1") };
    let run = run(&mut world, vec![create(11, brief, 100)], OPTIONS);
    assert_eq!(steps(&run)[1..], [(11, Step::Admitted, "a"), (41, Step::Stopped, "a")]);
}

#[test]
fn a_drained_queue_stops_its_jobs_for_good() {
    let mut world = World::new(Config::default());
    let drained = ClusterQueue { stop_policy: StopPolicy::HoldAndDrain, ..cluster_queue("cq", "10") };
    let happenings = vec![create(11, workload("a", "1"), 100), update(20, Object::ClusterQueue(drained))];
    let run = run(&mut world, happenings, OPTIONS);
    assert_eq!(steps(&run)[2..], [(20, Step::Stopped, "a")]);
    assert_eq!(world.condition("a", conditions::REQUEUED).split(' ').next(), Some("False"));
}

#[test]
fn workloads_pending_at_the_start_are_tried_at_once() {
    let mut world = World::new(Config::default());
    world.submit(workload("a", "1"));
    let run = run(&mut world, Vec::new(), OPTIONS);
    assert_eq!(steps(&run), [(10, Step::Admitted, "a")]);
}

#[test]
fn messages_are_kept_on_request() {
    for keeps_messages in [false, true] {
        let mut world = World::new(Config::default());
        let run = run(&mut world, vec![create(11, workload("a", "1"), 1)], Options { keeps_messages, ..OPTIONS });
        assert_eq!(run.log.cycles[0].decision.events.is_empty(), !keeps_messages);
    }
}

#[test]
fn only_a_priority_change_by_workload_priority_class_retries_others() {
    let class = |kind: &str| {
        (!kind.is_empty())
            .then(|| PriorityClassRef { kind: kind.to_owned(), name: "urgent".to_owned(), ..Default::default() }.into())
    };
    for (kind, n_cycles) in [("", 2), ("PriorityClass", 2), ("WorkloadPriorityClass", 3)] {
        let of = |priority| Workload { priority: Some(priority), priority_class: class(kind), ..workload("a", "6") };
        let change = update(20, Object::Workload(Box::new(of(7))));
        let mut world = World::new(Config::default());
        let options = Options { max_cycles: Some(n_cycles + 1), ..OPTIONS };
        let parked = create(12, workload("b", "6"), 1);
        let forever = Happening {
            at: at(11),
            change: Change::Create { object: Box::new(Object::Workload(Box::new(of(5)))), job: runs(None) },
        };
        assert_eq!(run(&mut world, vec![forever, parked, change], options).n_cycles, n_cycles, "{kind}");
    }
}

#[test]
fn a_workload_parked_with_another_keeps_its_message() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    });
    let urgent = Workload { priority: Some(9), ..workload("c", "6") };
    let forever = |happening: Happening| match happening.change {
        Change::Create { object, .. } => Happening { change: Change::Create { object, job: runs(None) }, ..happening },
        _ => happening,
    };
    let happenings = vec![create(10, workload("b", "6"), 0), create(30, urgent, 0), create(30, workload("a", "6"), 0)];
    run(&mut world, happenings.into_iter().map(forever).collect(), OPTIONS);
    // Evicted and back in the heap, it is parked together with the equivalent workload at the front.
    let texts = ["a", "b"].map(|name| world.condition(name, conditions::QUOTA_RESERVED));
    assert!(texts[1].starts_with("False PendingEvaluation: Preempted to accommodate"), "{texts:?}");
}

#[test]
fn the_job_of_a_deleted_workload_stops_at_its_time() {
    let (mut world, _) = preempting(0);
    let urgent = Workload { priority: Some(9), ..workload("d", "6") };
    let delete = Happening { at: at(210), change: Change::Delete(key("c")) };
    let happenings = vec![create(200, workload("c", "6"), 500), create(205, urgent, 2), delete];
    let run =
        simulate(&mut world.engine, happenings, Options { eviction_ns: 50 * SECOND, ..OPTIONS }, at(200), || false);
    assert_eq!(steps(&run)[3..], [(210, Step::Deleted, "c"), (210, Step::Admitted, "d"), (212, Step::Finished, "d")]);
    assert_eq!(run.end, at(255));
}

/// Half-life and interval of ten seconds; everything of usage-based ClusterQueue `cq`.
fn usage_based() -> World {
    let fair = AdmissionFairSharing {
        usage_half_life_ns: 10 * SECOND,
        usage_sampling_interval_ns: 10 * SECOND,
        ..AdmissionFairSharing::default()
    };
    let mut world = World::new(Config { admission_fair_sharing: Some(fair), ..Config::default() });
    world.now = at(10);
    world.change_cluster_queue(|queue| queue.usage_based_admission = true);
    world
}

/// The usage of the first workload's LocalQueue: CPUs, and the seconds of the last update.
fn used(world: &World, name: &str) -> Option<(String, i64)> {
    let id = world.engine.state.names.find_local_queue("ns", name)?;
    let account = world.engine.state.local_queues[id].account.as_ref()?;
    let cpus = account.consumed.get("cpu").map_or(String::new(), ToString::to_string);
    Some((cpus, account.last_update.0 / SECOND))
}

#[test]
fn local_queue_usage_is_sampled_throughout_the_run() {
    let mut world = usage_based();
    // A penalty of 4, then half of that and half of 8 after each of two intervals.
    let run = run(&mut world, vec![create(10, workload("a", "8"), 25)], OPTIONS);
    assert_eq!((run.end, used(&world, "lq")), (at(35), Some(("7".to_owned(), 30))));
}

#[test]
fn sampling_starts_when_the_cluster_queue_becomes_active() {
    let mut world = usage_based();
    let create_queue = |seconds, object| Happening {
        at: at(seconds),
        change: Change::Create { object: Box::new(object), job: runs(None) },
    };
    let mut late = local_queue("late", "later");
    late.consumed_resources = Some([("cpu".to_owned(), quantity("8"))].into());
    let happenings = vec![
        create_queue(11, Object::LocalQueue(late)),
        create_queue(13, Object::ClusterQueue(cluster_queue("later", "1"))),
        create(34, workload("a", "1"), 0),
    ];
    run(&mut world, happenings, OPTIONS);
    assert_eq!(used(&world, "late").map(|(_, seconds)| seconds), Some(31));
}

/// Five jobs, each with a run time of a second, admitted one per cycle.
fn five_short(timers: Timers) -> Vec<(i64, Step, String)> {
    let mut world = World::new(Config::default());
    let short = |name| Workload { maximum_execution_time_seconds: Some(1), ..workload(name, "2") };
    let happenings = ["a", "b", "c", "d", "e"].into_iter().map(|name| create(10, short(name), 60)).collect();
    let run = run(&mut world, happenings, Options { timers, ..OPTIONS });
    let stopped = steps(&run).into_iter().filter(|(_, step, _)| *step == Step::Stopped);
    stopped.map(|(time, step, name)| (time, step, name.to_owned())).collect()
}

#[test]
fn timers_between_two_cycles_act_when_due() {
    let times = |timers| five_short(timers).iter().map(|(time, ..)| *time).collect::<Vec<_>>();
    assert_eq!(times(Timers::WhenDue), [11, 12, 13, 14, 15]);
    assert_eq!(times(Timers::AfterRound), [15, 15, 15, 15, 15], "as Kueue's runs were recorded");
}

#[test]
fn a_log_part_is_the_whole_run_but_its_cycles() {
    let (_, run) = preempting(5);
    let part = run.log_part();
    let n_workloads = u32::try_from(run.log.workloads.len()).unwrap();
    let again = Run::of_log_part(&part, n_workloads, run.ending, run.end, run.n_cycles).unwrap();
    assert_eq!((steps(&again), again.end, again.n_cycles), (steps(&run), run.end, run.n_cycles));
    assert_eq!((again.log_part(), again.log.cycles.len()), (part.clone(), 0));
    Run::of_log_part(&part[..part.len() - 1], n_workloads, run.ending, run.end, run.n_cycles).unwrap_err();
}

#[test]
fn an_ending_is_found_by_its_name() {
    for ending in [Ending::Complete, Ending::CycleLimit, Ending::Interrupted, Ending::OutOfTime] {
        assert_eq!(Ending::named(ending.name()), Some(ending));
    }
    assert_eq!(Ending::named("Unknown"), None);
}
