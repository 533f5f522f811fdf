use super::*;
use crate::base::key::Key;
use crate::objects::config::Config;
use crate::objects::{Object, Preemption, PreemptionPolicy, Workload};
use crate::simulate::{Change, Happening, JobPlan, Options, tests};
use crate::testing::{SECOND, World, at, workload};

const OPTIONS: Options = Options { keeps_cycles: false, keeps_finished: false, keeps_log: false, ..tests::OPTIONS };

fn create(seconds: i64, workload: Workload) -> Happening {
    let object = Box::new(Object::Workload(Box::new(workload)));
    Happening { at: at(seconds), change: Change::Create { object, job: JobPlan::default() } }
}

/// A run in which `a` runs and leaves too little quota for `b`.
fn one_of_two(options: Options) -> (World, Simulation) {
    let mut world = World::new(Config::default());
    let mut run = Simulation::new(options, at(10));
    run.schedule(vec![create(10, workload("a", "6")), create(10, workload("b", "6"))]);
    run.happened(&mut world.engine);
    assert_eq!(run.arrive(&mut world.engine), None);
    run.advance(&mut world.engine, Some(at(20)), |_| false);
    run.go_to(at(20));
    (world, run)
}

fn ids<const N: usize>(engine: &Engine, names: [&str; N]) -> [WorkloadId; N] {
    names.map(|name| engine.state.workloads.find("ns", name).expect("a workload"))
}

fn ahead(run: &mut Simulation, engine: &mut Engine, until: i64) -> Vec<Option<i64>> {
    run.look_ahead(engine, at(until), None, |_| false);
    run.admitted().iter().map(|time| time.map(|time| time.0 / SECOND)).collect()
}

#[test]
fn what_happens_now_happens_before_the_first_cycle() {
    let mut world = World::new(Config::default());
    let mut run = Simulation::new(OPTIONS, at(10));
    run.schedule(vec![create(10, workload("a", "6")), create(11, workload("b", "6"))]);
    run.happened(&mut world.engine);
    assert_eq!(run.arrive(&mut world.engine), None);
    assert_eq!((run.n_cycles(), run.progress(), run.now()), (0, (1, 0), at(10)));
    assert_eq!(run.arrive(&mut world.engine), None);
    assert_eq!((run.n_counted(), run.next_time(&world.engine)), (1, Some(at(10))));
}

#[test]
fn a_run_without_a_log_decides_the_same() {
    let logged = one_of_two(Options { keeps_log: true, ..OPTIONS });
    let counted = one_of_two(OPTIONS);
    let counts = |(world, run): &(World, Simulation)| {
        let standings = world.engine.state.standings();
        (standings, run.now(), run.n_cycles(), run.progress(), run.n_counted())
    };
    assert_eq!(counts(&logged), counts(&counted));
    assert_eq!((logged.1.log().steps.len(), counted.1.log().steps.len()), (3, 0));
    assert_eq!(counted.1.log().workloads, []);
}

#[test]
fn each_fork_has_its_own_run_times() {
    let (mut world, mut base) = one_of_two(OPTIONS);
    let [a, b] = ids(&world.engine, ["a", "b"]);
    base.watch(&[b, a]);
    for (run, done, expected) in [(30, 0, Some(50)), (30, 25, Some(25)), (7, 7, Some(20)), (300, 0, None)] {
        let (mut engine, mut run_of_fork) = (world.engine.fork(), base.clone());
        run_of_fork.set_run(&engine, a, Some(run * SECOND), done * SECOND);
        assert_eq!(ahead(&mut run_of_fork, &mut engine, 100), [expected, Some(20)], "{run} {done}");
    }
    // Nothing of that is seen in what they are forks of.
    assert_eq!((base.now(), base.progress(), base.admitted()), (at(20), (2, 0), &[None, Some(at(20))][..]));
    assert_eq!(ahead(&mut base, &mut world.engine, 100), [None, Some(20)], "it runs for ever");
}

