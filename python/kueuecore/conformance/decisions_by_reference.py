"""Answers to recorded cases about assignment and preemption. Holds no rule."""

from __future__ import annotations

import copy

from kueuecore.conformance import shapes
from kueuecore.conformance.reading import by_flavor, configuration_of, from_flavors, texts, workload_of, world_of
from kueuecore.conformance.runs_by_reference import SeenWorld
from kueuecore.conformance.topology_by_reference import charge, uses_told
from kueuecore.conformance.worlds import preempting
from kueuecore.reference import quantity
from kueuecore.reference.assign import Assigner
from kueuecore.reference.assignment import PodSetAssignment, Way
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.nominate import Entry
from kueuecore.reference.objects import FlavorResource, complete
from kueuecore.reference.preempt import Target
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.encoding import encoded
from kueuecore.reference.topology.phase import net_use
from kueuecore.reference.totals import Info, PodSetTotals
from kueuecore.reference.world import World

__all__ = ["assign", "find_victims"]


def assign(case: Json) -> Json:
    """Flavors, and places on nodes, for one workload."""
    given = case["input"]
    if given.get("enableFairSharing"):
        case["config"] = {"fairSharing": {}, **case["config"]}
    world = world_of(case)
    # The ClusterQueue is active, and the flavors go after that.
    gone = given.get("deletedFlavors", ())
    flavors = dict(world.cache.flavors)
    world.cache.flavors |= {name: complete({"kind": "ResourceFlavor", "metadata": {"name": name}}) for name in gone}
    snapshot = world.snapshot()
    snapshot.flavors = {name: flavor for name, flavor in flavors.items() if name not in gone}
    for name, used in given.get("usage", {}).items():
        snapshot.usage.add(snapshot.nodes[name], from_flavors(used))
    for flavor, on_nodes in given.get("tasUsage", {}).items():
        charge(snapshot.topologies[flavor], on_nodes)
    oracle = given.get("oracle", {"default": {"possibility": "Preempt", "borrowing": 0}})
    ways = {"NoCandidates": Way.NO_CANDIDATES, "Preempt": Way.PREEMPT, "Reclaim": Way.RECLAIM}
    known = {(row["flavor"], row["resource"]): row for row in oracle.get("results") or ()}

    def ask(fr: FlavorResource, _: int) -> tuple[Way, int]:
        found = known.get(fr, oracle.get("default"))
        return ways[found["possibility"]], found.get("borrowing", 0)

    info = Info(workload_of(given["workload"]), world.settings, given["clusterQueue"])
    info.cluster_queue = given["clusterQueue"]
    old = given.get("replaceWorkloadSlice")
    replaced = None if old is None else copy.copy(info)
    if replaced is not None:
        replaced.totals = _totals(old)
    nominated = given.get("nominationMapping")
    assignment = Assigner(info, snapshot, ask, replaced=replaced, nominated=nominated).assign()
    used = net_use(snapshot.flavor_nodes(info.cluster_queue), info, assignment, world.settings, before=False)
    return {
        "mode": assignment.mode.text,
        "borrowing": assignment.borrowing,
        "noFitReason": str(assignment.no_fit),
        "usage": by_flavor(assignment.usage),
        "tasUsage": uses_told(used),
        "message": assignment.message,
        "lastTriedFlavorIdx": assignment.progress.tried,
        "podSets": [_assigned(pod_set, world.settings) for pod_set in assignment.pod_sets],
    }


def _totals(given: Json) -> list[PodSetTotals]:
    return [
        PodSetTotals(
            t["name"],
            t.get("count", 0),
            {name: quantity.value(name, text) for name, text in t.get("requests", {}).items()},
            t.get("flavors", {}),
        )
        for t in given["totalRequests"]
    ]


def _assigned(pod_set: PodSetAssignment, settings: Settings) -> Json:
    by_prefix = settings.on("TASAssignmentsEncodingByHostnamePrefix")
    return {
        "name": pod_set.name,
        "count": pod_set.count,
        "mode": pod_set.mode.text,
        "flavors": {
            name: {"flavor": c.flavor, "mode": c.mode.text, "triedFlavorIdx": c.tried, "borrow": c.borrow}
            for name, c in pod_set.flavors.items()
        },
        "reasons": sorted(pod_set.reasons),
        "error": pod_set.error,
        "topologyAssignment": None if pod_set.topology is None else encoded(pod_set.topology, by_prefix=by_prefix),
        "delayedTopologyRequest": pod_set.delayed,
        "requests": texts(pod_set.requests),
        "attempts": [
            {
                "flavor": flavor,
                "mode": attempt.mode.text,
                "borrow": attempt.borrow,
                "reasons": list(attempt.reasons),
                "noFitReason": str(attempt.no_fit),
                "preemptionPossibility": attempt.way.possibility if attempt.way is not None else "",
            }
            for flavor, attempt in sorted(pod_set.attempts.items())
        ],
    }


class _Watched(Cycle):
    """A cycle that tells whom it asks to make room, those too who were evicted before."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.targets: list[Target] = []

    def issue(self, entry: Entry, targets: list[Target]) -> None:
        self.targets += targets
        super().issue(entry, targets)


def find_victims(case: Json) -> Json:
    """Who makes room for one workload."""
    world = World(preempting(case), configuration=configuration_of(case), now=case["config"]["now"], trusted=True)
    cycle = _Watched(world)
    cycle.run()
    targets = ((each.info.key, each.reason, each.info.cluster_queue) for each in cycle.targets)
    return shapes.victims(targets, SeenWorld(world).statuses())
