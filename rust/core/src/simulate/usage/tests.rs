use std::collections::BTreeMap;

use crate::base::ids::{FlavorResourceId, Id};
use crate::objects::config::Config;
use crate::objects::{Object, Preemption, PreemptionPolicy, Workload};
use crate::simulate::{Change, Happening, JobPlan, Options, Simulation, Step, Turn, UsageLog, tests};
use crate::testing::{SECOND, World, at, workload};

const OPTIONS: Options = Options { eviction_ns: 3 * SECOND, ..tests::OPTIONS };

/// Usage by the log, per ClusterQueue and pair.
fn replayed(usage: &UsageLog) -> BTreeMap<(u32, u32), i64> {
    let mut sums = BTreeMap::new();
    let mut from = 0;
    for (change, end) in usage.ends.iter().enumerate() {
        for row in from..*end as usize {
            let sign = if usage.adds[change] == 1 { 1 } else { -1 };
            *sums.entry((usage.queues[change], usage.pairs[row])).or_insert(0) += sign * usage.amounts[row];
        }
        from = *end as usize;
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Usage in the forest of quotas.
fn charged(world: &World) -> BTreeMap<(u32, u32), i64> {
    let state = &world.engine.state;
    let mut sums = BTreeMap::new();
    for (id, queue) in state.queues.iter().enumerate() {
        let Some(node) = queue.node else { continue };
        let (tree, row) = state.ledger.forest.locate(node);
        for index in 0..state.names.flavor_resources().count() {
            let pair = FlavorResourceId::from_index(index);
            if let Some(column) = state.ledger.forest.tree(tree).column(pair) {
                let used = state.ledger.forest.tree(tree).usage(row, column).get();
                sums.insert((u32::try_from(id).unwrap(), u32::try_from(index).unwrap()), used);
            }
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

#[test]
fn a_second_run_starts_with_the_usage_of_the_first() {
    let mut world = World::new(Config::default());
    let create = |name: &str| {
        let object = Box::new(Object::Workload(Box::new(workload(name, "3"))));
        Happening { at: at(10), change: Change::Create { object, job: JobPlan::default() } }
    };
    for (name, n_changes) in [("a", 1), ("b", 2), ("c", 3)] {
        let run = crate::simulate::simulate(&mut world.engine, vec![create(name)], OPTIONS, at(10), || false);
        assert_eq!(replayed(&run.log.usage), charged(&world));
        assert_eq!(run.log.usage.times.len(), n_changes);
    }
}

/// Jobs of two priorities, more than fit; some are deleted, and each has its own run time.
fn happenings() -> Vec<Happening> {
    let create = |n: i64| {
        let priority = Some(if n % 3 == 0 { 9 } else { 0 });
        let workload = Workload { priority, ..workload(&format!("w{n}"), &(1 + n % 4).to_string()) };
        let object = Box::new(Object::Workload(Box::new(workload)));
        let job = JobPlan { run_ns: Some((5 + n % 11) * SECOND), ..JobPlan::default() };
        Happening { at: at(10 + n), change: Change::Create { object, job } }
    };
    let delete = |n: i64| {
        let key = crate::base::key::Key::new("ns", &format!("w{n}"), "");
        Happening { at: at(13 + n), change: Change::Delete(key) }
    };
    (0..40).map(create).chain((0..40).step_by(7).map(delete)).collect()
}

#[test]
fn logged_usage_matches_the_engine_after_every_step() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    });
    let mut simulation = Simulation::new(OPTIONS, at(10));
    simulation.schedule(happenings());
    simulation.happened(&mut world.engine);
    let mut n_in_use = 0;
    while !matches!(simulation.step(&mut world.engine), Turn::Done(_)) {
        let expected = charged(&world);
        n_in_use += expected.len();
        assert_eq!(replayed(&simulation.log().usage), expected, "at {:?}", simulation.now());
    }
    let log = simulation.log();
    let n_of = |step: Step| log.steps.iter().filter(|(_, it, _)| *it == step).count();
    assert!(n_in_use > 40 && n_of(Step::Stopped) > 0 && n_of(Step::Deleted) > 0);
    assert!(replayed(&log.usage).is_empty());
    assert_eq!(log.workloads.len(), 40);
    assert_eq!(log.usage.homes, vec![0; 40]);
    assert_eq!((&log.usage.queue_names[0][..], &log.usage.pair_names[0].1[..]), ("cq", "cpu"));
}
