//! Records changes of quota.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Simulation;
use crate::base::ids::Id;
use crate::engine::Engine;
use crate::quota::forest::NodeId;
use crate::simulate::quotas::NodeQuota;
use crate::simulate::record::Log;
use crate::state::State;
use crate::state::records::Owner;

impl Simulation {
    /// Starts recording changes of quota. Nodes known to the log keep their codes.
    pub(super) fn follow_quotas(&mut self, engine: &mut Engine) {
        engine.state.ledger.forest.follow();
        engine.state.ledger.forest.take_touched();
        let nodes: Vec<_> = engine.state.ledger.owned_nodes().collect();
        for (node, owner) in nodes {
            self.quota_node(&engine.state, node, owner);
        }
    }

    /// Records the initial quotas.
    pub(super) fn note_all_quotas(&mut self, engine: &Engine) {
        let nodes: Vec<_> = engine.state.ledger.owned_nodes().collect();
        for (node, owner) in nodes {
            self.note_quota(&engine.state, node, owner);
        }
    }

    /// Records what has changed since the last call.
    pub(super) fn note_quotas(&mut self, engine: &mut Engine) {
        let touched = engine.state.ledger.forest.take_touched();
        if touched.is_empty() {
            return;
        }
        let mut noted = BTreeSet::new();
        for node in touched {
            let known = self.quota_nodes.get(&node).map(|(_, owner)| *owner);
            // A node created and deleted between two calls has no owner.
            let Some(owner) = engine.state.ledger.owner(node).or(known) else { continue };
            let (code, _) = self.quota_node(&engine.state, node, owner);
            if noted.insert(code) {
                self.note_quota(&engine.state, node, owner);
            }
        }
    }

    fn note_quota(&mut self, state: &State, node: NodeId, owner: Owner) {
        let (code, _) = self.quota_node(state, node, owner);
        let time = self.clock.0;
        let gone = NodeQuota { time, node: code, is_gone: true, parent: None, weight: 0.0, quotas: Vec::new() };
        // It may have another node by now, if it was deleted and created again.
        let current = match owner {
            Owner::Queue(id) => state.queues[id].node,
            Owner::Cohort(id) => state.cohorts[id].node,
        };
        let change = match current {
            None => gone,
            Some(node) => {
                let above = state.ledger.forest.parent(node);
                let above = above.and_then(|parent| Some((parent, state.ledger.owner(parent)?)));
                let parent = above.map(|(parent, owner)| self.quota_node(state, parent, owner).0);
                let usage = &mut Arc::make_mut(&mut self.log).usage;
                let quotas = state.ledger.forest.quotas(node).iter();
                let quotas = quotas.map(|(pair, quota)| (usage.pair(state, pair.index()), *quota)).collect();
                NodeQuota { is_gone: false, parent, weight: state.ledger.forest.weight(node), quotas, ..gone }
            }
        };
        Arc::make_mut(&mut self.log).quotas.changes.push(change);
    }

    /// The code of a node in the log, and its owner.
    fn quota_node(&mut self, state: &State, node: NodeId, owner: Owner) -> (u32, Owner) {
        if let Some(known) = self.quota_nodes.get(&node).filter(|(_, whose)| *whose == owner) {
            return *known;
        }
        let name = match owner {
            Owner::Queue(id) => (true, state.names.queues[id].to_string()),
            Owner::Cohort(id) => (false, state.names.cohorts[id].clone()),
        };
        let Log { quotas, .. } = Arc::make_mut(&mut self.log);
        let code = *self.quota_codes.entry(name).or_insert_with_key(|name| {
            quotas.nodes.push(name.clone());
            u32::try_from(quotas.nodes.len() - 1).expect("fewer than 2^32 nodes")
        });
        let known = (code, owner);
        self.quota_nodes.insert(node, known);
        known
    }
}
