//! Places the pods of a workload on the nodes of one flavor (rules/08 §5.1, §11.3, §13.5, §14).

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::base::changes::Change;
use crate::base::gates::{Gate, Gates};
use crate::objects::{PodSet, Toleration, TopologyAssignment, TopologyDomain, TopologyRequest};
use crate::topology::balanced;
use crate::topology::capacity::{Amounts, PODS, Row};
use crate::topology::descend::Placed;
use crate::topology::failure;
use crate::topology::filter::PodFacts;
use crate::topology::request::Wish;
use crate::topology::search::Search;
use crate::topology::tables::{Besides, Kind, Table, Tables};
use crate::topology::tree::{Tree, id_of};

/// A pod set to place.
#[derive(Clone)]
pub struct Ask<'a> {
    /// The pod set.
    pub pod_set: &'a PodSet,
    /// Its index among the pod sets of its workload.
    pub index: usize,
    /// Number of pods.
    pub count: i32,
    /// The requests of its pod template, without `pods`.
    pub requests: &'a Amounts,
    /// Does it use topology only because its ClusterQueue has no other flavors?
    pub is_implied: bool,
    /// Where it may run, including what admission checks add to the template; or why they contradict it.
    pub facts: Result<PodFacts<'a>, String>,
    /// Its current placement.
    pub current: Option<&'a TopologyAssignment>,
    /// The placement of the slice that it replaces.
    pub previous: Option<&'a TopologyAssignment>,
}

/// What applies to all pod sets of a workload.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Feature gates.
    pub gates: Gates,
    /// Is the usage of workloads ignored?
    pub simulates_empty: bool,
    /// The first of its hosts that has failed.
    pub unhealthy: Option<&'a str>,
    /// Do its pods stay where they are nevertheless?
    pub stays: bool,
    /// What workloads that count as gone give back, by leaf.
    pub given_back: &'a Assumed,
}

/// The nodes of a flavor.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Name of the Topology.
    pub topology: &'a str,
    /// Its nodes.
    pub tree: &'a Tree,
    /// The flavor's tolerations.
    pub tolerations: &'a [Toleration],
}

/// What earlier groups take, by leaf.
pub type Assumed = BTreeMap<Arc<str>, Amounts>;

/// The result for each pod set: its place, or why there is none.
pub type Places = Vec<(usize, Result<TopologyAssignment, String>)>;

/// What placements cache about a flavor's nodes.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The pod sets whose preferred terms have been evaluated in this cycle.
    pub scored: FxHashSet<(String, String)>,
    /// How much fits where.
    pub tables: Tables,
}

