"""A sweep on a cluster of Dask, of which a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from kueuecore.scenarios import Edit, Scenario, parse_target, read_scenario
from kueuecore.studies import Axis, grid_points, sweep

distributed = pytest.importorskip("distributed")

EXAMPLE = "examples/scenario/scenario.yaml"
QUOTA = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"


def read(edits: Sequence[Edit]) -> Scenario:
    return read_scenario(EXAMPLE, edits=edits)


def test_a_worker_that_is_killed_midway_changes_nothing() -> None:
    points = grid_points([Axis(parse_target(QUOTA), (4, 5, 6, 7))])
    seeds = range(10)
    killed: list[int] = []
    n_left = 0
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = {int(domain["pid"]) for domain in client.run(lambda: {"pid": os.getpid()}).values()}
        assert len(before) == 2

        def kill(n_over: int, n_all: int) -> None:
            nonlocal n_left
            if n_over >= 3 and not killed:
                killed.append(min(before))
                n_left = n_all - n_over
                os.kill(killed[0], signal.SIGKILL)

        found = sweep(read, points, seeds=seeds, executor=client.get_executor(), progress=kill)
        after = {int(domain["pid"]) for domain in client.run(lambda: {"pid": os.getpid()}).values()}
    assert n_left > 0
    assert killed[0] not in after
    assert found == sweep(read, points, seeds=seeds)
