//! One cycle with a thousand heads: all fit, all borrow, or none fits.

use kueuecore::engine::Engine;
use kueuecore::objects::config::Config;

use crate::objects::{BASE, NEVER, basics, cohort, engine, group, object, pod_set, queue, workload};
use crate::rows::{Row, timed};

const N_COHORTS: usize = 10;
const N_QUEUES: usize = 100;

/// The rows.
pub fn rows() -> Vec<Row> {
    let row = |(name, cpu, admits): (&str, &'static str, bool)| {
        Row::new(format!("Cycle/{name}"), 1, move || {
            Box::new(move |_| {
                let mut engine = state(cpu);
                let (took, decision) = timed(1, || engine.cycle(BASE));
                let n_heads = N_COHORTS * N_QUEUES;
                let expected = if admits { (n_heads, 0) } else { (0, n_heads) };
                assert_eq!((decision.admissions.len(), decision.pending.len()), expected, "of {n_heads} heads");
                took
            })
        })
    };
    [("fit", "5", true), ("borrow", "15", true), ("nofit", "1000000", false)].map(row).into()
}

/// Cohorts with quota of their own, each with ClusterQueues with one workload that asks for `cpu`. A state is new for each
/// cycle, since the copies of one share what a cycle writes to.
fn state(cpu: &str) -> Engine {
    let mut objects = basics(["rf"]);
    for c in 0..N_COHORTS {
        let cohort_name = format!("co{c}");
        objects.push(cohort(&cohort_name, "", vec![group(["rf"], &[("cpu", "1000"), ("memory", "1000Gi")])]));
        for q in 0..N_QUEUES {
            let name = format!("cq{c}-{q}");
            let quota = group(["rf"], &[("cpu", "10"), ("memory", "10Gi")]);
            objects.extend(queue(&name, &cohort_name, vec![quota], NEVER));
            let pods = pod_set("main", 1, &[("cpu", cpu), ("memory", "1Gi")]);
            objects.push(object(workload(c * N_QUEUES + q, &name, 0, vec![pods])));
        }
    }
    let mut engine = engine(Config::default(), objects);
    // The order of the names is worked out once, not in every cycle.
    engine.state.waiting_by_name();
    engine
}