#[test]
fn a_waiting_job_runs_as_long_as_was_set() {
    let (mut world, mut run) = one_of_two(OPTIONS);
    let [a, b] = ids(&world.engine, ["a", "b"]);
    run.set_run(&world.engine, b, Some(5 * SECOND), 0);
    run.set_run(&world.engine, a, Some(10 * SECOND), 0);
    run.schedule(vec![create(25, workload("c", "6"))]);
    run.advance(&mut world.engine, Some(at(25)), |_| false);
    run.watch(&ids(&world.engine, ["c"]));
    assert_eq!(ahead(&mut run, &mut world.engine, 100), [Some(35)]);
}

#[test]
fn it_stops_as_soon_as_all_have_been_admitted_or_enough_was_counted() {
    let (mut world, mut base) = one_of_two(OPTIONS);
    let [a, b] = ids(&world.engine, ["a", "b"]);
    base.set_run(&world.engine, a, Some(10 * SECOND), 0);
    base.set_run(&world.engine, b, Some(10 * SECOND), 0);
    base.watch(&[b]);
    let mut fork = world.engine.fork();
    let mut run = base.clone();
    assert_eq!(ahead(&mut run, &mut fork, 100), [Some(30)]);
    assert_eq!((run.now(), run.has_seen_all(), run.progress()), (at(30), true, (2, 1)));

    let mut run = base.clone();
    let turn = run.look_ahead(&mut world.engine, at(100), Some(4), |_| false);
    assert_eq!((turn, run.n_counted(), run.has_seen_all()), (Turn::Done(Ending::Complete), 4, false));
    let turn = run.look_ahead(&mut world.engine, at(100), None, |_| true);
    assert_eq!(turn, Turn::Done(Ending::Interrupted));
}

#[test]
fn an_eviction_counts_as_five() {
    let mut world = World::new(Config::default());
    world.change_cluster_queue(|queue| {
        queue.preemption =
            Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
    });
    let urgent = Workload { priority: Some(9), ..workload("b", "6") };
    let mut run = Simulation::new(OPTIONS, at(10));
    run.schedule(vec![create(10, workload("a", "6")), create(20, urgent)]);
    run.happened(&mut world.engine);
    run.advance(&mut world.engine, Some(at(30)), |_| false);
    // Two arrivals, two admissions, one eviction.
    assert_eq!(run.n_counted(), 2 + 2 + 5);
}

#[test]
fn a_workload_that_is_gone_is_neither_admitted_nor_its_successor() {
    let (mut world, mut run) = one_of_two(OPTIONS);
    let [b] = ids(&world.engine, ["b"]);
    run.watch(&[b]);
    let delete = Happening { at: at(30), change: Change::Delete(Key::new("ns", "b", "")) };
    run.schedule(vec![delete, create(31, workload("c", "1"))]);
    assert_eq!(ahead(&mut run, &mut world.engine, 100), [None]);
    assert_eq!(ids(&world.engine, ["c"]), [b], "its slot was used again");
    assert!(run.is_running(b));
}

#[test]
fn cycles_that_keep_the_beat_do_not_shift_each_other() {
    let admitted = |keeps_beat: bool, has_other: bool| {
        let (mut world, mut run) = one_of_two(Options { keeps_beat, ..OPTIONS });
        let [a, b] = ids(&world.engine, ["a", "b"]);
        run.set_run(&world.engine, a, Some(10 * SECOND + SECOND / 2), 0);
        run.watch(&[b]);
        // It fits nowhere, but a cycle looks at it.
        let other = Happening { at: Time(at(30).0 + SECOND / 4), ..create(30, workload("other", "99")) };
        run.schedule(has_other.then_some(other).into_iter().collect());
        run.look_ahead(&mut world.engine, at(100), None, |_| false);
        run.admitted()[0].map(|time| time.since(at(30)))
    };
    assert_eq!([admitted(true, false), admitted(true, true)], [Some(SECOND); 2]);
    assert_eq!([admitted(false, false), admitted(false, true)], [Some(SECOND / 2), Some(SECOND + SECOND / 4)]);
}
