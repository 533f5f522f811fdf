"""The data behind the charts of a fleet: its time, and the clusters that matter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore.report.figure import OTHERS
from kueuecore.report.timed import Timed
from kueuecore.results import Table
from kueuecore.scenarios import FleetResults
from kueuecore.times import SECOND_NS

__all__ = ["NOWHERE", "FleetFacts", "by_rows"]

NOWHERE = "(nowhere)"
"""The band of jobs that have run in no cluster."""

# People cannot distinguish more bands.
_MAX_CLUSTERS = 8


@dataclass(frozen=True)
class FleetFacts(Timed):
    """The results of a fleet, as the charts need them.

    Args:
        results: The results.
    """

    results: FleetResults

    @property
    def start(self) -> int:
        """When the run starts."""
        return self.results.start

    @property
    def end(self) -> int:
        """When it ends."""
        return self.results.end

    def seconds_of(self, table: Table, name: str) -> npt.NDArray[np.float64]:
        """Return a column of times as seconds from the start."""
        return (table[name].values.astype(np.int64) - self.start) / SECOND_NS

    @cached_property
    def quotas(self) -> Table:
        """The ClusterQueues of all clusters at regular intervals."""
        return self.results.cluster_queues(step_seconds=self.step)

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The clusters shown by name: the manager, and the workers on which most ran and waited."""
        table = self.results.by_cluster
        weights = [table[name].values for name in ("run_seconds", "wait_seconds")]
        order = np.lexsort((-weights[1], -weights[0]))
        manager, *_ = self.results.clusters
        names = [manager, *(self.results.clusters[at] for at in order.tolist() if at)]
        return tuple(name for name in self.results.clusters if name in names[:_MAX_CLUSTERS])

    @cached_property
    def bands(self) -> tuple[str, ...]:
        """The names that have colours: the clusters, the others if there are any, and that of jobs that never ran."""
        never = [NOWHERE] if any(not job.cluster for job in self.results.job_outcomes) else []
        return (*self.clusters, *([OTHERS] if self.left_out else []), *never)

    def shown(self, cluster: str) -> str:
        """Return the band of a cluster."""
        if not cluster:
            return NOWHERE
        return cluster if cluster in self.clusters else OTHERS

    @property
    def left_out(self) -> str:
        """A sentence if some clusters are not shown by name; empty if all are."""
        n = len(self.results.clusters) - len(self.clusters)
        return f"{len(self.clusters)} of {len(self.results.clusters)} clusters are shown by name." if n else ""


def by_rows(table: Table, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns as rows of Python objects."""
    return list(zip(*(table[name].to_list() for name in names), strict=True))
