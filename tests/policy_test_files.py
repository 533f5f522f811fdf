"""Files of policy tests for tests."""

from __future__ import annotations

from pathlib import Path

__all__ = ["EXAMPLES", "HEAD", "QUEUES", "case", "job", "write"]

EXAMPLES = Path(__file__).parents[1] / "examples"
HEAD = "apiVersion: kueuecore/v1\nkind: PolicyTest\nmanifests: [queues.yaml]\n"
QUEUES = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: team}, spec: {clusterQueue: cq}}
"""


def job(name: str, cpu: str = "1", labels: str = "") -> str:
    """A Job in the queue, in one line."""
    return (
        f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}, namespace: team,"
        f" labels: {{kueue.x-k8s.io/queue-name: lq{labels}}}}}, spec: {{template: {{spec: {{restartPolicy: Never,"
        f" containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}}}"
    )


def case(expect: str, submit: str = "", name: str = "a case") -> str:
    """A file with one case; entries of lists as flow mappings, one a line."""
    lines = [f"{HEAD}cases:", f"- name: {name}"]
    lines += ["  submit:", *(f"  - {line}" for line in submit.splitlines())] if submit else []
    return "\n".join([*lines, "  expect:", *(f"  - {line}" for line in expect.splitlines()), ""])


def write(folder: Path, text: str, name: str = "a_test.yaml") -> Path:
    """The file, beside its queues."""
    (folder / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
