from __future__ import annotations

import copy
from typing import Any

import pytest

from kueuecore.jobs import JobsConfiguration, Surroundings, fits_workload, start_job, workloads_for
from kueuecore.manifests import parse_manifests

_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: 'n', uid: u, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  parallelism: 5
  completions: 9
  template:
    spec:
      tolerations: [{key: mine}]
      containers: [{name: c, resources: {requests: {cpu: 1000m}}}]
"""
_FLAVORS: Any = {"f": {"spec": {"nodeLabels": {"pool": "a"}, "tolerations": [{"key": "spot"}]}}}


def _made(*, at_least: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    job: Any = parse_manifests(_JOB)[0].object
    if at_least:
        job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": at_least}
    result = workloads_for([job])
    return copy.deepcopy(result.jobs[0]), copy.deepcopy(result.workloads[0].object)


def _admitted(workload: dict[str, Any], count: int = 5, *conditions: str) -> dict[str, Any]:
    assignment = {"name": "main", "flavors": {"cpu": "f"}, "count": count}
    held = [{"type": condition, "status": "True"} for condition in conditions or ("QuotaReserved", "Admitted")]
    admission = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
    return {**workload, "status": {"admission": admission, "conditions": held}}


def _fits(job: Any, workload: Any, **gates: bool) -> bool:
    surroundings = Surroundings(configuration=JobsConfiguration(feature_gates=gates))
    return fits_workload(job, workload, flavors=_FLAVORS, surroundings=surroundings)


def test_workload_fits_the_job_that_it_was_made_of_however_amounts_are_written() -> None:
    job, workload = _made()
    assert _fits(job, workload)
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": 1}
    job["spec"]["template"]["spec"]["containers"][0]["args"] = []
    assert _fits(job, workload)


@pytest.mark.parametrize(
    ("path", "value", "fits"),
    [
        (("parallelism",), 4, False),
        (("template", "spec", "containers", 0, "resources", "requests", "cpu"), "2", False),
        (("template", "spec", "containers", 0, "image"), "other", False),
        (("template", "spec", "tolerations"), [], False),
        (("template", "spec", "nodeSelector"), {"a": "b"}, True),
        (("template", "metadata", "labels", "a"), "b", True),
    ],
)
def test_counts_containers_and_tolerations_matter(path: tuple[Any, ...], value: Any, fits: bool) -> None:
    job, workload = _made()
    place = job["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert _fits(job, workload) is fits


def test_workload_of_another_owner_or_time_does_not_fit() -> None:
    job, workload = _made()
    assert not _fits({**job, "metadata": {**job["metadata"], "uid": "later"}}, workload)
    assert _fits({**job, "metadata": {**job["metadata"], "uid": "later"}}, workload, FinishOrphanedWorkloads=False)
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "60"
    assert not _fits(job, workload)


def test_running_job_is_compared_with_what_it_got() -> None:
    job, workload = _made(at_least="2")
    workload = _admitted(workload, 3, "QuotaReserved")
    (write,) = start_job(job, workload, flavors=_FLAVORS)
    assert _fits(write.manifest, workload)
    assert _fits(job, workload)
    running: Any = {**job, "spec": {**job["spec"], "suspend": False}}
    assert not _fits(running, workload)


def test_tolerations_of_an_admitted_job_may_change() -> None:
    job, workload = _made()
    (write,) = start_job(job, _admitted(workload), flavors=_FLAVORS)
    changed: Any = copy.deepcopy(write.manifest)
    changed["spec"]["template"]["spec"]["tolerations"] = [{"key": "other"}]
    assert _fits(changed, _admitted(workload))
    assert not _fits(changed, _admitted(workload, 5, "QuotaReserved"))
