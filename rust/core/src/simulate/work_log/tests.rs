use crate::objects::config::{Config, RequeuingTimestamp, WaitForPodsReady};
use crate::objects::{ConditionStatus, Node, NodeReady, Object, Preemption, PreemptionPolicy, Workload};
use crate::simulate::{Change, Happening, JobPlan, Log, NodeLoss, PodsPlan, simulate, tests};
use crate::testing::hosts::{node, pods, world};
use crate::testing::{SECOND, World, at, workload};

fn create(seconds: i64, workload: Workload, job: JobPlan) -> Happening {
    let object = Box::new(Object::Workload(Box::new(workload)));
    Happening { at: at(seconds), change: Change::Create { object, job } }
}

fn runs(seconds: i64) -> JobPlan {
    JobPlan { run_ns: Some(seconds * SECOND), ..JobPlan::default() }
}

/// Seconds, name, pods, and the lost and idle seconds.
fn rows(log: &Log) -> Vec<(i64, &str, i64, i64, i64)> {
    let work = &log.work;
    let row = |row: usize| {
        let spans = (work.lost_ns[row] / SECOND, work.idle_ns[row] / SECOND);
        (work.times[row] / SECOND, log.key(work.workloads[row]).name(), work.pods[row], spans.0, spans.1)
    };
    (0..work.times.len()).map(row).collect()
}

fn preempts(world: &mut World) {
    world.change_cluster_queue(|queue| {
        let within_cluster_queue = PreemptionPolicy::LowerPriority;
        queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
    });
}

#[test]
fn an_eviction_loses_the_work_since_the_last_checkpoint() {
    // It runs from 10 to 25, from 31 to 60, and to its end.
    for (saves, lost) in [(None, [15, 29]), (Some(10), [5, 9]), (Some(20), [15, 9]), (Some(5), [0, 4])] {
        let mut world = World::new(Config::default());
        preempts(&mut world);
        let job = JobPlan { saves_ns: saves.map(|it: i64| it * SECOND), ..runs(60) };
        let urgent = |name| Workload { priority: Some(9), ..workload(name, "6") };
        let happenings = vec![
            create(10, workload("a", "6"), job),
            create(25, urgent("b"), runs(5)),
            create(60, urgent("c"), runs(5)),
        ];
        let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
        assert_eq!(rows(&log), [(25, "a", 1, lost[0], 0), (60, "a", 1, lost[1], 0)], "{saves:?}");
    }
}

#[test]
fn pods_do_no_work_until_they_are_ready() {
    let waits = WaitForPodsReady {
        timeout_ns: 3 * SECOND,
        recovery_timeout_ns: None,
        unscheduled_timeout_ns: None,
        block_admission: false,
        requeuing_timestamp: RequeuingTimestamp::default(),
        backoff_limit_count: None,
        backoff_base_seconds: 4,
        backoff_max_seconds: 60,
    };
    let mut world = World::new(Config { wait_for_pods_ready: Some(waits), ..Config::default() });
    let ready_ns = vec![None, Some(2 * SECOND)];
    let pods = Some(Box::new(PodsPlan { ready_ns, ..PodsPlan::default() }));
    let happenings = vec![create(10, workload("a", "1"), JobPlan { pods, ..runs(30) })];
    let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
    let finished = log.steps.last().map(|it| it.0.0 / SECOND).expect("it ends");
    assert_eq!(rows(&log), [(13, "a", 1, 0, 3), (finished, "a", 1, 0, 2)]);
}

#[test]
fn restarting_on_a_replacement_node_loses_work_without_an_eviction() {
    for (node_loss, saves, lost) in [
        (NodeLoss::RunsOn, None, vec![]),
        (NodeLoss::Waits, None, vec![(81, "x", 3, 0, 1)]),
        (NodeLoss::StartsOver, None, vec![(31, "x", 3, 19, 0), (100, "x", 3, 0, 1)]),
        (NodeLoss::StartsOver, Some(8), vec![(31, "x", 3, 3, 0), (84, "x", 3, 0, 1)]),
    ] {
        let mut world = world();
        let failed = NodeReady { status: ConditionStatus::False, since: at(0) };
        let node = Node { ready: Some(failed), ..node("a", "4") };
        let job = JobPlan { node_loss, saves_ns: saves.map(|it: i64| it * SECOND), ..runs(69) };
        let happenings = vec![
            create(11, pods("x", 3), job),
            Happening { at: at(30), change: Change::Update(Box::new(Object::Node(node))) },
        ];
        let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
        assert_eq!(rows(&log), lost, "{node_loss:?} {saves:?}");
    }
}

#[test]
fn a_job_can_end_as_failed() {
    let mut world = World::new(Config::default());
    let fails = JobPlan { ends_failed: true, ..runs(5) };
    let happenings = vec![create(10, workload("a", "1"), fails), create(10, workload("b", "1"), runs(5))];
    let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
    let endings: Vec<_> = log
        .work
        .endings
        .iter()
        .map(|(number, reason)| (log.key(*number).name(), &*log.work.reasons[*reason as usize]))
        .collect();
    assert_eq!(endings, [("a", "Failed")]);
    assert!(world.condition("a", crate::objects::conditions::FINISHED).starts_with("True Failed"));
}

#[test]
fn workloads_present_at_the_start_are_recorded_with_their_history() {
    let mut world = World::new(Config::default());
    world.now = at(5);
    world.submit(Workload {
        meta: crate::objects::WorkloadMeta { created: at(3), ..workload("a", "6").meta },
        ..workload("a", "6")
    });
    world.cycle();
    world.submit(workload("b", "6"));
    let happenings = vec![create(10, workload("c", "6"), runs(5)), create(20, workload("d", "1"), runs(5))];
    let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
    let present: Vec<_> =
        log.work.present.iter().map(|it| (log.key(it.workload).name(), it.admitted, it.was_evicted)).collect();
    assert_eq!(present[..2], [("a", Some(at(5)), false), ("b", None, false)]);
    assert_eq!(log.work.present[0].created, at(3));
    assert!(present.iter().all(|it| it.0 != "d"), "it comes later");
}
