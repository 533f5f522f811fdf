from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueuecore.jobs import Finished, JobsConfiguration, StopReason, start_job, stop_job, workloads_for
from kueuecore.jobs.spark import SPARK_APPLICATION

_FRAMEWORK = "sparkoperator.k8s.io/sparkapplication"
_ON = JobsConfiguration(frameworks=[_FRAMEWORK], feature_gates={"SparkApplicationIntegration": True})


def _job(driver: Any = None, executor: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s", "namespace": "n", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"mode": "cluster", "driver": driver or {}, "executor": executor or {}, **spec},
    }


def _made(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    result = workloads_for([job], configuration=_ON)
    result.raise_for_problems()
    return result.jobs[0], result.workloads[0].object


def _driver(**driver: Any) -> dict[str, Any]:
    template = _made(_job(driver))[1]["spec"]["podSets"][0]["template"]
    assert isinstance(template, dict)
    return template


def test_driver_and_executors_are_made_up() -> None:
    job, workload = _made(_job({"coreRequest": "1", "cores": 7, "memory": "1g"}, {"instances": 2, "memory": "512m"}))
    driver, executor = workload["spec"]["podSets"]
    assert (driver["name"], driver["count"], executor["name"], executor["count"]) == ("driver", 1, "executor", 2)
    assert driver["template"]["spec"]["containers"] == [
        {"name": "spark-kubernetes-driver", "resources": {"requests": {"cpu": "1", "memory": "1408Mi"}}}
    ]
    assert executor["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "896Mi"}}
    assert job["spec"]["suspend"] is True
    assert _made(_job())[1]["spec"]["podSets"][1]["count"] == 0


def test_limits_and_devices() -> None:
    template = _driver(coreLimit="2", memoryLimit="3gb", gpu={"name": "nvidia.com/gpu", "quantity": 1})
    limits = {"cpu": "2", "memory": "3Gi", "nvidia.com/gpu": "1"}
    requests = {"cpu": "1", "memory": "1408Mi"}
    assert template["spec"]["containers"][0]["resources"] == {"requests": requests, "limits": limits}


def test_metadata_is_that_of_the_template_below_that_of_the_role() -> None:
    template = _driver(
        template={"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"nodeSelector": {"x": "y"}}},
        labels={"b": "2"},
        annotations={"c": "3"},
    )
    assert template["metadata"] == {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}}
    assert "nodeSelector" not in template["spec"]


def test_sidecars_and_mounted_volumes_count() -> None:
    sidecars = [{"name": "side", "image": "i"}, {"name": "side", "image": "i"}]
    job = _job(
        {"sidecars": sidecars, "volumeMounts": [{"name": "data"}, {"name": "spark-local-dir-1"}]},
        volumes=[{"name": "data"}, {"name": "spark-local-dir-1"}, {"name": "unused"}],
    )
    spec = _made(job)[1]["spec"]["podSets"][0]["template"]["spec"]
    assert [container["name"] for container in spec["containers"]] == ["spark-kubernetes-driver", "side"]
    assert spec["volumes"] == [{"name": "data"}]


def test_until_0_20_memory_in_upper_case_can_not_be_read() -> None:
    before = replace(_ON, absent_changes=frozenset({"SparkRequestsAreSparks"}))
    (ignored,) = workloads_for([_job({"memory": "1G"})], configuration=before).ignored
    assert ignored.reason.startswith("failed to parse memory requests 1GGi")


def test_gate_and_framework_are_needed() -> None:
    (ignored,) = workloads_for([_job()]).ignored
    assert ignored.reason == (
        f"the integration {_FRAMEWORK} is not enabled: name it in integrations.frameworks, and turn on the gate "
        "SparkApplicationIntegration"
    )
    (ignored,) = workloads_for([_job()], configuration=JobsConfiguration(frameworks=[_FRAMEWORK])).ignored
    assert ignored.reason == f"the integration {_FRAMEWORK} needs the gate SparkApplicationIntegration, which is off"


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"mode": "client"}, "spec.mode"), ({"dynamicAllocation": {"enabled": True}}, "spec.dynamicAllocation.enabled")],
)
def test_applications_that_are_rejected(spec: dict[str, Any], field: str) -> None:
    assert [problem.field for problem in workloads_for([_job(**spec)], configuration=_ON).problems] == [field]


def test_start_and_stop_write_the_fields_of_the_roles() -> None:
    job, workload = _made(_job({"labels": {"a": "b"}}, {"instances": 2}, nodeSelector={"all": "x"}))
    assignments = [{"name": name, "flavors": {"cpu": name}} for name in ("driver", "executor")]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    flavors: Any = {name: {"spec": {"nodeLabels": {"pool": name}}} for name in ("driver", "executor")}
    (write,) = start_job(job, workload, flavors=flavors, configuration=_ON)
    spec: Any = write.manifest["spec"]
    assert "nodeSelector" not in spec
    assert spec["driver"]["nodeSelector"] == {"all": "x", "pool": "driver"}
    assert spec["executor"]["nodeSelector"] == {"all": "x", "pool": "executor"}
    assert spec["driver"]["labels"]["kueue.x-k8s.io/podset"] == "driver"
    changed: Any = {**write.manifest, "spec": {**spec, "executor": {**spec["executor"], "instances": 9}}}
    (stopped,) = stop_job(changed, workload, reason=StopReason.NOT_ADMITTED)
    spec = stopped.manifest["spec"]
    assert (spec["driver"]["labels"], spec["executor"]["instances"]) == ({"a": "b"}, 2)
    # What is for both roles was part of both pod sets.
    assert spec["driver"]["nodeSelector"] == {"all": "x"}


def test_pods_are_ready_when_all_executors_are() -> None:
    def job(state: str, *executors: str) -> dict[str, Any]:
        status = {
            "applicationState": {"state": state, "errorMessage": "m"},
            "executorState": {str(index): executor for index, executor in enumerate(executors)},
        }
        return {**_job(executor={"instances": 2}), "status": status}

    assert SPARK_APPLICATION.pods_ready(job("RUNNING", "RUNNING", "COMPLETED"))
    assert not SPARK_APPLICATION.pods_ready(job("RUNNING", "RUNNING", "PENDING"))
    assert SPARK_APPLICATION.is_active(job("RUNNING"))
    assert SPARK_APPLICATION.finished(job("RUNNING")) is None
    assert SPARK_APPLICATION.finished(job("COMPLETED")) == Finished("m")
    assert SPARK_APPLICATION.finished(job("SUBMISSION_FAILED")) is None
    assert SPARK_APPLICATION.finished(job("FAILED")) == Finished("m", success=False)
