"""The shapes of what all kinds of jobs share, such as metadata and pod templates; and of Workloads and flavors."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, list_at
from kueuecore.errors import Problem
from kueuecore.jobs.field_paths import Path, path_text, value_at
from kueuecore.jobs.field_types import Each, Items, Shape, Type
from kueuecore.jobs.rejections import required

__all__ = [
    "AMOUNTS",
    "CONDITIONS",
    "CONTAINERS",
    "FLAVOR",
    "METADATA",
    "POD_SPEC",
    "RESOURCES",
    "TEMPLATE",
    "TEXTS",
    "TOLERATIONS",
    "WORKLOAD",
    "template_problems",
]

TEXTS = Each(Type.TEXT)
AMOUNTS = Each(Type.AMOUNT)
METADATA: Mapping[str, Shape] = {
    "name": Type.TEXT,
    "generateName": Type.TEXT,
    "namespace": Type.TEXT,
    "uid": Type.TEXT,
    "resourceVersion": Type.TEXT,
    "generation": Type.WHOLE,
    "creationTimestamp": Type.TIME,
    "deletionTimestamp": Type.TIME,
    "labels": TEXTS,
    "annotations": TEXTS,
    "finalizers": Items(Type.TEXT),
    "ownerReferences": Items(
        {"apiVersion": Type.TEXT, "kind": Type.TEXT, "name": Type.TEXT, "uid": Type.TEXT, "controller": Type.BOOL}
    ),
}
RESOURCES: Mapping[str, Shape] = {"requests": AMOUNTS, "limits": AMOUNTS}
CONTAINERS = Items(
    {
        "name": Type.TEXT,
        "image": Type.TEXT,
        "env": Items({"name": Type.TEXT}),
        "ports": Items(Type.OBJECT),
        "resources": RESOURCES,
    }
)
TOLERATIONS = Items(
    {
        "key": Type.TEXT,
        "operator": Type.TEXT,
        "value": Type.TEXT,
        "effect": Type.TEXT,
        "tolerationSeconds": Type.WHOLE,
    }
)
POD_SPEC: Mapping[str, Shape] = {
    "containers": CONTAINERS,
    "initContainers": CONTAINERS,
    "resources": RESOURCES,
    "overhead": AMOUNTS,
    "nodeName": Type.TEXT,
    "nodeSelector": TEXTS,
    "affinity": Type.OBJECT,
    "tolerations": TOLERATIONS,
    "topologySpreadConstraints": Items(Type.OBJECT),
    "schedulingGates": Items({"name": Type.TEXT}),
    "resourceClaims": Items(Type.OBJECT),
    "priority": Type.WHOLE,
    "priorityClassName": Type.TEXT,
    "runtimeClassName": Type.TEXT,
}
TEMPLATE: Mapping[str, Shape] = {"metadata": {"labels": TEXTS, "annotations": TEXTS}, "spec": POD_SPEC}
_CONDITION: Mapping[str, Shape] = dict.fromkeys(("type", "status", "reason", "message"), Type.TEXT)
CONDITIONS = Items(_CONDITION)
WORKLOAD: Mapping[str, Shape] = {
    "metadata": METADATA,
    "spec": {
        "queueName": Type.TEXT,
        "maximumExecutionTimeSeconds": Type.COUNT,
        "podSets": Items(
            {
                "name": Type.TEXT,
                "count": Type.COUNT,
                "minCount": Type.COUNT,
                "template": TEMPLATE,
                "topologyRequest": Type.OBJECT,
            }
        ),
    },
    "status": {
        "conditions": Items({**_CONDITION, "lastTransitionTime": Type.TIME}),
        "admission": {
            "clusterQueue": Type.TEXT,
            "podSetAssignments": Items(
                {"name": Type.TEXT, "count": Type.COUNT, "flavors": TEXTS, "topologyAssignment": Type.OBJECT}
            ),
        },
        "admissionChecks": Items(
            {
                "name": Type.TEXT,
                "podSetUpdates": Items(
                    {
                        "name": Type.TEXT,
                        "labels": TEXTS,
                        "annotations": TEXTS,
                        "nodeSelector": TEXTS,
                        "tolerations": TOLERATIONS,
                    }
                ),
            }
        ),
    },
}
"""The fields of a Workload that are read when its job starts, stops or changes."""
FLAVOR: Mapping[str, Shape] = {"spec": {"nodeLabels": TEXTS, "tolerations": TOLERATIONS}}
"""The fields of a ResourceFlavor that are read when a job starts."""


def template_problems(job: JsonObject, path: Path) -> list[Problem]:
    """Return the problem of a pod template without containers."""
    if list_at(value_at(job, path), "spec", "containers"):
        return []
    return [required(".".join(filter(None, (path_text(path), "spec.containers"))))]
