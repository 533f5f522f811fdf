"""What is counted of MultiKueue (rules/06 §12)."""

from __future__ import annotations

import pytest

from kueuecore import Engine
from kueuecore.controller import Metrics
from kueuecore.multikueue import MANAGER
from tests.unit.multikueue.stage import Stage

ADMISSION = {"admission": {"clusterQueue": "q1", "podSetAssignments": []}}


def staged(metrics: Metrics) -> Stage:
    """A job whose Workload holds quota of queue `q1`, and has a copy on both workers."""
    stage = Stage("east", "west", metrics=metrics)
    stage.job()
    stage.status(MANAGER, "Workload", "job", ADMISSION)
    stage.settle()
    return stage


def samples(metrics: Metrics) -> dict[str, int]:
    lines = [line for line in metrics.text(Engine()).splitlines() if line.startswith("multikueue_")]
    return {name: int(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def sample(which: str, cluster: str) -> str:
    labels = f'cluster="{cluster}",cluster_queue="q1",replica_role="leader"'
    return f"multikueue_workloads_{which}_total{{{labels}}}"


def test_every_copy_and_the_admission_are_counted_once_by_queue_and_worker() -> None:
    metrics = Metrics(replica_role="leader")
    stage = staged(metrics)
    dispatched = {sample("dispatched", "east"): 1, sample("dispatched", "west"): 1}
    assert samples(metrics) == dispatched
    stage.condition("east", "job", "Admitted")
    stage.settle()
    stage.status("east", "Job", "job", {"active": 1})
    stage.settle()
    assert samples(metrics) == dispatched | {sample("admitted", "east"): 1}
    assert "# TYPE multikueue_workloads_admitted_total counter" in metrics.text(Engine())


def test_an_admission_after_an_eviction_counts_again() -> None:
    metrics = Metrics(replica_role="leader")
    stage = staged(metrics)
    for _ in range(2):
        stage.condition("east", "job", "Admitted")
        stage.settle()
        # What the scheduler of the manager does after Retry.
        stage.check("job", "Pending")
        stage.status(MANAGER, "Workload", "job", {"clusterName": None})
    stage.settle()
    assert samples(metrics)[sample("admitted", "east")] == 3


@pytest.mark.parametrize("state", ["Retry", "Rejected"])
def test_a_check_that_stays_as_it_is_counts_nothing(state: str) -> None:
    metrics = Metrics(replica_role="leader")
    stage = staged(metrics)
    stage.check("job", state)
    stage.condition("east", "job", "Admitted")
    stage.settle()
    assert sample("admitted", "east") not in samples(metrics)


def test_a_copy_that_is_refused_is_not_counted() -> None:
    metrics = Metrics(replica_role="leader")
    stage = Stage("east", metrics=metrics)
    stage.create("Workload", "job", {}, cluster="east", namespace="ns")
    stage.job()
    stage.settle()
    assert samples(metrics) == {}
