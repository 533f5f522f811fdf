use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::objects::config::Config;
use crate::objects::{ClusterQueue, Cohort, Kind, Object, Workload};
use crate::simulate::{Change, Happening, JobPlan, Options, Simulation, Turn, tests};
use crate::state::records::Owner;
use crate::testing::{Dice, SECOND, World, at, cluster_queue, local_queue, meta, quantity, workload};

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

/// The last row of each existing node by name: nominal, usage, borrowed, share.
type Last = BTreeMap<String, (i64, i64, i64, i64)>;

fn last_rows(simulation: &Simulation, is_queue: bool) -> Last {
    let (log, start, now) = (simulation.log(), at(10).0, simulation.now().0);
    let collect = |series: &Series, counts: &dyn Fn(usize) -> bool| -> Last {
        let row = |at: usize| (series.nominal[at], series.usage[at], series.borrowed[at], series.share[at]);
        let name = |at: usize| log.quotas.nodes[series.nodes[at] as usize].1.clone();
        (0..series.times.len()).filter(|at| counts(*at)).map(|at| (name(at), row(at))).collect()
    };
    let grid = Series::of(log, is_queue, start, now, Some((now - start).max(1)), Waiting::default());
    let at_end = collect(&grid, &|row| grid.times[row] == now);
    let changes = Series::of(log, is_queue, start, now, None, Waiting::default());
    let last = collect(&changes, &|row| at_end.contains_key(&log.quotas.nodes[changes.nodes[row] as usize].1));
    assert_eq!(last, at_end, "the last changes and the rows at the end");
    at_end
}

/// The same from the engine's current state.
fn of_engine(world: &World, is_queue: bool) -> Last {
    let state = &world.engine.state;
    let mut found = Last::new();
    for (node, owner) in state.ledger.owned_nodes() {
        let name = match owner {
            Owner::Queue(id) if is_queue => state.names.queues[id].to_string(),
            Owner::Cohort(id) if !is_queue => state.names.cohorts[id].clone(),
            _ => continue,
        };
        let (tree_id, row) = state.ledger.forest.locate(node);
        let (tree, resources) = (state.ledger.forest.tree(tree_id), state.ledger.forest.resources_of(tree_id));
        let below = state.ledger.forest.subtree(node);
        let sum = |read: &dyn Fn(NodeId) -> Amount| below.iter().map(|it| read(*it).get()).sum::<i64>();
        let nominal =
            sum(&|it| state.ledger.forest.quotas(it).values().next().map_or(Amount::ZERO, |quota| quota.nominal));
        let usage = sum(&|it| match state.ledger.owner(it) {
            Some(Owner::Queue(_)) => {
                let (tree, row) = state.ledger.forest.locate(it);
                state.ledger.forest.tree(tree).usage(row, 0)
            }
            _ => Amount::ZERO,
        });
        let over = tree.usage(row, 0).minus(tree.subtree_quota(row, 0)).get();
        let borrowed = if tree.parent(row).is_some() { over.max(0) } else { 0 };
        let share = tree.share(row, state.ledger.forest.weight(node), resources, &[]).rounded();
        found.insert(name, (nominal, usage, borrowed, share));
    }
    found
}

/// Compares the rows after each step with the engine. Returns how often it did, and sums of borrowed amounts and
/// shares.
fn follow(world: &mut World, happenings: Vec<Happening>) -> (Simulation, [i64; 3]) {
    let mut simulation = Simulation::new(OPTIONS, at(10));
    simulation.schedule(happenings);
    simulation.happened(&mut world.engine);
    let mut sums = [0; 3];
    while !matches!(simulation.step(&mut world.engine), Turn::Done(_)) {
        sums[0] += 1;
        for is_queue in [true, false] {
            let rows = last_rows(&simulation, is_queue);
            assert_eq!(rows, of_engine(world, is_queue), "at {:?}", simulation.now());
            sums[1] += rows.values().map(|it| it.2).sum::<i64>();
            sums[2] += rows.values().map(|it| it.3).sum::<i64>();
        }
    }
    (simulation, sums)
}

