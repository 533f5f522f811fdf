//! A consistent view of a thousand ClusterQueues. A cycle takes none: it works on the state itself, under a journal. So what
//! is measured is the smallest question that needs one, what would become of a workload, a copy of the whole engine, and the
//! engine as bytes and back.

use kueuecore::engine::Engine;
use kueuecore::engine::what_if::Outcome;
use kueuecore::objects::config::Config;

use crate::objects::{BASE, NEVER, admitted, basics, engine, group, object, pod_set, queue, workload};
use crate::rows::{Row, timed};

const N_QUEUES: usize = 1000;

pub fn rows() -> Vec<Row> {
    let row = |n_admitted: usize| {
        Row::new(format!("WhatIf/1000cqs/admitted={n_admitted}"), 100, move || {
            let mut engine = state(n_admitted);
            let pods = pod_set("main", 1, &[("cpu", "1"), ("memory", "1Gi")]);
            let asked = workload(n_admitted, "cq0", 0, vec![pods]);
            Box::new(move |n_calls| {
                let mut each = vec![asked.clone(); n_calls as usize];
                let (took, answer) = timed(n_calls, || engine.what_if(each.pop().expect("one for each call"), BASE));
                assert_eq!(answer.expect("a new name").outcome, Outcome::Fits);
                took
            })
        })
    };
    let fork = |n_admitted: usize| {
        Row::new(format!("Fork/admitted={n_admitted}"), 1, move || {
            let mut engine = state(n_admitted);
            Box::new(move |_| {
                let (took, fork) = timed(1, || engine.fork());
                assert_eq!(fork.state.workloads.iter().count(), n_admitted);
                took
            })
        })
    };
    let save = |name: String, state: fn(usize) -> Engine, n_workloads: usize| {
        Row::new(format!("Save/{name}"), 1, move || {
            let mut engine = state(n_workloads);
            Box::new(move |_| {
                let (took, saved) = timed(1, || engine.save(b""));
                assert!(saved.len() > n_workloads);
                took
            })
        })
    };
    let load = |name: String, state: fn(usize) -> Engine, n_workloads: usize| {
        Row::new(format!("Load/{name}"), 1, move || {
            let saved = state(n_workloads).save(b"");
            Box::new(move |_| {
                let (took, loaded) = timed(1, || Engine::load(&saved));
                assert_eq!(loaded.expect("what was saved").0.state.workloads.len(), n_workloads);
                took
            })
        })
    };
    let saved = [("admitted=50000", state as fn(usize) -> Engine, 50_000), ("pending=100000", pending, 100_000)];
    let saved = saved
        .into_iter()
        .flat_map(|(name, state, n)| [save(name.to_owned(), state, n), load(name.to_owned(), state, n)]);
    [0, 50_000].map(row).into_iter().chain([fork(50_000)]).chain(saved).collect()
}

/// A thousand ClusterQueues in ten cohorts, with workloads that wait: of a hundred kinds, and of a UID of their own each.
pub fn pending(n_pending: usize) -> Engine {
    let mut engine = state(0);
    for number in 0..n_pending {
        let cpu = format!("{}m", 100 * (1 + number % 100));
        let pods = pod_set("main", 1, &[("cpu", &cpu), ("memory", "1Gi")]);
        let workload = workload(number, &format!("cq{}", number % N_QUEUES), 0, vec![pods]);
        engine.apply(vec![object(workload)], BASE);
    }
    engine
}

/// A thousand ClusterQueues in ten cohorts, with workloads that are Admitted.
pub fn state(n_admitted: usize) -> Engine {
    let mut objects = basics(["rf"]);
    for q in 0..N_QUEUES {
        let quota = group(["rf"], &[("cpu", "100"), ("memory", "100Gi")]);
        objects.extend(queue(&format!("cq{q}"), &format!("co{}", q / 100), vec![quota], NEVER));
    }
    for number in 0..n_admitted {
        let pods = pod_set("main", 1, &[("cpu", "1"), ("memory", "1Gi")]);
        let workload = workload(number, &format!("cq{}", number % N_QUEUES), 0, vec![pods]);
        objects.push(object(admitted(workload, &[("cpu", "rf"), ("memory", "rf")], BASE)));
    }
    engine(Config::default(), objects)
}
