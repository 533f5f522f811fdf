//! A consistent view of a thousand ClusterQueues. A cycle takes none: it works on the state itself, under a journal. So what
//! is measured is the smallest question that needs one, what would become of a workload, and a copy of the whole engine.

use kueuecore::engine::Engine;
use kueuecore::engine::what_if::Outcome;
use kueuecore::objects::config::Config;

use crate::objects::{BASE, NEVER, admitted, basics, engine, group, object, pod_set, queue, workload};
use crate::rows::{Row, timed};

const N_QUEUES: usize = 1000;

/// The rows.
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
    [0, 50_000].map(row).into_iter().chain([fork(50_000)]).collect()
}

/// A thousand ClusterQueues in ten cohorts, with workloads that are Admitted.
pub(crate) fn state(n_admitted: usize) -> Engine {
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
