"""Jobs in which fields are missing, or odd: no Workload, a Workload, or a text that helps; never a broken engine."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.jobs import (
    INTEGRATIONS,
    JobsConfiguration,
    StartError,
    StopReason,
    integration_of,
    start_job,
    stop_job,
    workloads_for,
)
from tests.jobs import ALL_KINDS, job
from tests.property.test_bad_input import damaged
from tests.property.worlds import times

_ALL = JobsConfiguration(
    frameworks=[integration.framework for integration in INTEGRATIONS.values()],
    feature_gates={"SparkApplicationIntegration": True},
)
_CONTAINER = {"name": "c", "resources": {"requests": {"cpu": 1}}}
# What makes jobs, has its Workload from others, or needs a runtime that the Trainer ships.
_OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "MiniCluster": (
        "flux-framework.org/v1alpha2",
        {
            "size": 2,
            "jobLabels": {"kueue.x-k8s.io/queue-name": "lq"},
            "containers": [_CONTAINER],
            "flux": {"container": _CONTAINER},
            "pod": {"nodeAffinity": {"zone": ["a"]}, "nodeSelector": {"a": "b"}, "resources": {"cpu": 1}},
        },
    ),
    "PipelineRun": ("tekton.dev/v1", {}),
    "TrainJob": (
        "trainer.kubeflow.org/v1alpha1",
        {"runtimeRef": {"name": "mlx-distributed"}, "trainer": {"numNodes": 3, "resourcesPerNode": {"limits": {}}}},
    ),
}
_FLAVORS: Any = {"f": {"spec": {"nodeLabels": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}}


@st.composite
def _bad_jobs(draw: st.DrawFn) -> list[Any]:
    kinds = draw(st.lists(st.sampled_from(sorted({*ALL_KINDS, *_OTHERS})), min_size=1, max_size=2))
    return draw(damaged([_job(kind, f"j{index}") for index, kind in enumerate(kinds)]))


def _job(kind: str, name: str) -> dict[str, Any]:
    if kind not in _OTHERS:
        return job(kind, name)
    api_version, spec = _OTHERS[kind]
    metadata = {"name": name, "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    return copy.deepcopy({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


@times(1)
@given(_bad_jobs())
def test_odd_jobs_are_taken_or_refused(jobs: list[Any]) -> None:
    manifests = [other for other in jobs if isinstance(other, dict)]
    result = workloads_for(manifests, configuration=_ALL)
    assert all(str(problem) for problem in result.problems)
    for made in result.jobs:
        kind = integration_of(made)
        assert kind is not None
        for ask in (kind.is_suspended, kind.is_active, kind.is_on_hold, kind.finished, kind.pods_ready):
            ask(made)
        kind.reclaimable_pods(made, _ALL)
    if len(result.jobs) == len(result.workloads) == 1:
        _start_and_stop(result.jobs[0], result.workloads[0].object)


def _start_and_stop(made: Any, workload: Any) -> None:
    assigned = [{"name": pod_set["name"], "flavors": {"cpu": "f"}} for pod_set in workload["spec"]["podSets"]]
    admitted = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assigned}}}
    try:
        writes = start_job(made, admitted, flavors=_FLAVORS, configuration=_ALL)
    except StartError:
        return
    for write in writes:
        stop_job(write.manifest, admitted, reason=StopReason.WORKLOAD_EVICTED)


@times(1)
@given(st.data(), st.sampled_from(sorted(ALL_KINDS)))
def test_odd_admissions_and_flavors_start_a_job_or_are_refused(data: Any, kind: str) -> None:
    result = workloads_for([job(kind)], configuration=_ALL)
    if not (len(result.jobs) == len(result.workloads) == 1):
        return
    workload: Any = result.workloads[0].object
    assigned = [
        {"name": pod_set["name"], "flavors": {"cpu": "f"}, "count": 1} for pod_set in workload["spec"]["podSets"]
    ]
    admitted = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assigned}}}
    odd, flavors = data.draw(damaged([admitted, _FLAVORS]))
    try:
        start_job(result.jobs[0], odd, flavors=flavors, configuration=_ALL)
    except (StartError, ManifestError, UnknownObjectError):
        return
    except TypeError:
        assert not isinstance(flavors, dict)


def test_jobs_that_are_nested_too_deep_are_refused() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(2000):
        inner["x"] = inner = {}
    for kind in sorted(ALL_KINDS):
        nested = job(kind, "deep")
        nested["spec"] = {**nested["spec"], "deep": deep}
        result = workloads_for([nested], configuration=_ALL)
        assert [str(problem) for problem in result.problems] == [f'{kind} "n/deep": it is nested too deep']
        assert not result.workloads
