//! How time and memory grow with the cluster: `growth [--pending N] [--queues N] [--cohort N] [--depth N] [--flavors N]
//! [--fair]`.
//!
//! N pending workloads in N ClusterQueues, N of them in a cohort, N cohorts above each other, with N flavors of which the
//! last one has the quota. All heads of the first cycles fit. Prints a JSON line; one size a process, since memory is read
//! from the system.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use kueuecore::engine::Engine;
use kueuecore::objects::Object;
use kueuecore::objects::config::{Config, FairSharing};
use kueuecore_bench::memory::Memory;
use kueuecore_bench::objects::{BASE, NEVER, basics, cohort, engine, group, object, pod_set, queue, workload};
use kueuecore_bench::rows::timed;
use serde_json::json;

/// Many small pieces come and go in a cycle.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N_CYCLES: usize = 5;
/// Cohorts below another one.
const N_CHILDREN: usize = 3;
/// So many workloads are made and applied at once: what the caller holds meanwhile does not count as the engine's.
const N_AT_ONCE: usize = 1_000;

#[derive(Clone, Copy)]
struct Size {
    n_pending: usize,
    n_queues: usize,
    n_in_cohort: usize,
    depth: usize,
    n_flavors: usize,
    is_fair: bool,
}

fn size() -> Result<Size, String> {
    let mut size = Size { n_pending: 10_000, n_queues: 100, n_in_cohort: 10, depth: 1, n_flavors: 1, is_fair: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let field = match argument.as_str() {
            "--fair" => {
                size.is_fair = true;
                continue;
            }
            "--pending" => &mut size.n_pending,
            "--queues" => &mut size.n_queues,
            "--cohort" => &mut size.n_in_cohort,
            "--depth" => &mut size.depth,
            "--flavors" => &mut size.n_flavors,
            _ => return Err(format!("{argument}: no such option")),
        };
        let number = arguments.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
        *field = number.ok_or(format!("{argument}: a number above 0 is missing"))?;
    }
    Ok(size)
}

fn cluster(size: Size) -> Engine {
    let flavors: Vec<String> = (0..size.n_flavors).map(|f| format!("f{f}")).collect();
    let mut objects = basics(flavors.iter().map(String::as_str));
    let mut groups = group(flavors.iter().map(String::as_str), &[("cpu", "0"), ("memory", "0")]);
    let last = group(["last"], &[("cpu", "1000000"), ("memory", "1000000Gi")]);
    groups.flavors.last_mut().expect("one at least").resources.clone_from(&last.flavors[0].resources);
    for q in 0..size.n_queues {
        let cohort = format!("co{}", q / size.n_in_cohort);
        objects.extend(queue(&format!("cq{q}"), &cohort, vec![groups.clone()], NEVER));
    }
    objects.extend(parents(size));
    let fair_sharing = size.is_fair.then(FairSharing::default);
    engine(Config { fair_sharing, ..Config::default() }, objects)
}

/// Cohorts above those of the ClusterQueues, level by level.
fn parents(size: Size) -> Vec<Object> {
    let mut level: Vec<String> = (0..size.n_queues.div_ceil(size.n_in_cohort)).map(|c| format!("co{c}")).collect();
    let mut objects = Vec::new();
    for depth in 2..=size.depth {
        let parent = |index: usize| format!("co{depth}-{}", index / N_CHILDREN);
        objects.extend(level.iter().enumerate().map(|(index, name)| cohort(name, &parent(index), Vec::new())));
        level = (0..level.len().div_ceil(N_CHILDREN)).map(|index| parent(index * N_CHILDREN)).collect();
    }
    objects
}

/// Nanoseconds in which the share of one ClusterQueue is worked out.
fn share_ns(engine: &Engine) -> f64 {
    const N_ROUNDS: u32 = 100;
    let state = &engine.state;
    let nodes: Vec<_> = state.queues.iter().filter_map(|queue| queue.node).collect();
    let share = |node| {
        let (tree, row) = state.ledger.forest.locate(node);
        state.ledger.forest.tree(tree).share(
            row,
            state.ledger.forest.weight(node),
            state.ledger.forest.resources_of(tree),
            &[],
        )
    };
    let (took, ()) = timed(N_ROUNDS, || nodes.iter().for_each(|&node| _ = black_box(share(node))));
    took.time.as_secs_f64() * 1e9 / f64::from(N_ROUNDS) / nodes.len() as f64
}

/// Eight shapes and three priorities.
fn workloads(size: Size, numbers: Range<usize>) -> Vec<Object> {
    let shapes: Vec<_> =
        (1..=8).map(|cpu| pod_set("main", 1, &[("cpu", &cpu.to_string()), ("memory", &format!("{cpu}Gi"))])).collect();
    let pending = |number: usize| {
        let of_queue = number / size.n_queues;
        let priority = i32::try_from(of_queue % 3).expect("a small number");
        let pods = vec![shapes[of_queue % shapes.len()].clone()];
        object(workload(number, &format!("cq{}", number % size.n_queues), priority, pods))
    };
    numbers.map(pending).collect()
}

fn main() -> ExitCode {
    let size = match size() {
        Ok(size) => size,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut engine = cluster(size);
    let before = Memory::read();
    let mut load = Duration::ZERO;
    for first in (0..size.n_pending).step_by(N_AT_ONCE) {
        let numbers = first..size.n_pending.min(first + N_AT_ONCE);
        let mut objects = Some(workloads(size, numbers));
        load += timed(1, || engine.apply(objects.take().expect("once"), BASE)).0.time;
    }
    let after = Memory::read();

    let mut cycles = Vec::new();
    let mut reserved = Vec::new();
    for n in 1..=N_CYCLES {
        let (took, decision) = timed(1, || engine.cycle(BASE));
        let n_heads = size.n_queues.min(size.n_pending.saturating_sub((n - 1) * size.n_queues));
        assert_eq!(decision.admissions.len(), n_heads, "in cycle {n} of {} heads", n_heads);
        if n_heads == size.n_queues {
            cycles.push(took.time.as_secs_f64() * 1e9);
        }
        let key = |namespace: &str, name: &str| engine.state.workloads.find(namespace, name).expect("it was admitted");
        reserved.extend(decision.admissions.iter().map(|admitted| key(admitted.key.namespace(), admitted.key.name())));
    }
    let n_reserved = reserved.len();
    let (finish, n_finished) = timed(1, || {
        let mut finished = |id: &_| engine.finish(*id, "JobFinished", "Job finished successfully", BASE);
        reserved.iter().filter(|id| finished(id)).count()
    });
    assert_eq!(n_finished, n_reserved);

    cycles.sort_by(f64::total_cmp);
    let n_pending = size.n_pending as f64;
    println!(
        "{}",
        json!({
            "pending": size.n_pending, "queues": size.n_queues, "cohort": size.n_in_cohort, "depth": size.depth,
            "flavors": size.n_flavors, "fair": size.is_fair,
            "load_ns_per_workload": load.as_secs_f64() * 1e9 / n_pending,
            "bytes_per_workload": after.now_bytes.saturating_sub(before.now_bytes) as f64 / n_pending,
            "cycle_ns": cycles.first(),
            "heads": size.n_queues,
            "share_ns": size.is_fair.then(|| share_ns(&engine)),
            "finish_ns_per_workload": finish.time.as_secs_f64() * 1e9 / n_finished as f64,
        })
    );
    ExitCode::SUCCESS
}
