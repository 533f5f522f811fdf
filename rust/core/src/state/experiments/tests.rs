use super::*;
use crate::engine::Engine;
use crate::objects::config::Config;
use crate::objects::{ClusterQueue, Meta, Object, Preemption, PreemptionPolicy, Workload};
use crate::schedule::decision::Decision;
use crate::testing::{SECOND, World, at, cluster_queue, local_queue, namespaced, workload};

/// ClusterQueues `cq` and `other` with 10 CPUs each in a cohort; `other` takes back what is its own.
fn world_with(experiments: Experiments) -> World {
    let mut world = World::new(Config { experiments, ..Config::default() });
    let preemption =
        Preemption { reclaim_within_cohort: PreemptionPolicy::Any, ..world.own_policy(PreemptionPolicy::Never) };
    let other =
        ClusterQueue { cohort_name: "all".to_owned(), preemption: Some(preemption), ..cluster_queue("other", "10") };
    world.apply([Object::ClusterQueue(other), Object::LocalQueue(local_queue("other", "other"))]);
    world.change_cluster_queue(|queue| queue.cohort_name = "all".to_owned());
    world
}

/// The same without the cohort; equals of `cq` take turns of a minute.
fn world_of_turns() -> World {
    let mut world = world_with(Experiments { time_share_ns: Some(60 * SECOND), ..Experiments::default() });
    let policy = world.own_policy(PreemptionPolicy::LowerOrNewerEqualPriority);
    world.change_cluster_queue(|queue| {
        queue.cohort_name = String::new();
        queue.preemption = Some(policy);
    });
    world
}

impl World {
    fn own_policy(&self, within_cluster_queue: PreemptionPolicy) -> Preemption {
        Preemption { within_cluster_queue, ..Preemption::default() }
    }

    fn wake(&self) -> Option<Time> {
        self.engine.state.next_wake(self.now)
    }

    /// A cycle at this second, and the names of those that it admits and preempts.
    fn cycle_at(&mut self, seconds: i64) -> (Vec<String>, Vec<String>) {
        self.now = at(seconds);
        let Decision { admissions, preemptions, .. } = self.cycle();
        self.reconcile();
        let preempted = preemptions.iter().map(|it| it.key.name().to_owned()).collect();
        let admitted = admissions.iter().map(|it| it.key.name().to_owned()).collect();
        (admitted, preempted)
    }

    fn stop(&mut self, name: &str) {
        let id = self.id(name);
        assert!(self.engine.release(id, self.now));
    }

    /// The same engine after a save.
    fn loaded(&mut self) -> Self {
        let saved = self.engine.save(b"");
        let (mut engine, _) = Engine::load(&saved).expect("what was saved");
        assert_eq!(engine.save(b""), saved);
        Self { engine, now: self.now }
    }
}

fn of_other(name: &str, cpu: &str) -> Workload {
    Workload { queue_name: "other".into(), ..workload(name, cpu) }
}

fn created(workload: Workload, seconds: i64) -> Workload {
    let meta = Meta { created: at(seconds), ..namespaced(workload.meta.key.name()) };
    Workload { meta: meta.into(), ..workload }
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).into()
}

const NOBODY: [&str; 0] = [];

#[test]
fn a_workload_that_has_just_started_is_not_reclaimed_until_it_has_run() {
    for (min_run_ns, first) in [(None, 20), (Some(60 * SECOND), 70)] {
        let mut world = world_with(Experiments { min_run_ns, ..Experiments::default() });
        world.submit(workload("borrower", "20"));
        assert_eq!(world.cycle_at(10).0, names(["borrower"]));
        world.submit(of_other("owner", "10"));
        if first > 20 {
            assert_eq!(world.cycle_at(20).1, names(NOBODY));
            assert!(!world.engine.has_heads(), "it is parked");
            assert_eq!(world.wake(), Some(at(first)));
            world = world.loaded();
            assert_eq!(world.wake(), Some(at(first)), "a save keeps it");
            assert_eq!(world.cycle_at(first - 1).1, names(NOBODY));
            world.now = at(first);
            world.reconcile();
            assert!(world.engine.has_heads(), "its time has come");
        }
        assert_eq!(world.cycle_at(first).1, names(["borrower"]), "{min_run_ns:?}");
        assert_eq!(world.wake(), None, "an evicted workload has had its time");
    }
}

#[test]
fn a_minimal_run_time_protects_from_other_cluster_queues_only() {
    let mut world = world_with(Experiments { min_run_ns: Some(60 * SECOND), ..Experiments::default() });
    let policy = world.own_policy(PreemptionPolicy::LowerPriority);
    world.change_cluster_queue(|queue| queue.preemption = Some(policy));
    world.submit(workload("low", "20"));
    world.cycle_at(10);
    world.submit(Workload { priority: Some(1), ..workload("high", "10") });
    assert_eq!(world.cycle_at(20).1, names(["low"]));
}

