//! Placement on nodes after the quota check (rules/08 §11).

mod asking;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::assign::{Assignment, Delay, Mode, NoFitReason, Observing, PodSetAssignment, requests_topology};
use crate::base::changes::Change;
use crate::base::gates::Gate;
use crate::base::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use crate::base::shared::Shared;
use crate::objects::slices::is_elastic;
use crate::objects::{CheckState, PodSet, Toleration, TopologyAssignment, TopologyDomain, Workload};
use crate::state::sites::{is_on_unhealthy_node, requests_of, stands_on_unhealthy_node, with_pod};
use crate::state::{Nodes, State};
use crate::status::activeness::{MULTI_KUEUE_CONTROLLER, PROVISIONING_CONTROLLER};
use crate::status::checks::flavors_by_check;
use crate::status::eviction::owned_by_single_pod;
use crate::status::stage::has_quota_reservation;
use crate::topology::capacity::Amounts;
use crate::topology::filter::PodFacts;
use crate::topology::placement::{AmountsById, Ask, Assumed, Seen, Terms};
use crate::topology::sites::Stand;
use crate::workloads::Record;
use crate::workloads::charge::Target;

/// What placements cache about the nodes of each flavor.
pub(crate) type SeenByFlavor = BTreeMap<FlavorId, Seen>;

/// Places the pods of one workload.
pub(crate) struct Placer<'a> {
    state: &'a State,
    queue: QueueId,
    record: &'a Record,
    /// The slice that it replaces.
    slice: Option<WorkloadId>,
    seen: &'a RefCell<SeenByFlavor>,
    /// The requests of a pod of each pod set.
    requests: Vec<Amounts>,
}

/// A pod set that needs a place, and the flavor for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    pod_set: usize,
    count: i32,
    flavor: FlavorId,
}

/// The need of a pod set.
enum Need {
    Place(Wanted),
    /// A place, but later.
    Later,
    /// Something that does not exist.
    Error(String),
}

#[derive(Debug, Default)]
struct Found {
    places: Vec<(usize, Option<TopologyAssignment>)>,
    failure: Option<Failure>,
}

/// The first pod set without a place.
#[derive(Debug)]
struct Failure {
    pod_set: usize,
    flavor: FlavorId,
    reason: String,
}

impl<'a> Placer<'a> {
    /// A placer for a workload that must be placed; `None`: it need not.
    pub fn new(
        state: &'a State,
        (queue, workload): (QueueId, WorkloadId),
        slice: Option<WorkloadId>,
        seen: &'a RefCell<SeenByFlavor>,
    ) -> Option<Self> {
        if !state.needs_place(queue, workload) {
            return None;
        }
        let record = state.workloads.get(workload);
        let requests = record.spec.adjusted.iter().map(|pod_set| requests_of(pod_set, state.config.changes)).collect();
        Some(Self { state, queue, record, slice, seen, requests })
    }