impl<'a> Ground<'a> {
    /// Places pod sets group by group, until one does not fit. `uid`: of the workload.
    pub fn place(
        &self,
        asks: &[Ask<'a>],
        terms: Terms<'_>,
        assumed: &mut Assumed,
        (uid, seen): (&str, &mut Seen),
    ) -> Places {
        let mut places = Places::new();
        for group in groups(asks) {
            let failed = if terms.unhealthy.is_some() {
                self.replace(&group, terms, assumed, &mut places, (uid, seen))
            } else {
                self.place_group(&group, terms, assumed, &mut places, (uid, seen))
            };
            if failed {
                break;
            }
        }
        places
    }

    /// Places a group; returns whether it has no place.
    fn place_group(
        &self,
        group: &[&Ask<'a>],
        terms: Terms<'_>,
        assumed: &mut Assumed,
        places: &mut Places,
        seen: (&str, &mut Seen),
    ) -> bool {
        let (leader, worker) = leader_and_worker(group);
        if terms.gates.enabled(Gate::ElasticJobsViaWorkloadSlicesWithTAS)
            && let Some(failed) = self.scale(worker, leader, terms, assumed, places, (seen.0, &mut *seen.1))
        {
            return failed;
        }
        match self.find(worker, leader, i64::from(worker.count), terms, assumed, None, seen) {
            Err(reason) => {
                places.extend(group.iter().map(|ask| (ask.index, Err(reason.clone()))));
                true
            }
            Ok(placed) => {
                if let Some(leader) = leader {
                    let of_leader = self.assignment(&placed.leaders);
                    self.assume(assumed, &of_leader, leader.requests);
                    places.push((leader.index, Ok(of_leader)));
                }
                let of_worker = self.assignment(&placed.workers);
                self.assume(assumed, &of_worker, worker.requests);
                places.push((worker.index, Ok(of_worker)));
                false
            }
        }
    }

    /// Finds a place on the current nodes.
    #[allow(clippy::too_many_arguments)]
    fn find<'b>(
        &self,
        worker: &Ask<'a>,
        leader: Option<&Ask<'a>>,
        n_pods: i64,
        terms: Terms<'b>,
        assumed: &'b Assumed,
        within: Option<&Within<'_>>,
        (uid, seen): (&str, &mut Seen),
    ) -> Result<Placed, String> {
        let gates = terms.gates;
        let facts = worker.facts.as_ref().map_err(Clone::clone)?;
        let of_part = within.and_then(|within| within.request.as_ref());
        let request = of_part.or(worker.pod_set.topology_request.as_deref());
        let tree = self.tree;
        let wish = Wish::new(request, worker.is_implied, &tree.keys).within(gates, tree.changes);
        let request = wish.in_tree(tree)?;
        let respects = gates.enabled(Gate::TASRespectNodeAffinityPreferred);
        let remembers = gates.enabled(Gate::TASCacheNodeMatchResults) && tree.is_by_hostname() && !uid.is_empty();
        let is_first = !remembers || seen.scored.insert((uid.to_owned(), worker.pod_set.name.clone()));
        let kind = Kind {
            requests: with_pod(worker.requests),
            leader: leader.map(|leader| with_pod(leader.requests)),
            request,
            matches: seen.tables.matches(tree, facts),
            // Within a cycle Kueue caches which nodes match, but their scores only on the first evaluation.
            scores: respects && is_first,
            simulates_empty: terms.simulates_empty,
        };
        let besides = self.besides(assumed, terms);
        let within = within.map(|within| &*within.leaf);
        seen.tables.look(tree, kind, (&besides, within), |table| {
            let Table { kind: Kind { request, .. }, levels, .. } = table;
            let search = Search::new(tree, (request, levels), (n_pods, i64::from(leader.is_some())), gates);
            let balance = gates.enabled(Gate::TASBalancedPlacement) && balanced::is_wanted(request);
            let tried = match balance.then(|| search.balance()) {
                Some(Ok(placed)) => return Ok(placed),
                Some(Err(tried)) if !balanced::falls_back(tree) => Some(tried),
                _ => None,
            };
            if let Some(tried) = tried.as_ref().filter(|tried| !tried.reason.is_empty()) {
                return Err(tried.reason.to_owned());
            }
            let levels = tried.as_ref().map_or(levels, |tried| &tried.levels);
            let search = Search { levels, ..search };
            let lacks =
                |lack| failure::message(self.topology, tree, request, levels, &table.refusals(), (&lack, n_pods));
            let chosen = search.choose().map_err(lacks)?;
            Ok(search.descend(chosen, false).unwrap_or_default())
        })
    }

    /// Adds what placed pods take.
    fn assume(&self, assumed: &mut Assumed, place: &TopologyAssignment, requests: &Amounts) {
        let counts_pods = self.tree.changes.has(Change::PodSetsShareRoomForPods);
        let of_pod = if counts_pods { with_pod(requests) } else { requests.clone() };
        for domain in &place.domains {
            let amounts = assumed.entry(id_of(&domain.values)).or_default();
            for (resource, value) in &of_pod {
                let sum = amounts.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(i64::from(domain.count)));
            }
        }
    }

