//! What nodes and places take of memory, counted to the byte: only in a program that allocates with
//! [`INSTRUMENTED_SYSTEM`].

use kueuecore::engine::Engine;
use kueuecore::objects::PodSet;
use stats_alloc::INSTRUMENTED_SYSTEM;

use crate::objects::{BASE, object, pod_set, workload};
use crate::placements::{cluster, unconstrained};

/// Pods of a workload, each of which fills a node.
const N_PODS: usize = 500;

/// What is kept, in bytes that were asked for. Nodes as objects are not in it, nor their names in a domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Nodes, each a leaf of one flavor.
    pub n_nodes: usize,
    /// Of a leaf in the tree of a flavor.
    pub bytes_per_leaf: f64,
    /// Of a leaf in what is kept of what fits there, for one kind of pods.
    pub bytes_per_leaf_and_kind: f64,
    /// Of a domain that a workload was assigned, with its share of the workload.
    pub bytes_per_domain: f64,
}

/// Builds a cluster of so many nodes, and fills nine tenths of it.
pub fn footprint(n_nodes: usize) -> Footprint {
    let mut engine = cluster(n_nodes, of_whole_nodes(1), false);
    // Looks at the nodes, which are on a list as they are new.
    engine.reconcile(BASE);
    let per_node = |before: usize| (live_bytes() - before) as f64 / n_nodes as f64;
    let before = live_bytes();
    engine.state.refresh_sites();
    let bytes_per_leaf = per_node(before);
    let before = live_bytes();
    admit(&mut engine, 1);
    let bytes_per_leaf_and_kind = per_node(before);

    let n_workloads = n_nodes * 9 / 10 / N_PODS;
    let before = live_bytes();
    let pending = (1..=n_workloads).map(|number| object(workload(number, "cq", 0, of_whole_nodes(N_PODS))));
    engine.apply(pending.collect(), BASE);
    admit(&mut engine, n_workloads);
    let bytes_per_domain = (live_bytes() - before) as f64 / (n_workloads * N_PODS) as f64;
    Footprint { n_nodes, bytes_per_leaf, bytes_per_leaf_and_kind, bytes_per_domain }
}

fn of_whole_nodes(n_pods: usize) -> Vec<PodSet> {
    let [pods] = <[_; 1]>::try_from(unconstrained()).expect("a pod set");
    let count = i32::try_from(n_pods).expect("a small number");
    let template = pod_set("main", count, &[("cpu", "8")]).template;
    vec![PodSet { count, template, ..pods }]
}

/// Runs cycles until so many have quota, and what the last one keeps for the next is gone.
fn admit(engine: &mut Engine, n_workloads: usize) {
    let mut n_admitted = 0;
    while n_admitted < n_workloads {
        let decision = engine.cycle(BASE);
        assert!(!decision.admissions.is_empty(), "{:?}", decision.events);
        n_admitted += decision.admissions.len();
        engine.reconcile(BASE);
    }
    engine.take_written();
    engine.cycle(BASE);
}

fn live_bytes() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}
