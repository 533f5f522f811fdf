"""Quota: flavors, cohorts, ClusterQueues and LocalQueues (rules/01 §1-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import ClassVar, Self

from kueuecore.objects._fields import Quantity, Value, at
from kueuecore.objects._meta import ClusterObject, NamespacedObject
from kueuecore.objects.selectors import LabelSelector

__all__ = [
    "AdmissionCheckRule",
    "AdmissionMode",
    "BorrowWithinCohort",
    "BorrowWithinCohortPolicy",
    "ClusterQueue",
    "ClusterQueuePreemption",
    "Cohort",
    "ConcurrentAdmissionMode",
    "ConcurrentAdmissionPolicy",
    "FairSharing",
    "FlavorFungibility",
    "FlavorFungibilityPolicy",
    "FlavorFungibilityPreference",
    "FlavorQuotas",
    "LocalQueue",
    "QueueingStrategy",
    "ReclaimWithinCohortPolicy",
    "ResourceFlavor",
    "ResourceGroup",
    "ResourceQuota",
    "StopPolicy",
    "Taint",
    "TaintEffect",
    "Toleration",
    "TolerationOperator",
    "Topology",
    "TopologyLevel",
    "WithinClusterQueuePolicy",
]


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """How a toleration compares its value with that of the taint."""

    EQUAL = "Equal"
    EXISTS = "Exists"
    LT = "Lt"
    GT = "Gt"


class QueueingStrategy(StrEnum):
    """What happens behind a head that does not fit (rules/05)."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"