    /// By leaf, what earlier groups take, and what workloads that count as gone give back.
    fn besides<'b>(&self, assumed: &'b Assumed, terms: Terms<'b>) -> Besides<'b> {
        let mut besides = Besides::new();
        let row = |id: &str| self.tree.find_leaf_by_id(id);
        for (leaf, amounts) in assumed.iter().filter_map(|(id, amounts)| Some((row(id)?, amounts))) {
            besides.entry(leaf).or_default().0 = Some(amounts);
        }
        let given_back = terms.given_back.iter().filter(|_| !terms.simulates_empty);
        for (leaf, amounts) in given_back.filter_map(|(id, amounts)| Some((row(id)?, amounts))) {
            besides.entry(leaf).or_default().1 = Some(amounts);
        }
        besides
    }

    fn assignment(&self, leaves: &[(Row, i64)]) -> TopologyAssignment {
        let domain = |&(leaf, n): &(Row, i64)| TopologyDomain {
            values: self.tree.assigned_values(leaf),
            count: i32::try_from(n).unwrap_or(i32::MAX),
        };
        TopologyAssignment { levels: self.tree.assigned_keys().to_vec(), domains: leaves.iter().map(domain).collect() }
    }

    /// The first domain of an assignment that no longer exists.
    fn stale_domain<'b>(&self, assignment: &'b TopologyAssignment) -> Option<&'b TopologyDomain> {
        assignment.domains.iter().find(|domain| self.tree.find_leaf(&domain.values).is_none())
    }

    /// The pods of both assignments, by domain.
    pub fn merged(&self, new: &TopologyAssignment, old: &TopologyAssignment) -> TopologyAssignment {
        let mut by_leaf: Vec<(Option<Row>, &TopologyDomain)> =
            new.domains.iter().chain(&old.domains).map(|it| (self.tree.find_leaf(&it.values), it)).collect();
        by_leaf.sort_by_key(|it| it.0);
        let mut domains: Vec<TopologyDomain> = Vec::new();
        for (_, domain) in by_leaf {
            match domains.last_mut().filter(|last| last.values == domain.values) {
                Some(last) => last.count = last.count.saturating_add(domain.count),
                None => domains.push(domain.clone()),
            }
        }
        TopologyAssignment { levels: new.levels.clone(), domains }
    }

    /// Moves pods from a failed host (rules/08 §13.5); returns whether there is no place for them.
    fn replace(
        &self,
        group: &[&Ask<'a>],
        terms: Terms<'_>,
        assumed: &mut Assumed,
        places: &mut Places,
        (uid, seen): (&str, &mut Seen),
    ) -> bool {
        for ask in group {
            let Some(current) = ask.current else { continue };
            if terms.stays {
                places.push((ask.index, Ok(current.clone())));
                continue;
            }
            match self.replaced(ask, current, terms, assumed, (uid, &mut *seen)) {
                Ok((moved, whole)) => {
                    self.assume(assumed, &moved, ask.requests);
                    places.push((ask.index, Ok(whole)));
                }
                Err(reason) => {
                    places.push((ask.index, Err(reason)));
                    return true;
                }
            }
        }
        false
    }

    fn replaced(
        &self,
        ask: &Ask<'a>,
        current: &TopologyAssignment,
        terms: Terms<'_>,
        assumed: &Assumed,
        seen: (&str, &mut Seen),
    ) -> Result<(TopologyAssignment, TopologyAssignment), String> {
        let host = terms.unhealthy.unwrap_or_default();
        let is_lost = |domain: &&TopologyDomain| domain.values.last().is_some_and(|value| **value == *host);
        let n_lost = current.domains.iter().rfind(is_lost).map_or(0, |domain| i64::from(domain.count));
        let domains = current.domains.iter().filter(|domain| !is_lost(domain)).cloned().collect();
        let rest = TopologyAssignment { levels: current.levels.clone(), domains };
        if let Some(stale) = self.stale_domain(&rest) {
            let stale = stale.values.first().map_or("", |value| &**value);
            return Err(format!(
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale \
                 domain {stale}"
            ));
        }
        let within = self.replacement_domain(ask, &rest, n_lost)?;
        let placed = self.find(ask, None, n_lost, terms, assumed, within.as_ref(), seen)?;
        if placed.workers.is_empty() {
            return Err(format!("cannot find replacement assignment for unhealthy node: {host}"));
        }
        let moved = self.assignment(&placed.workers);
        let whole = self.merged(&moved, &rest);
        Ok((moved, whole))
    }

    /// Where lost pods must go: to complete their slice, or to stay in the required domain.
    fn replacement_domain(
        &self,
        ask: &Ask<'a>,
        rest: &TopologyAssignment,
        n_lost: i64,
    ) -> Result<Option<Within<'a>>, String> {
        let tree = self.tree;
        let request = ask.pod_set.topology_request.as_deref();
        let wish = Wish::new(request, ask.is_implied, &tree.keys);
        if wish.layers.first().is_some_and(|layer| layer.1 <= 0) {
            return Err("slice topology requested, but slice size not provided".to_owned());
        }
        let Some(level) = wish.key.and_then(|key| tree.level_of(key)).filter(|_| !rest.domains.is_empty()) else {
            return Ok(None);
        };
        if let Some(&(_, size)) = wish.layers.first().filter(|layer| n_lost % layer.1 != 0) {
            let divides = |layer: &&(&'a str, i64)| layer.1 > 0 && n_lost % layer.1 == 0;
            let broken = if wish.layers.len() > 1 {
                wish.layers.iter().rev().find(|layer| !divides(layer))
            } else {
                wish.layers.first()
            };
            let &(key, size) = broken.unwrap_or(&(wish.layers[0].0, size));
            let Some(of_slice) = tree.level_of(key) else { return Ok(None) };
            let Some(row) = self.incomplete_slice(rest, of_slice, n_lost, size) else { return Ok(None) };
            // Only the smallest slices that the lost pods fill are kept whole.
            let kept = wish.layers.iter().rev().find(divides);
            let part = request.map(|request| TopologyRequest {
                constraints: Vec::new(),
                slice_required_topology: kept.map(|layer| layer.0.to_owned()),
                slice_size: Some(kept.map_or(1, |layer| i32::try_from(layer.1).unwrap_or(i32::MAX))),
                ..request.clone()
            });
            return Ok(Some(Within { leaf: self.leaves_of(of_slice, row), request: part }));
        }
        if !wish.required {
            return Ok(None);
        }
        let leaf = rest.domains.first().and_then(|domain| tree.find_leaf(&domain.values));
        let row = leaf.map(|leaf| tree.ancestor(tree.lowest(), leaf, level));
        Ok(row.map(|row| Within { leaf: self.leaves_of(level, row), request: None }))
    }

    /// The first domain in which the remaining and the lost pods make whole slices.
    fn incomplete_slice(&self, rest: &TopologyAssignment, level: usize, n_lost: i64, size: i64) -> Option<Row> {
        let mut n_pods: BTreeMap<Row, i64> = BTreeMap::new();
        for domain in &rest.domains {
            if let Some(leaf) = self.tree.find_leaf(&domain.values) {
                let row = self.tree.ancestor(self.tree.lowest(), leaf, level);
                *n_pods.entry(row).or_default() += i64::from(domain.count);
            }
        }
        n_pods.into_iter().find(|(_, n)| size > 0 && (n + n_lost) % size == 0).map(|it| it.0)
    }

    /// Kueue compares full paths with the id of the domain, which for a host below other levels is just its name: then
    /// none matches.
    fn leaves_of(&self, level: usize, row: Row) -> Box<dyn Fn(Row) -> bool + 'a> {
        let tree = self.tree;
        if level == tree.lowest() && tree.is_by_hostname() && tree.n_levels() > 1 {
            return Box::new(|_| false);
        }
        let leaves = tree.below(level, row, tree.lowest());
        Box::new(move |leaf| leaves.contains(&leaf))
    }

    /// Places the pods that an elastic workload has gained, or removes those it has lost (rules/08 §14). `None`: place
    /// it from scratch.
    fn scale(
        &self,
        worker: &Ask<'a>,
        leader: Option<&Ask<'a>>,
        terms: Terms<'_>,
        assumed: &mut Assumed,
        places: &mut Places,
        seen: (&str, &mut Seen),
    ) -> Option<bool> {
        let previous = worker.previous?;
        let of_leader = leader.and_then(|leader| leader.previous);
        if self.stale_domain(previous).is_some() || of_leader.is_some_and(|it| self.stale_domain(it).is_some()) {
            return None;
        }
        let n_before: i64 = previous.domains.iter().map(|domain| i64::from(domain.count)).sum();
        let n_pods = i64::from(worker.count);
        if n_pods <= n_before {
            // Kueue does not expect a leader without a place.
            let of_leader = match (leader, of_leader) {
                (Some(_), None) => return None,
                (Some(leader), Some(place)) => Some((leader, place)),
                (None, _) => None,
            };
            let cut = truncated(previous, n_pods);
            self.assume(assumed, &cut, worker.requests);
            places.push((worker.index, Ok(cut)));
            if let Some((leader, place)) = of_leader {
                self.assume(assumed, place, leader.requests);
                places.push((leader.index, Ok(place.clone())));
            }
            return Some(false);
        }
        self.assume(assumed, previous, worker.requests);
        if let (Some(leader), Some(place)) = (leader, of_leader) {
            self.assume(assumed, place, leader.requests);
        }
        let to_place = leader.filter(|_| of_leader.is_none());
        let placed = match self.find(worker, to_place, n_pods - n_before, terms, assumed, None, seen) {
            Ok(placed) => placed,
            Err(reason) => {
                places.push((worker.index, Err(reason)));
                return Some(true);
            }
        };
        let new = self.assignment(&placed.workers);
        places.push((worker.index, Ok(self.merged(&new, previous))));
        if let Some(leader) = leader {
            let place = of_leader.cloned().unwrap_or_else(|| self.assignment(&placed.leaders));
            if of_leader.is_none() {
                self.assume(assumed, &place, leader.requests);
            }
            places.push((leader.index, Ok(place)));
        }
        self.assume(assumed, &new, worker.requests);
        Some(false)
    }
}

