"""When and why a workload was evicted, and until when it is not tried again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore._json import object_at
from kueuecore.cli import main
from kueuecore.manifests import parse_manifests
from tests.quota_manifests import flavor, local_queue, queue, workload

START, NOW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
CHECK = f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {{name: budget}}
spec: {{controllerName: example.com/budget}}
status:
  conditions: [{{type: Active, status: "True", reason: Active, message: ready, lastTransitionTime: "{START}"}}]
"""
CHECKED = "admissionChecksStrategy: {admissionChecks: [{name: budget}]}"


def running(more: str = "", *, is_admitted: bool = True) -> str:
    """A Workload that has had quota since the start."""
    types = ["QuotaReserved"] + ["Admitted"] * is_admitted
    conditions = "\n".join(
        f'  - {{type: {name}, status: "True", reason: {name}, message: m, lastTransitionTime: "{START}"}}'
        for name in types
    )
    assigned = "{name: main, count: 2, flavors: {cpu: default}, resourceUsage: {cpu: 2}}"
    status = (
        f"status:\n  admission: {{clusterQueue: cq, podSetAssignments: [{assigned}]}}\n  conditions:\n{conditions}\n"
    )
    return workload("w", "jobs", 2) + status + more


def objects(of_queue: str = "") -> str:
    return flavor() + queue("cq", spec=of_queue) + local_queue("jobs", "cq")


def check(state: str, more: str = "") -> str:
    return (
        f'  admissionChecks:\n  - {{name: budget, state: {state}, message: m, lastTransitionTime: "{START}"{more}}}\n'
    )


@pytest.fixture
def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, dict[str, Any]]]:
    """What explain says of a workload, and the same as JSON."""

    def explained(text: str) -> tuple[str, dict[str, Any]]:
        path = tmp_path / "state.yaml"
        path.write_text(text, encoding="utf-8")
        said = []
        for form in ("table", "json"):
            assert main(["explain", "-q", str(path), "w", "--now", NOW, "-o", form]) == 0
            said.append(capsys.readouterr().out)
        return said[0], json.loads(said[1])["workload"]

    return explained


def test_the_reason_of_an_eviction_is_named(explained: Callable[..., tuple[str, dict[str, Any]]]) -> None:
    limited = running().replace("  queueName", "  maximumExecutionTimeSeconds: 60\n  queueName")
    table, document = explained(objects() + limited)
    why = "The workload is deactivated due to exceeding the maximum execution time"
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert f"it was evicted at {NOW} ({reason}): {why}\n" in table
    assert document["evicted"] == {"at": NOW, "reason": reason, "message": why}


def test_an_eviction_by_preemption_names_the_preemptor(explained: Callable[..., tuple[str, dict[str, Any]]]) -> None:
    preempts = "preemption: {withinClusterQueue: LowerPriority}"
    high = workload("high", "jobs", 3, priority=9).replace("name: high", "name: high, uid: over")
    table, document = explained(objects(preempts) + running() + high)
    assert "it was preempted by team/high\n" in table
    assert "it was evicted" not in table
    assert (document["preemptedBy"], document["evicted"]["reason"]) == ("team/high", "Preempted")


def test_a_workload_with_quota_was_not_evicted(explained: Callable[..., tuple[str, dict[str, Any]]]) -> None:
    table, document = explained(objects() + running())
    assert "evicted" not in table
    assert (document["evicted"], document["requeueAt"], document["admissionChecks"]) == (None, None, [])


def test_a_check_in_retry_holds_quota_until_it_may_be_tried_again(
    explained: Callable[..., tuple[str, dict[str, Any]]],
) -> None:
    retried = check("Retry", ", requeueAfterSeconds: 3660")
    table, document = explained(objects(CHECKED) + CHECK + running(retried, is_admitted=False))
    until = "2026-01-01T01:01:00Z"
    assert f"it holds its quota until {until}, and is evicted and tried again then\n" in table
    assert document["requeueAt"] == until
    assert document["admissionChecks"] == [
        {"name": "budget", "state": "Retry", "message": "m", "since": START, "retryCount": 0}
    ]


def test_a_deactivated_workload_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(objects(CHECKED) + CHECK + running(check("Rejected"), is_admitted=False), encoding="utf-8")
    outputs = []
    for _ in range(2):
        assert main(["run", "-q", str(path), "-o", "yaml"]) == 0
        outputs.append(capsys.readouterr().out)
        path.write_text(outputs[-1], encoding="utf-8")
    (found,) = (read.object for read in parse_manifests(outputs[0]) if read.object["kind"] == "Workload")
    assert object_at(found, "spec")["active"] is False
    assert outputs[1] == outputs[0]
