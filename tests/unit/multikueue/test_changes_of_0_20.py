"""MultiKueue as Kueue 0.20 has it, and as it was before (rules/06)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kueuecore import Configuration
from kueuecore.multikueue import MultiKueueSettings
from kueuecore.multikueue.adapters import SyncContext
from kueuecore.multikueue.kind_adapters import adapters_of
from tests.unit.multikueue.stage import Stage, admitted, dispatched, elastic


def settings(release: str, **gates: bool) -> MultiKueueSettings:
    manifest: Any = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    return MultiKueueSettings.of(Configuration.of([manifest], feature_gates=gates, release=release))


def test_a_worker_that_lost_the_job_is_left_for_another() -> None:
    stage = admitted(settings=settings("0.20.0", MultiKueueOrchestratedPreemption=False))
    stage.condition("west", "job", "Finished", reason="OwnerNotFound")
    stage.settle()
    state, message = stage.check_of()
    assert (state, message.endswith('resetting for re-dispatch, Previously: "Ready"')) == ("Retry", True)
    before = admitted(settings=settings("0.20.0-devel"))
    before.condition("west", "job", "Finished", reason="OwnerNotFound")
    before.settle()
    workload: Any = before.get("Workload", "job")
    assert [
        condition["reason"] for condition in workload["status"]["conditions"] if condition["type"] == "Finished"
    ] == ["OwnerNotFound"]


def test_copies_have_a_closed_preemption_gate() -> None:
    for release, gates in (("0.20.0", [{"name": "kueue.x-k8s.io/multikueue"}]), ("0.20.0-devel", None)):
        stage = dispatched("west", settings=settings(release))
        copy: Any = stage.get("Workload", "job", cluster="west")
        assert copy["spec"].get("preemptionGates") == gates


def test_a_worker_keeps_a_job_that_has_finished_with_a_gate() -> None:
    gate = "MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster"
    kept = []
    for is_on in (True, False):
        adapter = adapters_of(settings("0.20.0", **{gate: is_on}))["batch/v1, Kind=Job"]
        kept.append("ttlSecondsAfterFinished" in adapter.prepare({"spec": {"ttlSecondsAfterFinished": 5}})["spec"])  # type: ignore[operator]
    assert kept == [False, True]


REPLACES = {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}


def slice_without_quota(release: str, *, old: str = "", is_dispatched: bool = True) -> Stage:
    """A slice that has lost its quota; `old` is the condition of the one that it replaced, if that is still there."""
    stage = Stage("west", settings=settings(release, MultiKueueOrchestratedPreemption=False))
    elastic(stage, "job", **REPLACES)
    if old:
        stage.workload("old", None)
        stage.condition("", "old", old)
    if is_dispatched:
        stage.settle()
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    return stage


def test_an_evicted_slice_leaves_nothing_on_the_workers() -> None:
    assert slice_without_quota("0.20.0").copies() == []
    assert slice_without_quota("0.20.0", old="Finished").copies() == []
    for release in ("0.20.0-devel", "0.19.2"):
        assert slice_without_quota(release).copies() == ["west"]


def test_a_slice_leaves_the_job_of_the_one_that_runs_on() -> None:
    assert slice_without_quota("0.20.0", old="Admitted").copies() == ["west"]


def test_a_slice_that_was_never_dispatched_is_left_alone() -> None:
    stage = slice_without_quota("0.20.0", is_dispatched=False)
    stage.create(
        "Job", "job", {}, cluster="west", namespace="ns", labels={"kueue.x-k8s.io/multikueue-origin": "multikueue"}
    )
    stage.settle()
    assert stage.copies(kind="Job") == ["west"]


def test_an_evicted_slice_that_has_quota_again_is_dispatched_anew() -> None:
    found = []
    for release in ("0.20.0", "0.20.0-devel"):
        stage = Stage("west", settings=settings(release, MultiKueueOrchestratedPreemption=False))
        elastic(stage, "job", **REPLACES)
        stage.settle()
        first: Any = stage.get("Workload", "job", cluster="west")
        stage.condition("", "job", "QuotaReserved", status="False")
        stage.condition("", "job", "QuotaReserved")
        stage.settle()
        again: Any = stage.get("Workload", "job", cluster="west")
        found.append(first["metadata"]["uid"] == again["metadata"]["uid"])
    assert found == [False, True]


def test_the_autoscaler_of_a_worker_owns_the_size_of_a_ray_cluster() -> None:
    def cluster(replicas: int) -> Any:
        groups = [{"groupName": "small", "replicas": replicas}]
        annotations = {"kueue.x-k8s.io/elastic-job": "true"}
        return {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "r", "namespace": "ns", "annotations": annotations},
            "spec": {"enableInTreeAutoscaling": True, "workerGroupSpecs": groups},
        }

    sizes = []
    for is_on in (False, True):
        given = replace(settings("0.20.0", MultiKueueRayInTreeAutoscaling=is_on), frameworks=["ray.io/raycluster"])
        adapter = adapters_of(given)["ray.io/v1, Kind=RayCluster"]
        synced: Any = adapter.update(cluster(1), cluster(5), SyncContext(workload="w", settings=given, now=0))
        sizes.append(synced["spec"]["workerGroupSpecs"][0]["replicas"])
    assert sizes == [1, 5]