    fn workload(&self) -> &'a Workload {
        &self.record.workload
    }

    fn unhealthy(&self) -> Option<&'a str> {
        self.workload().status.rare.unhealthy_nodes.first().map(String::as_str)
    }

    /// Finds places after the quota check. Without one it may preempt, if empty nodes would do (rules/08 §11.4, §11.5).
    pub fn place(&self, assignment: &mut Assignment) {
        if !assignment.is_whole() || assignment.mode() == Mode::NoFit {
            return;
        }
        let wanted = self.wanted(assignment);
        let observing = Observing::new(&self.state.config);
        if assignment.mode() == Mode::Fit {
            let found = self.find(&wanted, false, self.replaced().as_slice());
            match &found.failure {
                Some(failure) => {
                    assignment.object(failure.pod_set, &failure.reason);
                    assignment.lower(failure.pod_set, Mode::Preempt);
                }
                None => assignment.put_places(found.places),
            }
        }
        if assignment.mode() == Mode::Preempt && self.unhealthy().is_none() {
            match self.find(&wanted, true, &[]).failure {
                Some(failure) => {
                    if observing.is_on {
                        let reason = NoFitReason::TopologyPlacementFailed;
                        assignment.mark_attempt(failure.pod_set, failure.flavor, reason);
                    }
                    assignment.lower(failure.pod_set, Mode::NoFit);
                }
                None => wanted.iter().for_each(|it| assignment.lower(it.pod_set, Mode::Preempt)),
            }
        }
        assignment.settle_reason(&self.state.queues[self.queue].rules, observing);
    }

    /// The slice that it replaces, if that counts as gone while it is placed (rules/08 §14).
    fn replaced(&self) -> Option<Target> {
        let is_on = self.state.gate(Gate::ElasticJobsViaWorkloadSlicesWithTAS)
            && self.state.config.changes.has(Change::ReplacedSliceLeavesNodes);
        let slice = self.slice.filter(|_| is_on)?;
        Some(Target { workload: slice, queue: self.queue, reason: "" })
    }

    /// After the search for targets: reserves the places that it will have, or would have on empty nodes (rules/08
    /// §11.6).
    pub fn place_after_search(&self, assignment: &mut Assignment, targets: &[Target]) {
        if assignment.mode() != Mode::Preempt || self.stands_on_unhealthy_node() {
            return;
        }
        let wanted = self.wanted(assignment);
        let found = self.find(&wanted, targets.is_empty(), targets);
        assignment.put_places(found.places);
    }

    /// Is it Admitted, with pods on a host that has failed?
    fn stands_on_unhealthy_node(&self) -> bool {
        stands_on_unhealthy_node(self.workload())
    }

    /// The needs of pod sets, by their indexes in the list.
    fn needs(&self, pod_sets: &[PodSetAssignment]) -> Vec<(usize, Need)> {
        let mut needs = Vec::new();
        for (at, it) in pod_sets.iter().enumerate() {
            let pod_set = &self.record.spec.adjusted[it.index];
            let has_place = it.place.as_ref().is_some_and(|place| !is_on_unhealthy_node(self.workload(), place));
            if !self.state.is_placed(self.queue, pod_set) || it.error.is_some() || it.count == 0 || has_place {
                continue;
            }
            let need = match self.flavor_of(pod_set, it.flavors.iter().map(|choice| choice.flavor)) {
                Err(error) => Need::Error(error),
                Ok(flavor) if self.is_delayed(flavor) => Need::Later,
                Ok(flavor) => Need::Place(Wanted { pod_set: it.index, count: it.count, flavor }),
            };
            needs.push((at, need));
        }
        needs
    }

    /// The pod sets that need a place now. An impossible request becomes an error of the pod set.
    fn wanted(&self, assignment: &mut Assignment) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        let needs = self.needs(&assignment.pod_sets());
        for (at, need) in needs {
            match need {
                Need::Error(error) => {
                    assignment.fail(at, error, self.state.config.changes.has(Change::PlacementErrorsAreNoFit));
                }
                Need::Later => assignment.pod_sets_mut()[at].delayed = Some(Delay::Pending),
                Need::Place(it) => wanted.push(it),
            }
        }
        wanted
    }

    /// The flavor on whose nodes a pod set is placed.
    fn flavor_of(&self, pod_set: &PodSet, flavors: impl Iterator<Item = FlavorId>) -> Result<FlavorId, String> {
        let is_elastic = self.is_elastic() || !self.state.config.changes.has(Change::OnlyElasticJobsAreLimited);
        if is_elastic && self.state.gate(Gate::ElasticJobsViaWorkloadSlicesWithTAS) {
            let request = pod_set.topology_request.as_ref();
            if request.is_some_and(|it| it.required.is_some()) {
                return Err("required topology is not supported with ElasticJobsViaWorkloadSlices".to_owned());
            }
            if request.is_some_and(|it| it.preferred.is_some()) {
                return Err("preferred topology is not supported with ElasticJobsViaWorkloadSlices".to_owned());
            }
        }
        let names = &self.state.names.flavors;
        let known = self.state.known_flavors(self.queue);
        if known.is_empty() {
            return Err("workload requires Topology, but there is no TAS cache information".to_owned());
        }
        let mut found: Vec<(&str, FlavorId)> =
            flavors.filter(|it| known.contains(it)).map(|it| (names[it].as_str(), it)).collect();
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [] => Err("no TAS flavor assigned".to_owned()),
            [(_, flavor)] => Ok(flavor),
            _ => {
                let names: Vec<&str> = found.iter().map(|it| it.0).collect();
                Err(format!("more than one TAS flavor assigned: {}", names.join(", ")))
            }
        }
    }

    fn is_elastic(&self) -> bool {
        self.state.gate(Gate::ElasticJobsViaWorkloadSlices) && is_elastic(self.workload())
    }

    /// Is it placed later: by a MultiKueue worker, or after provisioning?
    fn is_delayed(&self, flavor: FlavorId) -> bool {
        let Some(object) = &self.state.queues[self.queue].settled else { return false };
        let name = self.state.names.flavors[flavor].as_str();
        let all = crate::status::checks::all_flavors(&object.resource_groups);
        let by_check = flavors_by_check(&object.admission_checks, &all);
        let is_of = |check: &str, controller| {
            self.state.objects.checks.get(check).is_some_and(|check| check.controller_name == controller)
        };
        let is_reserved = has_quota_reservation(self.workload());
        by_check.iter().any(|(check, flavors)| {
            is_of(check, MULTI_KUEUE_CONTROLLER)
                || (!is_reserved && is_of(check, PROVISIONING_CONTROLLER) && flavors.contains(name))
        })
    }

    /// Searches places flavor by flavor, without the usage of some workloads.
    fn find(&self, wanted: &[Wanted], simulates_empty: bool, gone: &[Target]) -> Found {
        let State { nodes: Nodes { sites, .. }, names, config, .. } = self.state;
        let gates = config.gates;
        let mut flavors: Vec<FlavorId> = wanted.iter().map(|it| it.flavor).collect();
        flavors.sort_unstable_by_key(|flavor| names.flavors[*flavor].as_str());
        flavors.dedup();
        let unhealthy = self.unhealthy();
        let stays = gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads) && owned_by_single_pod(self.workload());
        let mut shared = Assumed::default();
        let mut found = Found::default();
        for flavor in flavors {
            let Some(ground) = sites.ground(flavor) else { continue };
            let asks: Vec<Ask<'_>> =
                wanted.iter().filter(|it| it.flavor == flavor).map(|it| self.ask(it, ground.tolerations)).collect();
            let given_back = self.given_back(flavor, gone);
            let terms = Terms { gates, simulates_empty, unhealthy, stays, given_back: &given_back };
            let shares = gates.enabled(Gate::TASHandleOverlappingFlavors) && ground.tree.is_by_hostname();
            let mut own = Assumed::default();
            let assumed = if shares { &mut shared } else { &mut own };
            let mut seen = self.seen.borrow_mut();
            let seen = (self.record.key().uid(), seen.entry(flavor).or_default());
            for (pod_set, place) in ground.place(&asks, terms, assumed, seen) {
                match place {
                    Ok(place) => found.places.push((pod_set, Some(place))),
                    Err(reason) => {
                        found.places.push((pod_set, None));
                        found.failure.get_or_insert(Failure { pod_set, flavor, reason });
                    }
                }
            }
        }
        found
    }

    fn ask(&self, wanted: &Wanted, tolerations: &'a [Toleration]) -> Ask<'_> {
        let pod_set = &self.record.spec.adjusted[wanted.pod_set];
        let of = |workload: &'a Workload| {
            let admission = workload.status.admission.as_ref()?;
            let assigned = admission.pod_set_assignments.iter().find(|it| it.name == pod_set.name)?;
            assigned.topology_assignment.as_deref()
        };
        let slice = self.slice.map(|slice| &self.state.workloads.get(slice).workload);
        let is_elastic = self.is_elastic();
        Ask {
            pod_set,
            index: wanted.pod_set,
            count: wanted.count,
            requests: &self.requests[wanted.pod_set],
            is_implied: !requests_topology(pod_set),
            facts: self.facts(pod_set, tolerations),
            current: of(self.workload()),
            previous: slice.filter(|_| is_elastic).and_then(of),
        }
    }

    /// A pod template's node constraints, with the additions of Ready checks.
    fn facts(&self, pod_set: &'a PodSet, tolerations: &'a [Toleration]) -> Result<PodFacts<'a>, String> {
        let checks = self.workload().status.rare.admission_checks.iter();
        let ready = checks.filter(|check| check.state == CheckState::Ready);
        let updates = ready.flat_map(|check| &check.updates).filter(|update| update.name == pod_set.name);
        let by_library = self.state.gate(Gate::SchedulerLibraryIntegration);
        PodFacts::new(&pod_set.template, updates, tolerations)
            .map(|facts| PodFacts { by_library, ..facts })
            .map_err(|error| format!("invalid podSetUpdate for PodSet {}, error: {error}", pod_set.name))
    }

    /// What workloads that count as gone give back to the leaves of a flavor.
    fn given_back(&self, flavor: FlavorId, gone: &[Target]) -> AmountsById {
        let mut given_back = AmountsById::default();
        for (stand, id, n) in gone.iter().flat_map(|target| self.domains_of(flavor, target)) {
            let amounts = given_back.entry(id).or_default();
            for (resource, value) in &*stand.per_pod {
                let sum = amounts.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(value.wrapping_mul(n));
            }
        }
        given_back
    }

    /// The domains of a flavor in which a workload is placed, and its number of pods there; none if its ClusterQueue has
    /// lost the flavor of its pods since (rules/08 §4.5).
    fn domains_of(&self, flavor: FlavorId, of: &Target) -> impl Iterator<Item = (&'a Stand, Arc<str>, i64)> + use<'a> {
        let state = self.state;
        let charge = state.workloads.get(of.workload).charge.as_deref();
        let (rules, pools) = (&state.queues[of.queue].rules, state.pools_trials());
        let is_seen = move |own: FlavorId| {
            rules.has_flavor(own) && (own == flavor || (pools && state.nodes.sites.share_hosts(own, flavor)))
        };
        let stands = charge.into_iter().flat_map(|charge| &*charge.stands);
        let stands = stands.flat_map(move |stand| {
            let seen = stand.flavors.iter().filter(move |own| is_seen(**own));
            seen.map(move |_| stand)
        });
        stands.flat_map(|stand| stand.domains().map(move |(id, n)| (stand, id, n)))
    }
}

