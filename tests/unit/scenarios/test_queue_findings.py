"""Scenarios say which queues are not there, or admit nothing."""

from __future__ import annotations

import pytest

from kueuecore.scenarios import run_scenario
from tests.regressions.scenarios import Read

FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: main}}"
CLUSTER_QUEUE = (
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: {namespaceSelector: {}, "
    "resourceGroups: [{coveredResources: [cpu], flavors: [{name: main, resources: [{name: cpu, nominalQuota: 4}]}]}]}}"
)
LOCAL_QUEUE = (
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: team-a}, "
    "spec: {clusterQueue: cq}}"
)
OTHER_QUEUE = CLUSTER_QUEUE.replace("name: cq", "name: other")


@pytest.mark.parametrize(
    ("objects", "warnings"),
    [
        ([FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE], ()),
        (
            [FLAVOR, CLUSTER_QUEUE],
            ("3 jobs wait for LocalQueues that do not exist: team-a/lq; add them to the objects",),
        ),
        (
            [FLAVOR, OTHER_QUEUE, LOCAL_QUEUE],
            ("3 jobs wait for ClusterQueue cq, which does not exist; add it to the objects",),
        ),
        (
            [CLUSTER_QUEUE, LOCAL_QUEUE],
            (
                "3 jobs wait in ClusterQueue cq, which is inactive: Can't admit new workloads: references missing "
                "ResourceFlavor(s): main.",
            ),
        ),
        (
            [LOCAL_QUEUE],
            ("there is no ClusterQueue, so nothing is admitted; add one to `cluster.objects`",),
        ),
    ],
)
def test_a_warning_says_why_nothing_is_admitted(read: Read, objects: list[str], warnings: tuple[str, ...]) -> None:
    text = f"cluster: {{objects: [{', '.join(objects)}]}}\nwork: [{{job: job.yaml, count: 3, runs: 60}}]\n"
    assert run_scenario(read(text)).warnings == warnings


def test_one_job_is_not_several(read: Read) -> None:
    text = f"cluster: {{objects: [{FLAVOR}, {CLUSTER_QUEUE}]}}\nwork: [{{job: job.yaml, count: 1, runs: 60}}]\n"
    missing = "1 job waits for LocalQueues that do not exist: team-a/lq; add them to the objects"
    assert run_scenario(read(text)).warnings == (missing,)
