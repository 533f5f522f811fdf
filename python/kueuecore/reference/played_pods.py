"""The pods of simulated workloads, which linger for a while on a node that has failed (rules/08 §13.2)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore.reference import times
from kueuecore.reference.settings import Json
from kueuecore.reference.topology.failures import used_nodes
from kueuecore.reference.topology.nodes import is_ready
from kueuecore.reference.topology.watch import is_well
from kueuecore.reference.world import World


class PlayedPods:
    """Tracks pods without objects: those of workloads that say how long they linger.

    Args:
        world: The world in which they run.
        jobs: The creation event of each Workload, by key, with `lingerSeconds`.
    """

    def __init__(self, world: World, jobs: Mapping[str, Json]) -> None:
        self.world, self.jobs = world, jobs
        # Since when nodes are not ready, or repel pods.
        self.bad_since: dict[str, int] = {}
        # Nodes that are not ready, or gone.
        self.lost: set[str] = set()
        world.has_unseen_pods = self.are_on

    def note(self, name: str, node: Json | None) -> bool:
        """Note that a node is about to change; None: it is deleted. Returns whether it is lost or back by that."""
        was_lost = name in self.lost
        if node is None or is_well(node):
            self.bad_since.pop(name, None)
        else:
            self.bad_since.setdefault(name, self.world.now)
        if node is None or not is_ready(node):
            self.lost.add(name)
        else:
            self.lost.discard(name)
        return was_lost != (name in self.lost)

    def are_missing(self, workload: Json) -> bool:
        """Return whether any pods of a workload are on a lost node, or gone from there (rules/07 §6)."""
        return bool(used_nodes(workload) & self.lost) or bool(workload["status"].get("unhealthyNodes"))

    def _lingers(self, workload_key: str) -> int | None:
        seconds = self.jobs.get(workload_key, {}).get("lingerSeconds")
        return None if seconds is None else int(seconds * times.SECOND)

    def are_on(self, whose: str, node: str) -> bool:
        """Return whether any pods run on a node, of a workload by its key, or of all workloads of a namespace."""
        since = self.bad_since.get(node)
        return any(
            since is None or self.world.now - since < lingers
            for name, workload in self.on(node)
            if whose in (name, workload["metadata"]["namespace"]) and (lingers := self._lingers(name)) is not None
        )

    def on(self, node: str) -> list[tuple[str, Json]]:
        """Return the workloads that are placed on a node, with their keys."""
        workloads = self.world.kind("Workload").items()
        return [(n, w) for n, w in workloads if node in used_nodes(w)]

    def ends(self, node: str) -> list[int]:
        """Return when the pods on a node that has just failed are gone."""
        found = {self._lingers(name) for name, _ in self.on(node)}
        return sorted(self.bad_since[node] + lingers for lingers in found if lingers is not None)
