use std::collections::BTreeMap;

use super::*;
use crate::engine::Kind;
use crate::objects::config::Config;
use crate::objects::{ClusterQueue, Cohort, Object, Workload};
use crate::simulate::{Change, Happening, JobPlan, Options, Simulation, Turn, tests};
use crate::state::records::Owner;
use crate::testing::{Dice, SECOND, World, at, cluster_queue, local_queue, meta, workload};

const OPTIONS: Options = Options { eviction_ns: 3 * SECOND, ..tests::OPTIONS };

fn queue(name: &str, cpu: &str, cohort: &str) -> Object {
    Object::ClusterQueue(ClusterQueue { cohort_name: cohort.to_owned(), ..cluster_queue(name, cpu) })
}

fn cohort(name: &str, parent: &str, cpu: &str) -> Object {
    let resource_groups = cluster_queue("", cpu).resource_groups;
    Object::Cohort(Cohort { meta: meta(name), parent_name: parent.to_owned(), resource_groups, ..Cohort::default() })
}

/// ClusterQueues a, b and c with a LocalQueue each; a and b below a cohort of their own, all below one root.
fn world() -> World {
    let mut world = World::new(Config::default());
    world.apply([cohort("root", "", "2"), cohort("left", "root", "1")]);
    for (name, cpu, cohort) in [("a", "4", "left"), ("b", "6", "left"), ("c", "5", "root")] {
        world.apply([queue(name, cpu, cohort), Object::LocalQueue(local_queue(name, name))]);
    }
    world
}

