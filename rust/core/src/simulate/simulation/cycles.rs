//! Rounds of cycles: one after the other, until there is no head or nothing changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Simulation, Then};
use crate::base::key::Key;
use crate::engine::Engine;
use crate::objects::Time;
use crate::queue::Parked;
use crate::schedule::decision::Decision;
use crate::simulate::plan::Timers;
use crate::simulate::record::{Cycle, Step};
use crate::status::reasons;

/// A cycle in progress: it waits for pods, or its consequences are being handled.
#[derive(Clone, Debug)]
pub(super) struct Underway {
    began: Time,
    /// Fingerprint of heaps and parked workloads before it.
    before: u64,
    /// Its decision so far.
    decision: Decision,
    n_parked: usize,
    parked: Vec<Key>,
    /// The parked workloads when it began to wait for pods.
    parked_before: Option<BTreeSet<Key>>,
    /// Has anything happened since it began to wait?
    pub is_woken: bool,
}

impl Simulation {
    /// Something has happened, so the queues are tried again.
    pub(super) fn begin_round(&mut self, engine: &mut Engine) {
        engine.state.now = self.clock;
        engine.state.flush();
        self.n_quiet = 0;
        self.patience = self.options.quiet_cycles.unwrap_or_else(|| 1 + most_flavors(engine));
    }

    pub(super) fn begin_cycle(&mut self, engine: &mut Engine) -> Option<Then> {
        let before = engine.state.pending.places.content();
        self.n_cycles += 1;
        self.underway = Some(Box::new(Underway {
            began: self.clock,
            before,
            decision: Decision::default(),
            n_parked: 0,
            parked: Vec::new(),
            parked_before: None,
            is_woken: false,
        }));
        self.decide(engine)
    }

    /// The cycle decides, or continues after waiting.
    pub(super) fn decide(&mut self, engine: &mut Engine) -> Option<Then> {
        let mut underway = self.underway.take()?;
        let is_first = underway.parked_before.is_none();
        let parked_since = if is_first { BTreeSet::new() } else { parked(engine) };
        let decision = engine.decide(self.clock);
        if self.options.keeps_messages {
            let now = self.clock;
            let events = decision.events.iter().map(|event| (now, event.clone()));
            Arc::make_mut(&mut self.log).events.extend(events);
        }
        self.note_replaced(engine, &decision);
        self.note_preemptions(engine, &decision);
        if is_first {
            underway.decision = decision;
        } else {
            if decision.waits_for_pods.is_none() {
                // Those that were parked meanwhile hold quota again.
                let back = decision.preemptions.iter().map(|it| &it.key).filter(|key| parked_since.contains(*key));
                underway.parked.extend(back.cloned());
            }
            self.expect_evictions(engine, &decision);
            underway.decision.go_on(decision);
        }
        if underway.decision.waits_for_pods.is_none() {
            self.note_parked(engine, &mut underway);
        } else if is_first {
            underway.parked_before = Some(parked(engine));
        }
        underway.is_woken = false;
        deliver(engine);
        self.underway = Some(underway);
        Some(Then::Cycle)
    }

    /// Records workloads whose pods moved while their jobs run; jobs with a delayed placement do not run yet.
    fn note_replaced(&mut self, engine: &Engine, decision: &Decision) {
        for placed in &decision.placed {
            let id = engine.state.workloads.find(placed.key.namespace(), placed.key.name());
            if let Some(id) = id.filter(|id| self.is_running(*id) && engine.state.has_moved(*id)) {
                self.note(engine, Step::Replaced, id);
            }
        }
    }

    fn note_preemptions(&mut self, engine: &Engine, decision: &Decision) {
        if !self.options.keeps_log {
            return;
        }
        for preempted in &decision.preemptions {
            let (workload, preemptor) =
                (self.number(engine, preempted.workload), self.number(engine, preempted.preemptor_id));
            let log = &mut Arc::make_mut(&mut self.log).preemptions;
            log.push(self.clock, workload, preemptor, reasons::code(preempted.reason));
        }
    }

