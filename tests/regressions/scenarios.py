"""Small scenarios, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.scenarios import Scenario, run_scenario

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "apiVersion: kueuecore/v1\nkind: Scenario\n"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: small, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: lq}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: 1}}}]}}}
"""
CLUSTER = f"cluster: {{objects: [{EXAMPLES}/scenario/queues.yaml]}}\n"
FLEET = f"""
fleet:
  manager: {{objects: [{EXAMPLES}/multikueue/manager.yaml, {EXAMPLES}/multikueue/here.yaml]}}
  workers:
    east: {{objects: [{EXAMPLES}/multikueue/east.yaml]}}
    west: {{objects: [{EXAMPLES}/multikueue/west.yaml]}}
"""
Read = Callable[[str], Scenario]


def problems(read: Read, text: str) -> list[str]:
    """Field paths and messages of everything that is wrong with a scenario."""
    with pytest.raises(ManifestError) as error:
        run_scenario(read(text))
    return [f"{problem.field}: {problem.message}" for problem in error.value.problems]
