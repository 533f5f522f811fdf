"""Fields of Kueue's objects, whatever API version they are written in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.manifests import Manifest
from kueuecore.world import key_of

__all__ = ["QuotaField", "parent_field", "parent_of", "quota_fields", "work_of"]

_JOB_UID = "kueue.x-k8s.io/job-uid"


@dataclass(frozen=True, slots=True)
class QuotaField:
    """One resource of one flavor in the `resourceGroups` of a ClusterQueue or Cohort.

    Args:
        flavor: The flavor.
        resource: The resource.
        path: Its field path, such as `spec.resourceGroups[0].flavors[1].resources[0]`.
        flavor_path: The field path of its flavor.
        amounts: `nominalQuota` and the limits, as written.
    """

    flavor: str
    resource: str
    path: str
    flavor_path: str
    amounts: JsonObject


def quota_fields(manifest: Manifest) -> Iterator[QuotaField]:
    """The quotas of a ClusterQueue or Cohort, in order."""
    for i, group in enumerate(list_at(manifest.object, "spec", "resourceGroups")):
        for j, flavor in enumerate(list_at(group, "flavors")):
            flavor_path = f"spec.resourceGroups[{i}].flavors[{j}]"
            for k, resource in enumerate(list_at(flavor, "resources")):
                path = f"{flavor_path}.resources[{k}]"
                yield QuotaField(
                    text_at(flavor, "name"), text_at(resource, "name"), path, flavor_path, object_at(resource)
                )


def parent_field(manifest: Manifest) -> str:
    """The path of the field that names the parent of a ClusterQueue or Cohort (rules/01 §8)."""
    if text_at(manifest.object, "kind") == "Cohort":
        return "spec.parentName"
    return "spec.cohort" if text_at(manifest.object, "apiVersion") == "kueue.x-k8s.io/v1beta1" else "spec.cohortName"


def parent_of(manifest: Manifest) -> str:
    """The parent of a ClusterQueue or Cohort; empty if there is none."""
    return text_at(manifest.object, *parent_field(manifest).split("."))


def work_of(workload: Manifest) -> str:
    """What a Workload asks of its queue, as text: equal for those that differ only in name, age and owner."""
    metadata = object_at(workload.object, "metadata")
    labels = {name: label for name, label in object_at(metadata, "labels").items() if name != _JOB_UID}
    spec = object_at(workload.object, "spec")
    pod_sets: list[JsonValue] = [_without_labels(object_at(pod_set)) for pod_set in list_at(spec, "podSets")]
    asked: JsonObject = {
        "namespace": key_of(workload.object)[0],
        "labels": labels,
        "annotations": metadata.get("annotations"),
        "spec": {**spec, "podSets": pod_sets},
    }
    return json.dumps(asked, sort_keys=True)


def _without_labels(pod_set: JsonObject) -> JsonObject:
    """A pod set without the labels of its pods, which name their job, and which no decision reads."""
    template = object_at(pod_set, "template")
    metadata = {name: entry for name, entry in object_at(template, "metadata").items() if name != "labels"}
    return {**pod_set, "template": {**template, "metadata": metadata}}