impl State {
    /// Places an assignment of a workload in a ClusterQueue, as a cycle does before it searches targets.
    pub fn place(&mut self, queue: QueueId, workload: WorkloadId, assignment: &mut Assignment) {
        let seen = RefCell::new(std::mem::take(&mut self.nodes.sites.seen));
        if let Some(placer) = Placer::new(self, (queue, workload), None, &seen) {
            placer.place(assignment);
        }
        self.nodes.sites.seen = seen.into_inner();
    }

    /// What an assignment takes from nodes beyond what the workload already has there (rules/08 §11.6).
    pub fn net_stands(&self, (queue, workload): (QueueId, WorkloadId), assignment: &Assignment) -> Vec<Stand> {
        if !assignment.has_places() {
            return Vec::new();
        }
        let known = self.known_flavors(queue);
        let record = self.workloads.get(workload);
        let admission = record.workload.status.admission.as_ref();
        let mut stands = Vec::new();
        for it in assignment.pod_sets().iter() {
            let Some(place) = &it.place else { continue };
            let pod_set = &record.spec.adjusted[it.index];
            let mut flavors: SmallVec<[FlavorId; 1]> =
                it.flavors.iter().map(|choice| choice.flavor).filter(|flavor| known.contains(flavor)).collect();
            let by_pods = self.config.changes.has(Change::NodeUsageIsThatOfPods);
            if by_pods {
                flavors.dedup();
                if flavors.len() != 1 {
                    continue;
                }
            }
            let assigned = admission.and_then(|it| it.pod_set_assignments.iter().find(|it| it.name == pod_set.name));
            let now = assigned.and_then(|it| it.topology_assignment.as_deref());
            if now.is_some() && !self.config.changes.has(Change::MovedPodsCount) {
                continue;
            }
            let place = now.map_or_else(|| place.clone(), |now| without(place, now).into());
            if !place.domains.is_empty() {
                let per_pod =
                    if by_pods { requests_of(pod_set, self.config.changes) } else { self.share_of_pod(it, &known) };
                let per_pod = Arc::new(with_pod(&per_pod));
                // Before, each resource charged its flavor once more.
                stands.extend(flavors.drain(..).map(|flavor| Stand {
                    flavors: [flavor].into_iter().collect(),
                    per_pod: Arc::clone(&per_pod),
                    place: place.clone(),
                }));
            }
        }
        stands
    }

