"""What a ClusterQueue names and does not find keeps it inactive: `unblock` names it, and tries to create it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore import Engine
from kueuecore.answers import ChangeKind, Unblocking, unblock
from kueuecore.cli import ExitCode, main

NOW = "2026-01-01T00:00:00Z"
KUEUE = "apiVersion: kueue.x-k8s.io/v1beta2"
ACTIVE = "status: {conditions: [{type: Active, status: 'True', reason: Active, message: ''}]}"
CHECK = f"{{{KUEUE}, kind: AdmissionCheck, metadata: {{name: budget}}, spec: {{controllerName: example.com/x}}"
FLAVOR = f"{{{KUEUE}, kind: ResourceFlavor, metadata: {{name: spot}}"
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: r1, kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: 4, pods: 9}, conditions: [{type: Ready, status: "True"}]}
"""


def queue(*, quota: int = 4, spec: str = "") -> str:
    return f"""
{KUEUE}
kind: ClusterQueue
metadata: {{name: cq}}
spec:
  namespaceSelector: {{}}
  admissionChecksStrategy: {{admissionChecks: [{{name: budget}}]}}
  {spec}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{{name: spot, resources: [{{name: cpu, nominalQuota: {quota}}}]}}]
"""


def world(*objects: str, request: str = "") -> str:
    """A workload of one pod with 1 cpu, and more objects."""
    containers = "containers: [{name: c, resources: {requests: {cpu: 1}}}]"
    around = [
        "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}",
        f"{{{KUEUE}, kind: LocalQueue, metadata: {{namespace: ns, name: lq}}, spec: {{clusterQueue: cq}}}}",
        f"{{{KUEUE}, kind: Workload, metadata: {{namespace: ns, name: w}}, spec: {{queueName: lq, podSets: "
        f"[{{name: main, count: 1{request}, template: {{spec: {{{containers}}}}}}}]}}}}",
    ]
    return "\n---\n".join([*around, *objects])


def asked(*objects: str, request: str = "") -> Unblocking:
    """What would admit the workload."""
    engine = Engine()
    engine.apply(world(*objects, request=request), now=NOW)
    return unblock(engine, "w", namespace="ns", now=NOW)


def shown(found: Unblocking) -> list[tuple[str, str, str, str]]:
    return [(str(change.kind), change.what, change.before, change.after) for change in found.changes]


@pytest.mark.parametrize(
    ("objects", "change"),
    [
        ([f"{CHECK}, {ACTIVE}}}", queue()], ("ResourceFlavor spot", "missing", "created")),
        ([f"{FLAVOR}}}", queue()], ("AdmissionCheck budget", "missing", "created and active")),
        ([f"{FLAVOR}}}", f"{CHECK}}}", queue()], ("AdmissionCheck budget", "not active", "active")),
        (
            [f"{FLAVOR}}}", f"{CHECK}, {ACTIVE.replace('True', 'False')}}}", queue()],
            ("AdmissionCheck budget", "not active", "active"),
        ),
        (
            [queue()],
            ("ResourceFlavor spot and AdmissionCheck budget", "missing, missing", "created, created and active"),
        ),
    ],
    ids=["flavor", "check", "check without a status", "inactive check", "both"],
)
def test_what_is_missing_is_named_and_created(objects: list[str], change: tuple[str, ...]) -> None:
    assert shown(asked(*objects)) == [("Missing", *change)]


def test_a_missing_topology_gets_the_levels_that_the_workload_asks_for() -> None:
    flavor = f"{FLAVOR}, spec: {{topologyName: hall, nodeLabels: {{rack: r1}}}}}}"
    objects = [flavor, f"{CHECK}, {ACTIVE}}}", queue()]
    request = ", topologyRequest: {required: rack}"
    found = asked(*objects, NODE, request=request)
    assert shown(found) == [("Missing", "Topology hall", "missing", "created with rack, kubernetes.io/hostname")]
    (failure,) = [enough for enough in asked(*objects, request=request).not_enough if enough.kind is ChangeKind.MISSING]
    assert failure.why == (
        "the nodes of topology hall: no ready and schedulable node has the flavor's nodeLabels and a label for "
        "every level"
    )


def test_it_is_combined_with_what_else_is_needed() -> None:
    objects = [f"{CHECK}, {ACTIVE}}}"]
    what = "ResourceFlavor spot and nominalQuota of ClusterQueue cq for cpu in spot"
    assert shown(asked(*objects, queue(quota=0))) == [("Missing", what, "missing, 0", "created, 1")]
    what = "stopPolicy of ClusterQueue cq and ResourceFlavor spot"
    assert shown(asked(*objects, queue(spec="stopPolicy: Hold"))) == [("Start", what, "Hold, missing", "None, created")]


def test_few_changes_are_tried_once_it_is_found() -> None:
    assert asked(f"{CHECK}, {ACTIVE}}}", queue()).n_tried < 6


def test_the_command_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.yaml"
    path.write_text(world(queue()), encoding="utf-8")
    assert main(["unblock", str(path), "ns/w"]) == ExitCode.OK
    first, _, _, change = capsys.readouterr().out.splitlines()
    assert first == (
        "ns/w waits in ClusterQueue cq: ClusterQueue cq is inactive: Can't admit new workloads: references missing "
        "ResourceFlavor(s): spot, references missing AdmissionCheck(s): budget."
    )
    assert change.split("  ")[:3] == [
        "ResourceFlavor spot and AdmissionCheck budget",
        "missing, missing",
        "created, created and active",
    ]
    assert main(["unblock", str(path), "ns/w", "-o", "json"]) == ExitCode.OK
    (it,) = json.loads(capsys.readouterr().out)["changes"]
    assert [plain["kind"] for plain in it["objects"]] == ["ResourceFlavor", "AdmissionCheck"]
