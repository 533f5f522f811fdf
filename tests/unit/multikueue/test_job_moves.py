"""Jobs that go from a queue of the manager to one that dispatches: none is lost, none runs twice."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.multikueue import MANAGER
from kueuecore.multikueue.policies import Overflow
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb, Write
from tests.unit.multikueue.stage import MINUTE, Stage

QUEUE = "kueue.x-k8s.io/queue-name"
STEPS = [("create", "ConfigMap"), ("delete", "Job"), ("create", "Job"), ("delete", "ConfigMap")]
OWNER = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": True}


def stage_with_job(*, patience: int = 0, kind: str = "Job", **metadata: Any) -> Stage:
    """A job in queue `here`, which has no quota for it."""
    stage = Stage("west", overflow=Overflow({"here": "lq"}, patience_ns=patience))
    template = {"metadata": {"labels": {"job-name": "job", "app": "a"}}, "spec": {"containers": []}}
    spec = {"suspend": True, "selector": {"matchLabels": {"job-name": "job"}}, "template": template}
    labels = {QUEUE: "here", "team": "t"}
    metadata = {"namespace": "ns", "labels": labels, "annotations": {"a": "b"}} | metadata
    job = stage.create(kind, "job", spec, **metadata)
    owner = {"apiVersion": job["apiVersion"], "kind": kind, "name": "job", "uid": job["metadata"]["uid"]}
    references = [owner | {"controller": True}]
    stage.create("Workload", "job", {"queueName": "here"}, namespace="ns", ownerReferences=references)
    stage.condition(MANAGER, "job", "QuotaReserved", status="False", reason="WaitingForQuota")
    return stage


def queue_of(stage: Stage, kind: str = "Job") -> str:
    """The queue of the job, of which there is one; with nothing under way."""
    assert stage.api[MANAGER].list("ConfigMap")[0] == []
    (job,) = stage.api[MANAGER].list(kind)[0]
    return str(job["metadata"]["labels"][QUEUE])


def steps(stage: Stage) -> list[tuple[str, str]]:
    kinds = ("ConfigMap", "Job")
    return [
        (number.verb.value, number.kind) for number in stage.done if number.cluster == MANAGER and number.kind in kinds
    ]


def test_a_job_is_written_down_deleted_and_made_anew_in_the_other_queue() -> None:
    stage = stage_with_job()
    before = stage.get("Job", "job")
    stage.settle()
    assert steps(stage) == STEPS
    assert queue_of(stage) == "lq"
    job = stage.get("Job", "job")
    assert job is not None
    assert before is not None
    assert job["metadata"]["uid"] != before["metadata"]["uid"]
    assert (job["metadata"]["labels"]["team"], job["metadata"]["annotations"]) == ("t", {"a": "b"})
    # What its cluster gave it belongs to the job that was.
    assert job["spec"] == {
        "suspend": True,
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}},
    }


def test_a_job_waits_as_long_as_the_policy_says() -> None:
    stage = stage_with_job(patience=MINUTE)
    stage.wait(MINUTE - 2 * SECOND_NS)
    assert queue_of(stage) == "here"
    stage.wait(2 * SECOND_NS)
    assert queue_of(stage) == "lq"


@pytest.mark.parametrize("n_steps", range(len(STEPS) + 1))
def test_a_manager_that_starts_anew_goes_on_with_a_move(n_steps: int) -> None:
    stage = stage_with_job()
    stage.do(n_steps)
    stage.restart()
    stage.settle()
    assert steps(stage) == STEPS
    assert queue_of(stage) == "lq"


def test_a_job_that_finds_quota_after_all_stays() -> None:
    stage = stage_with_job()
    stage.do(1)
    stage.condition(MANAGER, "job", "QuotaReserved")
    stage.settle()
    assert steps(stage) == [STEPS[0], STEPS[3]]
    assert queue_of(stage) == "here"


def test_a_job_that_is_started_meanwhile_is_not_deleted() -> None:
    stage = stage_with_job()
    stage.do(1)
    (deletion,) = stage.manager.turn(stage.now).commands
    assert isinstance(deletion, Write)
    assert deletion.verb is Verb.DELETE
    # Quota comes, and the job starts, before the deletion arrives.
    stage.condition(MANAGER, "job", "QuotaReserved")
    stage.api[MANAGER].patch("Job", "job", {"spec": {"suspend": False}}, namespace="ns")
    stage.carry_out(deletion)
    stage.settle()
    assert queue_of(stage) == "here"


def test_a_job_with_finalizers_is_made_anew_once_it_is_gone() -> None:
    stage = stage_with_job()
    stage.do(1)
    (deletion,) = stage.manager.turn(stage.now).commands
    assert isinstance(deletion, Write)
    job = stage.get("Job", "job")
    assert job is not None
    going = {**job, "metadata": {**job["metadata"], "deletionTimestamp": stage.time, "resourceVersion": "900"}}
    stage.manager.done(deletion, Answer(going), now=stage.now)
    stage.settle()
    assert steps(stage) == STEPS[:1]
    stage.api[MANAGER].version = 900
    stage.delete("Job", "job")
    stage.settle()
    assert queue_of(stage) == "lq"


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("Pod", {}),
        ("LeaderWorkerSet", {}),
        ("Job", {"ownerReferences": [OWNER]}),
        ("Job", {"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "job"}}),
    ],
    ids=["perhaps one of a group", "several Workloads", "belongs to another", "Workload of somebody else"],
)
def test_a_job_that_can_not_be_made_anew_stays(kind: str, metadata: dict[str, Any]) -> None:
    stage = stage_with_job(kind=kind, **metadata)
    stage.settle()
    assert steps(stage) == []
    assert queue_of(stage, kind) == "here"


@pytest.mark.parametrize(
    "job",
    [
        "{",
        "[]",
        '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}}',
        '{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "kube-system"}}',
    ],
)
def test_what_somebody_else_has_written_down_is_not_made(job: str) -> None:
    stage = stage_with_job()
    stage.do(1)
    (record,) = stage.api[MANAGER].list("ConfigMap")[0]
    stage.api[MANAGER].patch("ConfigMap", record["metadata"]["name"], {"data": {"job": job}}, namespace="ns")
    stage.settle()
    assert steps(stage) == STEPS[:1]
    name = record["metadata"]["name"]
    assert stage.problems[-1] == f'ConfigMap "{name}" holds no job of its namespace'
