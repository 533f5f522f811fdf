//! Invariants that hold in every state of an engine, by number (docs/invariants.md): everything that is kept up to date
//! incrementally is recomputed and compared.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::amount::Amount;
use kueuecore::base::ids::{Id, IdSet, LocalQueueId, QueueId, WorkloadId};
use kueuecore::engine::Engine;
use kueuecore::quota::tree::{Column, Row, Tree};
use kueuecore::state::queue_counts::LocalUsage;
use kueuecore::state::{Ledger, State};
use kueuecore::status::stage::{Stage, has_active_quota_reservation, is_admitted};
use kueuecore_wire::report;

/// A quarter of the 64-bit range leaves room for the sums of small worlds. Beyond it amounts may saturate, and
/// subtracting from a saturated sum does not restore it (rules/02 §1).
const SAFE: i64 = 1 << 61;

/// Panics if an invariant does not hold.
pub fn audit(engine: &Engine) {
    let state = &engine.state;
    check_usage_of_cluster_queues(state);
    check_cohorts(state);
    check_places(state);
    check_queued(state);
    check_order(state);
    check_belongings(state);
}

/// Recomputes all trees, and panics if that changes anything that was kept up to date incrementally.
pub fn audit_rebuilt(engine: &Engine) {
    let mut rebuilt = engine.clone();
    let State { queues, cohorts, ledger: Ledger { forest, .. }, names, .. } = &mut rebuilt.state;
    let nodes: Vec<_> = queues.iter().filter_map(|q| q.node).chain(cohorts.iter().filter_map(|c| c.node)).collect();
    if nodes.iter().any(|node| forest.has_cycle(*node) || forest.tree(forest.locate(*node).0).has_saturated()) {
        // A tree with a cycle keeps its old numbers (rules/02 §4 rule 5), a saturated one has lost some.
        return;
    }
    for node in nodes {
        forest.recompute(node);
    }
    forest.flush(names);
    assert_eq!(
        report::quota_rows(&engine.state),
        report::quota_rows(&rebuilt.state),
        "quota, incremental and recomputed"
    );
}

/// The usage of a ClusterQueue is the sum of its reservations without the pods that are done; a charge equals the
/// totals of its workload.
fn check_usage_of_cluster_queues(state: &State) {
    for (index, record) in state.queues.iter().enumerate() {
        let name = &state.names.queues[QueueId::from_index(index)];
        let Some(node) = record.node else {
            assert!(record.reserving().is_empty(), "ClusterQueue {name} is gone and still holds workloads");
            continue;
        };
        let mut sums: BTreeMap<_, i128> = BTreeMap::new();
        for id in record.reserving() {
            let workload = state.workloads.get(id);
            let charge = workload.charge.as_ref().unwrap_or_else(|| panic!("{:?} charges nothing", workload.key()));
            let mut charged: BTreeMap<_, Amount> = BTreeMap::new();
            for totals in workload.totals.iter() {
                for (resource, flavor) in &totals.flavors {
                    if totals.requests.iter().any(|request| request.0 == *resource) {
                        let fr = state.names.find_flavor_resource(*flavor, *resource).expect("a pair that is charged");
                        let sum = charged.entry(fr).or_default();
                        *sum = sum.plus_units(totals.request(*resource));
                    }
                }
            }
            let charged: Vec<_> = charged.into_iter().collect();
            assert_eq!(charge.usage[..], charged, "charge of {:?} to ClusterQueue {name}", workload.key());
            for (fr, amount) in charge.usage.iter() {
                *sums.entry(*fr).or_default() += i128::from(amount.get());
            }
        }
        let (tree, row) = state.ledger.forest.locate(node);
        let tree = state.ledger.forest.tree(tree);
        if tree.has_saturated() {
            continue;
        }
        for (column, fr) in tree.columns().iter().enumerate() {
            let expected = sums.remove(fr).unwrap_or_default();
            let used = tree.usage(row, column);
            if is_safe(used) {
                assert_eq!(i128::from(used.get()), expected, "usage of ClusterQueue {name}");
            }
        }
        assert!(sums.values().all(|sum| *sum == 0), "ClusterQueue {name} is charged what its tree does not know");
    }
}

