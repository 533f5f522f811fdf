"""Which jobs of a cluster miss pods, because nodes of theirs are not ready or gone."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ObjectRef
from kueuecore.jobs.topology_assignment import TopologyAssignment
from kueuecore.manifests import object_ref

__all__ = ["LostPods"]


class LostPods:
    """Follows nodes and where Workloads have their pods. None is ready on a lost node, nor until others replace it."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        # By Workload with places on nodes: its owners, its nodes, and whether Kueue has recorded one of them as failed.
        self._placed: dict[ObjectRef, tuple[frozenset[str], frozenset[str], bool]] = {}

    def observe(self, happened: str, manifest: JsonObject) -> frozenset[str]:
        """Take in an event of the API server; returns the UIDs of the jobs whose pods it may concern."""
        match text_at(manifest, "kind"):
            case "Node":
                return self._see_node(text_at(manifest, "metadata", "name"), happened, manifest)
            case "Workload":
                return self._see_workload(happened, manifest)
        return frozenset()

    def misses(self, uid: str) -> bool:
        """Return whether pods of the job with this UID are missing."""
        return any(is_short or not self._lost.isdisjoint(nodes) for nodes, is_short in self._of(uid))

    def _of(self, uid: str) -> Iterator[tuple[frozenset[str], bool]]:
        return ((nodes, is_short) for owners, nodes, is_short in self._placed.values() if uid in owners)

    def _see_node(self, name: str, happened: str, node: JsonObject) -> frozenset[str]:
        was_lost = name in self._lost
        if happened == "DELETED" or not _is_ready(node):
            self._lost.add(name)
        else:
            self._lost.discard(name)
        if was_lost == (name in self._lost):
            return frozenset()
        return frozenset().union(*(owners for owners, nodes, _ in self._placed.values() if name in nodes))

    def _see_workload(self, happened: str, workload: JsonObject) -> frozenset[str]:
        ref = object_ref(workload)
        before = self._placed.pop(ref, None)
        nodes = frozenset(_nodes(workload)) if happened != "DELETED" else frozenset()
        if nodes:
            owners = frozenset(text_at(it, "uid") for it in list_at(workload, "metadata", "ownerReferences"))
            is_short = bool(list_at(workload, "status", "unhealthyNodes"))
            self._placed[ref] = owners, nodes, is_short
        now = self._placed.get(ref)
        return frozenset() if now == before else frozenset().union(*(it[0] for it in (before, now) if it is not None))


def _is_ready(node: JsonObject) -> bool:
    conditions = [object_at(it) for it in list_at(node, "status", "conditions")]
    return any(text_at(it, "type") == "Ready" and text_at(it, "status") == "True" for it in conditions)


def _nodes(workload: JsonObject) -> Iterator[str]:
    for pod_set in list_at(workload, "status", "admission", "podSetAssignments"):
        places = TopologyAssignment.of(object_at(pod_set, "topologyAssignment"))
        if places.are_nodes:
            yield from (domain.values[-1] for domain in places.domains)
