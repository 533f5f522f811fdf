"""A small Job, and what comes of it, for tests."""

from __future__ import annotations

from typing import Any

from kueuecore.jobs import (
    JobsConfiguration,
    JobsResult,
    workloads_for,
)
from kueuecore.manifests import parse_manifests
from kueuecore.writes import Write

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: sample-job
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: user-queue}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      containers:
      - name: main
        resources: {requests: {cpu: 1, memory: 200Mi}}
      restartPolicy: Never
"""


def sample_job(**metadata: Any) -> dict[str, Any]:
    job: dict[str, Any] = dict(parse_manifests(JOB)[0].object)
    job["metadata"] = {**job["metadata"], **metadata}
    return job


def workload_of(result: JobsResult) -> dict[str, Any]:
    assert result.problems == ()
    assert [str(ignored) for ignored in result.ignored] == []
    assert len(result.workloads) == 1
    return result.workloads[0].object


def reason_to_ignore(*manifests: Any, configuration: JobsConfiguration | None = None) -> str:
    result = workloads_for(manifests, configuration=configuration)
    assert result.workloads == ()
    assert result.problems == ()
    (ignored,) = result.ignored
    return ignored.reason


def deed(write: Write) -> str:
    """What a write does, as one word: `Create`, `Update`, `UpdateStatus` or `Delete`."""
    return f"{write.verb}".title() + write.subresource.title()
