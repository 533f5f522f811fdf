from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import Finished, StartError, StopReason, start_job, stop_job, workloads_for
from kueuecore.jobs.app_wrapper import APP_WRAPPER

_POD = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1.0001"}}, "env": []}]}}


def _wrapper(*components: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "aw", "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"components": list(components)},
    }


def _wrapped(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"template": {"apiVersion": api_version, "kind": kind, "spec": spec}}


def _pod_sets(*components: dict[str, Any]) -> list[dict[str, Any]]:
    result = workloads_for([_wrapper(*components)])
    result.raise_for_problems()
    spec: Any = result.workloads[0].object["spec"]
    pod_sets = spec["podSets"]
    assert isinstance(pod_sets, list)
    return pod_sets


@pytest.mark.parametrize(
    ("component", "counts"),
    [
        ({"template": {"apiVersion": "v1", "kind": "Pod", **_POD}}, [1]),
        (_wrapped("apps/v1", "Deployment", replicas=3, template=_POD), [3]),
        (_wrapped("apps/v1", "StatefulSet", template=_POD), [1]),
        (_wrapped("batch/v1", "Job", parallelism=4, completions=2, template=_POD), [2]),
        (
            _wrapped(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=[{"replicas": 2, "template": {"spec": {"parallelism": 3, "template": _POD}}}],
            ),
            [6],
        ),
        (
            _wrapped(
                "kubeflow.org/v1",
                "PyTorchJob",
                pytorchReplicaSpecs={"Worker": {"replicas": 2, "template": _POD}, "Master": {"template": _POD}},
            ),
            [1, 2],
        ),
        (
            _wrapped(
                "ray.io/v1",
                "RayJob",
                rayClusterSpec={
                    "headGroupSpec": {"template": _POD},
                    "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 9, "template": _POD}],
                },
            ),
            [1, 2],
        ),
    ],
)
def test_pods_of_known_kinds_are_found(component: dict[str, Any], counts: list[int]) -> None:
    assert [pod_set["count"] for pod_set in _pod_sets(component)] == counts


def test_pod_sets_are_numbered_over_all_components() -> None:
    unknown = _wrapped("v1", "ConfigMap")
    job = _wrapped("batch/v1", "Job", template=_POD)
    assert [pod_set["name"] for pod_set in _pod_sets(job, unknown, job)] == ["aw-0", "aw-1"]


def test_declared_pod_sets_are_trusted() -> None:
    component = {
        **_wrapped("example.com/v1", "Thing", parts=[{"pod": _POD}]),
        "podSets": [
            {
                "path": "template.spec.parts[0].pod",
                "replicas": 4,
                "annotations": {
                    "workload.codeflare.dev.appwrapper/tas-pod-index-label": "index",
                    "workload.codeflare.dev.appwrapper/tas-sub-group-count": "two",
                },
            },
            {"path": "template.spec.parts[7].pod"},
            {"path": "spec"},
        ],
    }
    (pod_set,) = _pod_sets(component)
    assert pod_set["count"] == 4
    assert pod_set["topologyRequest"] == {"podIndexLabel": "index"}


def test_template_is_reduced_and_its_amounts_rounded_up() -> None:
    pod: Any = {
        "metadata": {"labels": {"a": "b"}, "name": "x"},
        "spec": {**_POD["spec"], "runtimeClassName": "r", "schedulingGates": [{"name": "g"}], "restartPolicy": "Never"},
    }
    (pod_set,) = _pod_sets(_wrapped("apps/v1", "Deployment", template=pod))
    assert pod_set["template"]["metadata"] == {"labels": {"a": "b"}}
    assert pod_set["template"]["spec"] == {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1001m"}}}],
        "restartPolicy": "Never",
    }


def test_start_leaves_a_note_beside_each_component() -> None:
    result = workloads_for([_wrapper(*(_wrapped("batch/v1", "Job", template=_POD) for _ in range(2)))])
    job: Any = result.jobs[0]
    workload: Any = result.workloads[0].object
    assignments = [{"name": f"aw-{index}", "flavors": {"cpu": f"f{index}"}} for index in range(2)]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    flavors: Any = {f"f{index}": {"spec": {"nodeLabels": {"pool": str(index)}}} for index in range(2)}
    (write,) = start_job(job, workload, flavors=flavors)
    components: Any = write.manifest["spec"]["components"]  # type: ignore[index,call-overload]
    assert [component["podSetInfos"][0]["nodeSelector"] for component in components] == [{"pool": "0"}, {"pool": "1"}]
    (stopped,) = stop_job(write.manifest, workload, reason=StopReason.NOT_ADMITTED)
    assert stopped.manifest == job
    workload["status"]["admission"]["podSetAssignments"] = assignments[:1]
    with pytest.raises(StartError, match="expecting 2 podset, got 1"):
        start_job(job, workload, flavors=flavors)


def test_failed_wrapper_is_finished_when_its_objects_are_gone() -> None:
    def job(phase: str, *conditions: str) -> dict[str, Any]:
        return {
            "status": {
                "phase": phase,
                "conditions": [{"type": condition, "status": "True"} for condition in conditions],
            }
        }

    assert APP_WRAPPER.finished(job("Running")) is None
    assert APP_WRAPPER.finished(job("Succeeded")) == Finished("AppWrapper finished successfully")
    assert APP_WRAPPER.finished(job("Failed", "ResourcesDeployed")) is None
    assert APP_WRAPPER.finished(job("Failed")) == Finished("AppWrapper failed", success=False)
    assert APP_WRAPPER.is_active(job("Running", "QuotaReserved"))
    assert APP_WRAPPER.pods_ready(job("Running", "PodsReady"))
