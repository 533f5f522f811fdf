"""What the queues of a waiting workload lack, where Kueue's message does not say it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.command import Ran
from tests.quota_manifests import flavor, local_queue, namespace, queue, workload

WAITS = workload("w", "jobs", 1)
HOLD = "stopPolicy: Hold"
CHECK = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""
SAYS = """status:
  conditions:
  - {type: Active, status: "False", reason: Gone, message: no budget, lastTransitionTime: "2026-01-01T00:00:00Z"}
"""
CHECKED = "admissionChecksStrategy: {admissionChecks: [{name: budget}]}"
OTHER = "{matchLabels: {kubernetes.io/metadata.name: other}}"


def objects(cluster_queue: str = "", queues: str = "", *, selector: str = "{}", waits: str = WAITS) -> str:
    return flavor() + queue("cq", spec=cluster_queue, selector=selector) + queues + waits


JOBS = local_queue("jobs", "cq")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (objects(queues=local_queue("job", "cq")), "did you mean job?"),
        (objects(queues=local_queue("else", "cq")), "create the LocalQueue, or correct the name"),
        (
            objects(queues=local_queue("jobs", "cq", namespace="lab")),
            "LocalQueue jobs of namespace lab takes jobs of that namespace alone: create one in team",
        ),
        (
            objects(queues=JOBS, waits=WAITS.replace("queueName: jobs", "priority: 0")),
            "it names no LocalQueue: set spec.queueName, or the label kueue.x-k8s.io/queue-name of its job",
        ),
        (objects(queues=local_queue("jobs", "cq", spec=HOLD)), "stopPolicy of LocalQueue team/jobs is Hold"),
        (objects(queues=local_queue("jobs", "cqq")), "did you mean cq?"),
        (objects(HOLD, JOBS), "stopPolicy of ClusterQueue cq is Hold"),
        (
            objects(f"{HOLD}AndDrain", JOBS),
            "stopPolicy of ClusterQueue cq is HoldAndDrain, which also evicts what runs",
        ),
        (
            objects(CHECKED, JOBS) + CHECK,
            "AdmissionCheck budget is not active: its controller has not said anything yet",
        ),
        (objects(CHECKED, JOBS) + CHECK + SAYS, "AdmissionCheck budget is not active: no budget"),
        (
            objects(queues=JOBS, selector="") + namespace("team"),
            "ClusterQueue cq has no namespaceSelector, so it selects no Namespace: {} selects all",
        ),
        (
            objects(queues=JOBS, selector="{matchLabels: {tier: gold}}") + namespace("team", "{tier: iron}"),
            "Namespace team is not as the namespaceSelector of ClusterQueue cq asks: tier=gold",
        ),
        (
            objects(queues=JOBS, selector=OTHER) + namespace("team"),
            "Namespace team is not as the namespaceSelector of ClusterQueue cq asks: kubernetes.io/metadata.name=other",
        ),
        (
            objects(queues=JOBS, waits=WAITS.replace("queueName: jobs", "queueName: jobs\n  active: false")),
            "spec.active of the Workload is false: Kueue leaves it alone until that is true again",
        ),
    ],
)
def test_a_note_says_what_is_wrong(text: str, note: str, any_command: Callable[..., Ran]) -> None:
    explained = any_command("explain", "in.yaml", "w", "-q", text=text).out
    assert explained.splitlines()[1] == note
    assert f" ({note})\n" in any_command("run", "in.yaml", "-q", text=text).out
    assert f" ({note})" in any_command("unblock", "in.yaml", "w", "-q", text=text).out
    document = json.loads(any_command("explain", "in.yaml", "w", "-o", "json", text=text).out)
    assert document["workload"]["note"] == note


@pytest.mark.parametrize(
    "text",
    [
        objects(queues=JOBS),
        objects(queues=JOBS, waits=workload("w", "jobs", 9)),
        objects(queues=JOBS, selector="{matchLabels: {tier: gold}}") + namespace("team", "{tier: gold}"),
    ],
    ids=["admitted", "too large", "selected"],
)
def test_nothing_is_said_of_queues_that_take_it(text: str, any_command: Callable[..., Ran]) -> None:
    document = json.loads(any_command("explain", "in.yaml", "w", "-o", "json", text=text).out)
    assert document["workload"]["note"] is None
