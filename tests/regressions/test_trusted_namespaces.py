"""A dump may have objects without a namespace: the command shows them as the engine keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.manifests import parse_manifests


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The output of `kueuecore run` with some objects."""

    def run(objects: list[Any], *options: str) -> str:
        file = tmp_path / "in.json"
        file.write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        code = main(["run", *options, str(file)])
        found = capsys.readouterr()
        assert (code, found.err) == (ExitCode.OK, "")
        return found.out

    return run


def kueue(kind: str, name: str, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({} if namespace is None else {"namespace": namespace})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, **fields}


def workload(namespace: str | None, *, job: str, count: int) -> dict[str, Any]:
    pod_set = {"name": "main", "count": count, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    found = kueue("Workload", "w", namespace, spec={"queueName": "lq", "podSets": [pod_set]})
    found["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u"}]
    return found


def statuses(text: str, kind: str) -> list[Any]:
    return [manifest.object.get("status") for manifest in parse_manifests(text) if manifest.object["kind"] == kind]


CLUSTER_QUEUE = kueue("ClusterQueue", "cq", spec={"namespaceSelector": {}})


@pytest.mark.parametrize("options", [["--trusted"], []], ids=["trusted", "checked"])
def test_yaml_has_the_status_of_what_has_no_namespace(shown: Callable[..., str], options: list[str]) -> None:
    queue = kueue("LocalQueue", "lq", spec={"clusterQueue": "cq"})
    text = shown([CLUSTER_QUEUE, queue, workload(None, job="a", count=3)], *options, "-o", "yaml")
    assert statuses(text, "LocalQueue")[0]["pendingWorkloads"] == 1
    assert statuses(text, "Workload")[0]["conditions"][0]["type"] == "QuotaReserved"


def test_what_has_no_namespace_is_not_taken_for_what_is_in_default(shown: Callable[..., str]) -> None:
    objects = [
        CLUSTER_QUEUE,
        kueue("LocalQueue", "lq", "default", spec={"clusterQueue": "other", "stopPolicy": "Hold"}),
        kueue("LocalQueue", "lq", spec={"clusterQueue": "cq"}),
        workload("default", job="here", count=3),
        workload(None, job="nowhere", count=5),
    ]
    document = json.loads(shown(objects, "--trusted", "-o", "json"))
    owners = {(other["namespace"], other["name"]): other["owner"] for other in document["workloads"]}
    assert owners == {("", "w"): "Job/nowhere", ("default", "w"): "Job/here"}
    table = shown(objects, "--trusted", "-o", "wide").splitlines()
    pods = table[2].index("PODS") + len("PODS") - 1
    assert [(line.split()[:2], line[pods]) for line in table[3:5]] == [
        (["/w", "Job/nowhere"], "5"),
        (["default/w", "Job/here"], "3"),
    ]
    text = shown(objects, "--trusted", "-o", "yaml")
    assert [status["pendingWorkloads"] for status in statuses(text, "LocalQueue")] == [0, 1]


def test_yaml_of_a_dump_without_generations_can_be_read_again(shown: Callable[..., str]) -> None:
    queue = kueue("LocalQueue", "lq", "default", spec={"clusterQueue": "cq"})
    first = shown([CLUSTER_QUEUE, queue, workload("default", job="a", count=3)], "--trusted", "-o", "yaml")
    assert shown([manifest.object for manifest in parse_manifests(first)], "--trusted", "-o", "yaml") == first


def test_a_workload_of_another_group_is_left_as_it_is(shown: Callable[..., str]) -> None:
    queue = kueue("LocalQueue", "lq", "default", spec={"clusterQueue": "cq"})
    foreign = {**kueue("Workload", "w", "default", spec={"podSets": 7}), "apiVersion": "scheduling.k8s.io/v1alpha1"}
    objects = [CLUSTER_QUEUE, queue, workload("default", job="a", count=3), foreign]
    text = shown(objects, "-q", "-o", "yaml")
    ours, theirs = statuses(text, "Workload")
    assert (ours is not None, theirs) == (True, None)
    assert foreign in [manifest.object for manifest in parse_manifests(text)]
    assert json.loads(shown(objects, "-q", "-o", "json"))["workloads"][0]["owner"] == "Job/a"
