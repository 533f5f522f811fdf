"""TrainJobs that name a runtime of the Trainer which is not among the manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueuecore import Engine, World, settle
from kueuecore.cli import ExitCode, main
from kueuecore.jobs import JobsResult, workloads_for
from kueuecore.manifests import parse_manifests
from tests.command import JOB, QUEUES

API = "trainer.kubeflow.org/v1alpha1"
SAID = "assumed the ClusterTrainingRuntimes of Kubeflow Trainer 2.3, as none are given by these names: "


TRAIN_JOB = f"""
---
apiVersion: {API}
kind: TrainJob
metadata: {{name: t, namespace: team, labels: {{kueue.x-k8s.io/queue-name: lq}}}}
spec: {{runtimeRef: {{name: torch-distributed}}}}
"""
GIVEN = f"""
apiVersion: {API}
kind: ClusterTrainingRuntime
metadata: {{name: torch-distributed}}
spec:
  mlPolicy: {{numNodes: 2}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, resources: {{requests: {{cpu: 7}}}}}}]}}}}}}
"""


def train_job(runtime: str, kind: str = "ClusterTrainingRuntime", **trainer: Any) -> dict[str, Any]:
    metadata = {"name": "t", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    spec = {"runtimeRef": {"name": runtime, "kind": kind}, "trainer": trainer}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": metadata, "spec": spec}


def pods(result: JobsResult) -> dict[str, tuple[int, Any]]:
    """Pod sets of the only Workload: how many pods, and what their only container asks for."""
    (workload,) = result.workloads
    found: Any = workload.object["spec"]
    return {
        pod_set["name"]: (pod_set["count"], pod_set["template"]["spec"]["containers"][0].get("resources"))
        for pod_set in found["podSets"]
    }


@pytest.mark.parametrize("runtime", ["torch-distributed", "jax-distributed", "xgboost-distributed"])
def test_runtimes_of_equal_nodes(runtime: str) -> None:
    resources = {"requests": {"cpu": 2}}
    result = workloads_for([train_job(runtime, numNodes=3, resourcesPerNode=resources)])
    assert pods(result) == {"node": (3, resources)}
    assert result.assumed == (SAID + runtime,)


@pytest.mark.parametrize("runtime", ["deepspeed-distributed", "mlx-distributed"])
def test_the_launcher_of_mpi_is_one_of_the_nodes(runtime: str) -> None:
    resources = {"limits": {"nvidia.com/gpu": 8}}
    result = workloads_for([train_job(runtime, numNodes=4, resourcesPerNode=resources)])
    assert pods(result) == {"node": (3, resources), "launcher": (1, resources)}


@pytest.mark.parametrize("runtime", ["torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b"])
def test_fine_tuning_starts_with_its_data_and_its_model(runtime: str) -> None:
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    expected = {"dataset-initializer": (1, None), "model-initializer": (1, None), "node": (1, gpus)}
    assert pods(workloads_for([train_job(runtime)])) == expected


def test_a_runtime_that_is_given_counts() -> None:
    (given,) = parse_manifests(GIVEN)
    result = workloads_for([given, train_job("torch-distributed")])
    assert pods(result) == {"node": (2, {"requests": {"cpu": 7}})}
    assert result.assumed == ()


@pytest.mark.parametrize(
    ("name", "kind"), [("torch", "ClusterTrainingRuntime"), ("torch-distributed", "TrainingRuntime")]
)
def test_no_other_runtime_is_assumed(name: str, kind: str) -> None:
    result = workloads_for([train_job(name, kind)])
    (waiting,) = result.waiting
    assert (waiting.message, result.assumed) == (f'{kind} "{name}" not found', ())


def test_what_one_caller_changes_another_does_not_see() -> None:
    job = train_job("torchtune-llama3.2-1b")
    first: Any = workloads_for([job]).workloads[0].object
    first["spec"]["podSets"][2]["template"]["spec"]["containers"][0]["resources"]["limits"].clear()
    assert pods(workloads_for([job]))["node"] == (1, {"limits": {"nvidia.com/gpu": 2}})


def test_a_world_says_what_it_assumed() -> None:
    world = World.of([*parse_manifests(QUEUES), train_job("torch-distributed")])
    assert world.assumed == (f"{SAID}torch-distributed",)
    engine = Engine()
    assert dict(world.apply_to(engine, now=0).unread) == {}
    settle(engine, now=0)
    assert [workload.stage for workload in engine.workloads()] == ["Admitted"]


def test_the_command_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in.yaml"
    for objects, n_said in ((QUEUES + TRAIN_JOB, 1), (QUEUES + JOB % ("a", 1), 0)):
        file.write_text(objects, encoding="utf-8")
        assert main(["run", str(file)]) == ExitCode.OK
        assert capsys.readouterr().err.count(f"note: {SAID}torch-distributed\n") == n_said


def test_a_question_says_it_too_unless_its_state_has_said_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, job = tmp_path / "in.yaml", tmp_path / "job.yaml"
    job.write_text(TRAIN_JOB, encoding="utf-8")
    for objects in (QUEUES, QUEUES + TRAIN_JOB.replace("name: t,", "name: u,")):
        state.write_text(objects, encoding="utf-8")
        assert main(["what-if", str(state), "-f", str(job)]) == ExitCode.OK
        assert capsys.readouterr().err.count(f"note: {SAID}torch-distributed\n") == 1