/// Subtree quota is the node's own plus what children lend; usage of a cohort is what its children use beyond their
/// own.
fn check_cohorts(state: &State) {
    let mut seen = BTreeSet::new();
    let nodes = state.queues.iter().filter_map(|q| q.node).chain(state.cohorts.iter().filter_map(|c| c.node));
    for node in nodes {
        let (id, _) = state.ledger.forest.locate(node);
        if state.ledger.forest.has_cycle(node) || !seen.insert(id) {
            continue;
        }
        let tree = state.ledger.forest.tree(id);
        let kept = |row: Row, column: Column| match tree.quota(row, column).lending_limit {
            Some(limit) => tree.subtree_quota(row, column).minus(limit).max(Amount::ZERO),
            None => Amount::ZERO,
        };
        for column in (0..tree.columns().len()).filter(|column| !tree.has_saturated() && is_exact(tree, *column)) {
            for row in 0..tree.n_rows() {
                let children: Vec<Row> = (0..tree.n_rows()).filter(|child| tree.parent(*child) == Some(row)).collect();
                let lent = children.iter().map(|c| tree.subtree_quota(*c, column).minus(kept(*c, column)));
                let subtree = lent.fold(tree.quota(row, column).nominal, Amount::plus);
                assert_eq!(tree.subtree_quota(row, column), subtree, "subtree quota of row {row}, column {column}");
                if is_queue(state, id, row) {
                    continue;
                }
                let past = children.iter().map(|c| tree.usage(*c, column).minus(kept(*c, column)).max(Amount::ZERO));
                let used = past.fold(Amount::ZERO, Amount::plus);
                assert_eq!(tree.usage(row, column), used, "usage of the cohort in row {row}, column {column}");
            }
        }
    }
}

/// A workload waits in one queue, once, and only while it holds no quota; a workload with quota is recorded in its
/// ClusterQueue.
fn check_places(state: &State) {
    for (id, record) in state.workloads.iter() {
        let key = record.key();
        assert!(record.row.queued_in.is_none() || record.charge.is_none(), "{key:?} waits, and holds quota");
        if let Some(queue) = record.row.queued_in {
            let pending = &state.queues[queue].pending;
            // While a cycle waits for pods, it holds its heads.
            let is_head = pending.is_inflight(id) && state.pending.has_waiting_cycle;
            let places = [
                pending.is_active(&state.pending.places, id),
                pending.is_inadmissible(&state.pending.places, id),
                is_head,
            ];
            let n_places = places.into_iter().filter(|stands| *stands).count();
            assert_eq!(n_places, 1, "{key:?} is in its queue once");
        }
        if let Some(charge) = &record.charge {
            let candidates = &state.queues[charge.queue].candidates;
            assert!(
                candidates.contains(&state.names, &charge.candidate),
                "{key:?} is no candidate where it is charged"
            );
            // A workload whose status claims quota of a missing ClusterQueue stays counted as it was (rules/02 §4.1).
            let named = record.workload.status.admission.as_ref().map(|admission| &admission.cluster_queue);
            if named == Some(&state.names.queues[charge.queue]) {
                assert_eq!(charge.admitted, is_admitted(&record.workload), "does {key:?} count as Admitted");
            }
        }
    }
    for (index, record) in state.queues.iter().enumerate() {
        let queue = QueueId::from_index(index);
        let name = &state.names.queues[queue];
        let pending = &record.pending;
        let waiting: Vec<WorkloadId> = pending.active().chain(pending.inadmissible()).collect();
        assert_eq!(waiting.len(), pending.n_active() + pending.n_inadmissible(), "places in ClusterQueue {name}");
        let is_over = !state.pending.has_waiting_cycle;
        assert!(!is_over || pending.inflight().is_none(), "a head of ClusterQueue {name} is left in flight");
        for id in &waiting {
            assert_eq!(state.workloads.row(*id).queued_in, Some(queue), "waits in ClusterQueue {name}");
        }
        assert_eq!(pending.has_active(), pending.n_active() > 0, "has ClusterQueue {name} a head");
        let is_listed = state.pending.waiting.contains(&(name.clone(), queue));
        assert_eq!((is_listed, record.is_waiting), (pending.has_active(), is_listed), "does ClusterQueue {name} wait");
        for id in record.reserving() {
            assert_eq!(state.workloads.get(id).cached_in(), Some(queue), "holds quota of ClusterQueue {name}");
        }
        assert!(record.candidates.sums_hold(&state.names), "sums of ClusterQueue {name}");
        assert_eq!(record.reserving().len(), record.n_reserving, "workloads that hold quota of ClusterQueue {name}");
        check_usage_of(state, queue);
        let is_admitted = |id: &&WorkloadId| state.workloads.get(**id).charge.as_ref().is_some_and(|it| it.admitted);
        let n_admitted = record.reserving().iter().filter(is_admitted).count();
        assert_eq!(record.n_admitted, n_admitted, "Admitted workloads of ClusterQueue {name}");
    }
}

