"""Which jobs of a cluster miss pods, because nodes of theirs are not ready or gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ObjectRef
from kueuecore.jobs.topology_assignment import TopologyAssignment
from kueuecore.manifests import object_ref

__all__ = ["LostPods"]


class LostPods:
    """Follows nodes and where Workloads have their pods. None is ready on a lost node, nor until others replace it."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        self._places: dict[ObjectRef, _Places] = {}
        # The Workloads with places on nodes, by the UID of their owner.
        self._owned: dict[str, set[ObjectRef]] = {}

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
        places = [self._places[ref] for ref in self._owned.get(uid, ())]
        return any(place.is_short or not self._lost.isdisjoint(place.nodes) for place in places)

    def _see_node(self, name: str, happened: str, node: JsonObject) -> frozenset[str]:
        was_lost = name in self._lost
        if happened == "DELETED" or not _is_ready(node):
            self._lost.add(name)
        else:
            self._lost.discard(name)
        if was_lost == (name in self._lost):
            return frozenset()
        return frozenset().union(*(place.owners for place in self._places.values() if name in place.nodes))

    def _see_workload(self, happened: str, workload: JsonObject) -> frozenset[str]:
        ref = object_ref(workload)
        before, now = self._places.get(ref), _places(workload) if happened != "DELETED" else None
        if now == before:
            return frozenset()
        for uid in before.owners if before is not None else ():
            self._owned[uid].discard(ref)
            if not self._owned[uid]:
                del self._owned[uid]
        if now is None:
            del self._places[ref]
        else:
            self._places[ref] = now
            for uid in now.owners:
                self._owned.setdefault(uid, set()).add(ref)
        return frozenset().union(*(entry.owners for entry in (before, now) if entry is not None))


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a Workload has its pods.

    Args:
        owners: The UIDs of its owners.
        nodes: The nodes.
        is_short: Whether Kueue has recorded one of them as failed.
    """

    owners: frozenset[str]
    nodes: frozenset[str]
    is_short: bool


def _places(workload: JsonObject) -> _Places | None:
    """Return where a Workload has its pods; None: not on nodes that Kueue knows."""
    nodes = frozenset(_nodes(workload))
    owners = frozenset(text_at(reference, "uid") for reference in list_at(workload, "metadata", "ownerReferences"))
    return _Places(owners, nodes, bool(list_at(workload, "status", "unhealthyNodes"))) if nodes else None


def _is_ready(node: JsonObject) -> bool:
    conditions = [object_at(condition) for condition in list_at(node, "status", "conditions")]
    return any(
        text_at(condition, "type") == "Ready" and text_at(condition, "status") == "True" for condition in conditions
    )


def _nodes(workload: JsonObject) -> Iterator[str]:
    for pod_set in list_at(workload, "status", "admission", "podSetAssignments"):
        places = TopologyAssignment.of(object_at(pod_set, "topologyAssignment"))
        if places.are_nodes:
            yield from (domain.values[-1] for domain in places.domains)
