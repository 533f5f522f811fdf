"""What workloads wait for besides quota: admission checks, provisioning and MultiKueue (rules/06, rules/07)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import ClassVar

from kueuecore.objects._fields import Value, at
from kueuecore.objects._meta import ClusterObject

__all__ = [
    "AdmissionCheck",
    "AdmissionCheckParameters",
    "ClusterProfileReference",
    "Condition",
    "ConditionStatus",
    "KubeConfig",
    "LocationType",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "NodeSelectorUpdate",
    "PodSetMergePolicy",
    "ProvisioningRequestConfig",
    "QuotaManagement",
    "RetryStrategy",
]


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class PodSetMergePolicy(StrEnum):
    """Which pod sets share one request (rules/07)."""

    IDENTICAL_POD_TEMPLATES = "IdenticalPodTemplates"
    IDENTICAL_WORKLOAD_SCHEDULING_REQUIREMENTS = "IdenticalWorkloadSchedulingRequirements"


class LocationType(StrEnum):
    """Where a kubeconfig is kept."""

    SECRET = "Secret"
    PATH = "Path"


class QuotaManagement(StrEnum):
    """Who sets the quota of the manager cluster (rules/06)."""

    MANUAL = "Manual"
    AUTOMATED = "Automated"


@dataclass(frozen=True, slots=True)
class Condition(Value):
    """A condition in the status of an object.

    Args:
        type: What it is about, such as `Active`.
        status: Whether it holds.
        reason: Why, in one word.
        message: Why, in a sentence.
        last_transition_time: Since when, in RFC 3339.
        observed_generation: The generation of the object that it describes.
    """

    type: str
    _: KW_ONLY
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


@dataclass(frozen=True, slots=True)
class AdmissionCheckParameters(Value):
    """The object that configures an admission check.

    Args:
        name: Its name.
        api_group: Its group.
        kind: Its kind.
    """

    name: str
    _: KW_ONLY
    api_group: str
    kind: str


@dataclass(frozen=True, slots=True)
class AdmissionCheck(ClusterObject):
    """A check that must agree before a workload is admitted.

    Args:
        controller_name: The controller that decides, such as `kueue.x-k8s.io/provisioning-request`.
        parameters: The object that configures it.
        conditions: `status.conditions`. A ClusterQueue is active only while all its checks have a True condition
            `Active`.
    """

    _ignored: ClassVar[tuple[str, ...]] = ("metadata",)

    _: KW_ONLY
    controller_name: str
    parameters: AdmissionCheckParameters | None = None
    conditions: Sequence[Condition] = field(default=(), metadata=at("status"))


@dataclass(frozen=True, slots=True)
class RetryStrategy(Value):
    """How often and when to repeat a failed request for capacity.

    Args:
        backoff_limit_count: How many times to repeat it.
        backoff_base_seconds: The first pause in seconds; each one is twice as long as the last.
        backoff_max_seconds: The longest pause in seconds.
    """

    _: KW_ONLY
    backoff_limit_count: int = 3
    backoff_base_seconds: int = 60
    backoff_max_seconds: int = 1800


@dataclass(frozen=True, slots=True)
class NodeSelectorUpdate(Value):
    """A node label set from the answer to a request for capacity.

    Args:
        key: The label.
        value_from_provisioning_class_detail: The detail of the answer with its value.
    """

    key: str
    _: KW_ONLY
    value_from_provisioning_class_detail: str


@dataclass(frozen=True, slots=True)
class ProvisioningRequestConfig(ClusterObject):
    """How capacity is requested (rules/07).

    Args:
        provisioning_class_name: The class of the requests.
        parameters: Their parameters.
        managed_resources: The resources that make a pod set need capacity; empty: all.
        retry_strategy: What happens after a failure.
        node_selector_updates: `spec.podSetUpdates.nodeSelector`.
        pod_set_merge_policy: Which pod sets share one request; absent: none.
    """

    _: KW_ONLY
    provisioning_class_name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    managed_resources: Sequence[str] = ()
    retry_strategy: RetryStrategy = RetryStrategy()
    node_selector_updates: Sequence[NodeSelectorUpdate] = field(
        default=(), metadata=at("spec.podSetUpdates", key="nodeSelector")
    )
    pod_set_merge_policy: PodSetMergePolicy | None = None


@dataclass(frozen=True, slots=True)
class MultiKueueConfig(ClusterObject):
    """The worker clusters of a MultiKueue check (rules/06).

    Args:
        clusters: Names of MultiKueueClusters.
        quota_management: Who sets the manager's quota; absent: Manual.
    """

    _: KW_ONLY
    clusters: Sequence[str]
    quota_management: QuotaManagement | None = None


@dataclass(frozen=True, slots=True)
class KubeConfig(Value):
    """Where the credentials of a worker cluster are.

    Args:
        location: Name of the Secret, or path of the file.
        location_type: Which of the two.
    """

    location: str
    _: KW_ONLY
    location_type: LocationType = LocationType.SECRET


@dataclass(frozen=True, slots=True)
class ClusterProfileReference(Value):
    """The ClusterProfile of a worker cluster.

    Args:
        name: Its name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class MultiKueueCluster(ClusterObject):
    """A worker cluster (rules/06).

    Args:
        kube_config: `spec.clusterSource.kubeConfig`: where its credentials are.
        cluster_profile_ref: `spec.clusterSource.clusterProfileRef`: or its ClusterProfile.
        conditions: `status.conditions`.
    """

    _ignored: ClassVar[tuple[str, ...]] = ("metadata",)

    _: KW_ONLY
    kube_config: KubeConfig | None = field(default=None, metadata=at("spec.clusterSource"))
    cluster_profile_ref: ClusterProfileReference | None = field(default=None, metadata=at("spec.clusterSource"))
    conditions: Sequence[Condition] = field(default=(), metadata=at("status"))
