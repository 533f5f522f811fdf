"""Finds the queues of a cluster by the names that a history uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from kueuecore.forecasts.present_workloads import LocalQueueName, homes_of
from kueuecore.manifests import Manifest, object_ref

__all__ = ["KnownQueues", "Place"]


class Place(NamedTuple):
    """Where a job queues, as far as known.

    Args:
        namespace: Its namespace.
        local_queue: The name of its LocalQueue.
        cluster_queue: The name of its ClusterQueue.
    """

    namespace: str = ""
    local_queue: str = ""
    cluster_queue: str = ""


@dataclass(frozen=True)  # no slots: cached_property needs a __dict__
class KnownQueues:
    """The queues of a cluster.

    Args:
        local_queues: The ClusterQueue of each LocalQueue, by namespace and name.
        cluster_queues: The ClusterQueues.

    Example:
        >>> queues = KnownQueues({("ml", "gpu"): "gpus", ("bio", "cpu"): "cpus"}, frozenset(["cpus", "gpus"]))
        >>> queues.find(["ann"], ["gpu"])
        Place(namespace='ml', local_queue='gpu', cluster_queue='gpus')
        >>> queues.find(["ann"], ["cpus"]), queues.find(["ann"], ["short"])
        (Place(namespace='ann', local_queue='', cluster_queue='cpus'), None)
    """

    local_queues: Mapping[LocalQueueName, str] = field(default_factory=dict)
    cluster_queues: frozenset[str] = frozenset()

    @classmethod
    def of(cls, objects: Sequence[Manifest]) -> KnownQueues:
        """Return the queues among the objects of a cluster."""
        homes = homes_of(objects)
        refs = (object_ref(manifest.object) for manifest in objects)
        names = {ref.name for ref in refs if ref.kind == "ClusterQueue"}
        return cls(homes, frozenset(names | set(homes.values()) - {""}))

    def find(self, namespaces: Sequence[str], queues: Sequence[str]) -> Place | None:
        """Return where a job queues that belongs to one of these namespaces and queues, by the first that match.

        A queue may be a LocalQueue (`name` or `namespace/name`) or a ClusterQueue. The name of a LocalQueue that
        several namespaces have counts only together with its namespace.
        """
        for queue in filter(None, queues):
            namespace, _, name = queue.rpartition("/")
            places = [namespace] if namespace else [*namespaces, *self._only.get(name, ())]
            for other in places:
                if (home := self.local_queues.get((other, name))) is not None:
                    return Place(other, name, home)
            if queue in self.cluster_queues:
                return Place(next(filter(None, namespaces), ""), "", queue)
        return None

    @cached_property
    def _only(self) -> Mapping[str, list[str]]:
        """The namespace of each LocalQueue whose name occurs once."""
        found: dict[str, list[str]] = {}
        for namespace, name in self.local_queues:
            found.setdefault(name, []).append(namespace)
        return {name: namespaces for name, namespaces in found.items() if len(namespaces) == 1}