class StopPolicy(StrEnum):
    """Whether a queue admits, and whether it keeps what it has admitted."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class FlavorFungibilityPolicy(StrEnum):
    """Whether the search for a flavor may end at one that needs borrowing or preemption (rules/03)."""

    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FlavorFungibilityPreference(StrEnum):
    """Which of the two is better when every flavor needs one of them (rules/03)."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class ReclaimWithinCohortPolicy(StrEnum):
    """Which workloads of other queues may be preempted to reclaim lent quota (rules/04)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class WithinClusterQueuePolicy(StrEnum):
    """Which workloads of the same queue may be preempted (rules/04)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class BorrowWithinCohortPolicy(StrEnum):
    """Which workloads of other queues may be preempted by one that borrows (rules/04)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class AdmissionMode(StrEnum):
    """Whether a queue takes past usage into account (rules/09)."""

    USAGE_BASED_ADMISSION_FAIR_SHARING = "UsageBasedAdmissionFairSharing"
    NO_ADMISSION_FAIR_SHARING = "NoAdmissionFairSharing"


class ConcurrentAdmissionMode(StrEnum):
    """What happens to a workload once one of its variants is admitted (rules/09)."""

    TRY_PREFERRED_FLAVORS = "TryPreferredFlavors"
    RETAIN_FIRST_ADMISSION = "RetainFirstAdmission"


@dataclass(frozen=True, slots=True)
class Taint(Value):
    """A taint of a flavor's nodes.

    Args:
        key: Key.
        effect: Effect.
        value: Value.
    """

    _ignored: ClassVar[tuple[str, ...]] = ("timeAdded",)

    key: str
    _: KW_ONLY
    effect: TaintEffect
    value: str = ""


@dataclass(frozen=True, slots=True)
class Toleration(Value):
    """A toleration of a pod, or one that a flavor adds to its pods.

    Args:
        key: Key of the taint; empty for every key.
        operator: Comparison; absent: Equal.
        value: Value of the taint.
        effect: Effect of the taint; absent: every effect.
        toleration_seconds: How long a NoExecute taint is tolerated, in seconds; absent: forever.
    """

    key: str = ""
    _: KW_ONLY
    operator: TolerationOperator | None = None
    value: str = ""
    effect: TaintEffect | None = None
    toleration_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceFlavor(ClusterObject):
    """A kind of node (rules/01 §4).

    Args:
        node_labels: Labels of its nodes.
        node_taints: Taints of its nodes.
        tolerations: Tolerations that its pods get.
        topology_name: Topology of its nodes; absent for a flavor without topology-aware scheduling.

    Example:
        >>> spot = ResourceFlavor("spot", node_taints=[Taint("spot", value="true", effect=TaintEffect.NO_SCHEDULE)])
        >>> spot.to_manifest()["spec"]
        {'nodeTaints': [{'key': 'spot', 'effect': 'NoSchedule', 'value': 'true'}]}
    """

    _: KW_ONLY
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: Sequence[Taint] = ()
    tolerations: Sequence[Toleration] = ()
    topology_name: str | None = None


@dataclass(frozen=True, slots=True)
class TopologyLevel(Value):
    """A level of a topology.

    Args:
        node_label: The node label whose values are the domains of the level.
    """

    node_label: str


@dataclass(frozen=True, slots=True)
class Topology(ClusterObject):
    """The levels of a data center, from the widest to the narrowest (rules/08).

    Args:
        levels: The levels.
    """

    _: KW_ONLY
    levels: Sequence[TopologyLevel]


@dataclass(frozen=True, slots=True)
class ResourceQuota(Value):
    """The quota of one resource in one flavor.

    Args:
        name: The resource.
        nominal_quota: The queue's own quota.
        borrowing_limit: How much may be borrowed; absent: no limit.
        lending_limit: How much may be lent; absent: all.
    """

    name: str
    _: KW_ONLY
    nominal_quota: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


@dataclass(frozen=True, slots=True)
class FlavorQuotas(Value):
    """The quotas of one flavor.

    Args:
        name: The flavor.
        resources: A quota for each covered resource of the group, in the same order.
    """

    name: str
    _: KW_ONLY
    resources: Sequence[ResourceQuota]


@dataclass(frozen=True, slots=True)
class ResourceGroup(Value):
    """Resources that get the same flavor.

    Args:
        covered_resources: The resources.
        flavors: The flavors, the preferred one first.

    Example:
        >>> group = ResourceGroup.of({"on-demand": {"cpu": 9, "memory": "36Gi"}, "spot": {"cpu": 4, "memory": "16Gi"}})
        >>> group.covered_resources
        ('cpu', 'memory')
        >>> group.flavors[1].resources[0]
        ResourceQuota(name='cpu', nominal_quota='4', borrowing_limit=None, lending_limit=None)
    """

    covered_resources: Sequence[str]
    _: KW_ONLY
    flavors: Sequence[FlavorQuotas]

    @classmethod
    def of(cls, nominal_quotas: Mapping[str, Mapping[str, Quantity]]) -> Self:
        """Make a group without limits from `{flavor: {resource: nominal quota}}`.

        The order of the flavors and of the first flavor's resources matters.
        """
        covered = [*next(iter(nominal_quotas.values()), {})]
        flavors = []
        for flavor, quotas in nominal_quotas.items():
            if set(quotas) != set(covered):
                raise ValueError(f"flavor {flavor!r} has quotas of {[*quotas]}, but the first flavor of {covered}")
            resources = [ResourceQuota(name, nominal_quota=quotas[name]) for name in covered]
            flavors.append(FlavorQuotas(flavor, resources=resources))
        return cls(covered, flavors=flavors)


@dataclass(frozen=True, slots=True)
class FairSharing(Value):
    """The weight of a queue or cohort in fair sharing.

    Args:
        weight: The weight; 0 makes the share infinite.
    """

    weight: Quantity = "1"


@dataclass(frozen=True, slots=True)
class Cohort(ClusterObject):
    """A node of the quota tree (rules/01 §2, rules/02).

    Args:
        parent_name: The parent cohort; empty for a root.
        resource_groups: Quota of the cohort itself, in addition to that of its members.
        fair_sharing: Its weight; absent: 1.
    """

    _: KW_ONLY
    parent_name: str = ""
    resource_groups: Sequence[ResourceGroup] = ()
    fair_sharing: FairSharing | None = None


@dataclass(frozen=True, slots=True)
class FlavorFungibility(Value):
    """When the search for a flavor ends (rules/03).

    Args:
        when_can_borrow: Whether it ends at a flavor that fits by borrowing.
        when_can_preempt: Whether it ends at a flavor that fits after preemption.
        preference: Which is better when all flavors need one of the two; only with TryNextFlavor for both.
    """

    _: KW_ONLY
    when_can_borrow: FlavorFungibilityPolicy = FlavorFungibilityPolicy.MAY_STOP_SEARCH
    when_can_preempt: FlavorFungibilityPolicy = FlavorFungibilityPolicy.TRY_NEXT_FLAVOR
    preference: FlavorFungibilityPreference | None = None


@dataclass(frozen=True, slots=True)
class BorrowWithinCohort(Value):
    """Preemption by workloads that borrow (rules/04).

    Args:
        policy: Which workloads they may preempt.
        max_priority_threshold: The highest priority of a victim; absent: any lower priority.
    """

    policy: BorrowWithinCohortPolicy = BorrowWithinCohortPolicy.NEVER
    _: KW_ONLY
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterQueuePreemption(Value):
    """Which workloads those of a queue may preempt (rules/04).

    Args:
        reclaim_within_cohort: Workloads of other queues that borrow.
        within_cluster_queue: Workloads of the same queue.
        borrow_within_cohort: Workloads of other queues, on behalf of one that borrows itself.
    """

    _: KW_ONLY
    reclaim_within_cohort: ReclaimWithinCohortPolicy = ReclaimWithinCohortPolicy.NEVER
    within_cluster_queue: WithinClusterQueuePolicy = WithinClusterQueuePolicy.NEVER
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


@dataclass(frozen=True, slots=True)
class AdmissionCheckRule(Value):
    """An admission check of a queue.

    Args:
        name: The AdmissionCheck.
        on_flavors: The flavors that need it; empty: all.
    """

    name: str
    _: KW_ONLY
    on_flavors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ConcurrentAdmissionPolicy(Value):
    """One variant of a workload for each flavor (rules/09).

    Args:
        mode: What happens to the others when one is admitted.
        last_acceptable_flavor_name: The last flavor in the queue's order that gets a variant.
    """

    mode: ConcurrentAdmissionMode = field(metadata=at("migration"))
    _: KW_ONLY
    last_acceptable_flavor_name: str | None = field(default=None, metadata=at("migration.constraints"))


@dataclass(frozen=True, slots=True)
class ClusterQueue(ClusterObject):
    """A pool of quota, and the rules for its use (rules/01 §1).

    Args:
        cohort_name: The cohort that it lends to and borrows from; empty for none.
        resource_groups: Its quota.
        queueing_strategy: What happens behind a head that does not fit.
        namespace_selector: Namespaces whose workloads it accepts. Absent, the default, means none; `LabelSelector()`
            means all.
        flavor_fungibility: When the search for a flavor ends.
        preemption: Which workloads its own may preempt.
        admission_checks: `spec.admissionChecksStrategy.admissionChecks`: what must agree besides quota.
        stop_policy: Whether it admits.
        fair_sharing: Its weight in its cohort; absent: 1.
        admission_mode: `spec.admissionScope.admissionMode`: whether past usage counts.
        concurrent_admission_policy: Whether a workload has a variant for each flavor.

    Example:
        >>> queue = ClusterQueue(
        ...     "team-a",
        ...     cohort_name="research",
        ...     namespace_selector=LabelSelector(),
        ...     resource_groups=[ResourceGroup.of({"default": {"cpu": 9, "memory": "36Gi"}})],
        ...     preemption=ClusterQueuePreemption(within_cluster_queue=WithinClusterQueuePolicy.LOWER_PRIORITY),
        ... )
        >>> manifest = queue.to_manifest()
        >>> manifest["spec"]["resourceGroups"][0]["flavors"][0]["resources"][1]
        {'name': 'memory', 'nominalQuota': '36Gi'}
        >>> ClusterQueue.from_manifest(manifest) == queue
        True
    """

    _: KW_ONLY
    cohort_name: str = ""
    resource_groups: Sequence[ResourceGroup] = ()
    queueing_strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: ClusterQueuePreemption = ClusterQueuePreemption()
    admission_checks: Sequence[AdmissionCheckRule] = field(default=(), metadata=at("spec.admissionChecksStrategy"))
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_sharing: FairSharing | None = None
    admission_mode: AdmissionMode | None = field(default=None, metadata=at("spec.admissionScope"))
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None


@dataclass(frozen=True, slots=True)
class LocalQueue(NamespacedObject):
    """A namespace's entrance to a ClusterQueue (rules/01 §3).

    Args:
        cluster_queue: The ClusterQueue.
        stop_policy: Whether it lets workloads through.
        fair_sharing: Its weight when past usage counts; absent: 1.

    Example:
        >>> LocalQueue("user-queue", namespace="team-a", cluster_queue="cluster-queue").to_manifest()["spec"]
        {'clusterQueue': 'cluster-queue', 'stopPolicy': 'None'}
    """

    _: KW_ONLY
    cluster_queue: str
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_sharing: FairSharing | None = None