    /// What a pod set's quota of these flavors is for one pod.
    fn share_of_pod(&self, of: &PodSetAssignment, known: &[FlavorId]) -> Amounts {
        let is_known = |resource| of.flavors.iter().any(|it| it.resource == resource && known.contains(&it.flavor));
        let requests = of.requests.iter().filter(|it| is_known(it.0));
        let share = |&(resource, total): &(ResourceId, i64)| {
            (self.names.resource_text(resource).to_owned(), total.checked_div(i64::from(of.count)).unwrap_or(0))
        };
        requests.map(share).collect()
    }

    /// The current placement of a workload's pod sets if it has quota, or that they wait for one; whether or not its
    /// ClusterQueue would place them today.
    pub(crate) fn places_now(&self, workload: WorkloadId) -> Vec<(Option<Shared<TopologyAssignment>>, Option<Delay>)> {
        if !self.gate(Gate::TopologyAwareScheduling) {
            return Vec::new();
        }
        let delayed = |it: &crate::objects::PodSetAssignment| match it.delayed_topology_request.as_str() {
            "Pending" => Some(Delay::Pending),
            "Ready" => Some(Delay::Ready),
            _ => None,
        };
        let admission = self.workloads.get(workload).workload.status.admission.as_ref();
        let assignments = admission.map(|admission| admission.pod_set_assignments.iter());
        assignments.into_iter().flatten().map(|it| (it.topology_assignment.clone(), delayed(it))).collect()
    }

