"""Jobs of a virtual cluster that are refused: nothing was submitted, changed or deleted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kueuecore.errors import ManifestError
from kueuecore.objects import Namespace
from kueuecore.simulation import JobPlan, VirtualCluster
from tests.builders import T0, at, cluster_queue, flavor, local_queue
from tests.jobs import job


def _cluster() -> tuple[Any, dict[str, Any]]:
    cluster = VirtualCluster([Namespace("ns"), flavor(), cluster_queue(), local_queue()], now=T0)
    made = job("Job")
    made["metadata"]["namespace"] = "ns"
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return cluster, made


def test_a_change_that_gives_no_valid_workload_leaves_the_old_one() -> None:
    cluster, made = _cluster()
    cluster.submit(made, JobPlan(run_seconds=50))
    cluster.advance(at(5))
    before = cluster.engine.workloads()
    specs: list[dict[str, Any]] = [{}, {"template": {"spec": {"containers": [{}]}}}]
    for spec in specs:
        with pytest.raises(ManifestError, match="containers"):
            cluster.update({**made, "spec": spec})
        assert cluster.engine.workloads() == before
    with pytest.raises(TypeError, match="job"):
        cluster.update(5, now=at(9))
    assert cluster.now == at(5)


def test_a_job_whose_workload_is_refused_was_not_submitted() -> None:
    cluster, made = _cluster()
    made["spec"]["template"]["spec"]["containers"] = [{"resources": {}}]
    with pytest.raises(ManifestError, match="name"):
        cluster.submit(made)
    assert not cluster.delete("Job", "j", namespace="ns")


def test_a_deletion_names_the_wrong_argument() -> None:
    cluster, _ = _cluster()
    wrong: list[dict[str, Any]] = [{"kind": []}, {"name": np.array([1])}, {"namespace": None}]
    for given in wrong:
        call: dict[str, Any] = {"kind": "Job", "name": "j", "namespace": "ns", "now": at(9), **given}
        (name,) = given
        with pytest.raises(TypeError, match=f"{name} must be a str"):
            cluster.delete(call.pop("kind"), call.pop("name"), **call)
    assert cluster.now == T0
