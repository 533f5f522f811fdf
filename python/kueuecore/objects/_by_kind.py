"""The class for each kind of objects."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonValue, text_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.objects._meta import ClusterObject
from kueuecore.objects.checks import AdmissionCheck, MultiKueueCluster, MultiKueueConfig, ProvisioningRequestConfig
from kueuecore.objects.devices import DeviceClass, ResourceClaimTemplate
from kueuecore.objects.nodes import Node, Pod
from kueuecore.objects.preemption import PreemptionConfig
from kueuecore.objects.quota import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology
from kueuecore.objects.workloads import (
    LimitRange,
    Namespace,
    PriorityClass,
    RuntimeClass,
    Workload,
    WorkloadPriorityClass,
)

__all__ = ["KINDS", "from_manifest"]

KINDS: Mapping[tuple[str, str], type[ClusterObject]] = {
    (cls.api_version, cls.kind()): cls
    for cls in (
        ResourceFlavor,
        Topology,
        Cohort,
        ClusterQueue,
        LocalQueue,
        Workload,
        WorkloadPriorityClass,
        PriorityClass,
        AdmissionCheck,
        ProvisioningRequestConfig,
        MultiKueueConfig,
        MultiKueueCluster,
        PreemptionConfig,
        Namespace,
        LimitRange,
        RuntimeClass,
        ResourceClaimTemplate,
        DeviceClass,
        Node,
        Pod,
    )
}
"""The class for each apiVersion and kind."""


def from_manifest(manifest: Mapping[str, JsonValue]) -> ClusterObject:
    """Make the object that a manifest describes, of any kind.

    Args:
        manifest: Plain JSON data with a kind of `KINDS`.

    Raises:
        ManifestError: The kind or version has no class, or a field is missing, unknown or of the wrong type.
    """
    if not isinstance(manifest, Mapping):
        raise TypeError(f"a manifest must be a mapping, not {type(manifest).__name__}")
    plain = dict(manifest)
    found = text_at(plain, "apiVersion"), text_at(plain, "kind")
    cls = KINDS.get(found)
    if cls is None:
        remedy = f"the kinds are {', '.join(sorted(kind for _, kind in KINDS))}, those of Kueue in v1beta2"
        what = " ".join(filter(None, found)) or "an object without apiVersion and kind"
        raise ManifestError([Problem(f"there is no class for {what}", remedy=remedy)])
    return cls.from_manifest(manifest)
