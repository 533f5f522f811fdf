//! Places the pods of a workload on the nodes of one flavor (rules/08 §5.1, §11.3, §13.5, §14).

use std::collections::BTreeMap;
use std::sync::Arc;

use replacement::Within;
use rustc_hash::FxHashSet;

use crate::base::changes::Change;
use crate::base::gates::{Gate, Gates};
use crate::objects::{PodSet, Toleration, TopologyAssignment, TopologyDomain};
use crate::topology::balanced;
use crate::topology::capacity::{Amounts, PODS, Row};
use crate::topology::descend::Placed;
use crate::topology::failure;
use crate::topology::filter::PodFacts;
use crate::topology::request::Wish;
use crate::topology::search::Search;
use crate::topology::tables::{Besides, Kind, Moved, Table, Tables};
use crate::topology::tails::tails;
use crate::topology::tree::{Tree, id_of};

mod replacement;
mod slice_order;

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
    /// What workloads that count as gone give back.
    pub given_back: &'a AmountsById,
}

/// The nodes of a flavor.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Name of the Topology.
    pub topology: &'a str,
    pub tree: &'a Tree,
    /// The flavor's tolerations.
    pub tolerations: &'a [Toleration],
}

/// Amounts by the id of the domain that an assignment names.
pub type AmountsById = BTreeMap<Arc<str>, Amounts>;