fn jobs(n: usize, queues: &[&'static str]) -> Vec<Happening> {
    let mut dice = Dice(7);
    let mut create = |n: usize| {
        let queue = dice.one_of(queues);
        let cpu = (1 + dice.below(5)).to_string();
        let workload = Workload { queue_name: queue.into(), ..workload(&format!("w{n}"), &cpu) };
        let run_ns = Some(i64::try_from(4 + dice.below(9)).unwrap() * SECOND);
        let job = JobPlan { run_ns, ..JobPlan::default() };
        let object = Box::new(Object::Workload(Box::new(workload)));
        Happening { at: at(10 + i64::try_from(n).unwrap()), change: Change::Create { object, job } }
    };
    (0..n).map(&mut create).collect()
}

fn update(seconds: i64, object: Object) -> Happening {
    Happening { at: at(seconds), change: Change::Update(Box::new(object)) }
}

fn remove(seconds: i64, kind: Kind, name: &str) -> Happening {
    Happening { at: at(seconds), change: Change::Remove { kind, namespace: String::new(), name: name.to_owned() } }
}

/// The last row of each node and pair by name: nominal, usage, borrowed, share. Of nodes that are there.
type Last = BTreeMap<String, (i64, i64, i64, i64)>;

fn last_rows(simulation: &Simulation, is_queue: bool) -> Last {
    let log = simulation.log();
    let series = Series::of(log, is_queue, at(10).0, simulation.now().0, None, Waiting::default());
    let gone = |node: u32| log.quotas.changes.iter().rfind(|it| it.node == node).is_some_and(|it| it.is_gone);
    let mut last = Last::new();
    for row in 0..series.times.len() {
        if !gone(series.nodes[row]) {
            let name = log.quotas.nodes[series.nodes[row] as usize].1.clone();
            let share = series.share[row];
            last.insert(name, (series.nominal[row], series.usage[row], series.borrowed[row], share));
        }
    }
    last
}

/// The same of the engine as it is.
fn of_engine(world: &World, is_queue: bool) -> Last {
    let state = &world.engine.state;
    let mut found = Last::new();
    for (node, owner) in state.owned_nodes() {
        let name = match owner {
            Owner::Queue(id) if is_queue => state.names.queues[id].to_string(),
            Owner::Cohort(id) if !is_queue => state.names.cohorts[id].clone(),
            _ => continue,
        };
        let (tree_id, row) = state.forest.locate(node);
        let (tree, resources) = (state.forest.tree(tree_id), state.forest.resources_of(tree_id));
        let below = state.forest.subtree(node);
        let sum = |read: &dyn Fn(NodeId) -> Amount| below.iter().map(|it| read(*it).get()).sum::<i64>();
        let nominal = sum(&|it| state.forest.quotas(it).values().next().map_or(Amount::ZERO, |quota| quota.nominal));
        let usage = sum(&|it| match state.owner(it) {
            Some(Owner::Queue(_)) => tree.usage(state.forest.locate(it).1, 0),
            _ => Amount::ZERO,
        });
        let borrowed = if tree.parent(row).is_some() { (usage - nominal).max(0) } else { 0 };
        let share = tree.share(row, state.forest.weight(node), resources, &[]).rounded();
        found.insert(name, (nominal, usage, borrowed, share));
    }
    found
}

#[test]
fn after_each_step_the_rows_are_what_the_engine_has() {
    let mut world = world();
    let mut simulation = Simulation::new(OPTIONS, at(10));
    let mut happenings = jobs(50, &["a", "b", "c"]);
    happenings.extend([
        update(20, queue("a", "9", "left")),
        update(25, queue("b", "6", "root")),
        update(30, cohort("left", "", "1")),
        update(33, cohort("left", "root", "3")),
        remove(37, Kind::ClusterQueue, "c"),
        update(41, queue("a", "9", "")),
        remove(45, Kind::Cohort, "left"),
    ]);
    simulation.schedule(happenings);
    simulation.happened(&mut world.engine);
    let (mut borrowed, mut shares, mut n_steps) = (0, 0, 0);
    while !matches!(simulation.step(&mut world.engine), Turn::Done(_)) {
        n_steps += 1;
        for is_queue in [true, false] {
            let rows = last_rows(&simulation, is_queue);
            assert_eq!(rows, of_engine(&world, is_queue), "at {:?}", simulation.now());
            borrowed += rows.values().map(|it| it.2).sum::<i64>();
            shares += rows.values().map(|it| it.3).sum::<i64>();
        }
    }
    assert!(n_steps > 60 && borrowed > 0 && shares > 0);
    let log = simulation.log();
    let gone: Vec<&str> = log
        .quotas
        .changes
        .iter()
        .filter(|it| it.is_gone)
        .map(|it| log.quotas.nodes[it.node as usize].1.as_str())
        .collect();
    assert_eq!(gone, ["c", "left"]);
}

/// The rows of ClusterQueues `a` (9 of 4 CPUs), `b` (1 of 6) and `c` (2 of 5) below a cohort with 2.
fn borrowing(cohort_cpu: &str) -> BTreeMap<String, (i64, i64)> {
    let mut world = World::new(Config::default());
    world.apply([cohort("root", "", cohort_cpu)]);
    let mut happenings = Vec::new();
    for (name, cpu, used) in [("a", "4", "9"), ("b", "6", "1"), ("c", "5", "2")] {
        world.apply([queue(name, cpu, "root"), Object::LocalQueue(local_queue(name, name))]);
        let workload = Workload { queue_name: name.into(), ..workload(name, used) };
        let object = Box::new(Object::Workload(Box::new(workload)));
        happenings.push(Happening { at: at(10), change: Change::Create { object, job: JobPlan::default() } });
    }
    let run = crate::simulate::simulate(&mut world.engine, happenings, OPTIONS, at(10), || false);
    let series = Series::of(&run.log, true, at(10).0, run.end.0, None, Waiting::default());
    let name = |row: usize| run.log.quotas.nodes[series.nodes[row] as usize].1.clone();
    (0..series.times.len()).map(|row| (name(row), (series.borrowed[row], series.lent[row]))).collect()
}

#[test]
fn what_is_borrowed_is_lent_by_the_others_in_proportion_to_what_they_do_not_use() {
    // 5 are borrowed; idle are 5 of b and 3 of c.
    let rows = borrowing("0");
    assert_eq!((rows["a"], rows["b"], rows["c"]), ((5000, 0), (0, 3125), (0, 1875)));
    // The cohort's own 2 lend, too.
    let rows = borrowing("2");
    assert_eq!((rows["b"], rows["c"]), ((0, 2500), (0, 1500)));
}

#[test]
fn a_grid_has_a_row_of_each_node_at_each_time() {
    let mut world = world();
    let run = crate::simulate::simulate(&mut world.engine, jobs(20, &["a", "c"]), OPTIONS, at(10), || false);
    let waiting = Waiting { times: &[at(10).0, at(12).0], queues: &[0, 0], changes: &[2, -1] };
    let series = Series::of(&run.log, true, at(10).0, at(16).0, Some(3 * SECOND), waiting);
    assert_eq!(series.times, [10, 13, 16].map(|time| [at(time).0; 4]).concat());
    let code = run.log.quotas.nodes.iter().position(|it| *it == (true, run.log.usage.queue_names[0].clone())).unwrap();
    let rows = (0..12).filter(|row| series.nodes[*row] as usize == code);
    assert_eq!(rows.map(|row| series.pending[row]).collect::<Vec<_>>(), [2, 1, 1]);
    let changes = Series::of(&run.log, true, at(10).0, at(16).0, None, Waiting::default());
    // What a grid shows is the last change before.
    for row in 0..12 {
        let before = (0..changes.times.len())
            .rfind(|it| changes.nodes[*it] == series.nodes[row] && changes.times[*it] <= series.times[row]);
        let before = before.expect("there is one at the beginning");
        assert_eq!(changes.usage[before], series.usage[row]);
    }
}