    /// Records what a cycle has parked, before anything else is written.
    fn note_parked(&self, engine: &Engine, underway: &mut Underway) {
        let decision = &mut underway.decision;
        let kept = decision.pending.iter().filter(|kept| kept.parked).map(|kept| &kept.key);
        underway.n_parked = kept.clone().count() + decision.parked.iter().map(Parked::len).sum::<usize>();
        if let Some(before) = &underway.parked_before {
            // Others may have lost their quota while it waited.
            let mut all = parked(engine);
            all.extend(std::mem::take(&mut underway.parked));
            underway.parked.extend(all.difference(before).cloned());
            underway.n_parked = underway.parked.len();
        } else if self.options.keeps_messages {
            underway.parked.extend(kept.chain(decision.parked_keys()).cloned());
            underway.parked.sort();
        }
        if !self.options.keeps_messages {
            // Keeping them would copy them when they change.
            decision.parked = Vec::new();
        }
    }

    /// All consequences of a cycle have been handled: it waits for pods, or ends.
    pub(super) fn end_cycle(&mut self, engine: &mut Engine) -> Option<Then> {
        let underway = self.underway.take()?;
        if underway.decision.waits_for_pods.is_some() {
            self.underway = Some(underway);
            return None;
        }
        let decision = &underway.decision;
        let has_decided = decision.has_decided();
        let has_changed = has_decided || underway.before != engine.state.pending.places.content();
        self.n_quiet = if has_changed { 0 } else { self.n_quiet + 1 };
        engine.state.flush();
        if self.options.keeps_cycles {
            let recorded = self.recorded(engine, *underway);
            Arc::make_mut(&mut self.log).cycles.extend(recorded);
        }
        self.free_at = self.after(self.options.cycle_step_ns);
        if self.options.timers == Timers::AfterRound {
            self.clock = self.free_at;
            engine.state.pending.second_passes.ripen(self.clock);
        }
        engine.state.now = self.clock;
        None
    }

    /// The record of a cycle; `None`: nothing happened in it, and there is nothing to report.
    pub(super) fn recorded(&self, engine: &Engine, underway: Underway) -> Option<Cycle> {
        let Underway { began: time, mut decision, mut n_parked, parked: mut keys, parked_before, .. } = underway;
        if let Some(before) = parked_before.filter(|_| decision.waits_for_pods.is_some()) {
            // Its wait has had no result so far.
            keys = parked(engine).difference(&before).cloned().collect();
            n_parked = keys.len();
        }
        let has_messages = self.options.keeps_messages && !decision.events.is_empty();
        if !self.options.keeps_messages {
            decision.events = Vec::new();
            decision.pending = Vec::new();
            keys = Vec::new();
        }
        let has_decided = decision.has_decided();
        let is_worth_it = has_messages || n_parked > 0 || has_decided;
        is_worth_it.then_some(Cycle { number: self.n_cycles, time, decision, n_parked, parked: keys })
    }
}

/// The writes of a cycle come back as updates of the objects.
fn deliver(engine: &mut Engine) {
    let state = &mut engine.state;
    state.settle_penalties_of_cycle();
    state.requeue_written();
    state.deliver_writes();
    // Nothing is written to workloads parked in one step, so controllers do not see them.
    state.feeds.agenda.take_parked();
}

fn parked(engine: &Engine) -> BTreeSet<Key> {
    let state = &engine.state;
    let parked = state.queues.iter().flat_map(|queue| queue.pending.inadmissible());
    parked.map(|id| state.workloads.get(id).key().clone()).collect()
}

fn most_flavors(engine: &Engine) -> usize {
    let groups = engine.state.queues.iter().flat_map(|queue| &queue.rules.groups);
    groups.map(|group| group.flavors.len()).max().unwrap_or(0)
}
