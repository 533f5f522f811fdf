"""Which job is looked at when, beside an API server in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, JobController, JobWork
from kueuecore.jobs import JobEvent, JobsConfiguration
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb, Write
from tests.unit.jobs.test_workload_sync import batch

KUEUE = "kueue.x-k8s.io/v1beta2"
Json = dict[str, Any]


class Cluster:
    """An API server, Kueue's loop and job controllers, and a network that may refuse."""

    def __init__(self, *, cpus: int = 4, **settings: Any) -> None:
        self.api = ApiServer(now=1_767_225_600 * SECOND_NS)
        self.refuses: Callable[[Write], int] = lambda _: 0
        self.works: list[JobWork] = []
        self.settings = settings
        self.begin()
        self.create("v1", "Namespace", "n")
        self.create(KUEUE, "ResourceFlavor", "default")
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpus}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
        self.create(KUEUE, "ClusterQueue", "cq", spec={"namespaceSelector": {}, "resourceGroups": groups})
        self.create(KUEUE, "LocalQueue", "lq", "n", spec={"clusterQueue": "cq"})

    def begin(self) -> None:
        """Another process: it lists."""
        self.loop = Controller(models_readiness=True)
        self.jobs = JobController(self.loop, configuration=JobsConfiguration(**self.settings))
        for kind in self.jobs.kinds:
            objects, version = self.api.list(kind)
            self.jobs.resync(kind, objects, now=self.api.now, resource_version=version)
        self.heard = self.api.version

    def create(self, api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Json:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        return self.api.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})

    def step(self, seconds: int = 1) -> list[JobWork]:
        """Hear, reconcile the jobs that are due, take a turn. Returns their work."""
        self.api.now += seconds * SECOND_NS
        self.hear()
        works = self.jobs.take_due(self.api.now)
        for work in works:
            self.carry_out(work)
        for write in self.loop.turn(self.api.now).writes:
            self.loop.done(write, self.api.carry_out(write), now=self.api.now)
        self.works += works
        return list(works)

    def hear(self) -> None:
        for event in self.api.since(self.heard):
            self.jobs.observe(event, now=self.api.now)
        self.heard = self.api.version

    def carry_out(self, work: JobWork) -> None:
        answer = Answer()
        for request in work.requests:
            code = self.refuses(request)
            answer = Answer(error="no", code=code) if code else self.api.carry_out(request)
            if not answer.is_accepted:
                break
        self.jobs.done(work.job, answer, now=self.api.now)

    def workload(self) -> Json:
        (found,) = self.api.list("Workload")[0]
        return found

    def job(self) -> Json:
        return self.api.get("Job", "j", namespace="n")

    def condition(self, kind: str) -> tuple[str, str] | None:
        conditions = self.workload().get("status", {}).get("conditions", ())
        return next(
            ((condition["status"], condition["reason"]) for condition in conditions if condition["type"] == kind), None
        )


def test_a_job_runs_from_its_creation_to_its_end() -> None:
    cluster = Cluster()
    cluster.api.create(batch(2))
    for _ in range(5):
        cluster.step()
    assert cluster.job()["spec"]["suspend"] is False
    cluster.api.patch(
        "Job",
        "j",
        {"status": {"conditions": [{"type": "Complete", "status": "True", "message": "done"}]}},
        namespace="n",
        subresource="status",
    )
    for _ in range(4):
        cluster.step()
    assert cluster.condition("Finished") == ("True", "Succeeded")
    assert cluster.workload()["metadata"]["finalizers"] == []
    assert [event.reason for work in cluster.works for event in work.events] == [
        "CreatedWorkload",
        "Started",
        "FinishedWorkload",
        "FinishedWorkload",
    ]
    assert cluster.jobs.next_wake(cluster.api.now) is None


def test_the_words_of_readiness_are_those_of_kueue() -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    said: list[tuple[str, str] | None] = []

    def settle() -> None:
        for _ in range(4):
            cluster.step()
            if (it := cluster.condition("PodsReady")) != (said[-1] if said else None):
                said.append(it)

    def status(**fields: Any) -> None:
        cluster.api.patch("Job", "j", {"status": fields}, namespace="n", subresource="status")
        settle()

    settle()
    status(active=1, ready=1)
    status(active=1, ready=0)
    status(active=1, ready=1)
    # An eviction: it waits for a start again, and that is no recovery.
    cluster.api.patch("Workload", cluster.workload()["metadata"]["name"], {"spec": {"active": False}}, namespace="n")
    settle()
    status(active=0, ready=0)
    cluster.api.patch("Workload", cluster.workload()["metadata"]["name"], {"spec": {"active": True}}, namespace="n")
    settle()
    status(active=1, ready=1)
    assert said == [
        ("False", "WaitForStart"),
        ("True", "Started"),
        ("False", "WaitForRecovery"),
        ("True", "Recovered"),
        ("False", "WaitForRecovery"),
        ("False", "WaitForStart"),
        ("True", "Started"),
    ]