/// The leaves in which lost pods must stay, and the request there if it is less than that of the pod set.
struct Within<'a> {
    leaf: Box<dyn Fn(Row) -> bool + 'a>,
    request: Option<TopologyRequest>,
}

/// Pod sets by group, in order of each group's first one.
fn groups<'a, 'b>(asks: &'b [Ask<'a>]) -> Vec<Vec<&'b Ask<'a>>> {
    let mut groups: Vec<(Option<&str>, Vec<&Ask<'a>>)> = Vec::new();
    for ask in asks {
        let name = ask.pod_set.topology_request.as_ref().and_then(|it| it.pod_set_group_name.as_deref());
        match groups.iter_mut().find(|group| name.is_some() && group.0 == name) {
            Some(group) => group.1.push(ask),
            None => groups.push((name, vec![ask])),
        }
    }
    groups.into_iter().map(|group| group.1).collect()
}

/// Of two pod sets the one with fewer pods leads, the second if equal.
fn leader_and_worker<'a, 'b>(group: &[&'b Ask<'a>]) -> (Option<&'b Ask<'a>>, &'b Ask<'a>) {
    match *group {
        [first, second, ..] if second.count > first.count => (Some(first), second),
        [first, second, ..] => (Some(second), first),
        [only] => (None, only),
        [] => unreachable!("a group has members"),
    }
}

/// The requests of a pod, including itself.
pub(super) fn with_pod(requests: &Amounts) -> Amounts {
    let mut amounts = requests.clone();
    let pods = amounts.entry(PODS.to_owned()).or_default();
    *pods = pods.saturating_add(1);
    amounts
}

/// The first pods of an assignment.
pub fn truncated(assignment: &TopologyAssignment, n_pods: i64) -> TopologyAssignment {
    let mut left = n_pods;
    let mut domains = Vec::new();
    for domain in &assignment.domains {
        let count = i64::from(domain.count).min(left);
        if count <= 0 {
            break;
        }
        domains.push(TopologyDomain { values: domain.values.clone(), count: i32::try_from(count).unwrap_or(i32::MAX) });
        left -= count;
    }
    TopologyAssignment { levels: assignment.levels.clone(), domains }
}
