"""Checks what must hold for every place that a cycle gives, in any world (rules/08)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.reference.objects import complete
from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.assignment import TopologyAssignment
from kueuecore.reference.topology.encoding import decoded
from kueuecore.reference.topology.flavors import unhealthy_nodes
from kueuecore.reference.topology.nodes import is_foreign, single_pod
from kueuecore.reference.topology.request import HOSTNAME, TopologyRequest, request_of
from kueuecore.states import WorkloadState
from kueuecore.testing.engine_view import EngineView, holds_quota, is_evicted
from kueuecore.testing.history import History, Move, MoveKind, key_of
from kueuecore.testing.invariants import amount
from kueuecore.testing.move_result import MoveResult

__all__ = ["Places"]

Leaf = dict[str, int]
"""Amounts by resource, in thousandths."""


class Places:
    """Watches a play, and checks every place that a cycle gives.

    A host has no more pods than it has room for, all pods have a place, a required level is respected, slices are
    whole, and a replacement moves only what was on the lost node.

    Args:
        scenario: The scenario that is played.

    Raises:
        AssertionError: An invariant does not hold; raised from within the play.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, Play, History
        >>> scenario = History(())
        >>> play = Play.of(scenario, watchers=[Places(scenario)])
        >>> result = play.do(Move(kind=MoveKind.CYCLE))
    """

    def __init__(self, scenario: History) -> None:
        self._objects: dict[tuple[str, str], JsonObject] = {}
        self._states: Mapping[str, WorkloadState] = {}
        self.seen: set[str] = set()
        self._settings = Settings({**(scenario.configuration or {}), "kueue": scenario.release})
        for each in scenario.objects:
            self._keep(each)

    def _keep(self, thing: JsonObject) -> None:
        kind = text_at(thing, "kind")
        self._objects[kind, key_of(thing)] = complete(thing) if kind == "Pod" else thing

    def before(self, seen: EngineView, move: Move) -> None:
        """Record the state before a move."""
        self._states = seen.states

    def after(self, seen: EngineView, result: MoveResult) -> None:
        """Check what the move has changed."""
        move = result.move
        if move.object is not None and not result.refused:
            self._keep(move.object)
        if move.kind is MoveKind.DELETE:
            self._objects.pop((move.object_kind, move.key), None)
        if result.decision is None:
            return
        given = [*result.decision.admissions, *result.decision.placed]
        for admission in result.decision.admissions:
            for name, place in _places(seen.states[admission.key]):
                self.seen.add("pods with a place")
                self._check_count(
                    admission.key, name, place, {pod_set.name: pod_set.count for pod_set in admission.pod_sets}[name]
                )
                self._check_request(admission.key, name, place)
        for admission in result.decision.placed:
            self._check_replacement(self._states[admission.key], seen.states[admission.key])
        # Workloads that are being evicted count as gone for some; and not all of those placed together are compared
        # (rules/08 §11.6).
        decision, out = (
            result.decision,
            any(holds_quota(state) and is_evicted(state) for state in self._states.values()),
        )
        is_alone = len(given) == 1 and not (decision.replaced_slices or decision.preemptions or decision.evictions)
        # Otherwise flavors give the room of a node that they share once each.
        if is_alone and not out and self._settings.on("TASHandleOverlappingFlavors"):
            self._check_room(seen, {admission.key for admission in given})

    def settled(self, seen: EngineView) -> None:
        """Do nothing: there is nothing more to check."""

    def _pod_set(self, key: str, name: str) -> Any:
        workload: Any = self._objects["Workload", key]
        return next(pod_set for pod_set in workload["spec"]["podSets"] if pod_set["name"] == name)

    def _check_count(self, key: str, name: str, place: TopologyAssignment, count: int) -> None:
        request = request_of(self._pod_set(key, name))
        # Pods beyond the last whole slice make a shorter one, or are left out, as in Kueue.
        placed = count if self._may_end_short(request) else count // request.slice_size * request.slice_size
        # In a group, the smaller pod set counts as one leader, however many pods it has.
        assert request.group is not None or place.n_pods == placed, (
            f"{key} has {place.n_pods} places for {count} pods of {name}"
        )

    def _may_end_short(self, request: TopologyRequest) -> bool:
        return self._settings.on("TASPartialSlices") and len(request.constraints) <= 1

    def _path(self, place: TopologyAssignment, values: tuple[str, ...]) -> dict[str, str]:
        """Return the position of a domain, by level."""
        if place.levels == (HOSTNAME,):
            nodes: Iterator[JsonObject] = (object_ for (kind, _), object_ in self._objects.items() if kind == "Node")
            labels = (object_at(node, "metadata", "labels") for node in nodes)
            found = next((label for label in labels if label.get(HOSTNAME) == values[0]), {})
            return {level: str(value) for level, value in found.items()}
        return dict(zip(place.levels, values, strict=True))

    def _check_request(self, key: str, name: str, place: TopologyAssignment) -> None:
        request = request_of(self._pod_set(key, name))
        paths = [(self._path(place, values), count) for values, count in place.domains]
        levels = list(paths[0][0]) if paths else []
        if request.required in levels:
            self.seen.add("a required level")
            found = {path[request.required] for path, _ in paths}
            assert len(found) == 1, f"{key} has {name} in {sorted(found)}, but requires one {request.required}"
        layers = None if self._settings.on("TASMultiLayerTopology") else 1
        for constraint in request.constraints[:layers]:
            counts: Counter[str] = Counter()
            for path, count in paths:
                # Racks have the same names in every block.
                above = list(place.levels) if place.levels != (HOSTNAME,) else sorted(path)
                counts[str([path[level] for level in above if level <= constraint.level])] += count
            if constraint.level in levels and len(place.levels) > 1:
                self.seen.add("slices")
                n_broken = sum(n % constraint.size != 0 for n in counts.values())
                assert n_broken <= self._may_end_short(request), f"{key} has broken slices of {name}"

    def _check_replacement(self, before: WorkloadState, now: WorkloadState) -> None:
        lost = set(unhealthy_nodes({"status": before.status}))
        old = dict(_places(before))
        for name, place in _places(now):
            if name not in old or old[name].levels[-1] != HOSTNAME or not lost:
                continue
            self.seen.add("a lost node replaced")
            there = dict(place.domains)
            for values, count in old[name].domains:
                if values[-1] not in lost:
                    kept = there.get(values, 0)
                    assert kept >= count, f"{now.key} has moved {count - kept} pods of {name} off {values[-1]}"

    def _counts(self, seen: EngineView, state: WorkloadState) -> bool:
        """Return whether a workload counts: not without its ClusterQueue, a flavor, or its Topology."""
        flavors = {flavor for each in state.flavors.values() for flavor in each.values()}
        are_there = all(self._has_levels(flavor) for flavor in flavors)
        return are_there and state.status["admission"]["clusterQueue"] in seen.orders

    def _has_levels(self, flavor: str) -> bool:
        found = self._objects.get(("ResourceFlavor", flavor))
        topology = None if found is None else object_at(found, "spec").get("topologyName")
        return found is not None and (topology is None or ("Topology", topology) in self._objects)

    def _check_room(self, seen: EngineView, new: set[str]) -> None:
        """Check that whatever got a place in this cycle is where there is room for all."""
        used: dict[str, Leaf] = defaultdict(Counter)
        checked: dict[str, set[str]] = defaultdict(set)
        for state in seen.workloads:
            before = dict(_places(self._states[state.key]))
            for name, place in _places(state) if holds_quota(state) and self._counts(seen, state) else ():
                had = dict(before[name].domains) if name in before else {}
                pod = single_pod(self._pod_set(state.key, name)["template"]["spec"], self._settings)
                for values, count in place.domains if place.levels[-1:] == (HOSTNAME,) else ():
                    _add(used[values[-1]], pod, count)
                    if state.key in new and count > had.get(values, 0):
                        checked[values[-1]] |= {"pods", *(resource for resource, number in pod.items() if number)}
        for (kind, _), each in self._objects.items():
            thing: Any = each
            if kind == "Pod" and is_foreign(thing, self._settings):
                _add(used[thing["spec"]["nodeName"]], single_pod(thing["spec"], self._settings), 1)
        for (kind, _), each in self._objects.items():
            labels, room = object_at(each, "metadata").get("labels") or {}, object_at(each, "status").get("allocatable")
            host = labels.get(HOSTNAME) if isinstance(labels, dict) else None
            if kind == "Node" and host in checked and isinstance(room, dict):
                self.seen.add("a host with room")
                for resource in sorted(checked[str(host)]):
                    needed = used[str(host)][resource]
                    there = amount(str(room.get(resource, "0"))) // (1 if resource == "cpu" else 1000)
                    assert needed <= there, f"{host} has {there} of {resource} for pods that take {needed}"


def _places(state: WorkloadState) -> Iterator[tuple[str, TopologyAssignment]]:
    """Yield, by pod set, where its pods are placed."""
    for assignment in (state.status.get("admission") or {}).get("podSetAssignments", ()):
        place = decoded(assignment.get("topologyAssignment"))
        if place is not None:
            yield assignment["name"], place


def _add(leaf: Leaf, pod: Mapping[str, int], count: int) -> None:
    for resource, number in {**pod, "pods": 1}.items():
        leaf[resource] = leaf.get(resource, 0) + number * count
