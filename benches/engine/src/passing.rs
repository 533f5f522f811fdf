//! A workload comes and goes without ever being looked at by a cycle.

use kueuecore::engine::Kind;

use crate::objects::{BASE, object, pod_set, workload};
use crate::rows::{Row, timed};
use crate::views;

const N_ADMITTED: usize = 50_000;

/// The rows.
pub fn rows() -> Vec<Row> {
    let row = Row::new("Workloads/in-and-out".to_owned(), 100, || {
        let mut engine = views::state(N_ADMITTED);
        let queue = engine.state.find_queue("cq0").expect("it was applied");
        let pods = pod_set("main", 1, &[("cpu", "1"), ("memory", "1Gi")]);
        let comer = workload(N_ADMITTED, "cq0", 0, vec![pods]);
        Box::new(move |n_calls| {
            let mut each: Vec<_> = (0..n_calls).map(|_| vec![object(comer.clone())]).collect();
            let (name, namespace) = (comer.meta.key.name(), comer.meta.key.namespace());
            let (took, n_waiting) = timed(n_calls, || {
                engine.apply(each.pop().expect("one for each call"), BASE);
                let n_waiting = engine.state.queues[queue].pending.n_active();
                assert!(engine.delete(Kind::Workload, namespace, name, BASE), "it was there");
                n_waiting
            });
            assert_eq!((n_waiting, engine.state.queues[queue].pending.n_active()), (1, 0));
            took
        })
    });
    vec![row]
}
