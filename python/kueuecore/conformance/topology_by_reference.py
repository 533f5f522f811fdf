"""Answers to recorded cases about topology alone. Holds no rule: it asks the modules and names what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kueuecore.conformance.reading import settings_of
from kueuecore.reference import quantity
from kueuecore.reference.objects import complete
from kueuecore.reference.settings import Json
from kueuecore.reference.topology import balanced, encoding, flavors
from kueuecore.reference.topology.assignment import TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse
from kueuecore.reference.topology.domains import Ask, Domain, Shape
from kueuecore.reference.topology.failures import used_nodes
from kueuecore.reference.topology.nodes import is_schedulable
from kueuecore.reference.topology.order import Order
from kueuecore.reference.topology.request import request_of
from kueuecore.reference.topology.second_pass import is_needed

__all__ = ["KINDS", "charge", "use_told", "uses_told"]


def _written(assignment: TopologyAssignment) -> Json:
    """An assignment as cases write it."""
    domains = [{"values": list(values), "count": count} for values, count in assignment.domains]
    return {"levels": list(assignment.levels), "domains": domains}


def _read(given: Json) -> TopologyAssignment:
    domains = tuple((tuple(each["values"]), each["count"]) for each in given["domains"])
    return TopologyAssignment(tuple(given["levels"]), domains)


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


def _topology(case: Json) -> Json:
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


# Parts of a placement.


def _encoding(case: Json) -> Json:
    assignment, settings = _read(case["input"]["assignment"]), settings_of(case)
    by_prefix = settings.on("TASAssignmentsEncodingByHostnamePrefix")
    encoded = encoding.encoded(assignment, by_prefix=by_prefix)
    if case["input"].get("encoder") != "hostnamePrefixRuns":
        return {"topologyAssignment": encoded}
    return {"topologyAssignment": encoding.in_runs(assignment), "v1beta2From": encoded}


def _decoding(case: Json) -> Json:
    read = encoding.decoded(case["input"].get("topologyAssignment"))
    if read is None:
        return {"assignment": None, "totalDomainCount": 0}
    return {"assignment": _written(read), "totalDomainCount": len(read.domains)}


def _has_level(case: Json) -> Json:
    asked = request_of({"topologyRequest": case["input"].get("topologyRequest")})
    return {"hasLevel": asked.fits_levels(case["input"]["levels"])}


def _truncate(case: Json) -> Json:
    return {"assignment": _written(_read(case["input"]["assignment"]).cut(case["input"]["count"]))}


def _merge(case: Json) -> Json:
    flavor = complete({"kind": "ResourceFlavor", "metadata": {}, "spec": {"topologyName": "topology"}})
    nodes = FlavorNodes(flavor, case["input"]["levels"], map(complete, case["objects"]), (), settings_of(case))
    return {"assignment": _written(_read(case["input"]["a"]).merged(_read(case["input"]["b"]), nodes.path))}


def _is_explicit(case: Json) -> Json:
    return {"explicit": any(request_of(pod_set).is_explicit for pod_set in case["input"]["podSets"])}


def _domains(given: Json) -> dict[str, Domain]:
    made: dict[str, Domain] = {}
    for each in given["domains"]:
        state = each["state"]
        names = ("podCount", "sliceCount", "podCountWithLeader", "sliceCountWithLeader", "leaderCount", "affinityScore")
        counts = [state.get(name, 0) for name in names]
        made[each["id"]] = Domain(tuple(each["levelValues"]), [], *counts)
        if each.get("parent"):
            made[each["parent"]].children.append(made[each["id"]])
    return made


def _shape(given: Json) -> Shape:
    size = given.get("sliceSize", 1)
    count = given["count"] if "count" in given else given.get("workerCount", given.get("sliceCount", 0)) * size
    level, slice_level = given.get("requestedLevelIdx", 0), given.get("sliceLevelIdx", 0)
    n_leaders = given.get("leaderCount", 0)
    return Shape(
        count, n_leaders, level, slice_level, size, {}, False, False, needs_host=n_leaders > 0, falls_back=True
    )


def _order(case: Json) -> Json:
    given, domains = case["input"], _domains(case["input"])
    order = Order.of(given["unconstrained"], settings_of(case))
    ordered = (order.with_leader if given["withLeader"] else order.plain)(domains.values())
    names = {domain: name for name, domain in domains.items()}
    return {"order": [names[domain] for domain in ordered]}


def _optimal(case: Json) -> Json:
    given, domains = case["input"], _domains(case["input"])
    order = Order.of(False, settings_of(case))
    chosen = balanced.optimal(domains.values(), _shape(given), order, by_entropy=given["prioritizeByEntropy"])
    return {"domains": sorted(name for name, domain in domains.items() if domain in (chosen or ()))}


def _best(case: Json) -> Json:
    given = case["input"]
    roots = [domain for domain in _domains(given).values() if len(domain.path) == 1]
    found = balanced.best(roots, _shape(given), Order.of(False, settings_of(case)))
    return {"threshold": found.threshold, "domainsCount": len(found.domains)}


def _share_out(case: Json) -> Json:
    given, domains = case["input"], _domains(case["input"])
    order = Order.of(False, settings_of(case))
    shared = balanced.share_out(domains.values(), _shape(given), order, given["threshold"])
    if isinstance(shared, str):
        return {"domains": {}, "reason": shared}
    answers: dict[str, Any] = {}
    for name, domain in domains.items():
        if domain in shared:
            answers[name] = {
                "podCount": domain.pods,
                "sliceCount": domain.slices,
                "podCountWithLeader": domain.pods_with_leader,
                "sliceCountWithLeader": domain.slices_with_leader,
                "leaderCount": domain.leaders,
                "affinityScore": domain.score,
            }
    return {"domains": answers, "reason": ""}


def _needs_second_pass(case: Json) -> Json:
    return {"needsSecondPass": is_needed(complete(case["input"]["workload"]))}


def _used_nodes(case: Json) -> Json:
    return {"nodes": sorted(used_nodes(complete(case["input"]["workload"])))}


KINDS: dict[str, Callable[[Json], Json]] = {
    "explicitly_requesting_tas": _is_explicit,
    "needs_second_pass": _needs_second_pass,
    "tas_balanced_placement": _share_out,
    "tas_best_domains_balanced": _best,
    "tas_domain_order": _order,
    "tas_optimal_domain_set": _optimal,
    "topology": _topology,
    "topology_decoding": _decoding,
    "topology_encoding": _encoding,
    "topology_has_level": _has_level,
    "topology_merge": _merge,
    "topology_truncate": _truncate,
    "used_nodes": _used_nodes,
}
"""How cases are answered, by kind."""
