//! A workload comes and goes without ever being looked at by a cycle.

use kueuecore::base::ids::QueueId;
use kueuecore::engine::Engine;
use kueuecore::objects::{Kind, Workload};

use crate::objects::{BASE, object, pod_set, workload};
use crate::rows::{Row, timed};
use crate::views;

const N_ADMITTED: usize = 50_000;

pub fn rows() -> Vec<Row> {
    let row = Row::new("Workloads/in-and-out".to_owned(), 100, || {
        let mut engine = views::state(N_ADMITTED);
        let queue = engine.state.find_queue("cq0").expect("it was applied");
        let pods = pod_set("main", 1, &[("cpu", "1"), ("memory", "1Gi")]);
        let comer = workload(N_ADMITTED, "cq0", 0, vec![pods]);
        // The first that waits makes room for all others in tables that stay.
        come_and_go(&mut engine, queue, comer.clone());
        Box::new(move |n_calls| {
            let mut each = vec![comer.clone(); n_calls as usize];
            let (took, n_waiting) =
                timed(n_calls, || come_and_go(&mut engine, queue, each.pop().expect("one for each call")));
            assert_eq!((n_waiting, engine.state.queues[queue].pending.n_active()), (1, 0));
            took
        })
    });
    vec![row]
}

/// Applies a workload and deletes it. Returns how many waited meanwhile.
fn come_and_go(engine: &mut Engine, queue: QueueId, comer: Workload) -> usize {
    let key = comer.meta.key.clone();
    engine.apply(vec![object(comer)], BASE);
    let n_waiting = engine.state.queues[queue].pending.n_active();
    assert!(engine.delete(Kind::Workload, key.namespace(), key.name(), BASE), "it was there");
    n_waiting
}
