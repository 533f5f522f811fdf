"""Recognises objects without an integration that make Jobs, or whose Workloads others make (rules/10 §1)."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.jobs.context import PREFIX, QUEUE_LABEL, JobsConfiguration, group_of, labels_of

__all__ = ["OwnerKey", "is_mini_cluster", "owner_keys", "why_none_is_made"]

OwnerKey: TypeAlias = tuple[str, str, str, str]
"""API group, kind, namespace and name."""

_KUEUE = PREFIX.rstrip("/")


def is_mini_cluster(plain: JsonObject) -> bool:
    """Return whether an object is a MiniCluster, of which the Flux Operator makes a Job."""
    return text_at(plain, "kind") == "MiniCluster" and group_of(text_at(plain, "apiVersion")) == "flux-framework.org"


def owner_keys(objects: Iterable[JsonObject], default_namespace: str) -> AbstractSet[OwnerKey]:
    """Return the objects that some objects name as their owners."""
    return {
        (group_of(text_at(reference, "apiVersion")), text_at(reference, "kind"), namespace, text_at(reference, "name"))
        for plain in objects
        for namespace in (text_at(plain, "metadata", "namespace") or default_namespace,)
        for reference in list_at(plain, "metadata", "ownerReferences")
    }


def why_none_is_made(plain: JsonObject, configuration: JobsConfiguration) -> str:
    """Return why no Workload is made of an object of a kind that Kueue does not know; empty if nobody expects one.

    Args:
        plain: The object, none of whose pods, Jobs or Workloads are given.
        configuration: Names the kinds whose Workloads others make.

    Example:
        >>> labels = {"kueue.x-k8s.io/queue-name": "builds"}
        >>> run = {"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": {"labels": labels}}
        >>> why_none_is_made(run, JobsConfiguration(external_frameworks=["PipelineRun.v1.tekton.dev"]))
        'the controller of PipelineRun.v1.tekton.dev makes its Workload: give that one, too'
    """
    api_version, kind = text_at(plain, "apiVersion"), text_at(plain, "kind")
    group, _, version = api_version.rpartition("/")
    if (group, kind) == ("batch", "CronJob"):
        return "a CronJob makes Jobs when their time comes, and none is made here"
    # Kueue's own objects, and those of Kubernetes, may have the label for other reasons.
    if "." not in group or group == _KUEUE or group.endswith(".k8s.io"):
        return ""
    framework = f"{kind}.{version}.{group}"
    if framework in configuration.external_frameworks:
        return f"the controller of {framework} makes its Workload: give that one, too"
    if QUEUE_LABEL not in labels_of(plain):
        return ""
    if not is_mini_cluster(plain):
        return f"Kueue has no integration for {kind} of {api_version}: give the pods, Jobs or Workload that it makes"
    if QUEUE_LABEL not in texts_at(plain, "spec", "jobLabels"):
        return "the Flux Operator gives its Job the labels in spec.jobLabels, not its own: name the queue there"
    return ""
