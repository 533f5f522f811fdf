"""The objects as the rules read them: queues, cohorts and keys of manifests (rules/01 §1 to §4)."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kueuecore.reference import quantity
from kueuecore.reference.settings import Json, Settings

CLUSTER_SCOPED = (
    *("AdmissionCheck", "ClusterQueue", "Cohort", "Namespace", "Node", "ResourceFlavor", "RuntimeClass", "Topology"),
    "WorkloadPriorityClass",
)

FlavorResource = tuple[str, str]
"""A flavor and a resource: the unit of quota accounting (rules/02)."""
Amounts = Mapping[FlavorResource, int]
"""Amounts by flavor and resource."""

# What the API server fills in on creation (rules/01 §1).
_DEFAULTS: Json = {
    "queueingStrategy": "BestEffortFIFO",
    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    "preemption": {
        "reclaimWithinCohort": "Never",
        "withinClusterQueue": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    },
}


def _merged(given: Json, defaults: Json) -> Json:
    deeper = {name: _merged(given.get(name) or {}, each) for name, each in defaults.items() if isinstance(each, dict)}
    return defaults | {name: value for name, value in given.items() if value or name not in defaults} | deeper


def complete(manifest: Json, *, defaults: bool = False) -> Json:
    """Return a manifest in which all fields that the rules read exist, though they may be empty.

    Args:
        manifest: The manifest as given.
        defaults: Whether to fill in the API server's defaults, too (rules/01 §1, §6).
    """
    metadata = {"namespace": "", "name": "", "uid": "", "generation": 0} | (manifest.get("metadata") or {})
    metadata |= {part: metadata.get(part) or {} for part in ("labels", "annotations")}
    metadata["ownerReferences"] = metadata.get("ownerReferences") or []
    spec, status = dict(manifest.get("spec") or {}), manifest.get("status") or {}
    if manifest["kind"] == "Workload":
        spec["queueName"] = spec.get("queueName") or ""
        spec["podSets"] = [_complete_pod_set(pod_set, defaults) for pod_set in spec.get("podSets") or ()]
    elif manifest["kind"] == "ClusterQueue" and defaults:
        spec = _merged(spec, _DEFAULTS)
    return {**manifest, "metadata": metadata, "spec": spec, "status": status}


def _complete_pod_set(pod_set: Json, defaults: bool) -> Json:
    name, count = ("main", 1) if defaults else ("", 0)
    template = pod_set.get("template") or {}
    template = {**template, "spec": template.get("spec") or {}}
    return {"count": count, **pod_set, "name": pod_set.get("name") or name, "template": template}


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


def names_of(manifest: Json) -> tuple[str, str]:
    """Return namespace and name of a manifest."""
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def key(manifest: Json) -> str:
    """Return the key of a namespaced manifest."""
    return "/".join(names_of(manifest))


def is_owned_by_a_pod(workload: Json) -> bool:
    """Return whether its lifetime is that of one pod, not of a group of pods (rules/08 §13.6)."""
    owners = [(owner["kind"], owner.get("apiVersion")) for owner in workload["metadata"]["ownerReferences"]]
    is_group = workload["metadata"]["annotations"].get("kueue.x-k8s.io/is-group-workload") == "true"
    return owners == [("Pod", "v1")] and not is_group


def local_queue_key(workload: Json) -> str:
    """Return the key of the LocalQueue that a Workload names."""
    return f"{workload['metadata']['namespace']}/{workload['spec']['queueName']}"


def weight_of(spec: Json) -> float:
    """Return the weight in fair sharing: the double nearest to the decimal, 1 by default (rules/02 §6)."""
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


def with_effective_quotas(manifest: Json, settings: Settings) -> Json:
    """Return a ClusterQueue or Cohort with the quotas of its status in its spec, if it has any (rules/02 §2)."""
    quotas = (manifest.get("status") or {}).get("effectiveQuotas")
    of_queue = manifest["kind"] in ("ClusterQueue", "Cohort") and settings.on("DynamicQuotaOrchestration")
    if not of_queue or quotas is None:
        return manifest
    return {**manifest, "spec": {**manifest["spec"], "resourceGroups": quotas.get("resourceGroups") or []}}


class ClusterQueue:
    """The spec of a ClusterQueue, with the defaults of rules/01 §1 and 03 §4.1."""

    def __init__(self, manifest: Json) -> None:
        spec: Json = manifest["spec"]
        self.name: str = manifest["metadata"]["name"]
        self.cohort: str = spec.get("cohortName", "")
        self.groups, self.quotas = groups_and_quotas(spec)
        self.flavors = frozenset(flavor for group in self.groups for flavor in group.flavors)
        # Those that decide whether it is active: older ones below a cycle (rules/02 §4 5).
        self.known_groups = self.groups
        self.strategy: str = str(spec.get("queueingStrategy") or _DEFAULTS["queueingStrategy"])
        self.namespace_selector: Json | None = spec.get("namespaceSelector")
        fungibility = spec.get("flavorFungibility") or {}
        self.when_can_borrow: str = fungibility.get("whenCanBorrow") or "MayStopSearch"
        self.when_can_preempt: str = fungibility.get("whenCanPreempt") or "TryNextFlavor"
        self.preference: str = fungibility.get("preference", "")
        never: Json = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}
        preemption: Json = never if spec.get("preemption") is None else spec["preemption"]
        self.within_cluster_queue: str = preemption.get("withinClusterQueue", "")
        self.reclaim_within_cohort: str = preemption.get("reclaimWithinCohort", "")
        borrow = preemption.get("borrowWithinCohort")
        # Whether it may preempt in its cohort while it borrows, and which workloads (rules/04 §4.1)
        self.borrows_to_preempt = borrow is not None and borrow.get("policy", "") != "Never"
        self.priority_threshold: int | None = (borrow or {}).get("maxPriorityThreshold")
        checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        self.checks = {check["name"]: frozenset(check.get("onFlavors") or self.flavors) for check in checks}
        self.stop_policy: str = spec.get("stopPolicy") or "None"
        self.weight = weight_of(spec)
        mode = (spec.get("admissionScope") or {}).get("admissionMode")
        self.is_usage_based = mode == "UsageBasedAdmissionFairSharing"
        self.migration: Json | None = (spec.get("concurrentAdmissionPolicy") or {}).get("migration")

    def checks_of(self, assigned: Collection[str], settings: Settings) -> set[str]:
        """Return the checks that an admission with these flavors must pass (rules/07 §2)."""
        if not settings.has("ChecksOfAllFlavorsAreListed"):
            if all(flavors == self.flavors for flavors in self.checks.values()):
                return set(self.checks)
        elif not assigned and not settings.has("FlavorlessAdmissionNeedsNoCheck"):
            return set(self.checks)
        return {name for name, flavors in self.checks.items() if flavors.intersection(assigned)}

    def with_groups_of(self, other: ClusterQueue) -> ClusterQueue:
        """Return a copy with the quotas and resource groups of another (rules/02 §4 5)."""
        mixed = copy.copy(self)
        mixed.groups, mixed.quotas, mixed.flavors = other.groups, other.quotas, other.flavors
        return mixed

    def group_of(self, resource: str) -> ResourceGroup | None:
        """Return the first group that covers a resource (rules/03 §3)."""
        return next((group for group in self.groups if resource in group.resources), None)
