"""What to list and watch."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore.jobs.context import group_of

__all__ = ["OF_NODES", "SOMETIMES_WATCHED", "WATCHED", "is_of_another_group"]

_KUEUE = "kueue.x-k8s.io/v1beta2"
WATCHED: Mapping[str, tuple[str, str]] = {
    "Namespace": ("v1", "namespaces"),
    "LimitRange": ("v1", "limitranges"),
    "RuntimeClass": ("node.k8s.io/v1", "runtimeclasses"),
    "ResourceFlavor": (_KUEUE, "resourceflavors"),
    "AdmissionCheck": (_KUEUE, "admissionchecks"),
    "WorkloadPriorityClass": (_KUEUE, "workloadpriorityclasses"),
    "Cohort": (_KUEUE, "cohorts"),
    "ClusterQueue": (_KUEUE, "clusterqueues"),
    "LocalQueue": (_KUEUE, "localqueues"),
    "Workload": (_KUEUE, "workloads"),
}
"""What to list and watch, by kind: apiVersion and the plural in the path. In this order a list finds what it needs."""
OF_NODES: Mapping[str, tuple[str, str]] = {
    "Topology": (_KUEUE, "topologies"),
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
}
"""What decides where pods run, if flavors name a topology."""
SOMETIMES_WATCHED: Mapping[str, tuple[str, str]] = {
    "ResourceClaimTemplate": ("resource.k8s.io/v1", "resourceclaimtemplates"),
    "DeviceClass": ("resource.k8s.io/v1", "deviceclasses"),
    **OF_NODES,
}
"""What else is taken in: it matters where pods claim devices, and where flavors name a topology."""


def is_of_another_group(manifest: JsonObject, kinds: Mapping[str, tuple[str, str]]) -> bool:
    """Is it of a kind of the same name in another API group?"""
    api_version, _ = kinds.get(text_at(manifest, "kind"), ("", ""))
    return bool(api_version) and group_of(text_at(manifest, "apiVersion") or api_version) != group_of(api_version)
