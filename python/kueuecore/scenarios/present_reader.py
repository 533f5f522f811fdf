"""Reads what a scenario says about the initial Workloads."""

from __future__ import annotations

from kueuecore._fields import Fields
from kueuecore.errors import ManifestError
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.present import Present
from kueuecore.scenarios.spans import read_spans
from kueuecore.world import World

__all__ = ["newest_time_of", "read_present"]


def read_present(top: Fields) -> Present | None:
    """Read how long the initial Workloads run; None if the scenario does not say.

    Args:
        top: The scenario.
    """
    fields = top.part("present")
    if fields is None:
        return None
    found = Present(runs=read_spans(fields, "runs"), waiting_runs=read_spans(fields, "waitingRuns"))
    fields.end()
    return found


def newest_time_of(cluster: ClusterPart) -> int | None:
    """Return when the objects of a cluster were dumped: the newest time in them, in nanoseconds since 1970.

    Args:
        cluster: The cluster.
    """
    try:
        return World.of(cluster.objects, configuration=cluster.configuration, trusted=True).newest_time()
    except ManifestError:
        # The run reports what is wrong with them.
        return None
