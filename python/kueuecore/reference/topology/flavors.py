"""Places all pod sets of a workload, flavor by flavor and group by group (rules/08 §5.1, §11.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueuecore.reference import conditions
from kueuecore.reference.objects import is_owned_by_a_pod
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology import elastic
from kueuecore.reference.topology.assignment import Assumed, TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse
from kueuecore.reference.topology.domains import Ask, Search, assume, assume_found
from kueuecore.reference.topology.encoding import decoded
from kueuecore.reference.topology.placement import NoPlaceError, find
from kueuecore.reference.topology.replacement import replaced


@dataclass(frozen=True)
class Placed:
    """The result of placing a pod set: an assignment, or why there is none."""

    flavor: str
    assignment: TopologyAssignment | None = None
    reason: str = ""


def place_all(
    flavors: Mapping[str, FlavorNodes],
    asks: Mapping[str, Sequence[Ask]],
    settings: Settings,
    *,
    workload: Json | None = None,
    is_empty: bool = False,
) -> dict[str, Placed]:
    """Place pod sets, each in its flavor.

    Args:
        flavors: The nodes of flavors.
        asks: What to place, by flavor.
        settings: The gates.
        workload: The workload, whose failed nodes are replaced.
        is_empty: Whether to ignore the usage of workloads.

    Returns:
        The results by pod set; pod sets after a group without a place are missing.
    """
    given: dict[str, Placed] = {}
    shared = Assumed()
    for name in sorted(asks):
        nodes = flavors[name]
        is_pooled = settings.on("TASHandleOverlappingFlavors") and nodes.is_by_host
        assumed = shared if is_pooled else Assumed()
        uid = "" if workload is None else str(workload["metadata"]["uid"])
        search = Search(nodes, settings, assumed, is_empty, uid)
        given |= _place_in_flavor(name, search, assumed, asks[name], workload)
    return given


def first_failure(given: Mapping[str, Placed]) -> tuple[str, Placed] | None:
    """Return the pod set to report as having no place. Kueue reports any of them (rules/08 §10)."""
    return next(((name, placed) for name, placed in given.items() if placed.reason), None)


def _place_in_flavor(
    flavor: str, search: Search, assumed: Assumed, asks: Sequence[Ask], workload: Json | None
) -> dict[str, Placed]:
    given: dict[str, Placed] = {}
    groups: dict[str, list[Ask]] = {}
    for index, ask in enumerate(asks):
        groups.setdefault(str(index) if ask.request.group is None else ask.request.group, []).append(ask)
    failed = unhealthy_nodes(workload)
    for group in groups.values():
        if workload is not None and failed:
            made = _replace(flavor, search, assumed, group, workload, failed[0])
        else:
            made = _place_group(flavor, search, assumed, group)
        given |= made
        if first_failure(made) is not None:
            break
    return given


def _place_group(flavor: str, search: Search, assumed: Assumed, group: Sequence[Ask]) -> dict[str, Placed]:
    """Place a pod set, or a leader with its workers, of which there are more (rules/08 §5.1)."""
    worker, leader = group[0], None
    if len(group) > 1:
        worker, leader = (group[1], group[0]) if group[1].count > group[0].count else (group[0], group[1])
    if search.settings.on("ElasticJobsViaWorkloadSlicesWithTAS"):
        try:
            kept = elastic.resized(search, assumed, worker, leader)
        except NoPlaceError as why:
            return {worker.name: Placed(flavor, None, str(why))}
        if kept is not None:
            return {name: Placed(flavor, assignment) for name, assignment in kept.items()}
    try:
        made = find(search, worker, leader)
    except NoPlaceError as why:
        return {ask.name: Placed(flavor, None, str(why)) for ask in group}
    for ask in (ask for ask in group if ask.name in made):
        assume_found(search, assumed, made[ask.name], ask.single)
    return {ask.name: Placed(flavor, made[ask.name].assignment if ask.name in made else None) for ask in group}


def _replace(
    flavor: str, search: Search, assumed: Assumed, group: Sequence[Ask], workload: Json, node: str
) -> dict[str, Placed]:
    """Replace a failed node in the assignments of a group (rules/08 §13.5, §13.6)."""
    given: dict[str, Placed] = {}
    for ask in group:
        old = assigned(workload, ask.name)
        if old is None:
            continue
        if search.settings.on("SkipReassignmentForPodOwnedWorkloads") and is_owned_by_a_pod(workload):
            given[ask.name] = Placed(flavor, old)
            continue
        try:
            new, added = replaced(search, ask, old, node)
        except NoPlaceError as why:
            given[ask.name] = Placed(flavor, None, str(why))
            break
        given[ask.name] = Placed(flavor, new)
        assume(search, assumed, TopologyUse(added, ask.single))
    return given


def unhealthy_nodes(workload: Json | None) -> list[str]:
    """Return the nodes that failed under a workload (rules/08 §13.1)."""
    status: Json = {} if workload is None else workload["status"]
    return [str(node["name"]) for node in status.get("unhealthyNodes") or ()]


def assigned(workload: Json, pod_set: str) -> TopologyAssignment | None:
    """Return where the pods of a pod set are placed."""
    assignments = conditions.admission(workload).get("podSetAssignments") or ()
    return next((decoded(a.get("topologyAssignment")) for a in assignments if a["name"] == pod_set), None)


def placements_of(workload: Json) -> list[tuple[str, int | None, TopologyAssignment | None, str]]:
    """Return the pod sets of an admission, the count and place of each, and whether a place is still to come."""
    return [
        (a["name"], a.get("count"), decoded(a.get("topologyAssignment")), a.get("delayedTopologyRequest") or "")
        for a in conditions.admission(workload).get("podSetAssignments") or ()
    ]
