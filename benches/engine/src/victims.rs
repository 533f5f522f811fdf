//! One search for victims among many candidates, or one for each flavor.

use kueuecore::assign::Mode;
use kueuecore::base::ids::{QueueId, WorkloadId};
use kueuecore::engine::Engine;
use kueuecore::objects::config::{Config, FairSharing};
use kueuecore::objects::{FungibilityPolicy, Object, PreemptionPolicy};

use crate::head::with_head;
use crate::objects::{
    LOWER_AND_ANY, admitted, basics, before_base, cohort, engine, group, object, pod_set, quantity, queue, workload,
};
use crate::rows::{Row, timed};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (n_candidates, few, many) in [(1_000, 10, 500), (10_000, 10, 5_000)] {
        for n_victims in [few, many] {
            let size = format!("candidates={n_candidates}/victims={n_victims}");
            rows.push(row(format!("Preempt/classical/{size}"), n_victims, move || classical(n_candidates, n_victims)));
            rows.push(row(format!("Preempt/hierarchical3/{size}"), n_victims, move || {
                hierarchical(n_candidates, n_victims)
            }));
        }
    }
    for n_victims in [10, 50] {
        rows.push(row(format!("Preempt/fair/100cqs-x-100/victims={n_victims}"), n_victims, move || fair(n_victims)));
    }
    for (name, state) in [("flat", flat_and_held as fn() -> _), ("three-levels", three_levels_and_held)] {
        rows.push(none_suffices(format!("Preempt/none-suffices/{name}/candidates={N_HELD_OFF}"), state));
    }
    rows.extend(flavor_rows(&[2_500, 10_000, 40_000]));
    rows
}

/// One flavor assignment, which looks for victims in eight flavors, and the victims for it, among so many candidates.
pub fn flavor_rows(sizes: &[usize]) -> Vec<Row> {
    const N_VICTIMS: usize = 10;
    let row = |&n_candidates: &usize| {
        let name = format!("Preempt/flavors/8xTryNextFlavor/candidates={n_candidates}/victims={N_VICTIMS}");
        Row::new(name, 20, move || {
            let mut engine = flavors(n_candidates, N_VICTIMS);
            let (queue, head) = preemptor(&engine, HEAD);
            Box::new(move |n_calls| {
                let (took, (assignment, targets)) =
                    with_head(&mut engine.state, queue, head, |head| timed(n_calls, || head.decide()));
                let choice = &assignment.pod_sets()[0].flavors[0];
                assert_eq!(engine.state.names.flavors[choice.flavor], *FLAVORS[0], "as good as all others");
                assert_eq!((assignment.mode(), targets.len()), (Mode::Preempt, N_VICTIMS));
                took
            })
        })
    };
    sizes.iter().map(row).collect()
}

/// A search that takes out all candidates in vain.
fn none_suffices(name: String, state: fn() -> Engine) -> Row {
    Row::new(name, 2, move || {
        let mut engine = state();
        let (queue, head) = preemptor(&engine, HEAD);
        // A workload that asks for what all candidates hold gets it: each of them may be preempted.
        let (_, modest) = preemptor(&engine, HEAD + 1);
        let all = with_head(&mut engine.state, queue, modest, |head| head.decide().1);
        assert_eq!(all.len(), N_HELD_OFF);
        Box::new(move |n_calls| {
            let (took, targets) = with_head(&mut engine.state, queue, head, |head| {
                let assignment = head.assign();
                assert_eq!(assignment.mode(), Mode::Preempt);
                timed(n_calls, || head.victims(&assignment))
            });
            assert!(targets.is_empty());
            took
        })
    })
}

