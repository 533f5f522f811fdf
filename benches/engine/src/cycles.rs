//! One cycle: with a thousand heads of one shape or of a thousand, in a tree of cohorts, and with victims.

use std::collections::BTreeMap;

use kueuecore::engine::Engine;
use kueuecore::objects::config::{Config, FairSharing};
use kueuecore::objects::{Object, PodSet};
use kueuecore::schedule::decision::Decision;

use crate::objects::{
    BASE, LOWER_AND_ANY, NEVER, admitted, basics, before_base, cohort, engine, group, object, pod_set, queue, workload,
};
use crate::rows::{Row, timed};

const N_COHORTS: usize = 10;
const N_QUEUES: usize = 100;
const N_HEADS: usize = N_COHORTS * N_QUEUES;
/// Cohorts below each cohort of a tree, and how often there are any below.
const N_CHILDREN: usize = 4;
const N_LEVELS_BELOW_ROOT: u32 = 3;
/// Workloads of which each head of a preempting cycle needs the room.
const N_VICTIMS: usize = 40;

/// How many CPUs a head asks for, where its ClusterQueue has ten: it fits, borrows, or fits nowhere.
const FIT: (&str, usize) = ("fit", 5);
const BORROW: (&str, usize) = ("borrow", 15);
const NO_FIT: (&str, usize) = ("nofit", 1_000_000);

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, cpu) in [FIT, BORROW, NO_FIT] {
        let (n_admitted, n_pending) = if name == NO_FIT.0 { (0, N_HEADS) } else { (N_HEADS, 0) };
        rows.push(row(format!("Cycle/{name}"), n_admitted, n_pending, move || flat(|_| pods(cpu))));
        rows.push(row(format!("Cycle/{name}/shapes={N_HEADS}"), n_admitted, n_pending, move || {
            flat(|number| pods_of_a_shape(cpu, number))
        }));
    }
    for (name, cpu) in [FIT, BORROW] {
        rows.push(row(format!("Cycle/5levels/{name}"), N_HEADS, 0, move || tree(N_HEADS, cpu, false)));
    }
    rows.extend(fair_rows(&[250, 1_000, 4_000]));
    rows.extend(preempting_rows(&[25, 100, 200]));
    rows
}

/// Fair sharing in a tree of cohorts, with so many heads.
pub fn fair_rows(sizes: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, cpu) in [FIT, BORROW] {
        for &n_heads in sizes {
            let state = move || tree(n_heads, cpu, true);
            rows.push(row(format!("Cycle/fair-5levels/{name}/heads={n_heads}"), n_heads, 0, state));
        }
    }
    rows
}

/// So many heads of one cohort, each of which takes its victims from the same ClusterQueues.
pub fn preempting_rows(sizes: &[usize]) -> Vec<Row> {
    let row = |&n_heads: &usize| {
        cycle(
            format!("Cycle/preempt-{N_VICTIMS}/heads={n_heads}"),
            move || preempting(n_heads),
            move |decision| {
                assert!(decision.admissions.is_empty(), "victims have to stop first");
                let mut n_victims: BTreeMap<_, usize> = BTreeMap::new();
                for preempted in &decision.preemptions {
                    *n_victims.entry(&preempted.preemptor).or_default() += 1;
                }
                assert_eq!(n_victims.len(), n_heads);
                assert!(n_victims.values().all(|&n| n == N_VICTIMS), "{n_victims:?}");
            },
        )
        .of_heads(n_heads)
    };
    sizes.iter().map(row).collect()
}

fn row(name: String, n_admitted: usize, n_pending: usize, state: impl Fn() -> Engine + Copy + 'static) -> Row {
    cycle(name, state, move |decision| {
        assert_eq!((decision.admissions.len(), decision.pending.len()), (n_admitted, n_pending));
    })
    .of_heads(n_admitted + n_pending)
}

/// The first cycle of a state. That is new for each sample, since the copies of one share what a cycle writes to. Decision
/// and state are dropped when the time has been taken.
fn cycle(name: String, state: impl Fn() -> Engine + Copy + 'static, check: impl Fn(&Decision) + Copy + 'static) -> Row {
    Row::new(name, 1, move || {
        Box::new(move |_| {
            let mut engine = state();
            let (took, decision) = timed(1, || engine.cycle(BASE));
            check(&decision);
            took
        })
    })
}

