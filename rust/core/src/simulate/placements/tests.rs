use crate::objects::config::Config;
use crate::objects::{ConditionStatus, Node, NodeReady, Object};
use crate::simulate::{Change, Happening, JobPlan, Log, Step, simulate, tests};
use crate::testing::hosts::{node, pods, world};
use crate::testing::{SECOND, at};

fn create(seconds: i64, name: &str, count: i32, run_seconds: i64) -> Happening {
    let object = Box::new(Object::Workload(Box::new(pods(name, count))));
    let job = JobPlan { run_ns: Some(run_seconds * SECOND), ..JobPlan::default() };
    Happening { at: at(seconds), change: Change::Create { object, job } }
}

fn report(seconds: i64, status: ConditionStatus) -> Happening {
    let node = Node { ready: Some(NodeReady { status, since: at(seconds) }), ..node("a", "4") };
    Happening { at: at(seconds), change: Change::Update(Box::new(Object::Node(node))) }
}

/// Seconds, the name of the workload, the host, and how many pods.
fn placed(log: &Log) -> Vec<(i64, &str, &str, i32)> {
    let rows = &log.placements.rows;
    let row = |row: usize| {
        let (levels, values) = &log.placements.domains[rows.domains[row] as usize];
        assert_eq!(
            (&log.placements.levels[*levels as usize][0][..], rows.pod_sets[row]),
            ("kubernetes.io/hostname", 0)
        );
        (rows.times[row] / SECOND, log.key(rows.workloads[row]).name(), &*values[0], rows.counts[row])
    };
    (0..rows.times.len()).map(row).collect()
}

#[test]
fn placements_are_logged_when_a_job_starts_and_when_its_node_is_replaced() {
    let mut world = world();
    let happenings = vec![
        create(11, "x", 3, 60),
        create(12, "y", 2, 60),
        report(20, ConditionStatus::False),
        report(200, ConditionStatus::True),
        create(300, "z", 4, 60),
    ];
    let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
    let finished = log.steps.iter().find(|it| it.1 == Step::Finished && it.2 == 1).map(|it| it.0.0 / SECOND);
    // No host has room for `x` next to `y`: it is evicted, and returns once `y` has ended.
    let again = finished.expect("y ends");
    assert_eq!(placed(&log), [(11, "x", "a", 3), (12, "y", "b", 2), (again, "x", "b", 3), (300, "z", "a", 4)]);
    assert_eq!(log.placements.domains.len(), 2);
    let node_changes = log.nodes.times.iter().zip(&log.nodes.nodes).zip(&log.nodes.losses);
    let changes: Vec<_> =
        node_changes.map(|((time, node), lost)| (time / SECOND, &log.nodes.names[*node as usize][..], *lost)).collect();
    assert_eq!(changes, [(20, "a", 1), (200, "a", 0)]);
}

#[test]
fn a_replacement_node_logs_a_new_placement() {
    let mut world = world();
    let happenings = vec![create(11, "x", 3, 60), report(20, ConditionStatus::False)];
    let log = simulate(&mut world.engine, happenings, tests::OPTIONS, at(10), || false).log;
    let replaced = log.steps.iter().find(|it| it.1 == Step::Replaced).map(|it| it.0.0 / SECOND);
    assert_eq!(placed(&log), [(11, "x", "a", 3), (replaced.expect("it is replaced"), "x", "b", 3)]);
}

#[test]
fn without_a_topology_nothing_is_placed_and_no_node_is_lost() {
    let mut world = crate::testing::World::new(Config::default());
    let create = Happening {
        at: at(11),
        change: Change::Create {
            object: Box::new(Object::Workload(Box::new(crate::testing::workload("a", "1")))),
            job: JobPlan { run_ns: Some(SECOND), ..JobPlan::default() },
        },
    };
    let log = simulate(&mut world.engine, vec![create], tests::OPTIONS, at(10), || false).log;
    assert_eq!((log.steps.len(), log.placements.rows.times.len(), log.nodes.times.len()), (3, 0, 0));
}
