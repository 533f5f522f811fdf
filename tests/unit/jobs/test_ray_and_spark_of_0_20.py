"""Ray and Spark, and priorities that are fixed, in Kueue 0.20 and before (rules/10 §3.3, §5, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.jobs import JobsConfiguration, sync_workloads, workloads_for
from kueuecore.jobs.integration import Finished
from kueuecore.jobs.spark import SPARK_APPLICATION
from tests.jobs import job
from tests.unit.jobs.test_changes_of_0_20 import in_release, on
from tests.unit.jobs.test_changes_of_kueue import with_and_without
from tests.unit.jobs.test_workload_sync import AN, NOW, batch, holding, only_made

Json = dict[str, Any]
OLDER = ("0.20.0-devel", "0.19.2")


def test_a_failed_submission_of_spark_may_be_tried_again() -> None:
    failed = job("SparkApplication") | {"status": {"applicationState": {"state": "SUBMISSION_FAILED"}}}
    over = job("SparkApplication") | {"status": {"applicationState": {"state": "FAILED"}}}
    assert SPARK_APPLICATION.how_ended(failed, on("0.20.0")) is None
    assert SPARK_APPLICATION.how_ended(over, on("0.20.0")) == Finished("", success=False)
    for release in OLDER:
        assert SPARK_APPLICATION.how_ended(failed, on(release)) == Finished("", success=False)


@pytest.mark.parametrize(
    ("dynamic", "now", "before"),
    [
        ({"enabled": True, "minExecutors": 1}, True, False),
        ({"enabled": True, "minExecutors": 3}, False, False),
        ({"enabled": True}, False, False),
        ({"enabled": False, "minExecutors": 1}, False, False),
        (None, False, False),
    ],
)
def test_spark_with_dynamic_allocation_is_ready_with_its_least_executors(dynamic: Any, now: bool, before: bool) -> None:
    plain = job("SparkApplication")
    plain["spec"] |= {"executor": {"instances": 4}, **({} if dynamic is None else {"dynamicAllocation": dynamic})}
    plain["status"] = {"applicationState": {"state": "RUNNING"}, "executorState": {"a": "RUNNING", "b": "COMPLETED"}}
    assert SPARK_APPLICATION.are_pods_ready(plain, on("0.20.0")) is now
    for release in OLDER:
        assert SPARK_APPLICATION.are_pods_ready(plain, on(release)) is before


# Ray under MultiKueue.

CLUSTERS = {"RayCluster": None, "RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}


def delegated(kind: str, *, is_elastic: bool = True) -> Json:
    plain = job(kind)
    if is_elastic:
        plain["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    plain["spec"]["managedBy"] = f"{AN}multikueue"
    place = CLUSTERS[kind]
    cluster = plain["spec"] if place is None else plain["spec"][place]
    cluster["enableInTreeAutoscaling"] = True
    if kind == "RayService":
        plain["spec"]["upgradeStrategy"] = {"type": "None"}
    return plain


@pytest.mark.parametrize(
    ("kind", "field"),
    [("RayCluster", "spec"), ("RayJob", "spec.rayClusterSpec"), ("RayService", "spec.rayClusterSpec")],
)
def test_ray_is_scaled_on_a_worker_only_with_its_gate(kind: str, field: str) -> None:
    def refused(release: str, **gates: bool) -> list[str]:
        found = workloads_for([delegated(kind)], configuration=in_release(release, **gates)).problems
        return [
            problem.message
            for problem in found
            if "in-tree autoscaling" in problem.message and problem.field.endswith("Autoscaling")
        ]

    text = f"in-tree autoscaling is not supported for a MultiKueue-managed elastic {kind}"
    assert [text in name for name in refused("0.20.0")] == [True]
    assert refused("0.20.0", MultiKueueRayInTreeAutoscaling=True) == []
    for release in OLDER:
        assert [text in name for name in refused(release)] == ([True] if kind == "RayCluster" else [])
    found = workloads_for([delegated(kind)], configuration=in_release("0.20.0")).problems
    assert f"{field}.enableInTreeAutoscaling" in {problem.field for problem in found}


# Priorities of Workloads with quota.


def priority_class(kind: str, name: str, value: int) -> Json:
    group = "scheduling.k8s.io/v1" if kind == "PriorityClass" else f"{AN}v1beta2"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "value": value}


def test_a_workload_with_quota_keeps_the_kind_of_its_priority_class() -> None:
    high, low = (priority_class("WorkloadPriorityClass", name, value) for name, value in (("high", 7), ("low", 1)))
    ref: Json = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    made = only_made(batch(1))
    waiting: Json = {**made, "spec": {**made["spec"], "priorityClassRef": ref, "priority": 7}}
    reserved = holding(waiting, "QuotaReserved")
    plain, lower = batch(1), batch(1)
    lower["metadata"]["labels"] = {**lower["metadata"].get("labels", {}), f"{AN}priority-class": "low"}

    def written(of: Json, workload: Json) -> list[list[Any]]:
        return [
            [step.workload["spec"].get("priority") for step in found.steps]  # type: ignore[union-attr]
            for found in (
                sync_workloads(of, [workload], now=NOW, around=(high, low), configuration=configuration)
                for configuration in with_and_without("ReservedPriorityKeepsItsKind")
            )
        ]

    assert written(plain, reserved) == [[], [0]]
    assert written(plain, waiting) == [[0], [0]]
    assert written(lower, reserved) == [[1], [1]]


@pytest.mark.parametrize(("release", "has"), [("0.20.0", True), ("0.20.0-devel", False), ("0.19.2", False)])
def test_older_releases_stay_as_they_were(release: str, has: bool) -> None:
    configuration = JobsConfiguration.of(Configuration(release=release))
    for change in (
        "EndedServingPodsAreLetGo",
        "FailedSubmissionsMayBeRetried",
        "GroupsWithoutPodsEndEvictions",
        "RayAutoscalingNeedsItsGate",
        "ReservedPriorityKeepsItsKind",
        "SparkIsReadyWithMinExecutors",
    ):
        assert configuration.has(change) is has