fn pods(cpu: usize) -> PodSet {
    pod_set("main", 1, &[("cpu", &cpu.to_string()), ("memory", "1Gi")])
}

/// No two numbers have the same requests, nor the same node selector.
fn pods_of_a_shape(cpu: usize, number: usize) -> PodSet {
    let memory = format!("{}Ki", 1024 * 1024 + number);
    let mut pods = pod_set("main", 1, &[("cpu", &format!("{}m", cpu * 1000 + number)), ("memory", &memory)]);
    pods.template.spec.node_selector.insert("example.com/rack".to_owned(), format!("r{number}"));
    pods
}

/// Cohorts with quota of their own, each with ClusterQueues with one workload.
fn flat(pods: impl Fn(usize) -> PodSet) -> Engine {
    let mut objects = basics(["rf"]);
    for c in 0..N_COHORTS {
        let cohort_name = format!("co{c}");
        objects.push(cohort(&cohort_name, "", vec![group(["rf"], &[("cpu", "1000"), ("memory", "1000Gi")])]));
        for q in 0..N_QUEUES {
            let number = c * N_QUEUES + q;
            objects.extend(head(number, &format!("cq{c}-{q}"), &cohort_name, pods(number)));
        }
    }
    engine(Config::default(), objects)
}

/// A ClusterQueue with quota of its own, and the workload in it.
fn head(number: usize, queue_name: &str, cohort: &str, pods: PodSet) -> Vec<Object> {
    let quota = group(["rf"], &[("cpu", "10"), ("memory", "10Gi")]);
    let mut objects: Vec<_> = queue(queue_name, cohort, vec![quota], NEVER).into();
    objects.push(object(workload(number, queue_name, 0, vec![pods])));
    objects
}

/// Five levels: a root that has all that can be borrowed, three levels of cohorts below, and ClusterQueues below the last
/// one, with one workload each.
fn tree(n_heads: usize, cpu: usize, is_fair: bool) -> Engine {
    let mut objects = basics(["rf"]);
    let (cpus, memory) = ((n_heads * 10).to_string(), format!("{}Gi", n_heads * 10));
    objects.push(cohort("co", "", vec![group(["rf"], &[("cpu", &cpus), ("memory", &memory)])]));
    let mut level = vec!["co".to_owned()];
    for _ in 0..N_LEVELS_BELOW_ROOT {
        let mut below = Vec::new();
        for parent in &level {
            for child in 0..N_CHILDREN {
                let name = format!("{parent}-{child}");
                objects.push(cohort(&name, parent, Vec::new()));
                below.push(name);
            }
        }
        level = below;
    }
    for number in 0..n_heads {
        objects.extend(head(number, &format!("cq{number}"), &level[number % level.len()], pods(cpu)));
    }
    let fair_sharing = is_fair.then(FairSharing::default);
    engine(Config { fair_sharing, ..Config::default() }, objects)
}

/// Each head is within the quota of its ClusterQueue, all of which ten others have borrowed. On their own all heads would
/// choose the same victims, so that all but the first are assigned again.
fn preempting(n_heads: usize) -> Engine {
    let mut objects = basics(["rf"]);
    let quota = |cpu: usize| vec![group(["rf"], &[("cpu", &cpu.to_string())])];
    for b in 0..10 {
        objects.extend(queue(&format!("b{b}"), "co", quota(0), LOWER_AND_ANY));
    }
    let n_candidates = n_heads * N_VICTIMS;
    for number in 0..n_candidates {
        let pods = vec![pod_set("main", 1, &[("cpu", "1")])];
        let candidate = workload(number, &format!("b{}", number % 10), 0, pods);
        objects.push(object(admitted(candidate, &[("cpu", "rf")], before_base(number))));
    }
    for h in 0..n_heads {
        let name = format!("p{h}");
        objects.extend(queue(&name, "co", quota(N_VICTIMS), LOWER_AND_ANY));
        let pods = pod_set("main", 1, &[("cpu", &N_VICTIMS.to_string())]);
        objects.push(object(workload(n_candidates + h, &name, 100, vec![pods])));
    }
    engine(Config::default(), objects)
}