/// What earlier groups take.
#[derive(Debug, Default)]
pub struct Assumed {
    /// By the domain that their assignments name.
    named: AmountsById,
    /// By node, if assignments name domains above the nodes.
    nodes: BTreeMap<Row, Amounts>,
}

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
            Ok(found) => {
                if let Some(leader) = leader {
                    self.assume_nodes(assumed, &found.leaves.leaders, leader.requests);
                    self.assume(assumed, &found.leaders, leader.requests);
                    places.push((leader.index, Ok(found.leaders)));
                }
                self.assume_nodes(assumed, &found.leaves.workers, worker.requests);
                self.assume(assumed, &found.workers, worker.requests);
                places.push((worker.index, Ok(found.workers)));
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
    ) -> Result<Found, String> {
        let gates = terms.gates;
        let facts = worker.facts.as_ref().map_err(Clone::clone)?;
        let of_part = within.and_then(|within| within.request.as_ref());
        let request = of_part.or(worker.pod_set.topology_request.as_deref());
        let tree = self.tree;
        let wish = Wish::new(request, worker.is_implied, &tree.keys).within(gates, tree.changes);
        let request = wish.in_tree(tree)?.with_tail(n_pods, gates);
        let has_own_facts = tree.has_nodes() && gates.enabled(Gate::TASLeaderPodSetFeasibility);
        let of_leader = match leader.filter(|_| gates.enabled(Gate::TASLeaderPodSetFeasibility)) {
            Some(leader) => Some(leader.facts.as_ref().map_err(Clone::clone)?),
            None => None,
        };
        let of_leader = of_leader.filter(|_| has_own_facts).map(|facts| seen.tables.matches(tree, facts));
        let respects = gates.enabled(Gate::TASRespectNodeAffinityPreferred);
        let remembers = gates.enabled(Gate::TASCacheNodeMatchResults) && tree.has_nodes() && !uid.is_empty();
        let is_first = !remembers || seen.scored.insert((uid.to_owned(), worker.pod_set.name.clone()));
        let kind = Kind {
            requests: with_pod(worker.requests),
            leader: leader.map(|leader| with_pod(leader.requests)),
            request,
            matches: seen.tables.matches(tree, facts),
            of_leader,
            // Within a cycle Kueue caches which nodes match, but their scores only on the first evaluation.
            scores: respects && is_first,
            simulates_empty: terms.simulates_empty,
        };
        let besides = self.besides(assumed, terms);
        let within = within.map(|within| &*within.leaf);
        seen.tables.look(tree, kind, (&besides, within), |table| {
            let Table { kind: Kind { request, .. }, levels, bounds, .. } = table;
            let has_tail = request.tail > 0;
            let beside_tail = if has_tail { tails(tree, request, levels, leader.is_some()) } else { Vec::new() };
            let search = Search::new(tree, (request, levels), (n_pods, i64::from(leader.is_some())), gates);
            let search = Search { bounds, tails: &beside_tail, ..search };
            let balance = gates.enabled(Gate::TASBalancedPlacement) && balanced::is_wanted(request) && !has_tail;
            let tried = match balance.then(|| search.balance()) {
                Some(Ok(placed)) => return Ok(self.found(placed)),
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
            let mut found = self.found(search.descend(chosen, false).unwrap_or_default());
            if has_tail {
                let slices = (request.slice_level, request.slice_size);
                self.put_tail_last(&mut found.workers, slices);
                if slice_order::n_pods(&found.workers) != n_pods || !self.has_whole_slices(&found.workers, slices) {
                    let name = &worker.pod_set.name;
                    return Err(format!("cannot place the partial slice of PodSet {name} in a single topology domain"));
                }
            }
            Ok(found)
        })
    }

    /// The assignments for leaves.
    fn found(&self, leaves: Placed) -> Found {
        let [workers, leaders] = [&leaves.workers, &leaves.leaders].map(|leaves| self.assignment(leaves));
        Found { workers, leaders, leaves }
    }

    /// Adds what placed pods take of the nodes that their assignment does not name.
    fn assume_nodes(&self, assumed: &mut Assumed, leaves: &[(Row, i64)], requests: &Amounts) {
        if self.tree.bounds().is_none() {
            return;
        }
        let of_pod = with_pod(requests);
        for &(leaf, n) in leaves {
            add(assumed.nodes.entry(leaf).or_default(), &of_pod, n);
        }
    }

    /// Adds what placed pods take.
    fn assume(&self, assumed: &mut Assumed, place: &TopologyAssignment, requests: &Amounts) {
        let counts_pods = self.tree.changes.has(Change::PodSetsShareRoomForPods);
        let of_pod = if counts_pods { with_pod(requests) } else { requests.clone() };
        for domain in &place.domains {
            add(assumed.named.entry(id_of(&domain.values)).or_default(), &of_pod, i64::from(domain.count));
        }
    }

    /// What earlier groups take, and what workloads that count as gone give back.
    fn besides<'b>(&self, assumed: &'b Assumed, terms: Terms<'b>) -> Besides<'b> {
        let mut named: BTreeMap<Row, Moved<'b>> = BTreeMap::new();
        let row = |id: &str| self.tree.find_by_id(id);
        for (row, amounts) in assumed.named.iter().filter_map(|(id, amounts)| Some((row(id)?, amounts))) {
            named.entry(row).or_default().0 = Some(amounts);
        }
        let given_back = terms.given_back.iter().filter(|_| !terms.simulates_empty);
        for (row, amounts) in given_back.filter_map(|(id, amounts)| Some((row(id)?, amounts))) {
            named.entry(row).or_default().1 = Some(amounts);
        }
        if self.tree.bounds().is_none() {
            return Besides { leaves: named, named: Vec::new() };
        }
        let leaves = assumed.nodes.iter().map(|(leaf, amounts)| (*leaf, (Some(amounts), None)));
        Besides { leaves: leaves.collect(), named: named.into_iter().collect() }
    }

    /// The assignment of pods on leaves, which are in order.
    fn assignment(&self, leaves: &[(Row, i64)]) -> TopologyAssignment {
        let mut counts: Vec<(Row, i64)> = Vec::with_capacity(leaves.len());
        for &(leaf, n) in leaves {
            let row = self.tree.named_of(leaf);
            match counts.last_mut().filter(|last| last.0 == row) {
                Some(last) => last.1 += n,
                None => counts.push((row, n)),
            }
        }
        let domain = |&(row, n): &(Row, i64)| TopologyDomain {
            values: self.tree.assigned_values(row),
            count: i32::try_from(n).unwrap_or(i32::MAX),
        };
        TopologyAssignment { levels: self.tree.assigned_keys().to_vec(), domains: counts.iter().map(domain).collect() }
    }

    /// The first domain of an assignment that no longer exists.
    fn stale_domain<'b>(&self, assignment: &'b TopologyAssignment) -> Option<&'b TopologyDomain> {
        assignment.domains.iter().find(|domain| self.tree.find(&domain.values).is_none())
    }

    /// The pods of both assignments, by domain.
    pub fn merged(&self, new: &TopologyAssignment, old: &TopologyAssignment) -> TopologyAssignment {
        let mut by_leaf: Vec<(Option<Row>, &TopologyDomain)> =
            new.domains.iter().chain(&old.domains).map(|it| (self.tree.find(&it.values), it)).collect();
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
        let found = match self.find(worker, to_place, n_pods - n_before, terms, assumed, None, seen) {
            Ok(found) => found,
            Err(reason) => {
                places.push((worker.index, Err(reason)));
                return Some(true);
            }
        };
        let new = found.workers;
        places.push((worker.index, Ok(self.merged(&new, previous))));
        if let Some(leader) = leader {
            let place = of_leader.cloned().unwrap_or(found.leaders);
            if of_leader.is_none() {
                self.assume_nodes(assumed, &found.leaves.leaders, leader.requests);
                self.assume(assumed, &place, leader.requests);
            }
            places.push((leader.index, Ok(place)));
        }
        self.assume_nodes(assumed, &found.leaves.workers, worker.requests);
        self.assume(assumed, &new, worker.requests);
        Some(false)
    }
}

/// A place for a worker and its leader.
struct Found {
    workers: TopologyAssignment,
    leaders: TopologyAssignment,
    leaves: Placed,
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

/// Adds what a number of pods take.
fn add(to: &mut Amounts, of_pod: &Amounts, n_pods: i64) {
    for (resource, value) in of_pod {
        let sum = to.entry(resource.clone()).or_default();
        *sum = sum.wrapping_add(value.wrapping_mul(n_pods));
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
