//! Cycles at one moment until nothing changes, as `kueuecore.steady_state` runs them for the command.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::key::Key;
use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore::schedule::decision::{Decision, Event};
use kueuecore_wire::report::quota_rows;
use rustc_hash::FxHashSet;

/// A page must answer, whatever is pasted into it.
const MAX_CYCLES: usize = 10_000;

/// What happened.
#[derive(Default)]
pub struct Settled {
    /// `Settled`, `Repeating` or `CycleLimit`.
    pub ending: &'static str,
    pub decisions: Vec<Decision>,
    /// The events of the cycles and of the reconciling between them, in order.
    pub events: Vec<Event>,
    /// The workloads on which no decision could be made: field and message.
    pub undecided: BTreeMap<(String, String), (String, String)>,
}

/// Runs cycles until nothing changes. Evicted jobs stop at once; no workload finishes.
pub fn settle(engine: &mut Engine, now: Time) -> Settled {
    let mut settled = Settled { ending: "Settled", ..Settled::default() };
    let mut seen = FxHashSet::default();
    reconcile(engine, &mut settled, now);
    let evicted = engine.state.evicted_with_quota();
    if release(engine, &evicted, now) > 0 {
        reconcile(engine, &mut settled, now);
    }
    // A head with untried flavors changes nothing until it has tried them all.
    let patience = most_flavors(engine);
    let mut idle = 0;
    while idle == 0 || idle <= patience {
        if settled.decisions.len() >= MAX_CYCLES {
            settled.ending = "CycleLimit";
            break;
        }
        engine.state.retry_at_once();
        let decision = engine.cycle(now);
        if decision.cycle == 0 {
            break;
        }
        settled.events.extend(decision.events.iter().cloned());
        for it in &decision.undecided {
            let key = (it.key.namespace().to_owned(), it.key.name().to_owned());
            settled.undecided.entry(key).or_insert_with(|| (it.field.clone(), it.message.to_string()));
        }
        let preempted = decision.preemptions.iter().map(|it| it.key.clone());
        let evicted: Vec<Key> = preempted.chain(decision.evictions.iter().map(|it| it.key.clone())).collect();
        let has_changed = decision.has_changed_something();
        settled.decisions.push(decision);
        let n_released = release(engine, &evicted, now);
        let (n_events, n_evicted) = reconcile(engine, &mut settled, now);
        idle = if has_changed || n_released + n_events > 0 { 0 } else { idle + 1 };
        if n_released + n_evicted > 0 && !seen.insert(engine.state.standings()) {
            settled.ending = "Repeating";
            break;
        }
    }
    settled
}

/// Lets controllers act until nothing follows; the numbers of events and of workloads that lost their quota.
fn reconcile(engine: &mut Engine, settled: &mut Settled, now: Time) -> (usize, usize) {
    let (mut n_events, mut n_released) = (0, 0);
    loop {
        let events = engine.reconcile(now);
        if events.is_empty() {
            return (n_events, n_released);
        }
        n_events += events.len();
        let evicted = events.iter().filter(|event| event.reason.starts_with("Evicted"));
        // A workload that is named twice has nothing left to release the second time.
        n_released += release(engine, &evicted.map(|event| event.key.clone()).collect::<Vec<_>>(), now);
        settled.events.extend(events);
    }
}

fn release(engine: &mut Engine, keys: &[Key], now: Time) -> usize {
    let mut n_released = 0;
    for key in keys {
        if let Some(id) = engine.state.workloads.find(key.namespace(), key.name()) {
            n_released += usize::from(engine.release(id, now));
        }
    }
    n_released
}

/// An upper bound of the flavors in a resource group: the most flavors of any ClusterQueue.
fn most_flavors(engine: &Engine) -> usize {
    let mut flavors: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in quota_rows(&engine.state).iter().filter(|row| row["kind"] == "ClusterQueue") {
        flavors.entry(row["name"].to_string()).or_default().insert(row["flavor"].to_string());
    }
    flavors.values().map(BTreeSet::len).max().unwrap_or_default()
}
