//! One search for victims among a thousand or ten thousand candidates.

use kueuecore::assign::Mode;
use kueuecore::engine::Engine;
use kueuecore::objects::Object;
use kueuecore::objects::config::{Config, FairSharing};

use crate::head::with_head;
use crate::objects::{
    LOWER_AND_ANY, admitted, basics, before_base, cohort, engine, group, object, pod_set, queue, workload,
};
use crate::rows::{Row, timed};

/// The rows.
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
    rows
}

fn row(name: String, n_victims: usize, state: impl Fn() -> Engine + 'static) -> Row {
    let n_calls = if n_victims < 100 { 20 } else { 2 };
    Row::new(name, n_calls, move || {
        let mut engine = state();
        let queue = engine.state.find_queue("p").expect("it was applied");
        let head = engine.state.workloads.find("ns", &head_name()).expect("it was applied");
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

fn head_name() -> String {
    format!("w{HEAD}")
}

/// The flavor, the ClusterQueue `p` and the workload in it that needs room.
fn with_preemptor(cohort: &str, nominal: usize, n_victims: usize) -> Vec<Object> {
    let mut objects = basics(["rf"]);
    objects.extend(queue_of_cpu("p", cohort, nominal));
    let pods = pod_set("main", 1, &[("cpu", &n_victims.to_string())]);
    objects.push(object(workload(HEAD, "p", 100, vec![pods])));
    objects
}

fn queue_of_cpu(name: &str, cohort: &str, nominal: usize) -> [Object; 2] {
    queue(name, cohort, vec![group(["rf"], &[("cpu", &nominal.to_string())])], LOWER_AND_ANY)
}

fn candidate(number: usize, queue: &str, n_candidates: usize) -> Object {
    let priority = i32::try_from(number * 7919 % 10).expect("a digit");
    let workload = workload(number, queue, priority, vec![pod_set("main", 1, &[("cpu", "1")])]);
    object(admitted(workload, &[("cpu", "rf")], before_base(number * 7919 % n_candidates)))
}

/// A cohort in which ten ClusterQueues without quota have borrowed all that `p` has.
fn classical(n_candidates: usize, n_victims: usize) -> Engine {
    let mut objects = with_preemptor("co", n_candidates, n_victims);
    for b in 0..10 {
        objects.extend(queue_of_cpu(&format!("b{b}"), "co", 0));
    }
    objects.extend((0..n_candidates).map(|i| candidate(i, &format!("b{}", i % 10), n_candidates)));
    engine(Config::default(), objects)
}

/// The same with eighty borrowers in the sixteen leaves of a tree of cohorts, of three levels.
fn hierarchical(n_candidates: usize, n_victims: usize) -> Engine {
    let mut objects = with_preemptor("m0-l0", n_candidates, n_victims);
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
    objects.extend((0..n_candidates).map(|i| candidate(i, &borrowers[i % borrowers.len()], n_candidates)));
    engine(Config::default(), objects)
}

/// Fair sharing: a hundred ClusterQueues that have borrowed a little each.
fn fair(n_victims: usize) -> Engine {
    let n_each = 100;
    let mut objects = with_preemptor("co", 100, n_victims);
    for q in 0..100 {
        let name = format!("b{q}");
        objects.extend(queue_of_cpu(&name, "co", n_each - 1));
        objects.extend((0..n_each).map(|k| candidate(q * n_each + k, &name, 100 * n_each)));
    }
    engine(Config { fair_sharing: Some(FairSharing::default()), ..Config::default() }, objects)
}
