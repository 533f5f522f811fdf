"""Fields of Kueue's objects, whatever API version they are written in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.manifests import Manifest
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["QuotaField", "key_of", "parent_field", "parent_of", "quota_fields"]


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


def key_of(plain: JsonObject) -> tuple[str, str]:
    """Namespace and name, with the default namespace filled in."""
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE, text_at(plain, "metadata", "name")
