"""The command in this process, and objects for it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["JOB", "PROVISIONING", "QUEUED", "QUEUES", "Ran"]

QUEUES = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: team}
spec: {clusterQueue: cq}
"""

JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  parallelism: %d
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""

# An AdmissionCheck, and what makes it active.
PROVISIONING = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: dws}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: queued}
"""
QUEUED = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: queued}
spec: {provisioningClassName: queued-provisioning.gke.io}
"""


class Ran(NamedTuple):
    """What the command said."""

    code: int
    out: str
    err: str