#[test]
fn rows_match_the_engine_after_every_step() {
    let mut world = world();
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
    let (simulation, [n_steps, borrowed, shares]) = follow(&mut world, happenings);
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

#[test]
fn a_queue_deleted_and_recreated_at_the_same_time_stays() {
    let mut world = world();
    let mut happenings = jobs(30, &["a", "b", "c"]);
    happenings.extend([
        remove(20, Kind::ClusterQueue, "b"),
        update(20, queue("b", "5", "left")),
        update(25, queue("new", "5", "left")),
        remove(25, Kind::ClusterQueue, "new"),
    ]);
    let (_, [n_steps, borrowed, _]) = follow(&mut world, happenings);
    assert!(n_steps > 30 && borrowed > 0);
}

#[test]
fn an_implicit_cohort_disappears_with_its_last_child() {
    let mut world = World::new(Config::default());
    world.apply([queue("a", "4", "root"), Object::LocalQueue(local_queue("a", "a")), cohort("left", "root", "1")]);
    let happenings = vec![remove(12, Kind::ClusterQueue, "a"), remove(13, Kind::Cohort, "left")];
    let (simulation, [n_steps, ..]) = follow(&mut world, happenings);
    assert!(n_steps > 1);
    assert_eq!(last_rows(&simulation, false), Last::new());
}

#[test]
fn cohorts_on_a_cycle_keep_their_numbers() {
    let mut world = world();
    let mut happenings = jobs(40, &["a", "b", "c"]);
    happenings.extend([update(20, cohort("root", "left", "2")), update(35, cohort("root", "", "2"))]);
    let (_, [n_steps, borrowed, _]) = follow(&mut world, happenings);
    assert!(n_steps > 40 && borrowed > 0);
}

/// `b` lends nothing outside its own cohort, and that cohort lends at most 2 CPUs.
#[test]
fn borrowed_and_lent_amounts_balance_at_every_level() {
    let mut world = World::new(Config::default());
    let limited = |object: Object, limit: &str| match object {
        Object::ClusterQueue(mut queue) => {
            queue.resource_groups[0].flavors[0].resources[0].lending_limit = Some(quantity(limit));
            Object::ClusterQueue(queue)
        }
        other => other,
    };
    world.apply([cohort("left", "root", "0"), cohort("right", "root", "0"), cohort("root", "", "0")]);
    for (name, cpu, cohort, limit) in
        [("a", "1", "left", "1"), ("b", "6", "left", "2"), ("c", "5", "right", "5"), ("d", "3", "right", "0")]
    {
        world.apply([limited(queue(name, cpu, cohort), limit), Object::LocalQueue(local_queue(name, name))]);
    }
    let run = crate::simulate::simulate(&mut world.engine, jobs(60, &["a", "b", "c"]), OPTIONS, at(10), || false);
    let log = &run.log;
    let every = Some(SECOND);
    let all = [true, false].map(|is_queue| Series::of(log, is_queue, at(10).0, run.end.0, every, Waiting::default()));
    let mut rows: BTreeMap<(i64, &str), (i64, i64)> = BTreeMap::new();
    for series in &all {
        for row in 0..series.times.len() {
            let name = &log.quotas.nodes[series.nodes[row] as usize].1;
            rows.insert((series.times[row], name), (series.borrowed[row], series.lent[row]));
        }
    }
    let times: BTreeSet<i64> = rows.keys().map(|it| it.0).collect();
    let (mut within, mut across) = (0, 0);
    for time in times {
        let [a, b, c, d, left, right, root] =
            ["a", "b", "c", "d", "left", "right", "root"].map(|name| rows[&(time, name)]);
        assert_eq!(root, (0, 0));
        assert_eq!(left.0 + right.0, left.1 + right.1, "at {time}");
        assert_eq!(a.0 + b.0 + left.1, a.1 + b.1 + left.0, "at {time}");
        assert_eq!(c.0 + d.0 + right.1, c.1 + d.1 + right.0, "at {time}");
        assert!(b.1 <= 2000 && d == (0, 0));
        within += i64::from(a.0 > 0 && b.1 > 0);
        across += i64::from(left.0 > 0 && c.1 > 0);
    }
    assert!(within > 0 && across > 0, "{within} {across}");
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
fn borrowed_quota_is_lent_in_proportion_to_idle_quota() {
    // 5 are borrowed; idle are 5 of b and 3 of c.
    let rows = borrowing("0");
    assert_eq!((rows["a"], rows["b"], rows["c"]), ((5000, 0), (0, 3125), (0, 1875)));
    // The cohort's own 2 lend, too.
    let rows = borrowing("2");
    assert_eq!((rows["b"], rows["c"]), ((0, 2500), (0, 1500)));
}

#[test]
fn a_grid_has_one_row_per_node_and_time() {
    let mut world = world();
    let run = crate::simulate::simulate(&mut world.engine, jobs(20, &["a", "c"]), OPTIONS, at(10), || false);
    let waiting = Waiting { times: &[at(10).0, at(12).0], queues: &[0, 0], changes: &[2, -1] };
    let series = Series::of(&run.log, true, at(10).0, at(16).0, Some(3 * SECOND), waiting);
    assert_eq!(series.times, [10, 13, 16].map(|time| [at(time).0; 4]).concat());
    let code = run.log.quotas.nodes.iter().position(|it| *it == (true, run.log.usage.queue_names[0].clone())).unwrap();
    let rows = (0..12).filter(|row| series.nodes[*row] as usize == code);
    assert_eq!(rows.map(|row| series.pending[row]).collect::<Vec<_>>(), [2, 1, 1]);
    let changes = Series::of(&run.log, true, at(10).0, at(16).0, None, Waiting::default());
    // A grid shows the last change before each point.
    for row in 0..12 {
        let before = (0..changes.times.len())
            .rfind(|it| changes.nodes[*it] == series.nodes[row] && changes.times[*it] <= series.times[row]);
        let before = before.expect("there is one at the beginning");
        assert_eq!(changes.usage[before], series.usage[row]);
    }
}
