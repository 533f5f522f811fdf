"""The cluster in which these tests run: ours, and a real one where `KUBE_APISERVER` and `ETCD` name its binaries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scripts.clusters.life import Life
from scripts.clusters.own import OwnCluster
from scripts.clusters.place import Cluster
from scripts.clusters.real import RealCluster, missing_binaries
from tests.cluster.scenes import Scene


@pytest.fixture(scope="module", params=["own", "real"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with Kueue's kinds, the roles of deploy/kueuecore.yaml, and pods that run."""
    missing = missing_binaries() if request.param == "real" else ""
    if missing:
        pytest.skip(missing)
    with ExitStack() as stack:
        made: OwnCluster | RealCluster = OwnCluster() if request.param == "own" else RealCluster()
        stack.enter_context(made)
        place: Cluster = made
        life = Life(place.api(), runs_jobs=not place.has_controllers)
        life.start()
        stack.callback(life.stop)
        yield place


@pytest.fixture(scope="module", params=["own", "real"])
def bare_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster in which nobody but the test writes anything."""
    missing = missing_binaries() if request.param == "real" else ""
    if missing:
        pytest.skip(missing)
    with OwnCluster() if request.param == "own" else RealCluster(runs_controllers=False) as place:
        yield place


@pytest.fixture
def scene(cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A namespace of its own in the cluster, all of whose revisions are kept."""
    name = request.function.__name__.removeprefix("test_").replace("_", "-")[:20].strip("-")
    with Scene(cluster, name, tmp_path) as made:
        yield made
