"""Answers to recorded cases about topology alone. Holds no rule: it asks the modules and names what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueuecore.conformance.reading import settings_of
from kueuecore.reference import quantity
from kueuecore.reference.objects import complete
from kueuecore.reference.settings import Json
from kueuecore.reference.topology import encoding, flavors
from kueuecore.reference.topology.assignment import TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse
from kueuecore.reference.topology.domains import Ask
from kueuecore.reference.topology.nodes import is_schedulable
from kueuecore.reference.topology.request import request_of

__all__ = ["charge", "topology", "use_told", "uses_told"]


def _written(assignment: TopologyAssignment) -> Json:
    """An assignment as cases write it."""
    domains = [{"values": list(values), "count": count} for values, count in assignment.domains]
    return {"levels": list(assignment.levels), "domains": domains}


def _single(given: Json) -> dict[str, int]:
    return {name: quantity.value(name, text) for name, text in given.items()}


def charge(nodes: FlavorNodes, used: Iterable[Json]) -> None:
    """Put usage on domains, behind which no workload stands."""
    for each in used:
        assignment = TopologyAssignment((), ((tuple(each["values"]), each["count"]),))
        nodes.charge(TopologyUse(assignment, _single(each["singlePodRequests"])))


def use_told(use: TopologyUse) -> Json:
    """What pods use where they stand."""
    single = {name: quantity.text(name, number) for name, number in use.single.items()}
    domains = [{"values": list(v), "count": n, "singlePodRequests": single} for v, n in use.assignment.domains]
    return {"levels": list(use.assignment.levels), "domainRequests": domains}


def uses_told(uses: Mapping[str, Iterable[TopologyUse]]) -> Json:
    """The same by flavor, domains alone."""
    return {flavor: [d for use in each for d in use_told(use)["domainRequests"]] for flavor, each in uses.items()}


def topology(case: Json) -> Json:
    """Places on the nodes of one flavor."""
    given, settings = case["input"], settings_of(case)
    objects = [complete(manifest) for manifest in case["objects"]]
    kinds: dict[str, list[Json]] = {}
    for each in objects:
        kinds.setdefault(each["kind"], []).append(each)
    flavor = next(each for each in kinds["ResourceFlavor"] if each["metadata"]["name"] == given["flavor"])
    topology = next(e for e in kinds["Topology"] if e["metadata"]["name"] == flavor["spec"]["topologyName"])
    levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
    there = filter(is_schedulable, kinds.get("Node", ()))
    nodes = FlavorNodes(flavor, levels, there, kinds.get("Pod", ()), settings)
    charge(nodes, given.get("priorOwnUsage", ()))
    if nodes.is_by_host and settings.on("TASHandleOverlappingFlavors"):
        charge(nodes, given.get("priorFlavorUsage", ()))
    workload = complete(given["workload"]) if "workload" in given else None
    asks = [_ask(pod_set) for pod_set in given["podSets"]]
    placed = flavors.place_all({given["flavor"]: nodes}, {given["flavor"]: asks}, settings, workload=workload)
    made = {name: each.assignment for name, each in placed.items() if each.assignment is not None}
    by_prefix = settings.on("TASAssignmentsEncodingByHostnamePrefix")
    reasons = {name: each.reason for name, each in placed.items() if each.reason}
    return {
        "assignments": {name: _written(each) for name, each in made.items()},
        "apiAssignments": {name: encoding.encoded(each, by_prefix=by_prefix) for name, each in made.items()},
        "reasons": reasons,
        "reason": next(iter(reasons.values()), ""),
    }


def _ask(given: Json) -> Ask:
    named = {**(given.get("topologyRequest") or {}), "podSetGroupName": given.get("podSetGroupName")}
    return Ask(
        given["name"],
        given["count"],
        _single(given.get("singlePodRequests") or {}),
        request_of({"topologyRequest": named}),
        given.get("implied", False),
        {"spec": given.get("podSpec") or {}},
        previous=encoding.decoded(given.get("previousAssignment")),
    )
