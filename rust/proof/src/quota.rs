//! The numbers of the cohort trees.

use std::collections::BTreeSet;

use kueuecore::base::amount::Amount;
use kueuecore::base::ids::FlavorResourceId;
use kueuecore::quota::forest::NodeId;
use kueuecore::quota::share::Share;
use kueuecore::quota::tree::{Column, Quota, Row, Tree};
use kueuecore::state::State;
use kueuecore::state::records::{Owner, QueueRecord};
use serde_json::{Map, Value, json};

use super::values::{amount, by_flavor, entries, flavor_amounts, texts};
use super::{Answer, Case};

/// Kind `quota`.
pub(super) fn quota(case: &Case<'_>) -> Answer {
    let input = case.input;
    let mut state = case.state();
    for (name, usage) in entries(&input["usage"]) {
        let queue = state.find_queue(name).ok_or_else(|| format!("no ClusterQueue {name}"))?;
        let usage = flavor_amounts(&mut state, usage)?;
        let node = state.queues[queue].node.ok_or("a ClusterQueue without a node")?;
        state.ledger.forest.charge(node, &usage, true, &state.names);
    }
    for (key, add) in texts(&input["remove"]).map(|k| (k, false)).chain(texts(&input["add"]).map(|k| (k, true))) {
        let (namespace, name) = key.split_once('/').ok_or_else(|| format!("no key: {key}"))?;
        let workload = state.workloads.find(namespace, name).ok_or_else(|| format!("no Workload {key}"))?;
        if add {
            state.put_cached(workload);
        } else {
            state.uncache(workload);
        }
    }
    let requests = flavor_amounts(&mut state, &input["requests"])?;
    state.ledger.forest.flush(&state.names);
    // With a ClusterQueue, the requests are checked against it; without one, they are added to every node.
    let asked = input["clusterQueue"].as_str();
    let extra: &[_] = if asked.is_some() { &[] } else { &requests };
    let mut answer = dump(&state, extra);
    if let Some(name) = asked {
        let queue = state.find_queue(name).ok_or_else(|| format!("no ClusterQueue {name}"))?;
        let node = Node::of(&state, state.queues[queue].node.ok_or("a ClusterQueue without a node")?);
        let share = node.share(&[]);
        let requested: Vec<Column> =
            requests.iter().filter(|r| r.1 > Amount::ZERO).filter_map(|r| node.tree.column(r.0)).collect();
        answer["isBorrowing"] = json!(share.is_borrowing());
        answer["isBorrowingOnRequested"] = json!(share.borrows_any_of(&requested));
    }
    Ok(answer)
}

fn dump(state: &State, extra: &[(FlavorResourceId, Amount)]) -> Value {
    let (mut queues, mut cohorts, mut lendable) = (Map::new(), Map::new(), Map::new());
    let mut inactive = Vec::new();
    for (id, owner) in state.ledger.owned_nodes() {
        let node = Node::of(state, id);
        match owner {
            Owner::Queue(queue) => {
                let name = &state.names.queues[queue];
                if !state.ledger.forest.is_active(id) {
                    inactive.push(name.as_str());
                    continue;
                }
                let mut entry = node.dump(extra);
                entry["cohort"] = json!(node.parent_name());
                entry["workloads"] = json!(reserving(state, &state.queues[queue]));
                queues.insert(name.to_string(), entry);
            }
            Owner::Cohort(cohort) => {
                let name = &state.names.cohorts[cohort];
                if state.ledger.forest.has_cycle(id) {
                    continue;
                }
                let mut entry = node.dump(extra);
                entry["parent"] = json!(node.parent_name());
                cohorts.insert(name.clone(), entry);
                lendable.insert(name.clone(), node.lendable());
            }
        }
    }
    inactive.sort();
    json!({"clusterQueues": queues, "cohorts": cohorts, "lendable": lendable, "inactiveClusterQueues": inactive})
}

/// The keys of the workloads that hold quota of a ClusterQueue.
pub(super) fn reserving(state: &State, queue: &QueueRecord) -> BTreeSet<String> {
    queue.reserving().into_iter().map(|workload| state.workloads.get(workload).key().to_string()).collect()
}

/// A node and its place in its tree.
pub(super) struct Node<'a> {
    pub(super) state: &'a State,
    pub(super) id: NodeId,
    tree: &'a Tree,
    row: Row,
}

impl<'a> Node<'a> {
    pub(super) fn of(state: &'a State, id: NodeId) -> Self {
        let (tree, row) = state.ledger.forest.locate(id);
        Self { state, id, tree: state.ledger.forest.tree(tree), row }
    }

    pub(super) fn parent_name(&self) -> Option<&'a str> {
        match self.state.ledger.owner(self.state.ledger.forest.parent(self.id)?)? {
            Owner::Cohort(cohort) => Some(&self.state.names.cohorts[cohort]),
            Owner::Queue(_) => None,
        }
    }

    fn share(&self, extra: &[(FlavorResourceId, Amount)]) -> Share {
        let (tree, row) = self.state.ledger.forest.locate(self.id);
        let extra: Vec<_> = extra.iter().filter_map(|(fr, v)| Some((self.tree.column(*fr)?, *v))).collect();
        let resources = self.state.ledger.forest.resources_of(tree);
        self.tree.share(row, self.state.ledger.forest.weight(self.id), resources, &extra)
    }

    fn dump(&self, extra: &[(FlavorResourceId, Amount)]) -> Value {
        let share = self.share(extra);
        json!({
            "nominal": self.quota(|q| Some(q.nominal)),
            "borrowingLimit": self.quota(|q| q.borrowing_limit),
            "lendingLimit": self.quota(|q| q.lending_limit),
            "subtreeQuota": self.column(Tree::subtree_quota),
            "usage": self.column(Tree::usage),
            "localQuota": self.column(Tree::local_quota),
            "available": self.column(Tree::available_unclamped),
            "potentialAvailable": self.column(Tree::potential_available),
            "dominantResourceShare": {
                "weightedShare": float(share.weighted()),
                "roundedWeightedShare": share.rounded(),
                "dominantResource": share.dominant.map(|r| self.state.names.resource_text(r)),
                "borrowing": share.is_borrowing(),
                "fairWeight": share.weight,
                "unweightedRatio": share.ratio,
            },
        })
    }

    fn quota(&self, read: fn(&Quota) -> Option<Amount>) -> Value {
        let quotas = self.state.ledger.forest.quotas(self.id);
        by_flavor(&self.state.names, quotas.iter().filter_map(|(fr, quota)| Some((*fr, read(quota)?))))
    }

    pub(super) fn column(&self, read: fn(&Tree, Row, Column) -> Amount) -> Value {
        let columns = self.tree.columns().iter().enumerate();
        by_flavor(&self.state.names, columns.map(|(column, fr)| (*fr, read(self.tree, self.row, column))))
    }

    fn lendable(&self) -> Value {
        let (tree, _) = self.state.ledger.forest.locate(self.id);
        let resources = &self.state.ledger.forest.resources_of(tree).0;
        resources
            .iter()
            .map(|(resource, columns)| {
                let name = self.state.names.resource_text(*resource);
                (name.to_owned(), amount(name, self.tree.lendable(self.row, columns)))
            })
            .collect()
    }
}

fn float(value: f64) -> String {
    if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() }
}
