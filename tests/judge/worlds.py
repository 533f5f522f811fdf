"""The worlds that a released Kueue and the engine both play, each by its seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kueuecore._json import list_at, object_at, text_at
from kueuecore.releases import Release
from kueuecore.testing import Limits, random_history
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.drawn_contests import Contest, random_contest
from kueuecore.testing.drawn_topologies import random_topology
from tests.judge.cases import Draft, draft_of_history, draft_of_run
from tests.judge.gates import drawn_gates
from tests.judge.stored import SLICE_OF
from tests.random_runs import random_run

__all__ = ["families", "world"]

# Twenty shares.
_DRAWS = (*["plain"] * 6, *["contest"] * 3, *["topology"] * 7, *["run"] * 4)
# Crowds have up to a hundred workloads.
_CONTESTS = (*[Contest.BRANCHES, Contest.FLAVORS, Contest.POOL] * 5, Contest.CROWD)


def world(seed: int, release: Release) -> dict[str, Any]:
    """Return the case of a seed for a release.

    Example:
        >>> world(1, Release.named("0.19")) == world(1, Release.named("0.19"))
        True
    """
    chance = SeededChance(3 * seed + 1)
    drawn = chance.one(*_DRAWS)
    draft = _draft(seed, drawn, chance, release)
    if chance.rarely(8):
        draft.gates = {**draft.gates, **drawn_gates(chance, release)}
    return draft.finished(chance, f"{drawn}/{seed}", release)


def _draft(seed: int, drawn: str, chance: Chance, release: Release) -> Draft:
    # Until 0.17, sums beyond 64 bits wrap around, which the engine does not imitate.
    edges = not release < Release.named("0.18.0") and chance.rarely(3)
    if drawn == "run":
        return draft_of_run(random_run(seed), chance)
    if drawn == "topology":
        # With few nodes, pods rarely have a choice.
        return draft_of_history(random_topology(seed, max_nodes=chance.one(8, 24)), chance)
    if drawn == "contest":
        return draft_of_history(random_contest(seed, chance.one(*_CONTESTS), edges=edges), chance)
    limits = Limits(edges=edges, missing=False, running=False)
    return draft_of_history(random_history(seed, limits, max_moves=12, forks=False), chance)


def families(case: dict[str, Any]) -> tuple[str, ...]:
    """Return what a world is about: each of the families that it belongs to."""
    return tuple(_families(case))


def _families(case: dict[str, Any]) -> Iterator[str]:
    config, objects, events = case["config"], case["objects"], case["input"]["events"]
    kinds = {object_["kind"] for object_ in objects}
    yield str(case["id"]).partition("/")[0]
    if "Topology" in kinds:
        yield "with topology"
        if any("provisioning" in text_at(object_, "spec", "controllerName") for object_ in objects):
            yield "delayed topology"
        if any(event.get("kind") == "Node" or text_at(event, "object", "kind") == "Node" for event in events):
            yield "nodes that change"
    if "fairSharing" in config:
        yield "with fair sharing"
        if any(text_at(object_, "spec", "parentName") for object_ in objects):
            yield "fair sharing in a tree"
    elif any(text_at(object_, "spec", "parentName") for object_ in objects):
        yield "a tree of cohorts"
    yield from (name for name, word in _SETTINGS.items() if word in config)
    if "AdmissionCheck" in kinds:
        yield "checks"
    work = [event["object"] for event in events if text_at(event, "object", "kind") == "Workload"]
    if any("minCount" in object_at(pods) for workload in work for pods in list_at(workload, "spec", "podSets")):
        yield "partial admission"
    if any(len(list_at(workload, "spec", "podSets")) > 1 for workload in work):
        yield "several pod sets"
    if sum(object_["kind"] == "ResourceFlavor" for object_ in objects) > 1:
        yield "several flavors"
    if any(SLICE_OF in object_at(workload, "metadata", "annotations") for workload in work):
        yield "elastic slices"
    if case["featureGates"]:
        yield "gates off their default"
    if any(event["op"] == "update" and event["object"]["kind"] in _QUEUES for event in events):
        yield "updated queues"


_SETTINGS = {
    "usage-based": "admissionFairSharing",
    "pods ready": "waitForPodsReady",
    "requests counted otherwise": "resources",
    "slow evictions": "evictionSeconds",
}
_QUEUES = ("ClusterQueue", "LocalQueue", "Cohort")
