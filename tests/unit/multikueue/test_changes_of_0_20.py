"""MultiKueue as Kueue 0.20 has it, and as it was before (rules/06)."""

from __future__ import annotations

from typing import Any

from kueuecore import Configuration
from kueuecore.multikueue import MultiKueueSettings
from kueuecore.multikueue.kind_adapters import adapters_of
from tests.unit.multikueue.stage import admitted, dispatched


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
    assert [it["reason"] for it in workload["status"]["conditions"] if it["type"] == "Finished"] == ["OwnerNotFound"]


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