#[test]
fn what_was_reclaimed_is_not_borrowed_again_for_a_while() {
    let mut world = world_with(Experiments { reclaim_backoff_ns: Some(60 * SECOND), ..Experiments::default() });
    world.submit(workload("borrower", "20"));
    world.cycle_at(10);
    world.submit(of_other("owner", "10"));
    assert_eq!(world.cycle_at(20).1, names(["borrower"]));
    world.stop("borrower");
    assert_eq!(world.cycle_at(21).0, names(["owner"]));
    let owner = world.id("owner");
    world.engine.finish(owner, "Succeeded", "", world.now);
    world = world.loaded();
    assert_eq!(world.cycle_at(22).0, names(NOBODY));
    let why = world.condition("borrower", conditions::QUOTA_RESERVED);
    assert!(why.contains("cpu in flavor default was reclaimed and is not borrowed again yet"), "{why}");
    assert_eq!(world.wake(), Some(at(80)));
    world.submit(workload("modest", "10"));
    assert_eq!(world.cycle_at(23).0, names(["modest"]), "its own quota is not held back");
    world.submit(of_other("borrows-too", "10"));
    assert_eq!(world.cycle_at(24).0, names(["borrows-too"]), "nor is another ClusterQueue");
    for name in ["modest", "borrows-too"] {
        let id = world.id(name);
        world.engine.finish(id, "Succeeded", "", world.now);
    }
    assert_eq!(world.cycle_at(79).0, names(NOBODY));
    assert_eq!(world.cycle_at(80).0, names(["borrower"]));
    assert_eq!(world.wake(), None);
}

#[test]
fn equals_take_turns_and_whoever_was_preempted_goes_to_the_back() {
    let mut world = world_of_turns();
    world.submit(created(workload("first", "10"), 1));
    assert_eq!(world.cycle_at(10).0, names(["first"]));
    world.submit(created(workload("second", "10"), 2));
    world.submit(created(workload("third", "10"), 3));
    assert_eq!(world.cycle_at(69).1, names(NOBODY));
    assert_eq!(world.wake(), Some(at(70)));
    assert_eq!(world.cycle_at(70).1, names(["first"]));
    world.stop("first");
    assert_eq!(world.cycle_at(71).0, names(["second"]), "not the one that was created first");
    assert_eq!(world.cycle_at(131).1, names(["second"]));
    world.stop("second");
    assert_eq!(world.cycle_at(132).0, names(["third"]));
    assert_eq!(world.cycle_at(192).1, names(["third"]));
    world.stop("third");
    assert_eq!(world.cycle_at(193).0, names(["first"]));
}

#[test]
fn states_at_two_times_are_alike_if_as_much_is_left_of_each_wait() {
    let mut world = world_of_turns();
    world.submit(created(workload("first", "10"), 1));
    world.cycle_at(10);
    world.submit(created(workload("second", "10"), 2));
    world.cycle_at(20);
    let before = world.engine.state.standings_over_time();
    world.cycle_at(30);
    assert_ne!(world.engine.state.standings_over_time(), before, "less is left of a turn");
    let mut turn = |name: &str, preempted: &str, seconds: i64| {
        assert_eq!(world.cycle_at(seconds).1, names([preempted]));
        world.stop(preempted);
        assert_eq!(world.cycle_at(seconds + 1).0, names([name]));
        world.cycle_at(seconds + 11);
        world.engine.state.standings_over_time()
    };
    let [second, first, again] = [("second", "first", 70), ("first", "second", 131), ("second", "first", 192)]
        .map(|(name, preempted, seconds)| turn(name, preempted, seconds));
    assert_ne!(second, first);
    assert_eq!(second, again);
}

#[test]
fn of_several_equals_the_one_that_has_run_for_longest_gives_way() {
    let mut world = world_of_turns();
    world.submit(created(workload("long", "5"), 1));
    world.cycle_at(10);
    world.submit(created(workload("short", "5"), 2));
    world.cycle_at(20);
    world.submit(created(workload("next", "5"), 3));
    assert_eq!(world.cycle_at(90).1, names(["long"]));
}

#[test]
fn without_experiments_nothing_is_noted() {
    let mut world = world_with(Experiments::default());
    world.submit(workload("borrower", "20"));
    world.cycle_at(10);
    world.submit(of_other("owner", "10"));
    world.cycle_at(20);
    let waits = &world.engine.state.pending.experiments;
    assert!(waits.since.is_empty() && waits.ends.is_empty() && waits.backoffs.is_empty());
    assert_eq!((waits.seen, waits.next()), (Time::default(), None));
}
