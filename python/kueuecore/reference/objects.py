"""The objects as the rules read them: queues, cohorts and keys of manifests (rules/01 §1 to §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kueuecore.reference import quantity
from kueuecore.reference.settings import Json

__all__ = [
    "CLUSTER_SCOPED",
    "ClusterQueue",
    "FlavorResource",
    "Quota",
    "ResourceGroup",
    "key",
    "key_of",
    "local_queue_key",
    "names_of",
    "weight_of",
]

CLUSTER_SCOPED = ("AdmissionCheck", "ClusterQueue", "Cohort", "Namespace", "ResourceFlavor", "RuntimeClass")

FlavorResource = tuple[str, str]
"""A flavor and a resource: what quota is counted in (rules/02)."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a node declares for one flavor and resource (rules/02 §2)."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that share their flavors, in order of preference (rules/01 §1)."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


def key_of(namespace: str, name: str) -> str:
    """Key of a namespaced object."""
    return f"{namespace}/{name}"


def key(manifest: Json) -> str:
    """Key of a namespaced manifest."""
    return key_of(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def names_of(manifest: Json) -> tuple[str, str]:
    """Namespace and name of a manifest."""
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


def local_queue_key(workload: Json) -> str:
    """Key of the LocalQueue that a Workload names."""
    return key_of(workload["metadata"].get("namespace", ""), workload["spec"].get("queueName", ""))


def weight_of(spec: Json) -> float:
    """Weight in fair sharing: the double nearest to the decimal, 1 if there is none (rules/02 §6)."""
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 1.0 if weight is None else float(quantity.parse(weight))


def groups_and_quotas(spec: Json) -> tuple[tuple[ResourceGroup, ...], dict[FlavorResource, Quota]]:
    """Read `resourceGroups` of a ClusterQueue or a Cohort (rules/01 §1, §2)."""
    groups, quotas = [], {}
    for group in spec.get("resourceGroups") or ():
        flavors = group.get("flavors") or ()
        groups.append(ResourceGroup(tuple(group.get("coveredResources") or ()), tuple(f["name"] for f in flavors)))
        for flavor in flavors:
            for resource in flavor.get("resources") or ():
                name = resource["name"]
                limits = (resource.get(limit) for limit in ("borrowingLimit", "lendingLimit"))
                quotas[flavor["name"], name] = Quota(
                    quantity.limit(name, resource.get("nominalQuota", 0)),
                    *(None if limit is None else quantity.limit(name, limit) for limit in limits),
                )
    return tuple(groups), quotas


@dataclass(frozen=True)
class ClusterQueue:
    """The spec of a ClusterQueue. What it leaves out acts as rules/01 §1 and 03 §4.1 say."""

    name: str
    cohort: str
    groups: tuple[ResourceGroup, ...]
    quotas: Mapping[FlavorResource, Quota]
    strategy: str
    namespace_selector: Json | None
    when_can_borrow: str
    when_can_preempt: str
    preference: str
    within_cluster_queue: str
    reclaim_within_cohort: str
    borrow_within_cohort: str
    priority_threshold: int | None
    checks: Mapping[str, frozenset[str]]
    stop_policy: str
    weight: float
    admission_mode: str
    migration: Json | None

    @staticmethod
    def read(manifest: Json) -> ClusterQueue:
        """Read a manifest."""
        spec = manifest.get("spec") or {}
        groups, quotas = groups_and_quotas(spec)
        flavors = frozenset(flavor for group in groups for flavor in group.flavors)
        fungibility, preemption = spec.get("flavorFungibility") or {}, spec.get("preemption")
        borrow = None if preemption is None else preemption.get("borrowWithinCohort")
        checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        return ClusterQueue(
            name=manifest["metadata"]["name"],
            cohort=spec.get("cohortName", ""),
            groups=groups,
            quotas=quotas,
            strategy=spec.get("queueingStrategy", ""),
            namespace_selector=spec.get("namespaceSelector"),
            when_can_borrow=fungibility.get("whenCanBorrow") or "MayStopSearch",
            when_can_preempt=fungibility.get("whenCanPreempt") or "TryNextFlavor",
            preference=fungibility.get("preference", ""),
            within_cluster_queue="Never" if preemption is None else preemption.get("withinClusterQueue", ""),
            reclaim_within_cohort="Never" if preemption is None else preemption.get("reclaimWithinCohort", ""),
            borrow_within_cohort="Never" if borrow is None else borrow.get("policy", ""),
            priority_threshold=None if borrow is None else borrow.get("maxPriorityThreshold"),
            checks={check["name"]: frozenset(check.get("onFlavors") or flavors) for check in checks},
            stop_policy=spec.get("stopPolicy") or "None",
            weight=weight_of(spec),
            admission_mode=(spec.get("admissionScope") or {}).get("admissionMode", ""),
            migration=(spec.get("concurrentAdmissionPolicy") or {}).get("migration"),
        )

    def group_of(self, resource: str) -> ResourceGroup | None:
        """The first group that covers a resource (rules/03 §3)."""
        return next((group for group in self.groups if resource in group.resources), None)

    def quota(self, fr: FlavorResource) -> Quota:
        """What is declared for a flavor and resource; nothing: no quota, no limits (rules/02 §2)."""
        return self.quotas.get(fr, Quota())

    @property
    def flavors(self) -> frozenset[str]:
        """All flavors that it names."""
        return frozenset(flavor for group in self.groups for flavor in group.flavors)

    @property
    def borrows_to_preempt(self) -> bool:
        """May it preempt in its cohort while it borrows? (rules/04 §4.1)."""
        return self.borrow_within_cohort != "Never"
