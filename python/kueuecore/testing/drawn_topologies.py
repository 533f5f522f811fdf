"""Worlds with nodes: racks and blocks, pods that ask for one of them, nodes that fail, fill up, return and leave.

These are worlds of `drawn_worlds` in which flavors have a topology, and histories of `drawn_histories` in which nodes
and pods are created, changed and deleted, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, JsonValue, list_at, object_at
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.drawn_histories import CYCLE, move, rival
from kueuecore.testing.drawn_worlds import Limits, Stock, contents, manifest, stocks
from kueuecore.testing.history import START, History, Move, MoveKind, key_of
from kueuecore.times import SECOND_NS, format_time

__all__ = ["random_topology", "topology_history"]

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
_POOL = "example.com/pool"
_PROVISIONING = "kueue.x-k8s.io/provisioning-request"
# A flavor with a topology has to name a label.
_EVERYWHERE: JsonObject = {"example.com/site": "here"}
_SPOT: JsonObject = {"key": "example.com/broken", "value": "true"}
_LEVELS = ((BLOCK, RACK, HOST), (RACK, HOST), (BLOCK, RACK), (HOST,))
_GATES: tuple[JsonObject, ...] = (
    {"TASProfileMixed": False, "TASPartialSlices": False},
    {"TASBalancedPlacement": True, "TASNodeFeasibilityForAllLevels": False},
    {"TASFailedNodeReplacementFailFast": False},
    {"TASReplaceNodeOnPodTermination": False},
    {"TASReplaceNodeOnNodeTaints": False},
    {
        "TASFailedNodeReplacement": False,
        "TASFailedNodeReplacementFailFast": False,
        "TASReplaceNodeOnPodTermination": False,
        "TASReplaceNodeOnNodeTaints": False,
    },
    {"TASReplaceNodeDueToNotReadyOverFixedTime": True, "TASReplaceNodeOnPodTermination": False},
    {"TASRespectNodeAffinityPreferred": True, "TASLeaderPodSetFeasibility": False},
    {"TASMultiLayerTopology": True},
)


@dataclass(frozen=True, slots=True)
class _Site:
    """The nodes of a world, and what they belong to.

    Args:
        stock: What the objects of the world have in common.
        levels: The levels of each topology, the widest first.
        topologies: The topology of each flavor that has one.
        pools: Labels of node pools by flavor, for flavors that do not cover all nodes.
        nodes: Names of the nodes.
    """

    stock: Stock
    levels: dict[str, tuple[str, ...]]
    topologies: dict[str, str]
    pools: dict[str, str]
    nodes: tuple[str, ...]


def random_topology(seed: int, *, max_moves: int = 10, max_nodes: int = 8) -> History:
    """Return the world with nodes of a seed, and its moves; fast, like `random_history`.

    Args:
        seed: The same seed gives the same history.
        max_moves: The maximum number of moves, not counting cycles.
        max_nodes: The maximum number of nodes.

    Example:
        >>> random_topology(1) == random_topology(1)
        True
    """
    return topology_history(SeededChance(seed), max_moves=max_moves, max_nodes=max_nodes)


def topology_history(chance: Chance, *, max_moves: int = 10, max_nodes: int = 8) -> History:
    """Draw a world with nodes, and its moves; see `random_topology`."""
    limits = Limits(edges=False, missing=False, running=False, usage_based=False, cluster_queues=3, depth=2)
    stock = stocks(chance, limits)
    if chance.boolean():
        # Usually nodes are the bottleneck, not quota.
        stock = replace(stock, quotas=("40", "8", "20", "4"), requests=("1", "2", "1", "500m", "3"))
    if not stock.checks and chance.rarely(10):
        # Checks delay admission, so that nodes fail under reservations, too.
        stock = replace(stock, checks=("a1",))
    site = _site(chance, stock, max_nodes)
    found, _, configuration = contents(chance, stock)
    objects = [_topology(site, name) for name in site.levels]
    objects += [_node(chance, site, name) for name in site.nodes]
    objects += [_pod(chance, site, f"p{number}") for number in range(chance.one(0, 0, 1, 2, 4))]
    objects += [_on_site(chance, site, value) for value in found]
    if chance.rarely(3):
        gates = object_at(configuration or {}, "featureGates")
        configuration = {**(configuration or {}), "featureGates": {**gates, **chance.one(*_GATES)}}
    known = [object_ for object_ in objects if object_["kind"] == "Workload"]
    happened = [CYCLE] * chance.integer(1, 3)
    # First workloads that compete for the room of others, then anything.
    n_rivals = min(chance.one(2, 1, 3, 0), max_moves)
    for number in range(chance.integer(min(n_rivals + 2, max_moves), max_moves)):
        if number < n_rivals:
            happens = Move(kind=MoveKind.APPLY, object=rival(chance, stock, tuple(known), number))
        else:
            happens = _move(chance, site, known, number)
        if happens.object is not None and happens.object["kind"] == "Workload" and "status" not in happens.object:
            known = [object_ for object_ in known if key_of(object_) != key_of(happens.object)] + [happens.object]
        happened.append(happens)
        if happens.kind not in (MoveKind.CYCLE, MoveKind.LINGER) and chance.boolean():
            happened.append(CYCLE)
    return History(tuple(objects), (*happened, CYCLE, CYCLE), configuration)


def _site(chance: Chance, stock: Stock, max_nodes: int) -> _Site:
    names = ("default", "other")[: chance.one(1, 1, 1, 1, 1, 2)]
    levels = {name: chance.one(*_LEVELS[:2], *_LEVELS) for name in names}
    flavors = stock.groups[0][1]
    topologies = {flavor: chance.one(*names) for flavor in flavors if not chance.rarely(10)}
    pools = {flavor: chance.one("a", "b") for flavor in topologies if chance.boolean()}
    nodes = tuple(f"n-{number}" for number in range(chance.integer(1, max_nodes)))
    return _Site(stock, levels, topologies, pools, nodes)


def _topology(site: _Site, name: str) -> JsonObject:
    return manifest("Topology", name, {"levels": [{"nodeLabel": level} for level in site.levels[name]]})


def _node(chance: Chance, site: _Site, name: str, *, since: int = 0) -> JsonObject:
    """Draw a node, usually a healthy one."""
    labels: JsonObject = {**_EVERYWHERE, HOST: name, BLOCK: chance.one("b1", "b2"), RACK: chance.one("r1", "r2", "r3")}
    if chance.rarely(15):
        del labels[chance.one(BLOCK, RACK, HOST)]
    if site.pools and not chance.rarely(8):
        labels[_POOL] = chance.one("a", "b")
    allocatable: JsonObject = {
        resource: chance.one(
            *("4", "2", "3", "8", "6", "1", "4", "1500m") if resource == "cpu" else ("8", "8", "4", "2")
        )
        for resources, _ in site.stock.groups
        for resource in resources
        if resource != "pods"
    }
    allocatable["pods"] = chance.one("110", "110", "2", "4")
    spec: JsonObject = {}
    if chance.rarely(12):
        spec["taints"] = [{**_SPOT, "effect": chance.one("NoSchedule", "NoExecute", "PreferNoSchedule")}]
    if chance.rarely(20):
        spec["unschedulable"] = True
    ready: JsonObject = {
        "type": "Ready",
        "status": "False" if chance.rarely(12) else "True",
        "lastTransitionTime": format_time(START + since * SECOND_NS),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [ready]},
    }


def _changed_node(chance: Chance, site: _Site, name: str, since: int) -> JsonObject:
    """Draw a later version of a node: usually one that has failed, or that is healthy again."""
    node = _node(chance, site, name, since=since)
    if chance.rarely(8):
        return node
    spec, status = object_at(node, "spec"), object_at(node, "status")
    match chance.integer(0, 2):
        case 0:
            ready: JsonObject = {
                **object_at(list_at(status, "conditions")[0]),
                "status": chance.one("False", "Unknown"),
            }
            return {**node, "status": {**status, "conditions": [ready]}}
        case 1:
            taint: JsonObject = {**_SPOT, "effect": chance.one("NoExecute", "NoSchedule")}
            return {**node, "spec": {**spec, "taints": [taint]}}
        case _:
            return {**node, "spec": {}}


def _pod(chance: Chance, site: _Site, name: str) -> JsonObject:
    """Draw a pod that Kueue did not place."""
    requests: JsonObject = {"cpu": chance.one("1", "2", "500m", "4")}
    spec: JsonObject = {
        "nodeName": chance.one(*site.nodes),
        "containers": [{"name": "c", "resources": {"requests": requests}}],
    }
    status: JsonObject = {"phase": chance.one("Running", "Running", "Pending", "Succeeded")}
    metadata: JsonObject = {"name": name, "namespace": "system"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _on_site(chance: Chance, site: _Site, thing: JsonObject) -> JsonObject:
    """Adapt an object of a world without nodes to a world with nodes."""
    spec = dict(object_at(thing, "spec"))
    if thing["kind"] == "ResourceFlavor" and (topology := site.topologies.get(key_of(thing))):
        spec["topologyName"] = topology
        pool = site.pools.get(key_of(thing))
        spec["nodeLabels"] = {_POOL: pool} if pool else {HOST: site.nodes[0]} if chance.rarely(20) else _EVERYWHERE
        if chance.rarely(8):
            spec["tolerations"] = [{"key": _SPOT["key"], "operator": "Exists"}]
        return {**thing, "spec": spec}
    if thing["kind"] == "AdmissionCheck" and chance.boolean():
        return {**thing, "spec": {"controllerName": chance.one(*[_PROVISIONING] * 3, "kueue.x-k8s.io/multikueue")}}
    pod_sets = list_at(spec, "podSets")
    if (
        thing["kind"] != "Workload"
        or not pod_sets
        or any("topologyRequest" in object_at(pod_set) for pod_set in pod_sets)
    ):
        return thing
    return {**thing, "spec": {**spec, "podSets": _asking(chance, site, pod_sets)}}


def _asking(chance: Chance, site: _Site, pod_sets: list[JsonValue]) -> list[JsonValue]:
    """Make most of these pod sets ask for topology."""
    levels = site.levels[chance.one(*(site.topologies.values() or site.levels))]
    found: list[JsonValue] = []
    group: JsonObject | None = None
    if len(pod_sets) == 2 and chance.boolean():
        group = {"podSetGroupName": "together", **_request(chance, levels, slices=False)}
        # A leader is one pod.
        pod_sets = [{**_whole(object_at(pod_sets[0])), "count": 1}, _whole(object_at(pod_sets[1]))]
        pod_sets = chance.shuffled(pod_sets)
    for each in map(object_at, pod_sets):
        pods = dict(each)
        if group is not None:
            pods["topologyRequest"] = group
        elif not chance.rarely(6):
            pods["topologyRequest"] = _request(chance, levels, slices=True, n_pods=_count(pods))
        if chance.rarely(5):
            spec = dict(object_at(pods, "template", "spec"))
            pods["template"] = {"spec": {**spec, **_wishes(chance)}}
        found.append(pods)
    return found


def _whole(pod_set: JsonObject) -> JsonObject:
    return {name: value for name, value in pod_set.items() if name != "minCount"}


def _count(pod_set: JsonObject) -> int:
    count = pod_set["count"]
    assert isinstance(count, int)
    return count


def _request(chance: Chance, levels: Sequence[str], *, slices: bool, n_pods: int = 1) -> JsonObject:
    level = "example.com/unknown" if chance.rarely(60) else chance.one(*levels)
    request: JsonObject = chance.one(
        {"required": level}, {"preferred": level}, {"unconstrained": True}, {"required": level}
    )
    if not slices or not chance.rarely(3):
        return request
    lower = list(levels[levels.index(level) :]) if level in levels and "unconstrained" not in request else list(levels)
    sizes = [size for size in (2, 1, 3, 4) if n_pods % size == 0] or [1]
    size = chance.one(*sizes)
    first = chance.one(*lower)
    if chance.rarely(3) and lower[-1] != first:
        inner = [number for number in (1, 2) if size % number == 0]
        return {
            **request,
            "podsetSliceRequiredTopologyConstraints": [
                {"topology": first, "size": size},
                {"topology": chance.one(*lower[lower.index(first) + 1 :]), "size": chance.one(*inner)},
            ],
        }
    return {**request, "podSetSliceRequiredTopology": first, "podSetSliceSize": size}


def _wishes(chance: Chance) -> JsonObject:
    """Draw what pods require of nodes."""
    selector: JsonObject = {"key": RACK, "operator": chance.one("In", "NotIn"), "values": [chance.one("r1", "r2")]}
    terms: JsonObject = {"nodeSelectorTerms": [{"matchExpressions": [selector]}]}
    wishes: tuple[JsonObject, ...] = (
        {"nodeSelector": {RACK: chance.one("r1", "r2")}},
        {"nodeSelector": {_POOL: chance.one("a", "b")}},
        {"tolerations": [{"key": _SPOT["key"], "operator": "Exists"}]},
        {"tolerations": [{"key": _SPOT["key"], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}},
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": chance.one(1, 10), "preference": {"matchExpressions": [selector]}}
                    ]
                }
            }
        },
    )
    return chance.one(*wishes)


def _move(chance: Chance, site: _Site, known: Sequence[JsonObject], number: int) -> Move:
    """Draw one move: of nodes and pods, or any other."""
    if chance.boolean():
        happens = move(chance, site.stock, tuple(known), number=number)
        return happens if happens.object is None else replace(happens, object=_on_site(chance, site, happens.object))
    node = chance.one(*site.nodes)
    match chance.integer(0, 11):
        case 0 | 1:
            return Move(kind=MoveKind.DELETE, object_kind="Node", key=node)
        case 2:
            return Move(kind=MoveKind.DELETE, object_kind="Pod", key=f"system/p{chance.integer(0, 3)}")
        case 3:
            return Move(kind=MoveKind.APPLY, object=_pod(chance, site, f"p{chance.integer(0, 3)}"))
        case 4:
            return Move(kind=MoveKind.WAIT, seconds=chance.one(1, 30, 60))
        case 5 if chance.rarely(4):
            return Move(kind=MoveKind.DELETE, object_kind="Topology", key=chance.one(*site.levels))
        case 5:
            return Move(kind=MoveKind.APPLY, object=_topology(site, chance.one(*site.levels)))
        case _:
            return Move(kind=MoveKind.APPLY, object=_changed_node(chance, site, node, number))