@pytest.mark.parametrize("code", [500, 503, 429, 403])
def test_what_is_refused_is_tried_again_after_growing_pauses(code: int) -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    cluster.refuses = lambda request: code if request.verb is Verb.CREATE else 0
    tried = [second for second in range(40) if cluster.step()]
    assert tried == [0, 1, 3, 7, 15, 31]
    cluster.refuses = lambda _: 0
    for _ in range(30):
        cluster.step()
    assert cluster.condition("Admitted") == ("True", "Admitted")
    # The next failure begins with a short pause again.
    cluster.refuses = lambda _: code
    cluster.api.patch("Job", "j", {"spec": {"suspend": True}}, namespace="n")
    wakes = [cluster.step() and cluster.jobs.next_wake(cluster.api.now)]
    assert wakes == [cluster.api.now + SECOND_NS]


def test_news_of_a_job_end_its_pause() -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    cluster.refuses = lambda _: 500
    for _ in range(20):
        cluster.step()
    cluster.refuses = lambda _: 0
    assert not cluster.step()
    cluster.api.patch("Job", "j", {"metadata": {"labels": {"touched": "yes"}}}, namespace="n")
    assert len(cluster.step()) == 1


def test_a_job_that_waits_says_why_once_and_goes_on_when_that_comes() -> None:
    cluster = Cluster()
    plain = batch(1)
    plain["metadata"]["labels"] = {**plain["metadata"]["labels"], "kueue.x-k8s.io/priority-class": "high"}
    cluster.api.create(plain)
    (work,) = cluster.step()
    assert 'WorkloadPriorityClass "high"' in work.waits_for
    assert [event.reason for event in work.events] == ["WorkloadPriorityClassNotFound"]
    assert not cluster.step()
    cluster.create(KUEUE, "WorkloadPriorityClass", "high", value=5)
    cluster.step()
    assert cluster.workload()["spec"]["priority"] == 5


def test_a_pending_job_is_followed() -> None:
    cluster = Cluster(cpus=0)
    cluster.api.create(batch(1))
    for _ in range(3):
        cluster.step()
    cluster.api.patch("Job", "j", {"spec": {"parallelism": 3, "completions": 3}}, namespace="n")
    cluster.api.patch("Job", "j", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}, namespace="n")
    for _ in range(3):
        cluster.step()
    spec = cluster.workload()["spec"]
    assert (spec["queueName"], spec["podSets"][0]["count"]) == ("other", 3)


@pytest.mark.parametrize("restarts", [False, True])
def test_the_workload_of_a_job_that_has_gone_ends(restarts: bool) -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    for _ in range(4):
        cluster.step()
    cluster.api.delete("Job", "j", namespace="n")
    if restarts:
        cluster.begin()
    for _ in range(3):
        cluster.step()
    assert cluster.condition("Finished") == ("True", "OwnerNotFound")
    # The garbage collector deletes it; nothing holds it then.
    cluster.api.delete("Workload", cluster.workload()["metadata"]["name"], namespace="n")
    for _ in range(3):
        cluster.step()
    assert cluster.api.list("Workload")[0] == []


def test_a_job_that_comes_anew_under_its_name_gets_a_workload_of_its_own() -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    for _ in range(4):
        cluster.step()
    cluster.api.delete("Job", "j", namespace="n")
    cluster.api.create(batch(2))
    for _ in range(6):
        cluster.step()
    assert [workload["spec"]["podSets"][0]["count"] for workload in cluster.api.list("Workload")[0]] == [2]
    assert cluster.condition("Admitted") == ("True", "Admitted")


def test_a_child_is_looked_at_when_the_workload_of_its_parent_changes() -> None:
    cluster = Cluster()
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    template = {"spec": {"template": batch(1)["spec"]["template"], "parallelism": 1, "completions": 1}}
    spec = {"suspend": True, "replicatedJobs": [{"name": "r", "replicas": 1, "template": template}]}
    metadata = {"name": "p", "namespace": "n", "labels": labels}
    parent = cluster.api.create(
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    )
    child = batch(1, suspend=False)
    owner = {"apiVersion": parent["apiVersion"], "kind": "JobSet", "name": "p", "uid": parent["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    cluster.api.create(child)
    for _ in range(6):
        cluster.step()
    # It was held before its parent was admitted; whoever runs the parent starts it.
    assert cluster.job()["spec"]["suspend"] is True
    assert len(cluster.api.list("Workload")[0]) == 1
    cluster.api.patch("Job", "j", {"spec": {"suspend": False}}, namespace="n")
    cluster.step()
    assert cluster.job()["spec"]["suspend"] is False
    cluster.api.patch("Workload", cluster.workload()["metadata"]["name"], {"spec": {"active": False}}, namespace="n")
    for _ in range(6):
        cluster.step()
    assert cluster.job()["spec"]["suspend"] is True


def test_a_pod_of_an_elastic_job_goes_when_its_slice_is_admitted() -> None:
    cluster = Cluster(frameworks=("batch/job",))
    job = cluster.api.create(batch(1, suspend=False, elastic_job="true"))
    for _ in range(3):
        cluster.step()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"], "controller": True}
    metadata = {
        "name": "j-0",
        "namespace": "n",
        "ownerReferences": [owner],
        "labels": {"kueue.x-k8s.io/podset": "main"},
    }
    metadata["annotations"] = {"kueue.x-k8s.io/workload-slice-name": cluster.workload()["metadata"]["name"]}
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]}
    cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}})
    works = [work for _ in range(2) for work in cluster.step()]
    assert [(work.job.kind, work.waits_for) for work in works] == [("Job", "")]
    assert not cluster.api.get("Pod", "j-0", namespace="n")["spec"].get("schedulingGates")


