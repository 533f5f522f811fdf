"""How topology changes an assignment of flavors (rules/08 §3, §11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueuecore.reference import conditions
from kueuecore.reference.assignment import Assignment, Mode, NoFitReason, PodSetAssignment
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.objects import ResourceGroup
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.assignment import Requests, TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse
from kueuecore.reference.topology.domains import Ask
from kueuecore.reference.topology.flavors import Placed, assigned, first_failure, place_all, unhealthy_nodes
from kueuecore.reference.topology.nodes import single_pod
from kueuecore.reference.topology.request import request_of
from kueuecore.reference.totals import Info

Asks = Mapping[str, list[Ask]]
"""What to place, by flavor."""


def mismatch(snapshot: Snapshot, queue: str, pod_set: Json, flavor: Json, group: ResourceGroup) -> str:
    """Return why pods and a flavor do not match in topology; empty if they do (rules/08 §3)."""
    request, name = request_of(pod_set), flavor["metadata"]["name"]
    has_topology = bool(flavor["spec"].get("topologyName"))
    if not request.is_explicit:
        is_excluded = has_topology and not snapshot.is_topology_only(queue)
        return f'Flavor "{name}" supports only TopologyAwareScheduling' if is_excluded else ""
    if not has_topology:
        is_for_quota_alone = set(single_pod(pod_set["template"]["spec"], snapshot.settings)).isdisjoint(group.resources)
        return "" if is_for_quota_alone else f'Flavor "{name}" does not support TopologyAwareScheduling'
    nodes = snapshot.flavor_nodes(queue).get(name)
    if nodes is None:
        return f'Flavor "{name}" information missing in TAS cache'
    request = request.counting(snapshot.settings)
    return "" if request.fits_levels(nodes.levels) else f'Flavor "{name}" does not contain the requested level'


def asks_of(snapshot: Snapshot, info: Info, assignment: Assignment, replaced: Info | None) -> dict[str, list[Ask]]:
    """Return what to place. Records errors of pod sets, and which are placed later (rules/08 §11.2)."""
    asks: dict[str, list[Ask]] = {}
    mode = assignment.mode
    for pod_set in info.pod_sets if snapshot.settings.on("TopologyAwareScheduling") else ():
        request = request_of(pod_set)
        if not (request.is_explicit or snapshot.is_topology_only(info.cluster_queue)):
            continue
        given = assignment.pod_set(pod_set["name"])
        stands = given.topology is not None and not given.topology.stands_on(set(unhealthy_nodes(info.workload)))
        if given.error or given.count == 0 or stands:
            continue
        previous = None
        is_elastic = _is_elastic(snapshot, info)
        if _is_limited(snapshot, is_elastic=is_elastic):
            for way in ("required", "preferred"):
                if getattr(request, way) is not None and not given.error:
                    given.error = f"{way} topology is not supported with ElasticJobsViaWorkloadSlices"
        if is_elastic:
            previous = None if replaced is None else assigned(replaced.workload, pod_set["name"])
        if not given.error:
            _ask(snapshot, info, pod_set, given, previous, asks)
    if not snapshot.settings.has("PlacementErrorsAreNoFit"):
        assignment.settled = mode
    return asks


def _is_elastic(snapshot: Snapshot, info: Info) -> bool:
    gates = ("ElasticJobsViaWorkloadSlices", "ElasticJobsViaWorkloadSlicesWithTAS")
    is_marked = info.workload["metadata"]["annotations"].get("kueue.x-k8s.io/elastic-job") == "true"
    return is_marked and all(snapshot.settings.on(gate) for gate in gates)


def _is_limited(snapshot: Snapshot, *, is_elastic: bool) -> bool:
    is_on = snapshot.settings.on("ElasticJobsViaWorkloadSlicesWithTAS")
    return is_elastic or (is_on and not snapshot.settings.has("OnlyElasticJobsAreLimited"))


def _ask(
    snapshot: Snapshot,
    info: Info,
    pod_set: Json,
    given: PodSetAssignment,
    previous: TopologyAssignment | None,
    asks: dict[str, list[Ask]],
) -> None:
    known, queue = snapshot.flavor_nodes(info.cluster_queue), info.cluster_queue
    flavors = sorted({choice.flavor for choice in given.flavors.values() if choice.flavor in known})
    if not known:
        given.error = "workload requires Topology, but there is no TAS cache information"
    elif not flavors:
        given.error = "no TAS flavor assigned"
    elif len(flavors) > 1:
        given.error = f"more than one TAS flavor assigned: {', '.join(flavors)}"
    elif snapshot.places_later(queue, flavors[0], is_reserved=conditions.has_reservation(info.workload)):
        given.delayed = "Pending"
    else:
        request = request_of(pod_set)
        updates = [
            update
            for check in conditions.check_states(info.workload)
            if check["state"] == "Ready"
            for update in check.get("podSetUpdates") or ()
            if update["name"] == pod_set["name"]
        ]
        single = single_pod(pod_set["template"]["spec"], snapshot.settings)
        is_implied = not request.is_explicit
        ask = Ask(given.name, given.count, single, request, is_implied, pod_set["template"], tuple(updates), previous)
        asks.setdefault(flavors[0], []).append(ask)


def place(snapshot: Snapshot, info: Info, asks: Asks, *, is_empty: bool = False) -> dict[str, Placed]:
    """Place all of it, on the current snapshot (rules/08 §11.3)."""
    nodes = snapshot.flavor_nodes(info.cluster_queue)
    return place_all(nodes, asks, snapshot.settings, workload=info.workload, is_empty=is_empty)


def fits(snapshot: Snapshot, info: Info, asks: Asks) -> bool:
    """Return whether there is a place for all of it now (rules/08 §11.6)."""
    return not asks or first_failure(place(snapshot, info, asks)) is None


def settle(snapshot: Snapshot, info: Info, assignment: Assignment, replaced: Info | None) -> None:
    """Apply topology to an assignment whose quota is decided (rules/08 §11.4, §11.5)."""
    asks = asks_of(snapshot, info, assignment, replaced)
    if assignment.mode == Mode.FIT:
        is_out = snapshot.settings.on("ElasticJobsViaWorkloadSlicesWithTAS")
        is_out &= snapshot.settings.has("ReplacedSliceLeavesNodes")
        with snapshot.without_topology([replaced] if is_out and replaced is not None else []):
            placed = place(snapshot, info, asks)
        failure = first_failure(placed)
        if failure is None:
            _store(assignment, placed)
        else:
            assignment.pod_set(failure[0]).reasons.append(failure[1].reason)
            _settle(assignment, [failure[0]], Mode.PREEMPT)
    if assignment.mode == Mode.PREEMPT and not unhealthy_nodes(info.workload):
        failure = first_failure(place(snapshot, info, asks, is_empty=True))
        if failure is None:
            _settle(assignment, (ask.name for each in asks.values() for ask in each), Mode.PREEMPT)
        else:
            if snapshot.settings.on("UnadmittedWorkloadsObservability"):
                _mark(assignment.pod_set(failure[0]), failure[1].flavor)
            _settle(assignment, [failure[0]], Mode.NO_FIT)


def _settle(assignment: Assignment, names: Iterable[str], mode: Mode) -> None:
    for name in names:
        for choice in assignment.pod_set(name).flavors.values():
            choice.mode = mode
        assignment.settled = mode


def _mark(pod_set: PodSetAssignment, flavor: str) -> None:
    """Mark the attempt with a flavor as failed for its topology, without a text (rules/08 §11.5)."""
    if flavor in pod_set.attempts:
        found = pod_set.attempts[flavor]
        pod_set.attempts[flavor] = found.failed(NoFitReason.TOPOLOGY)


def _store(assignment: Assignment, placed: Mapping[str, Placed]) -> None:
    for name, each in placed.items():
        pod_set = assignment.pod_set(name)
        pod_set.topology = each.assignment
        if each.assignment is not None and pod_set.delayed:
            pod_set.delayed = "Ready"


def renew(
    snapshot: Snapshot, info: Info, assignment: Assignment, targets: Iterable[Info], replaced: Info | None
) -> None:
    """Set where pods will be once others are gone, which keeps the place in this cycle (rules/08 §11.6)."""
    is_asked = any(request_of(pod_set).is_explicit for pod_set in info.pod_sets)
    is_asked |= snapshot.is_topology_only(info.cluster_queue)
    is_on = snapshot.settings.on("TopologyAwareScheduling")
    if not is_on or not is_asked or assignment.mode != Mode.PREEMPT or stands_on_failed_node(info.workload):
        return
    asks, gone = asks_of(snapshot, info, assignment, replaced), list(targets)
    if gone:
        with snapshot.without_topology(gone):
            placed = place(snapshot, info, asks)
    else:
        placed = place(snapshot, info, asks, is_empty=True)
    _store(assignment, placed)


def stands_on_failed_node(workload: Json) -> bool:
    """Return whether it runs with pods on a node that failed (rules/08 §11.7)."""
    failed = set(unhealthy_nodes(workload))
    if not failed or not conditions.is_true(workload, "Admitted"):
        return False
    names = [each["name"] for each in conditions.admission(workload).get("podSetAssignments") or ()]
    return any(stands is not None and stands.stands_on(failed) for stands in (assigned(workload, n) for n in names))


def net_use(
    known: Mapping[str, FlavorNodes], info: Info, assignment: Assignment, settings: Settings, *, before: bool = True
) -> dict[str, list[TopologyUse]]:
    """Return, by flavor, what an assignment uses beyond what the workload already holds (rules/08 §11.6).

    Args:
        known: The flavors with a topology of its ClusterQueue.
        info: The workload.
        assignment: The new assignment.
        settings: The settings.
        before: Whether to subtract what the workload holds.
    """
    uses: dict[str, list[TopologyUse]] = {}
    templates = {pod_set["name"]: pod_set["template"]["spec"] for pod_set in info.pod_sets}
    by_pods = settings.has("NodeUsageIsThatOfPods")
    for pod_set in assignment.pod_sets:
        chosen = {name: flavor.flavor for name, flavor in pod_set.flavors.items() if flavor.flavor in known}
        if pod_set.topology is None or (by_pods and len(set(chosen.values())) != 1):
            continue
        held = assigned(info.workload, pod_set.name) if before else None
        if held is not None and not settings.has("MovedPodsCount"):
            continue
        there: dict[tuple[str, ...], int] = {}
        for values, count in held.domains if held is not None else ():
            there[values] = there.get(values, 0) + count
        more = [(values, count - there.get(values, 0)) for values, count in pod_set.topology.domains]
        new = TopologyAssignment(pod_set.topology.levels, tuple((values, count) for values, count in more if count > 0))
        if new.domains:
            single: Requests = single_pod(templates[pod_set.name], settings)
            if not by_pods:
                single = {name: total // pod_set.count for name, total in pod_set.requests.items() if name in chosen}
            # Before, each resource charged its flavor once more.
            for flavor in set(chosen.values()) if by_pods else chosen.values():
                uses.setdefault(flavor, []).append(TopologyUse(new, single))
    return uses
