"""The Kubernetes objects that Kueue reads, as Python classes, to build worlds in code.

Every class is a frozen dataclass. Fields have the names of the v1beta2 manifests in snake_case, and the API's defaults
(rules/01). `to_manifest()` returns the manifest, `from_manifest()` reads one.

Example:
    >>> queue = LocalQueue("user-queue", namespace="team-a", cluster_queue="cluster-queue")
    >>> queue.to_manifest()["apiVersion"]
    'kueue.x-k8s.io/v1beta2'
    >>> from_manifest(queue.to_manifest()) == queue
    True
"""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonValue, text_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.objects._fields import Quantity
from kueuecore.objects._meta import ClusterObject, OwnerReference
from kueuecore.objects.checks import (
    AdmissionCheck,
    AdmissionCheckParameters,
    ClusterProfileReference,
    Condition,
    ConditionStatus,
    KubeConfig,
    LocationType,
    MultiKueueCluster,
    MultiKueueConfig,
    NodeSelectorUpdate,
    PodSetMergePolicy,
    ProvisioningRequestConfig,
    QuotaManagement,
    RetryStrategy,
)
from kueuecore.objects.devices import DeviceClass, DeviceRequest, ResourceClaimTemplate
from kueuecore.objects.nodes import Node, NodeCondition, Pod
from kueuecore.objects.quota import (
    AdmissionCheckRule,
    AdmissionMode,
    BorrowWithinCohort,
    BorrowWithinCohortPolicy,
    ClusterQueue,
    ClusterQueuePreemption,
    Cohort,
    ConcurrentAdmissionMode,
    ConcurrentAdmissionPolicy,
    FairSharing,
    FlavorFungibility,
    FlavorFungibilityPolicy,
    FlavorFungibilityPreference,
    FlavorQuotas,
    LocalQueue,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    StopPolicy,
    Taint,
    TaintEffect,
    Toleration,
    TolerationOperator,
    Topology,
    TopologyLevel,
    WithinClusterQueuePolicy,
)
from kueuecore.objects.selectors import (
    LabelSelector,
    LabelSelectorOperator,
    LabelSelectorRequirement,
)
from kueuecore.objects.workloads import (
    Admission,
    AdmissionCheckState,
    CheckState,
    Container,
    LimitRange,
    LimitRangeItem,
    Namespace,
    PodSet,
    PodSetAssignment,
    PodTemplate,
    PreemptionGate,
    PriorityClass,
    PriorityClassRef,
    ReclaimablePod,
    RequeueState,
    Resources,
    RuntimeClass,
    SliceConstraint,
    TopologyRequest,
    Workload,
    WorkloadPriorityClass,
    WorkloadStatus,
)

__all__ = [
    "KINDS",
    "Admission",
    "AdmissionCheck",
    "AdmissionCheckParameters",
    "AdmissionCheckRule",
    "AdmissionCheckState",
    "AdmissionMode",
    "BorrowWithinCohort",
    "BorrowWithinCohortPolicy",
    "CheckState",
    "ClusterProfileReference",
    "ClusterQueue",
    "ClusterQueuePreemption",
    "Cohort",
    "ConcurrentAdmissionMode",
    "ConcurrentAdmissionPolicy",
    "Condition",
    "ConditionStatus",
    "Container",
    "DeviceClass",
    "DeviceRequest",
    "FairSharing",
    "FlavorFungibility",
    "FlavorFungibilityPolicy",
    "FlavorFungibilityPreference",
    "FlavorQuotas",
    "KubeConfig",
    "LabelSelector",
    "LabelSelectorOperator",
    "LabelSelectorRequirement",
    "LimitRange",
    "LimitRangeItem",
    "LocalQueue",
    "LocationType",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "Namespace",
    "Node",
    "NodeCondition",
    "NodeSelectorUpdate",
    "OwnerReference",
    "Pod",
    "PodSet",
    "PodSetAssignment",
    "PodSetMergePolicy",
    "PodTemplate",
    "PreemptionGate",
    "PriorityClass",
    "PriorityClassRef",
    "ProvisioningRequestConfig",
    "Quantity",
    "QueueingStrategy",
    "QuotaManagement",
    "ReclaimWithinCohortPolicy",
    "ReclaimablePod",
    "RequeueState",
    "ResourceClaimTemplate",
    "ResourceFlavor",
    "ResourceGroup",
    "ResourceQuota",
    "Resources",
    "RetryStrategy",
    "RuntimeClass",
    "SliceConstraint",
    "StopPolicy",
    "Taint",
    "TaintEffect",
    "Toleration",
    "TolerationOperator",
    "Topology",
    "TopologyLevel",
    "TopologyRequest",
    "WithinClusterQueuePolicy",
    "Workload",
    "WorkloadPriorityClass",
    "WorkloadStatus",
    "from_manifest",
]

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