fn row(name: String, n_victims: usize, state: impl Fn() -> Engine + 'static) -> Row {
    let n_calls = if n_victims < 100 { 20 } else { 2 };
    Row::new(name, n_calls, move || {
        let mut engine = state();
        let (queue, head) = preemptor(&engine, HEAD);
        Box::new(move |n_calls| {
            let (took, targets) = with_head(&mut engine.state, queue, head, |head| {
                let assignment = head.assign();
                assert_eq!(assignment.mode(), Mode::Preempt);
                timed(n_calls, || head.victims(&assignment))
            });
            assert_eq!(targets.len(), n_victims);
            took
        })
    })
}

/// Higher than the numbers of all candidates.
const HEAD: usize = 1_000_000;

/// Candidates of a search in vain, and what others hold that may not be preempted.
const N_HELD_OFF: usize = 10_000;
const N_HELD: usize = 100;

const FLAVORS: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];

fn preemptor(engine: &Engine, number: usize) -> (QueueId, WorkloadId) {
    let queue = engine.state.find_queue("p").expect("it was applied");
    (queue, engine.state.workloads.find("ns", &format!("w{number}")).expect("it was applied"))
}

/// The flavor, the ClusterQueue `p` and the workload in it that needs room.
fn with_preemptor(cohort: &str, nominal: usize, n_victims: usize) -> Vec<Object> {
    let mut objects = basics(["rf"]);
    objects.extend(queue_of_cpu("p", cohort, nominal));
    objects.push(head(HEAD, n_victims));
    objects
}

fn head(number: usize, cpu: usize) -> Object {
    object(workload(number, "p", 100, vec![pod_set("main", 1, &[("cpu", &cpu.to_string())])]))
}

fn queue_of_cpu(name: &str, cohort: &str, nominal: usize) -> [Object; 2] {
    queue(name, cohort, vec![group(["rf"], &[("cpu", &nominal.to_string())])], LOWER_AND_ANY)
}

fn candidate(number: usize, queue: &str, flavor: &str, n_candidates: usize) -> Object {
    let priority = i32::try_from(number * 7919 % 10).expect("a digit");
    let workload = workload(number, queue, priority, vec![pod_set("main", 1, &[("cpu", "1")])]);
    object(admitted(workload, &[("cpu", flavor)], before_base(number * 7919 % n_candidates)))
}

/// So many candidates in these ClusterQueues, in turn.
fn candidates<'a>(n_candidates: usize, borrowers: &'a [String]) -> impl Iterator<Item = Object> + 'a {
    (0..n_candidates).map(move |i| candidate(i, &borrowers[i % borrowers.len()], "rf", n_candidates))
}

/// A cohort in which ten ClusterQueues without quota have borrowed all that `p` has.
fn classical(n_candidates: usize, n_victims: usize) -> Engine {
    let mut objects = with_preemptor("co", n_candidates, n_victims);
    let borrowers = ten_borrowers();
    objects.extend(borrowers.iter().flat_map(|name| queue_of_cpu(name, "co", 0)));
    objects.extend(candidates(n_candidates, &borrowers));
    engine(Config::default(), objects)
}

fn ten_borrowers() -> Vec<String> {
    (0..10).map(|b| format!("b{b}")).collect()
}

/// The same with eighty borrowers in the sixteen leaves of a tree of cohorts, of three levels.
fn hierarchical(n_candidates: usize, n_victims: usize) -> Engine {
    let mut objects = with_preemptor("m0-l0", n_candidates, n_victims);
    let borrowers = three_levels(&mut objects);
    objects.extend(candidates(n_candidates, &borrowers));
    engine(Config::default(), objects)
}

/// Adds the cohorts and the borrowers, and gives the names of those.
fn three_levels(objects: &mut Vec<Object>) -> Vec<String> {
    objects.push(cohort("root", "", Vec::new()));
    let mut borrowers = Vec::new();
    for m in 0..4 {
        objects.push(cohort(&format!("m{m}"), "root", Vec::new()));
        for l in 0..4 {
            let leaf = format!("m{m}-l{l}");
            objects.push(cohort(&leaf, &format!("m{m}"), Vec::new()));
            for q in 0..5 {
                let name = format!("{leaf}-q{q}");
                objects.extend(queue_of_cpu(&name, &leaf, 0));
                borrowers.push(name);
            }
        }
    }
    borrowers
}

