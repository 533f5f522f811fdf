"""Manifests of quota as people write them: flavors, ClusterQueues, LocalQueues and what waits in them."""

from __future__ import annotations

__all__ = ["cohort", "flavor", "local_queue", "namespace", "node", "queue", "workload"]

_KUEUE = "apiVersion: kueue.x-k8s.io/v1beta2"


def flavor(name: str = "default", spec: str = "{}") -> str:
    """A ResourceFlavor."""
    return f"---\n{_KUEUE}\nkind: ResourceFlavor\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def queue(
    name: str,
    quota: str = "nominalQuota: 4",
    *,
    cohort: str = "",
    flavor: str = "default",
    resource: str = "cpu",
    spec: str = "",
    selector: str = "{}",
) -> str:
    """A ClusterQueue with one resource of one flavor."""
    lines = [f"  cohortName: {cohort}"] * bool(cohort) + [f"  namespaceSelector: {selector}"] * bool(selector)
    return f"""---
{_KUEUE}
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
{chr(10).join([*lines, *(f"  {line}" for line in spec.splitlines())])}
  resourceGroups:
  - coveredResources: [{resource}]
    flavors:
    - name: {flavor}
      resources: [{{name: {resource}, {quota}}}]
"""


def cohort(name: str, spec: str = "{}", quota: str = "") -> str:
    """A Cohort, with quota of cpu in a flavor written as `flavor nominal`."""
    text = f"---\n{_KUEUE}\nkind: Cohort\nmetadata: {{name: {name}}}\n"
    if not quota:
        return f"{text}spec: {spec}\n"
    flavor, nominal = quota.split()
    resources = f"[{{name: cpu, nominalQuota: {nominal}}}]"
    group = f"{{coveredResources: [cpu], flavors: [{{name: {flavor}, resources: {resources}}}]}}"
    return f"{text}spec:\n  resourceGroups: [{group}]\n"


def local_queue(name: str, cluster_queue: str = "", *, namespace: str = "team", spec: str = "") -> str:
    """A LocalQueue."""
    inner = f"clusterQueue: {cluster_queue or name}{f', {spec}' if spec else ''}"
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    return f"---\n{_KUEUE}\nkind: LocalQueue\nmetadata: {metadata}\nspec: {{{inner}}}\n"


def namespace(name: str, labels: str = "{}") -> str:
    """A Namespace."""
    return f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: '{name}', labels: {labels}}}\n"


def node(name: str, labels: str = "{}", taints: str = "[]") -> str:
    """A Node that is ready, with 4 CPUs."""
    status = '{allocatable: {cpu: 4, pods: 110}, conditions: [{type: Ready, status: "True"}]}'
    metadata = f"metadata: {{name: '{name}', labels: {labels}}}"
    return f"---\napiVersion: v1\nkind: Node\n{metadata}\nspec: {{taints: {taints}}}\nstatus: {status}\n"


def workload(name: str, queue: str, cpus: int, *, priority: int = 0, request: str = "") -> str:
    """A Workload of pods of one CPU each."""
    asked = f"\n    topologyRequest: {request}" if request else ""
    return f"""---
{_KUEUE}
kind: Workload
metadata: {{name: {name}, namespace: team}}
spec:
  queueName: {queue}
  priority: {priority}
  podSets:
  - name: main
    count: {cpus}{asked}
    template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""
