//! Failing nodes: pods stay there for a while, and once they are gone, the node is checked again (rules/08 §13.2).

use std::sync::Arc;

use super::Simulation;
use crate::base::changes::Change;
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Time;
use crate::schedule::decision::Event;
use crate::state::State;

impl Simulation {
    /// Records which nodes are lost at the start of the run.
    pub(super) fn note_first_losses(&mut self, state: &mut State) {
        state.feeds.node_changes.follow(state.nodes.cluster.nodes().map(|node| &**node));
        // Nodes lost earlier are recorded at the start, even if another run on this engine has seen it.
        state.feeds.node_changes.take();
        state.feeds.node_changes.take_turned();
        for name in state.feeds.node_changes.lost().filter(|_| self.options.keeps_log) {
            Arc::make_mut(&mut self.log).nodes.push(self.clock, name, true);
        }
    }

    /// Records which nodes were lost or came back since the last call. If Kueue waits for pods, jobs there report them.
    pub(super) fn note_losses(&mut self, state: &mut State) {
        for (name, is_lost) in state.feeds.node_changes.take() {
            if self.options.keeps_log {
                Arc::make_mut(&mut self.log).nodes.push(self.clock, &name, is_lost);
            }
        }
        for name in state.feeds.node_changes.take_turned() {
            if state.config.wait_for_pods_ready.is_some() {
                let there: Vec<WorkloadId> = state.workloads_on(&name).collect();
                there.into_iter().for_each(|id| state.feeds.agenda.touch(id));
            }
        }
    }

    /// Checks the next changed node; `None`: there is none.
    pub(super) fn look_at_next_node(&mut self, engine: &mut Engine) -> Option<Vec<Event>> {
        let state = &mut engine.state;
        let name = state.nodes.node_watch.take_due()?;
        state.now = self.clock;
        self.note_leaving(state, &name);
        let linger = |state: &State, node: &str, of: WorkloadId| {
            let since = state.nodes.node_watch.bad_since(node);
            let lingers = |ns: i64| since.is_none_or(|since| self.clock.since(since) < ns);
            let namespace = |id| state.workloads.get(id).key().namespace();
            let any = !state.config.changes.has(Change::OwnPodsProgress);
            let counts = |id: &WorkloadId| if any { namespace(*id) == namespace(of) } else { *id == of };
            let mut there = state.workloads_on(node).filter(counts);
            there.any(|id| self.jobs.lingers_ns(id).is_some_and(lingers))
        };
        Some(state.look_at_node(&name, &linger))
    }

    /// Sets when pods will be gone from a node that has just failed; on a healthy node they stay.
    fn note_leaving(&mut self, state: &State, name: &str) {
        let Some(since) = state.nodes.node_watch.bad_since(name) else {
            return self.leaving.retain(|(_, other)| other != name);
        };
        if since == self.clock {
            let spans = state.workloads_on(name).filter_map(|id| self.jobs.lingers_ns(id)).filter(|ns| *ns > 0);
            let times: Vec<Time> = spans.map(|ns| self.after(ns)).collect();
            self.leaving.extend(times.into_iter().map(|time| (time, name.to_owned())));
        }
    }

    /// Pods are gone from nodes, or nodes have had their time.
    pub(super) fn ring_nodes(&mut self, state: &mut State, now: Time) {
        state.nodes.node_watch.ring(now);
        while let Some((_, name)) = self.leaving.first().filter(|(time, _)| *time <= now) {
            state.nodes.node_watch.touch(name);
            self.leaving.pop_first();
        }
    }
}