    /// Must a workload be placed on nodes?
    pub(crate) fn needs_place(&self, queue: QueueId, workload: WorkloadId) -> bool {
        self.gate(Gate::TopologyAwareScheduling)
            && (self.places_all(queue) || self.workloads.get(workload).spec.adjusted.iter().any(requests_topology))
    }

    /// The flavors of a ClusterQueue with known nodes.
    fn known_flavors(&self, queue: QueueId) -> SmallVec<[FlavorId; 4]> {
        let flavors = self.queues[queue].rules.groups.iter().flat_map(|group| &group.flavors);
        flavors.copied().filter(|flavor| self.nodes.sites.has(*flavor)).collect()
    }

    fn is_placed(&self, queue: QueueId, pod_set: &PodSet) -> bool {
        requests_topology(pod_set) || self.places_all(queue)
    }

    /// Are all flavors of a ClusterQueue topology-aware, so that every workload is placed?
    fn places_all(&self, queue: QueueId) -> bool {
        let places =
            |flavor: &FlavorId| self.objects.flavors[*flavor].as_ref().is_some_and(|it| !it.topology_name.is_empty());
        self.queues[queue].rules.groups.iter().flat_map(|group| &group.flavors).all(places)
    }
}

/// The pods on domains that had none before, or fewer.
fn without(place: &TopologyAssignment, before: &TopologyAssignment) -> TopologyAssignment {
    let before: BTreeMap<_, _> = before.domains.iter().map(|domain| (&domain.values, domain.count)).collect();
    let more = place.domains.iter().filter_map(|domain| {
        let had = before.get(&domain.values).copied().unwrap_or(0);
        let count = domain.count.saturating_sub(had);
        (count > 0).then(|| TopologyDomain { values: domain.values.clone(), count })
    });
    TopologyAssignment { levels: place.levels.clone(), domains: more.collect() }
}

#[cfg(test)]
mod tests;