/// The counts of each LocalQueue match its workloads.
fn check_usage_of(state: &State, queue: QueueId) {
    let mut counted: BTreeMap<LocalQueueId, LocalUsage> = BTreeMap::new();
    for id in state.queues[queue].reserving() {
        let charge = state.workloads.get(id).charge.as_ref().expect("who holds quota is charged");
        let usage = counted.entry(charge.local_queue).or_default();
        usage.n_reserving += 1;
        usage.n_admitted += usize::from(charge.admitted);
    }
    for id in state.local_queues.ids() {
        let Some(usage) = state.queues[queue].usage_of(id) else { continue };
        let counted = counted.remove(&id).unwrap_or_default();
        assert_eq!((usage.n_reserving, usage.n_admitted), (counted.n_reserving, counted.n_admitted), "{id:?}");
    }
    assert!(counted.is_empty(), "LocalQueues whose usage is not counted: {counted:?}");
}

/// The number waiting in each LocalQueue matches its workloads.
fn check_queued(state: &State) {
    for record in state.local_queues.iter() {
        let n_queued = record.workloads.iter().filter(|id| state.workloads.row(*id).queued_in.is_some()).count();
        assert_eq!(record.n_queued, n_queued, "workloads that wait in {:?}", record.object);
    }
}

/// A queue is sorted by the current state of its workloads, except for one that has preempted and waits for the room,
/// and for those that a server calls Admitted without a reservation: an update does not move them, as in Kueue.
fn check_order(state: &State) {
    for (index, record) in state.queues.iter().enumerate() {
        let name = &state.names.queues[QueueId::from_index(index)];
        let waits = |id: &WorkloadId| state.workloads.row(*id).stage == Stage::Pending;
        let order: Vec<WorkloadId> = record.pending.active().filter(waits).collect();
        let mut keys: Vec<_> = order.iter().map(|id| record.pending.key(&state.item(*id))).collect();
        keys.sort();
        let sorted: Vec<WorkloadId> = keys.iter().map(|key| key.id).collect();
        assert_eq!(order, sorted, "order of ClusterQueue {name}");
    }
}

/// A LocalQueue knows exactly the workloads that name it; a ClusterQueue knows all that hold its quota.
fn check_belongings(state: &State) {
    let mut of_local_queue: BTreeMap<LocalQueueId, IdSet<WorkloadId>> = BTreeMap::new();
    for (id, record) in state.workloads.iter() {
        of_local_queue.entry(record.row.local_queue).or_default().insert(id);
        let workload = &record.workload;
        if let Some(admission) = workload.status.admission.as_ref().filter(|_| has_active_quota_reservation(workload)) {
            let queue = state.names.queues.find(&admission.cluster_queue).expect("a name that was met");
            let is_known = state.queues[queue].uncounted.contains(id) || record.cached_in() == Some(queue);
            assert!(is_known, "{:?} has quota of {}", record.key(), admission.cluster_queue);
        }
    }
    for (index, record) in state.local_queues.iter().enumerate() {
        let id = LocalQueueId::from_index(index);
        let expected = of_local_queue.remove(&id).unwrap_or_default();
        assert_eq!(record.workloads, expected, "workloads of LocalQueue {:?}", state.names.local_queues[id]);
    }
}

fn is_queue(state: &State, tree: kueuecore::quota::forest::TreeId, row: Row) -> bool {
    let node = state.ledger.forest.nodes_of(tree)[row];
    matches!(state.ledger.owner(node), Some(kueuecore::state::records::Owner::Queue(_)))
}

fn is_safe(amount: Amount) -> bool {
    (-SAFE..=SAFE).contains(&amount.get())
}

/// Are all amounts of the column small enough that sums cannot saturate?
fn is_exact(tree: &Tree, column: Column) -> bool {
    (0..tree.n_rows()).all(|row| {
        let quota = tree.quota(row, column);
        let limits = [quota.borrowing_limit, quota.lending_limit].into_iter().flatten();
        let amounts = [quota.nominal, tree.subtree_quota(row, column), tree.usage(row, column)];
        amounts.into_iter().chain(limits).all(is_safe)
    })
}
