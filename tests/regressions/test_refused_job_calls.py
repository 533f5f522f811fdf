"""Calls about jobs that are refused: the error names the argument or the field, and nothing has changed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from kueuecore.concurrent_admission import reconcile_parent
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController, Metrics
from kueuecore.controller.in_use_finalizers import with_finalizer
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobReport, JobsConfiguration, reconcile_job, requests_of, workloads_for
from kueuecore.objects import Namespace
from kueuecore.writes import Answer, Verb, Write
from tests.builders import T0, at, cluster_queue, flavor, local_queue
from tests.jobs import job

_CREATED = "2026-01-01T00:00:00Z"
_KEPT = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, integrations: {frameworks: [batch/job]},"
    " objectRetentionPolicies: {workloads: {afterFinished: 5s, afterDeactivatedByKueue: 5s}}}"
)


def _stored(plain: dict[str, Any]) -> dict[str, Any]:
    given = {"namespace": "ns", "uid": "u1", "resourceVersion": "7", "creationTimestamp": _CREATED}
    return {**plain, "metadata": {**plain["metadata"], **given}}


def _workload(condition: dict[str, Any]) -> dict[str, Any]:
    (made,) = workloads_for([_stored(job("Job"))]).workloads
    plain: dict[str, Any] = _stored(copy.deepcopy(made.object))
    plain["spec"]["active"] = False
    return {**plain, "status": {"conditions": [{"status": "True", "message": "m", **condition}]}}


def _seen(plain: dict[str, Any], controller: Any) -> Any:
    controller.observe({"type": "ADDED", "object": plain}, now=at(1))
    return controller


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"workloads": 5}, "workloads must be a sequence"),
        ({"gone": "no"}, "gone must be a bool"),
        ({"integrations": {("batch", "Job"): 5}}, r"integrations\[.*\] must be an Integration"),
    ],
)
def test_a_look_at_a_job_names_the_wrong_argument(wrong: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"job": job("Job"), "workloads": [], "now": T0, **wrong}
    with pytest.raises(TypeError, match=words):
        reconcile_job(given.pop("job"), given.pop("workloads"), **given)


def test_requests_name_what_is_no_write() -> None:
    wrong: Any = [[5], 5, [Write(Verb.UPDATE, 5)], None]  # type: ignore[arg-type]
    for writes in wrong:
        with pytest.raises(TypeError, match="writes"):
            requests_of(writes, lambda _: None)
    stored: Any = {}
    with pytest.raises(TypeError, match="stored must be a function"):
        requests_of([], stored)


def test_a_parent_and_its_variants_are_plain_data() -> None:
    given: dict[str, Any] = {"parent": {}, "variants": [], "cluster_queue": {}, "configuration": None, "now": T0}
    for name, wrong in (("parent", 5), ("variants", 5), ("variants", [5]), ("cluster_queue", None),
                        ("configuration", {})):  # fmt: skip
        changed = {**given, name: wrong}
        with pytest.raises(TypeError, match=name):
            reconcile_parent(changed.pop("parent"), changed.pop("variants"), changed.pop("cluster_queue"), **changed)


def test_the_controller_of_jobs_names_the_wrong_argument() -> None:
    jobs: Any = _seen(_stored(job("Job")), JobController(Controller()))
    (work,) = jobs.take_due(at(1))
    keys: tuple[Any, ...] = (None, "j", [], np.array([1]))
    for key in keys:
        with pytest.raises(TypeError, match="job must be an ObjectRef"):
            jobs.done(key, Answer(), now=at(1))
        with pytest.raises(TypeError, match="job must be an ObjectRef"):
            jobs.done(key, Answer(error="refused"), now=at(1))
    with pytest.raises(TypeError, match="kind must be a str"):
        jobs.resync([], [], now=at(1))
    with pytest.raises(TypeError, match="resource_version must be a str"):
        jobs.resync("Job", [], now=at(1), resource_version=5)
    loop: Any = None
    with pytest.raises(TypeError, match="loop must be a Controller"):
        JobController(loop)
    # At a time that is none, the requests stay open.
    with pytest.raises(ValueError, match="is not a time"):
        jobs.done(work.job, Answer(error="refused"), now="soon")
    assert jobs.next_wake(at(1)) is None
    jobs.done(work.job, Answer(error="refused"), now=at(1))
    assert jobs.next_wake(at(1)) == at(2)


def test_what_a_list_of_jobs_refuses_is_not_looked_at() -> None:
    jobs = JobController(Controller())
    odd = _stored(job("Job", "odd"))
    odd["metadata"]["resourceVersion"] = 5
    (problem,) = jobs.resync("Job", [_stored(job("Job")), odd], now=at(1))
    assert (problem.index, problem.field) == (1, "metadata.resourceVersion")
    assert [work.job.name for work in jobs.take_due(at(1))] == ["j"]
    # Of a list in which an object stands twice, the position is that in the list.
    queues: list[Any] = [_stored(entry.to_manifest()) for entry in (local_queue(), local_queue(), local_queue("other"))]
    queues[2]["spec"] = 5
    (problem,) = jobs.resync("LocalQueue", queues, now=at(1))
    assert problem.index == 2


def test_a_pod_that_would_spoil_its_group_is_refused() -> None:
    jobs: Any = JobController(Controller(), configuration=JobsConfiguration(frameworks=["pod"]))
    odd = _stored(job("Pod", **{"kueue.x-k8s.io/pod-group-name": "g"}))
    odd["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = 5
    with pytest.raises(ManifestError, match="queue-name"):
        jobs.observe({"type": "ADDED", "object": odd}, now=at(1))
    (problem,) = jobs.resync("Pod", [odd], now=at(1))
    assert problem.index == 0
    assert jobs.take_due(at(1)) == ()


@pytest.mark.parametrize(
    "wrong", [{"finished": 5}, {"finished": ("a",)}, {"finished": ("a", 5)}, {"stopped": 3}, {"are_ready": "no"}]
)
def test_a_report_is_of_the_right_types(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"finished|message|stopped|are_ready"):
        JobReport(**wrong)


def test_a_controller_takes_reports_alone() -> None:
    controller: Any = _seen(_workload({"type": "Requeued", "lastTransitionTime": _CREATED}), Controller())
    (name,) = (workload.name for workload in controller.engine.workloads())
    with pytest.raises(TypeError, match="report must be a JobReport"):
        controller.report(name, namespace="ns", report=None)


@pytest.mark.parametrize(
    ("time", "is_deleted"), [(None, True), ("1600-01-01T00:00:00Z", True), ("9999-01-01T00:00:00Z", False)]
)
def test_a_finished_workload_is_kept_whatever_the_year_of_its_end(time: str | None, is_deleted: bool) -> None:
    finished = _workload({"type": "Finished", "reason": "r", "lastTransitionTime": time})
    controller = _seen(finished, Controller(_KEPT))
    # First its finalizer goes.
    assert any("finalizers" in write.manifest["metadata"] for write in controller.turn(at(2)).writes) == is_deleted
    assert controller.next_wake(at(2)) is None or is_deleted


def test_a_workload_that_does_not_say_when_it_was_evicted_lets_its_job_be_looked_at() -> None:
    configuration = JobsConfiguration.of(_KEPT)
    evicted = _workload({"type": "Evicted", "reason": "DeactivatedDueToX"})
    found = reconcile_job(_stored(job("Job")), [evicted], now=at(1), configuration=configuration)
    assert any(write.verb is Verb.DELETE for write in found.writes)
    evicted["status"]["conditions"][0]["lastTransitionTime"] = "soon"
    with pytest.raises(ManifestError, match=r"status.conditions\[0\].lastTransitionTime"):
        reconcile_job(_stored(job("Job")), [evicted], now=at(1), configuration=configuration)


def test_a_status_that_is_due_beyond_the_end_of_time_wakes_nobody() -> None:
    controller = Controller(status_delay_seconds=2**62)
    for entry in (Namespace("ns"), flavor(), cluster_queue(), local_queue()):
        _seen(_stored(with_finalizer(dict(entry.to_manifest()))), controller)
    controller.turn(at(1))
    # New queues have parked workloads retried, though there are none.
    controller.turn(at(2))
    assert controller.next_wake(at(2)) is None


def test_metrics_of_jobs_name_the_wrong_argument() -> None:
    metrics: Any = Metrics()
    plain = {"metadata": {"creationTimestamp": _CREATED}}
    with pytest.raises(ValueError, match=r"metadata\.creationTimestamp"):
        metrics.workload_created({"metadata": {"creationTimestamp": "soon"}}, plain)
    with pytest.raises(TypeError, match="workload must be a dict"):
        metrics.workload_created(plain, None)
    with pytest.raises(TypeError, match="gate must be a str"):
        metrics.gate_removed(None, plain, now=T0)
    with pytest.raises(TypeError, match="workload must be a dict"):
        metrics.gate_removed("kueue.x-k8s.io/admission", None, now=T0)
