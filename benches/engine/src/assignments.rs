//! One flavor assignment among eight flavors a group, in a cohort of a hundred ClusterQueues, with warm caches and cold.

use kueuecore::assign::Mode;
use kueuecore::engine::Engine;
use kueuecore::objects::PodSet;
use kueuecore::objects::config::Config;

use crate::head::with_head;
use crate::objects::{BASE, NEVER, admitted, basics, engine, group, object, pod_set, queue, workload};
use crate::rows::{OtherMemory, Row, timed};

const N_QUEUES: usize = 100;
const F: [&str; 8] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];
const G: [&str; 8] = ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"];
const ALL: [(&str, &str); 4] = [("cpu", "1"), ("memory", "1Gi"), ("example.com/gpu", "1"), ("example.com/nic", "1")];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (shape, pod_sets) in [("1podset-2res-8flavors", one as fn() -> _), ("3podsets-4res-2x8flavors", three)] {
        // How many flavors of a group are used up: the next one fits.
        for (name, n_used) in [("first", 0), ("last", 7), ("none", 8)] {
            rows.push(row(format!("Assign/{shape}/{name}"), 1000, n_used, pod_sets, false));
        }
        rows.push(row(format!("Assign/{shape}/last/cold"), 10, 7, pod_sets, true));
    }
    rows
}

fn row(name: String, n_calls: u32, n_used: usize, pod_sets: fn() -> Vec<PodSet>, is_cold: bool) -> Row {
    Row::new(name, n_calls, move || {
        let mut engine = state(n_used, pod_sets());
        let queue = engine.state.find_queue("cq0").expect("it was applied");
        let head = engine.state.workloads.find("ns", "w0").expect("it was applied");
        let other_memory = is_cold.then(OtherMemory::default);
        Box::new(move |n_calls| {
            let (took, assignment) = with_head(&mut engine.state, queue, head, |head| match &other_memory {
                Some(memory) => memory.timed(n_calls, || head.assign()),
                None => timed(n_calls, || head.assign()),
            });
            let expected = if n_used < F.len() { Mode::Fit } else { Mode::Preempt };
            assert_eq!(assignment.mode(), expected);
            let choice = &assignment.pod_sets()[0].flavors[0];
            let flavor = &engine.state.names.flavors[choice.flavor];
            assert!(n_used == F.len() || *flavor == F[n_used], "{flavor}");
            took
        })
    })
}

fn one() -> Vec<PodSet> {
    vec![pod_set("main", 2, &ALL[..2])]
}

fn three() -> Vec<PodSet> {
    [("a", 1), ("b", 2), ("c", 2)].map(|(name, n_pods)| pod_set(name, n_pods, &ALL)).into()
}

/// In every ClusterQueue the first flavors of both groups are used up; `w0` waits in the first one.
fn state(n_used: usize, pod_sets: Vec<PodSet>) -> Engine {
    let mut objects = basics(F.into_iter().chain(G));
    let mut number = 1;
    for q in 0..N_QUEUES {
        let name = format!("cq{q}");
        let groups = vec![
            group(F, &[("cpu", "10"), ("memory", "10Gi")]),
            group(G, &[("example.com/gpu", "10"), ("example.com/nic", "10")]),
        ];
        objects.extend(queue(&name, "co", groups, NEVER));
        for k in 0..n_used {
            let requests = [("cpu", "10"), ("memory", "10Gi"), ("example.com/gpu", "10"), ("example.com/nic", "10")];
            let flavors = [("cpu", F[k]), ("memory", F[k]), ("example.com/gpu", G[k]), ("example.com/nic", G[k])];
            let workload = workload(number, &name, 0, vec![pod_set("main", 1, &requests)]);
            objects.push(object(admitted(workload, &flavors, BASE)));
            number += 1;
        }
    }
    objects.push(object(workload(0, "cq0", 0, pod_sets)));
    engine(Config::default(), objects)
}
