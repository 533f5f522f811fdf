"""An engine with the objects of a recorded case, seen from outside. Holds no rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.experiments import Experiments
from kueuecore.states import Stage
from kueuecore.times import SECOND_NS, nanoseconds

__all__ = ["SeenEngine"]

_Json = dict[str, Any]


class SeenEngine:
    """An engine at the beginning of a case.

    Args:
        case: The case: its settings, in the release of Kueue that it was recorded from, with single `changes` switched.
        objects: The objects to begin with.
        seconds_before: How long before the time of the case they were applied.
    """

    def __init__(self, case: _Json, objects: Iterable[_Json], *, seconds_before: int = 0) -> None:
        configuration = Configuration.trusted(
            case["config"], feature_gates=case.get("featureGates", {}), release=case["kueue"]
        )
        if "changes" in case:
            configuration = configuration.switched(case["changes"])
        configuration = configuration.with_experiments(Experiments.of(case["config"].get("experiments", {})))
        self.engine = Engine(configuration, models_readiness=True)
        self.now = nanoseconds(case["config"]["now"])
        self.engine.apply(list(objects), now=self.now - seconds_before * SECOND_NS, trusted=True)

    def apply(self, objects: Iterable[_Json]) -> None:
        """Apply objects as a controller would."""
        self.engine.apply(list(objects), now=self.now, trusted=True)

    def statuses(self) -> dict[str, Mapping[str, Any]]:
        """The statuses of all Workloads, by key."""
        return {workload.key: workload.status for workload in self.engine.workloads()}

    def admissions(self) -> dict[str, _Json]:
        """The admissions of the Workloads that hold quota of active ClusterQueues, by key."""
        active = self._active()
        return {
            workload.key: workload.status["admission"]
            for workload in self.engine.workloads()
            if workload.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED) and workload.cluster_queue in active
        }

    def pending(self) -> Iterator[tuple[str, str, str]]:
        """ClusterQueue, key and place of each Workload that waits."""
        for queue in self.engine.cluster_queues():
            for workload in self.engine.pending(queue):
                yield queue, workload.key, workload.place

    def accounts(self) -> dict[str, _Json]:
        """What LocalQueues have used."""
        accounts = self.engine._core._local_queue_accounts()
        return {name: of | {"lastUpdate": nanoseconds(of["lastUpdate"])} for name, of in accounts.items()}

    def usage(self) -> Iterator[tuple[str, str, str, str, str]]:
        """What the nodes use that are scheduled."""
        active = self._active()
        for row in self.engine.quota():
            if row.usage != "0" and (row.kind == "Cohort" or row.name in active):
                yield row.kind, row.name, row.flavor, row.resource, row.usage

    def topology_usage(self) -> _Json:
        """What workloads use, by flavor, domain and resource."""
        return self.engine._core._topology_usage()

    def _active(self) -> set[str]:
        """The ClusterQueues that are in a snapshot."""
        return {name for name in self.engine.cluster_queues() if self.engine.cluster_queue(name).is_active}
