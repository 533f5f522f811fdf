from __future__ import annotations

from typing import Any

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.jobs import Finished, JobsConfiguration, StopReason, start_job, stop_job, workloads_for
from kueuecore.jobs.job_set import JOB_SET
from kueuecore.manifests import parse_manifests
from kueuecore.world import World

_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: training, namespace: 'n', labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  replicatedJobs:
  - name: Workers
    replicas: 2
    template:
      spec:
        parallelism: 4
        completions: 3
        template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
  - name: driver
    template:
      spec:
        template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}
"""


def _job_set(**annotations: str) -> dict[str, Any]:
    job: dict[str, Any] = parse_manifests(_SET)[0].object
    for replicated in job["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["template"]["metadata"] = {"annotations": annotations}
    return job


def _made(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    result = workloads_for([job])
    result.raise_for_problems()
    return result.jobs[0], result.workloads[0].object


def test_every_replicated_job_is_a_pod_set() -> None:
    job, workload = _made(_job_set())
    assert job["spec"]["suspend"] is True
    workers, driver = workload["spec"]["podSets"]
    assert (workers["name"], workers["count"], driver["name"], driver["count"]) == ("workers", 6, "driver", 1)
    assert workers["topologyRequest"] == {
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
        "subGroupIndexLabel": "jobset.sigs.k8s.io/job-index",
        "subGroupCount": 2,
    }
    assert workload["metadata"]["name"].startswith("jobset-training-")


def test_start_and_stop_touch_only_the_templates() -> None:
    job, workload = _made(_job_set())
    flavors = [{"name": name, "flavors": {"cpu": flavor}} for name, flavor in (("workers", "spot"), ("driver", "base"))]
    workload["status"] = {"admission": {"clusterQueue": "cq", "podSetAssignments": flavors}}
    nodes: Any = {name: {"spec": {"nodeLabels": {"pool": name}}} for name in ("spot", "base")}
    (started,) = start_job(job, workload, flavors=nodes)
    replicated: Any = started.manifest["spec"]["replicatedJobs"]  # type: ignore[index,call-overload]
    selectors = [entry["template"]["spec"]["template"]["spec"]["nodeSelector"] for entry in replicated]
    assert selectors == [{"pool": "spot"}, {"pool": "base"}]
    assert not JOB_SET.is_suspended(started.manifest)
    (stopped,) = stop_job(started.manifest, workload, reason=StopReason.WORKLOAD_EVICTED)
    restored: Any = stopped.manifest["spec"]
    assert [
        replicated_job["template"]["spec"]["template"]["spec"] for replicated_job in restored["replicatedJobs"]
    ] == [replicated_job["template"]["spec"]["template"]["spec"] for replicated_job in job["spec"]["replicatedJobs"]]
    assert stop_job(stopped.manifest, workload, reason=StopReason.WORKLOAD_EVICTED) == ()


def test_status_counts_jobs_and_not_pods() -> None:
    statuses: Any = [{"name": "Workers", "ready": 1, "succeeded": 1, "active": 1}, {"name": "driver", "ready": 1}]
    job = {**_job_set(), "status": {"replicatedJobsStatus": statuses}}
    assert JOB_SET.pods_ready(job)
    assert JOB_SET.is_active(job)
    assert JOB_SET.reclaimable_pods(job, JobsConfiguration()) == {"workers": 3}
    assert JOB_SET.finished(job) is None
    job["status"]["conditions"] = [{"type": "Failed", "status": "True", "message": "no"}]
    assert JOB_SET.finished(job) == Finished("no", success=False)


@pytest.mark.parametrize("spec", [None, {}, {"replicatedJobs": []}])
def test_a_set_without_jobs_is_taken_and_its_workload_is_not(spec: dict[str, Any] | None) -> None:
    job: dict[str, Any] = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    assert workloads_for([job]).problems == ()
    queued = {**job, "metadata": {"name": "a", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}
    with pytest.raises(ManifestError, match=r"in its Workload: spec\.podSets: .*at least 1"):
        World.of([queued]).apply_to(Engine(), now=0)


_GROUP = "kueue.x-k8s.io/podset-group-name"
_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
_PATH = "spec.replicatedJobs[{}].template.spec.template.metadata.annotations"


@pytest.mark.parametrize(
    ("first", "second", "field", "detail"),
    [
        (
            {_GROUP: "g", _REQUIRED: "rack"},
            {},
            f"{_PATH}[{_GROUP}]",
            'Invalid value: "g": can only define groups of exactly 2 pod sets, got: 1 pod set(s)',
        ),
        (
            {_GROUP: "g", _REQUIRED: "rack"},
            {_GROUP: "g", _PREFERRED: "rack"},
            _PATH,
            f"Invalid value: must specify '{_REQUIRED}' or '{_PREFERRED}' topology consistent with "
            f"'{_PATH.format(1)}' in group 'g'",
        ),
        (
            {"kueue.x-k8s.io/podset-slice-required-topology": "rack", "kueue.x-k8s.io/podset-slice-size": "7"},
            {},
            f"{_PATH}[kueue.x-k8s.io/podset-slice-size]",
            'Invalid value: "7": must not be greater than pod set count 6',
        ),
    ],
)
def test_topology_that_is_rejected(first: dict[str, str], second: dict[str, str], field: str, detail: str) -> None:
    job = _job_set()
    for replicated, wanted in zip(job["spec"]["replicatedJobs"], (first, second), strict=True):
        replicated["template"]["spec"]["template"]["metadata"] = {"annotations": wanted}
    problem = workloads_for([job]).problems[0]
    assert (problem.field, problem.message) == (field.format(0), detail)


def test_group_needs_a_pod_set_of_one() -> None:
    job = _job_set(**{_GROUP: "g", _REQUIRED: "rack"})
    job["spec"]["replicatedJobs"][1]["replicas"] = 2
    problems = workloads_for([job]).problems
    assert [problem.field for problem in problems] == [f"{_PATH.format(index)}[{_GROUP}]" for index in (0, 1)]
    assert problems[0].message.endswith("got: 6 replica(s) and 2 replica(s) in the group")
    off = JobsConfiguration(feature_gates={"TopologyAwareScheduling": False})
    assert workloads_for([job], configuration=off).problems == ()