def test_old_news_and_other_kinds_change_nothing() -> None:
    cluster = Cluster()
    old = cluster.api.create(batch(1))
    cluster.step()
    cluster.api.patch("Job", "j", {"metadata": {"labels": {"touched": "yes"}}}, namespace="n")
    for _ in range(4):
        cluster.step()
    assert not cluster.jobs.observe({"type": "MODIFIED", "object": old}, now=cluster.api.now)
    assert not cluster.jobs.observe(
        {"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}},
        now=cluster.api.now,
    )
    assert not cluster.step()
    with pytest.raises(ValueError, match="'Secret' is not watched"):
        cluster.jobs.resync("Secret", [], now=cluster.api.now)


def test_a_job_that_cannot_be_read_waits_and_holds_up_no_other() -> None:
    cluster = Cluster()
    odd = batch(1)
    odd["metadata"]["name"] = "odd"
    odd["spec"]["parallelism"] = "many"
    cluster.api.create(odd)
    cluster.api.create(batch(1))
    works = {work.job.name: work.waits_for for work in cluster.step()}
    assert "spec.parallelism" in works["odd"]
    assert works["j"] == ""


def test_an_event_is_no_longer_than_a_server_takes() -> None:
    event = JobEvent(batch(1), "Normal", "Stopped", "é" * 600)
    made: Any = event.manifest("2026-01-01T00:00:00Z")
    assert made["message"] == "é" * 510 + " ..."
    assert made["involvedObject"] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "n",
        "name": "j",
        "uid": "u",
    }
    assert JobEvent(batch(1), "Normal", "Stopped", "x" * 1024).manifest("")["message"] == "x" * 1024


def test_a_job_whose_workload_is_heard_of_first_has_not_gone() -> None:
    """Each kind has a watch of its own: what another process made of a new job may be heard of before the job."""
    cluster = Cluster()
    cluster.begin()  # lists before there is a job
    late, loop = cluster.jobs, cluster.loop
    cluster.begin()
    cluster.api.create(batch(1))
    for _ in range(2):
        cluster.step()
    (workload,) = cluster.api.list("Workload")[0]
    late.observe({"type": "ADDED", "object": workload}, now=cluster.api.now)

    def ends() -> bool:
        late.take_due(cluster.api.now)
        return any("Finished" in write.gained for write in loop.turn(cluster.api.now).writes)

    assert not ends()
    # An answer says nothing of what a watch has shown.
    another = cluster.create("batch/v1", "Job", "another", "n", spec={"suspend": True, "template": {}})
    late.take_answer(another, now=cluster.api.now)
    assert not ends()
    # Once the watch of jobs has come further, and shown none of that name, it has.
    version = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"resourceVersion": str(cluster.api.version)}}
    late.observe({"type": "BOOKMARK", "object": version}, now=cluster.api.now)
    assert ends()


def test_a_controller_of_jobs_knows_what_the_loop_has_seen_before() -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    loop = Controller(models_readiness=True)
    for kind in loop.kinds:
        objects, version = cluster.api.list(kind)
        loop.resync(kind, objects, now=cluster.api.now, resource_version=version)
    jobs = JobController(loop)
    jobs.resync("Job", cluster.api.list("Job")[0], now=cluster.api.now)
    (work,) = jobs.take_due(cluster.api.now)
    (request,) = work.requests
    assert (request.object.kind, work.waits_for) == ("Workload", "")


def test_a_save_of_the_loop_has_no_jobs() -> None:
    cluster = Cluster()
    cluster.api.create(batch(1))
    cluster.step()
    cluster.api.delete("Job", "j", namespace="n")
    cluster.step()
    saved: Any = cluster.loop.save()
    assert {object_["kind"] for object_ in saved["objects"]} <= cluster.loop.kinds.keys()
    assert "Job" not in json.dumps(saved["versions"])