/// Fair sharing: a hundred ClusterQueues that have borrowed a little each.
fn fair(n_victims: usize) -> Engine {
    let n_each = 100;
    let mut objects = with_preemptor("co", 100, n_victims);
    for q in 0..100 {
        let name = format!("b{q}");
        objects.extend(queue_of_cpu(&name, "co", n_each - 1));
        objects.extend((0..n_each).map(|k| candidate(q * n_each + k, &name, "rf", 100 * n_each)));
    }
    engine(Config { fair_sharing: Some(FairSharing::default()), ..Config::default() }, objects)
}

/// The classical state, in which some of what `p` has lent is held by workloads of a higher priority than its own.
fn flat_and_held() -> Engine {
    held("co", |objects| {
        let borrowers = ten_borrowers();
        objects.extend(borrowers.iter().flat_map(|name| queue_of_cpu(name, "co", 0)));
        borrowers
    })
}

/// The same of the state with three levels of cohorts.
fn three_levels_and_held() -> Engine {
    held("m0-l0", three_levels)
}

/// `p` may only preempt what has a lower priority. One workload asks for half of what is held beside all that the
/// candidates have, another one for just that.
fn held(cohort: &str, borrowers: impl Fn(&mut Vec<Object>) -> Vec<String>) -> Engine {
    let mut objects = basics(["rf"]);
    let quota = group(["rf"], &[("cpu", &(N_HELD_OFF + N_HELD).to_string())]);
    let lower = (PreemptionPolicy::LowerPriority, PreemptionPolicy::LowerPriority);
    objects.extend(queue("p", cohort, vec![quota], lower));
    objects.extend([head(HEAD, N_HELD_OFF + N_HELD / 2), head(HEAD + 1, N_HELD_OFF)]);
    let borrowers = borrowers(&mut objects);
    objects.extend(candidates(N_HELD_OFF, &borrowers));
    for i in 0..N_HELD {
        let pods = vec![pod_set("main", 1, &[("cpu", "1")])];
        let holder = workload(N_HELD_OFF + i, &borrowers[i % borrowers.len()], 1000, pods);
        objects.push(object(admitted(holder, &[("cpu", "rf")], before_base(i))));
    }
    engine(Config::default(), objects)
}

/// The classical state in eight flavors: `p` has the same in each, and it is all borrowed. Preempting in the first flavor
/// does not stop the search.
fn flavors(n_candidates: usize, n_victims: usize) -> Engine {
    let mut objects = basics(FLAVORS);
    let candidates_in = |flavor: usize| (flavor..n_candidates).step_by(FLAVORS.len());
    let mut quota = group(FLAVORS, &[("cpu", "0")]);
    for b in ten_borrowers() {
        objects.extend(queue(&b, "co", vec![quota.clone()], LOWER_AND_ANY));
    }
    for (number, flavor) in quota.flavors.iter_mut().enumerate() {
        flavor.resources[0].nominal_quota = quantity(&candidates_in(number).count().to_string());
    }
    let [mut cluster_queue, local_queue] = queue("p", "co", vec![quota], LOWER_AND_ANY);
    if let Object::ClusterQueue(it) = &mut cluster_queue {
        it.flavor_fungibility.when_can_preempt = FungibilityPolicy::TryNextFlavor;
    }
    objects.extend([cluster_queue, local_queue, head(HEAD, n_victims)]);
    for (number, flavor) in FLAVORS.iter().enumerate() {
        let in_turn = candidates_in(number).enumerate();
        objects.extend(in_turn.map(|(turn, i)| candidate(i, &format!("b{}", turn % 10), flavor, n_candidates)));
    }
    engine(Config::default(), objects)
}
