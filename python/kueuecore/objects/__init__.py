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

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.objects._by_kind import KINDS, from_manifest
    from kueuecore.objects._fields import Quantity
    from kueuecore.objects._meta import OwnerReference
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
    from kueuecore.objects.preemption import PreemptionConfig
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
    from kueuecore.objects.selectors import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement
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
    "PreemptionConfig",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.objects._by_kind": "KINDS from_manifest",
        "kueuecore.objects._fields": "Quantity",
        "kueuecore.objects._meta": "OwnerReference",
        "kueuecore.objects.checks": """
            AdmissionCheck AdmissionCheckParameters ClusterProfileReference Condition ConditionStatus KubeConfig
            LocationType MultiKueueCluster MultiKueueConfig NodeSelectorUpdate PodSetMergePolicy
            ProvisioningRequestConfig QuotaManagement RetryStrategy
        """,
        "kueuecore.objects.devices": "DeviceClass DeviceRequest ResourceClaimTemplate",
        "kueuecore.objects.nodes": "Node NodeCondition Pod",
        "kueuecore.objects.preemption": "PreemptionConfig",
        "kueuecore.objects.quota": """
            AdmissionCheckRule AdmissionMode BorrowWithinCohort BorrowWithinCohortPolicy ClusterQueue
            ClusterQueuePreemption Cohort ConcurrentAdmissionMode ConcurrentAdmissionPolicy FairSharing
            FlavorFungibility FlavorFungibilityPolicy FlavorFungibilityPreference FlavorQuotas LocalQueue
            QueueingStrategy ReclaimWithinCohortPolicy ResourceFlavor ResourceGroup ResourceQuota StopPolicy
            Taint TaintEffect Toleration TolerationOperator Topology TopologyLevel WithinClusterQueuePolicy
        """,
        "kueuecore.objects.selectors": "LabelSelector LabelSelectorOperator LabelSelectorRequirement",
        "kueuecore.objects.workloads": """
            Admission AdmissionCheckState CheckState Container LimitRange LimitRangeItem Namespace PodSet
            PodSetAssignment PodTemplate PreemptionGate PriorityClass PriorityClassRef ReclaimablePod
            RequeueState Resources RuntimeClass SliceConstraint TopologyRequest Workload WorkloadPriorityClass
            WorkloadStatus
        """,
    },
)
