"""Lists the pending workloads of a queue in the engine's order, as the visibility API shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.controller import Controller
from kueuecore.errors import UnknownObjectError
from kueuecore.states import PendingWorkload

__all__ = ["PendingPages", "PendingQuery"]

_TIMES = 20
# Of a Workload's owners; what else is in them is nobody's business here.
_OF_OWNERS = ("apiVersion", "kind", "name", "uid")


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A question for pending workloads.

    Args:
        queue: The name of the ClusterQueue, or with a namespace of the LocalQueue.
        namespace: The namespace of the LocalQueue; empty: it is a ClusterQueue.
        offset: How many to skip.
        limit: The most to list.
    """

    queue: str
    namespace: str = ""
    offset: int = 0
    limit: int = 1000


class PendingPages:
    """Lists pages for the deciding thread, of whose time it takes a twentieth at most.

    To order the workloads of one ClusterQueue takes about 15 ms for a thousand of them. The order is used again for
    twenty times as long as it took, so who asks often, or page by page, does not hold up decisions.

    Args:
        loop: The controller.
        clock: Returns seconds.
    """

    def __init__(self, loop: Controller, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop, self._clock = loop, clock
        # Until when it may be used, and the order, by ClusterQueue.
        self._orders: dict[str, tuple[float, tuple[PendingWorkload, ...]]] = {}

    def page(self, asked: PendingQuery) -> list[JsonValue] | None:
        """Return a page of the pending workloads of a queue; None if there is no such queue.

        Args:
            asked: The queue and the page.
        """
        cluster_queue = asked.queue
        if asked.namespace:
            try:
                found = self._loop.engine.object("LocalQueue", asked.queue, namespace=asked.namespace)
            except UnknownObjectError:
                return None
            cluster_queue = text_at(found, "spec", "clusterQueue")
        try:
            rows: Iterable[PendingWorkload] = self._order(cluster_queue)
        except UnknownObjectError:
            # A LocalQueue may name a ClusterQueue that does not exist yet: nothing waits there.
            return [] if asked.namespace else None
        if asked.namespace:
            place = asked.namespace, asked.queue
            rows = (row for row in rows if (row.namespace, row.local_queue) == place)
        return [_item(self._loop, row) for row in islice(rows, asked.offset, asked.offset + asked.limit)]

    def _order(self, cluster_queue: str) -> tuple[PendingWorkload, ...]:
        now = self._clock()
        self._orders = {name: order for name, order in self._orders.items() if now < order[0]}
        if cluster_queue not in self._orders:
            order = self._loop.engine.pending(cluster_queue)
            end = self._clock()
            self._orders[cluster_queue] = end + _TIMES * (end - now), order
        return self._orders[cluster_queue][1]


def _item(loop: Controller, row: PendingWorkload) -> JsonObject:
    metadata: JsonObject = {"name": row.name, "namespace": row.namespace}
    held = object_at(loop.workload(row.name, namespace=row.namespace) or {}, "metadata")
    if created := text_at(held, "creationTimestamp"):
        metadata["creationTimestamp"] = created
    owners = [object_at(owner) for owner in list_at(held, "ownerReferences")]
    if owners:
        metadata["ownerReferences"] = [{key: text_at(owner, key) for key in _OF_OWNERS} for owner in owners]
    return {
        "metadata": metadata,
        "priority": row.priority,
        "localQueueName": row.local_queue,
        "positionInClusterQueue": row.position_in_cluster_queue,
        "positionInLocalQueue": row.position_in_local_queue,
    }
