"""Valid input with a value in nearly every field, to be damaged."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from tests.jobs import ALL_KINDS

__all__ = ["CONFIGURATION", "FULL_WORKLOAD", "JOBS", "KINDS", "ROOT", "WORKLOAD", "examples"]

ROOT = Path(__file__).resolve().parents[2] / "examples"
Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def kueue(kind: str, name: str, spec: Json, namespace: str = "", **rest: Any) -> Json:
    """An object of Kueue's API."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **rest.pop("metadata", {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec, **rest}


def condition(kind: str, status: str = "True") -> Json:
    """A condition of a status."""
    return {"type": kind, "status": status, "reason": kind, "message": "m", "lastTransitionTime": NOW}


_CONTAINER = {
    "name": "c",
    "image": "i",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}, "claims": [{"name": "r"}]},
    "ports": [{"containerPort": 80, "hostPort": 80}],
}
_TERM = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
_POD_SPEC = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "overhead": {"cpu": "1m"},
    "nodeSelector": {"x": "y"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}},
    },
    "priorityClassName": "p",
    "restartPolicy": "Never",
}
_POD_SET = {
    "name": "main",
    "count": 2,
    "minCount": 1,
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD_SPEC},
    "topologyRequest": {"required": "a"},
}
_ADMISSION = {
    "clusterQueue": "cq",
    "podSetAssignments": [
        {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}, "count": 2},
    ],
}
_CHECK_STATE = {
    "name": "c",
    "state": "Pending",
    "message": "",
    "lastTransitionTime": NOW,
    "retryCount": 1,
    "requeueAfterSeconds": 5,
    "podSetUpdates": [{"name": "main", "labels": {"a": "b"}, "nodeSelector": {"c": "d"}}],
}
_SIMPLE = {"name": "main", "count": 1, "template": {"spec": {"containers": [_CONTAINER]}}}
WORKLOAD = kueue(
    "Workload",
    "new",
    {"queueName": "lq", "priority": 1, "active": True, "podSets": [_SIMPLE]},
    "ns",
    metadata={"uid": "uid-new", "creationTimestamp": NOW, "labels": {"a": "b"}},
)
FULL_WORKLOAD = kueue(
    "Workload",
    "full",
    {"queueName": "lq", "priority": 3, "maximumExecutionTimeSeconds": 60, "podSets": [_POD_SET]},
    "ns",
    metadata={
        "uid": "uid-full",
        "creationTimestamp": NOW,
        "generation": 1,
        "annotations": {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/w"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}],
    },
    status={
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
        "admission": _ADMISSION,
        "admissionChecks": [_CHECK_STATE],
        "requeueState": {"count": 1, "requeueAt": NOW},
        "reclaimablePods": [{"name": "main", "count": 1}],
    },
)
_GROUPS = [
    {
        "coveredResources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "default",
                "resources": [
                    {"name": "cpu", "nominalQuota": "9", "borrowingLimit": "1", "lendingLimit": "1"},
                    {"name": "memory", "nominalQuota": "9Gi"},
                ],
            }
        ],
    }
]
_QUEUE = {
    "cohortName": "t",
    "namespaceSelector": {"matchLabels": {"a": "b"}, **_TERM},
    "queueingStrategy": "StrictFIFO",
    "stopPolicy": "None",
    "preemption": {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 5},
    },
    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    "fairSharing": {"weight": "2"},
    "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["default"]}]},
    "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    "resourceGroups": _GROUPS,
}
KINDS: tuple[Json, ...] = (
    WORKLOAD,
    FULL_WORKLOAD,
    kueue("ClusterQueue", "cq2", _QUEUE, metadata={"labels": {"a": "b"}, "generation": 1, "creationTimestamp": NOW}),
    kueue("Cohort", "t", {"parentName": "r", "fairSharing": {"weight": "1"}, "resourceGroups": _GROUPS}),
    kueue(
        "LocalQueue",
        "lq2",
        {"clusterQueue": "cq", "stopPolicy": "Hold", "fairSharing": {"weight": "1"}},
        "ns",
        status={
            "fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"cpu": "5"}, "lastUpdate": NOW}},
        },
    ),
    kueue(
        "ResourceFlavor",
        "f2",
        {
            "nodeLabels": {"a": "b"},
            "nodeTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
            "topologyName": "topo",
        },
    ),
    kueue(
        "AdmissionCheck",
        "c",
        {"controllerName": "x.com/y", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}},
        status={"conditions": [condition("Active")]},
    ),
    kueue("Topology", "topo", {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "kubernetes.io/hostname"}]}),
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "p"},
        "value": 5,
        "description": "d",
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "p"},
        "value": 5,
        "globalDefault": True,
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "ns"},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": "1"},
                    "defaultRequest": {"cpu": "1"},
                    "max": {"cpu": "3"},
                    "min": {"cpu": "1m"},
                    "maxLimitRequestRatio": {"cpu": "2"},
                }
            ]
        },
    },
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"a": "b"}}},
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "rc"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "1m"}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "rct", "namespace": "ns"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d", "count": 1}}]}}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "d"},
        "spec": {"selectors": [], "extendedResourceName": "x.com/gpu"},
    },
    kueue(
        "MultiKueueCluster",
        "c1",
        {"clusterSource": {"kubeConfig": {"location": "l", "locationType": "Secret"}}},
        status={"conditions": [condition("Active")]},
    ),
    kueue("MultiKueueConfig", "conf", {"clusters": ["c1"]}),
    kueue(
        "AdmissionCheck",
        "mk",
        {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "conf"},
        },
    ),
)
JOBS: tuple[Json, ...] = tuple(
    {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": "j",
            "namespace": "ns",
            "uid": f"uid-{kind}",
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/max-exec-time-seconds": "5"},
            "annotations": {"kueue.x-k8s.io/podset-preferred-topology": "x"},
        },
        "spec": {**spec, "suspend": True, "parallelism": 2, "completions": 3, "replicas": 2},
        "status": {"active": 1, "succeeded": 1, "ready": 1, "phase": "Running", "conditions": [condition("Complete")]},
    }
    for kind, (api_version, spec) in ALL_KINDS.items()
)
CONFIGURATION: Json = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "namespace": "kueue-system",
    "manageJobsWithoutQueueName": True,
    "managedJobsNamespaceSelector": {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
    },
    "waitForPodsReady": {
        "timeout": "5m",
        "recoveryTimeout": "3m",
        "blockAdmission": True,
        "requeuingStrategy": {
            "timestamp": "Eviction",
            "backoffLimitCount": 3,
            "backoffBaseSeconds": 60,
            "backoffMaxSeconds": 3600,
        },
    },
    "integrations": {
        "frameworks": ["batch/job"],
        "externalFrameworks": ["Foo.v1.example.com"],
        "labelKeysToCopy": ["a"],
    },
    "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]},
    "admissionFairSharing": {
        "usageHalfLifeTime": "168h",
        "usageSamplingInterval": "5m",
        "resourceWeights": {"cpu": 1.5},
    },
    "featureGates": {"PartialAdmission": False},
    "resources": {
        "excludeResourcePrefixes": ["a/"],
        "transformations": [{"input": "a", "strategy": "Replace", "outputs": {"b": 1}}],
        "deviceClassMappings": [{"name": "x", "deviceClassNames": ["y"]}],
    },
    "multiKueue": {"gcInterval": "1m", "origin": "m", "workerLostTimeout": "15m"},
    "metrics": {"customLabels": [{"name": "x", "sourceLabelKey": "y"}]},
    "objectRetentionPolicies": {"workloads": {"afterFinished": "1h"}},
}


@functools.cache
def examples() -> dict[str, tuple[Json, ...]]:
    """The documents of each example's files, by the path of the file."""
    return {
        str(file.relative_to(ROOT)): tuple(
            entry for entry in yaml.safe_load_all(file.read_text()) if isinstance(entry, dict)
        )
        for file in sorted(ROOT.glob("*/*.yaml"))
    }
