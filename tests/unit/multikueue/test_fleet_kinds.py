"""Jobs of all kinds in a fleet (rules/06 §7): they run on one worker, end there, and leave nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kueuecore._json import JsonObject, object_at
from kueuecore.errors import ManifestError
from kueuecore.fleet import KINDS, Fleet
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios import EarlyEnds, Span, Work, read_scenario, run_scenario
from kueuecore.testing.fleet_invariants import FleetInvariants
from kueuecore.trials.drawn_jobs import DRAWN, drawn_job
from tests.unit.multikueue.worlds import fleet_of

EXAMPLES = Path(__file__).parents[3] / "examples"
LABELS = {"kueue.x-k8s.io/queue-name": "lq"}


def places(fleet: Fleet, job: JsonObject) -> list[str]:
    """Where an object of a job has pods."""
    ref = object_ref(job)
    return fleet.running(namespace=ref.namespace, name=ref.name, kind=ref.kind)


def test_a_group_of_pods_that_went_while_its_worker_was_away_leaves_nothing_there() -> None:
    fleet = fleet_of(4, {"west": 2})
    for pod in drawn_job("pod group", "crew", 2, namespace="ns", labels=LABELS):
        fleet.submit(pod, run_seconds=20)
    fleet.wait(10)
    fleet.cut("west")
    for index in range(2):
        fleet.delete("Pod", f"crew-{index}", namespace="ns")
    # Meanwhile they end there.
    fleet.wait(20)
    fleet.mend("west")
    fleet.wait(400)
    assert fleet.objects("Pod", cluster="west") + fleet.objects("Workload", cluster="west") == []


@pytest.mark.parametrize("kind", DRAWN)
def test_a_job_runs_where_there_is_room_and_its_end_is_told_on_the_manager(kind: str) -> None:
    invariants = FleetInvariants()
    fleet = fleet_of(4, {"west": 2, "east": 4}, watch=invariants)
    made = drawn_job(kind, "work", 3, namespace="ns", labels=LABELS)
    for job in made:
        fleet.submit(job, run_seconds=60)
    fleet.wait(10)
    for job in made:
        assert places(fleet, job) == ["east"]
    fleet.wait(60)
    (workload,) = fleet.objects("Workload")
    (finished,) = [condition for condition in workload["status"]["conditions"] if condition["type"] == "Finished"]
    assert finished["reason"] == "Succeeded"
    for other in ("Workload", *KINDS):
        assert fleet.objects(other, cluster="east") + fleet.objects(other, cluster="west") == []
    invariants.check_end(fleet)


@pytest.mark.parametrize("kind", [row for row in DRAWN if row != "pod group"])
def test_a_job_that_fails_has_failed_on_the_manager_and_leaves_nothing(kind: str) -> None:
    invariants = FleetInvariants()
    fleet = fleet_of(4, {"west": 2, "east": 4}, watch=invariants)
    (job,) = drawn_job(kind, "work", 3, namespace="ns", labels=LABELS)
    fleet.submit(job, run_seconds=60, ends_failed=True)
    fleet.wait(10)
    assert places(fleet, job) == ["east"]
    fleet.wait(60)
    (workload,) = fleet.objects("Workload")
    (finished,) = [condition for condition in workload["status"]["conditions"] if condition["type"] == "Finished"]
    assert finished["reason"] == "Failed"
    for other in ("Workload", *KINDS):
        assert fleet.objects(other, cluster="east") + fleet.objects(other, cluster="west") == []
    invariants.check_end(fleet)


@pytest.mark.parametrize("kind", DRAWN)
def test_a_job_that_a_worker_preempts_goes_to_another_one(kind: str) -> None:
    invariants = FleetInvariants()
    fleet = fleet_of(4, {"west": 2, "east": 2}, watch=invariants)
    made = drawn_job(kind, "work", 2, namespace="ns", labels=LABELS)
    for job in made:
        fleet.submit(job, run_seconds=1000)
    fleet.wait(10)
    (first,) = places(fleet, made[0])
    high = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 9}"
    fleet.apply(high, cluster=first)
    (own,) = drawn_job("Job", "own", 2, namespace="ns", labels={**LABELS, "kueue.x-k8s.io/priority-class": "high"})
    fleet.submit(own, cluster=first)
    fleet.wait(60)
    (second,) = places(fleet, made[0])
    assert second != first
    fleet.wait(2000)
    invariants.check_end(fleet)


def test_a_ray_cluster_runs_until_it_is_deleted() -> None:
    invariants = FleetInvariants()
    fleet = fleet_of(4, {"west": 2, "east": 4}, watch=invariants)
    (ray_job,) = drawn_job("RayJob", "ray", 3, namespace="ns", labels=LABELS)
    cluster = {**ray_job, "kind": "RayCluster", "spec": object_at(ray_job, "spec", "rayClusterSpec")}
    fleet.submit(cluster, run_seconds=60)
    fleet.wait(100)
    assert places(fleet, cluster) == ["east"]
    (here,) = fleet.objects("RayCluster")
    assert here["status"] == {"state": "ready"}
    invariants.check_end(fleet)
    fleet.delete("RayCluster", "ray", namespace="ns")
    fleet.wait(100)
    assert places(fleet, cluster) == []
    invariants.check_end(fleet)


@pytest.mark.parametrize("kind", ["JobSet", "Pod"])
def test_a_scenario_of_a_fleet_has_work_of_any_kind(kind: str) -> None:
    (job,) = drawn_job(kind, "work", 2, namespace="team", labels={"kueue.x-k8s.io/queue-name": "user-queue"})
    scenario = read_scenario(EXAMPLES / "multikueue" / "scenario.yaml")
    work = Work(name="work", job=Manifest(job), count=2, every=Span(30), runs=Span(60))
    outcome = run_scenario(replace(scenario, work=(work,)))
    assert [(job.job, job.n_copies, job.finished is not None) for job in outcome.jobs] == [
        (f"{kind}/work-{number}", 2, True) for number in (1, 2)
    ]


def test_jobs_of_a_fleet_fail_as_those_of_one_cluster_do() -> None:
    (job,) = drawn_job("Job", "work", 1, namespace="team", labels={"kueue.x-k8s.io/queue-name": "user-queue"})
    scenario = read_scenario(EXAMPLES / "multikueue" / "scenario.yaml")
    fails = EarlyEnds(share=0.5, after=Span(10))
    work = Work(name="work", job=Manifest(job), count=20, every=Span(120), runs=Span(60), fails=fails)
    outcome = run_scenario(replace(scenario, work=(work,)))
    assert [job.has_failed for job in outcome.jobs] == [time[2] for time in work.times(scenario.seed)]
    assert 0 < outcome.all.n_failed < outcome.all.n_finished == 20
    assert {(job.has_failed, job.message) for job in outcome.jobs} == {(True, "failed"), (False, "")}


def test_a_scenario_of_a_fleet_refuses_what_runs_in_none() -> None:
    pods: JsonObject = {"spec": {"containers": [{"name": "c"}]}}
    metadata: JsonObject = {"name": "web", "namespace": "team"}
    job: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": pods}}
    scenario = read_scenario(EXAMPLES / "multikueue" / "scenario.yaml")
    with pytest.raises(ManifestError, match="jobs of this kind cannot run in a fleet; use one of Job, JobSet"):
        run_scenario(replace(scenario, work=(Work(name="web", job=Manifest(job)),)))
