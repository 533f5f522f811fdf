"""Makes the Job that the Flux Operator makes of a MiniCluster: Kueue manages that Job, and knows no MiniClusters."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.errors import Problem
from kueuecore.jobs.field_types import Each, Items, Shape, Type, field_problems
from kueuecore.jobs.manifest_shapes import AMOUNTS, METADATA, RESOURCES, TEXTS, TOLERATIONS

__all__ = ["job_of", "mini_cluster_problems"]

_CONTAINER: Mapping[str, Shape] = {"name": Type.TEXT, "image": Type.TEXT, "runFlux": Type.BOOL, "resources": RESOURCES}
_FIELDS: Mapping[str, Shape] = {
    "metadata": METADATA,
    "spec": {
        "size": Type.COUNT,
        "jobLabels": TEXTS,
        "containers": Items(_CONTAINER),
        "flux": {"container": _CONTAINER},
        "network": {"disableAffinity": Type.BOOL},
        "pod": {
            **dict.fromkeys(("labels", "annotations", "nodeSelector"), TEXTS),
            **dict.fromkeys(("restartPolicy", "runtimeClassName", "schedulerName"), Type.TEXT),
            "nodeAffinity": Each(Items(Type.TEXT)),
            "resources": AMOUNTS,
            "tolerations": TOLERATIONS,
        },
    },
}
_COPIED = ("nodeSelector", "tolerations", "runtimeClassName", "schedulerName")


def mini_cluster_problems(cluster: JsonObject) -> list[Problem]:
    """Return the fields of a MiniCluster that have the wrong type."""
    return field_problems(cluster, _FIELDS)


def job_of(cluster: JsonObject) -> JsonObject:
    """Return the Job of a MiniCluster: an indexed one, named as it, with a pod for each broker.

    Args:
        cluster: The MiniCluster, with a name and a namespace.

    Example:
        >>> spec = {"size": 4, "jobLabels": {"kueue.x-k8s.io/queue-name": "q"}, "containers": [{"image": "app"}]}
        >>> job = job_of({"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster",
        ...               "metadata": {"name": "lammps", "namespace": "lab"}, "spec": spec})
        >>> job["metadata"]["name"], job["spec"]["parallelism"], job["spec"]["completionMode"]
        ('lammps', 4, 'Indexed')
    """
    name, spec = text_at(cluster, "metadata", "name"), object_at(cluster, "spec")
    owner: JsonObject = {
        **{key: text_at(cluster, key) for key in ("apiVersion", "kind")},
        **{key: text_at(cluster, "metadata", key) for key in ("name", "uid")},
        "controller": True,
        "blockOwnerDeletion": True,
    }
    pod = object_at(spec, "pod")
    metadata: JsonObject = {key: pod[key] for key in ("labels", "annotations") if key in pod}
    size = int_at(spec, "size", default=1)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": text_at(cluster, "metadata", "namespace"),
            "labels": object_at(spec, "jobLabels"),
            "ownerReferences": [owner],
        },
        "spec": {
            "parallelism": size,
            "completions": size,
            "completionMode": "Indexed",
            "template": {"metadata": metadata, "spec": _pod_spec(name, spec)},
        },
    }


def _pod_spec(name: str, spec: JsonObject) -> JsonObject:
    pod, flux = object_at(spec, "pod"), object_at(spec, "flux", "container")
    given = list_at(spec, "containers")
    containers: list[JsonValue] = []
    for container in given:
        # A container that runs Flux is named after the cluster; a single one always runs it.
        runs_flux = len(given) == 1 or object_at(container).get("runFlux") is True
        containers.append(_container(name if runs_flux else text_at(container, "name"), object_at(container)))
    result: JsonObject = {
        "restartPolicy": text_at(pod, "restartPolicy") or "OnFailure",
        # It copies Flux into the pod.
        "initContainers": [_container(text_at(flux, "name") or "flux-view", flux)],
        "containers": containers,
        **{key: pod[key] for key in _COPIED if pod.get(key) is not None},
    }
    if overhead := object_at(pod, "resources"):
        result["overhead"] = overhead
    labels = object_at(pod, "nodeAffinity")
    if labels and object_at(spec, "network").get("disableAffinity") is not True:
        expressions: list[JsonValue] = [
            {"key": key, "operator": "In", "values": values} for key, values in sorted(labels.items())
        ]
        terms: JsonObject = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        result["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return result


def _container(name: str, given: JsonObject) -> JsonObject:
    return {"name": name, **{key: given[key] for key in ("image", "resources") if given.get(key) is not None}}
