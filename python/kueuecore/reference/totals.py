"""What a workload asks for and holds, pod set by pod set, and its scheduling shape (rules/01 §7.3 to §7.5, 05 §4)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from kueuecore.reference import amount, conditions, quantity, times
from kueuecore.reference.objects import FlavorResource, key, local_queue_key
from kueuecore.reference.pods import pod_requests
from kueuecore.reference.queue_order import queue_time
from kueuecore.reference.settings import Json, Settings

__all__ = ["Info", "PodSetTotals", "Progress", "base_priority", "boost", "resource_order"]


@dataclass(frozen=True)
class PodSetTotals:
    """Requests of all pods of a pod set; flavors once it holds quota (rules/01 §7.3, §7.4)."""

    name: str
    count: int
    requests: Mapping[str, int]
    flavors: Mapping[str, str] = field(default_factory=dict)

    def scaled(self, count: int) -> PodSetTotals:
        """For another number of pods (rules/01 §7.5)."""
        if self.count in (0, count):
            return dataclasses.replace(self, count=count)
        per_pod = {name: amount.divide(total, self.count) for name, total in self.requests.items()}
        scaled = {name: amount.multiply(one, count) for name, one in per_pod.items()}
        return dataclasses.replace(self, count=count, requests=scaled)


@dataclass
class Progress:
    """How far the scan of flavors of a pending workload has come (rules/03 §6)."""

    tried: list[dict[str, int]]
    generation: int
    cycle: int
    shape: str | None

    @property
    def has_pending_flavors(self) -> bool:
        """Is there a flavor that was not tried yet?"""
        return any(index != -1 for pod_set in self.tried for index in pod_set.values())

    def matches(self, shape: str | None) -> bool:
        """Was it made for this shape? An unknown shape is every shape."""
        return shape is None or self.shape is None or shape == self.shape

    def start(self, pod_set: int, resource: str) -> int:
        """Index of the flavor to begin with (rules/03 §4 2)."""
        return self.tried[pod_set].get(resource, -1) + 1 if pod_set < len(self.tried) else 0


@cache
def resource_order(resource: str) -> tuple[int, str]:
    """Canonical order of resources: by their FNV-1a hashes (rules/03 §1)."""
    hashed = 0xCBF29CE484222325
    for byte in resource.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return hashed, resource


def base_priority(workload: Json) -> int:
    """Priority without boost (rules/04 §2)."""
    return int(workload["spec"].get("priority") or 0)


def boost(workload: Json, settings: Settings) -> int:
    """What an annotation adds to the priority (rules/09 §5)."""
    written = (workload["metadata"].get("annotations") or {}).get("kueue.x-k8s.io/priority-boost", "")
    try:
        number = int(written) if settings.on("PriorityBoost") else 0
    except ValueError:
        return 0
    return number if -(2**31) <= number < 2**31 else 0


def _transformed(requests: dict[str, Fraction], settings: Settings) -> dict[str, Fraction]:
    """What the Configuration leaves out and transforms (rules/01 §7.3 3 and 4)."""
    excluded = tuple(settings.resources.get("excludeResourcePrefixes") or ())
    requests = {name: total for name, total in requests.items() if not name.startswith(excluded)}
    rules = {rule["input"]: rule for rule in settings.resources.get("transformations") or ()}
    result: dict[str, Fraction] = {}
    made: dict[str, Fraction] = {}
    for name, total in requests.items():
        rule = rules.get(name)
        if rule is None or (rule.get("strategy") or "Retain") == "Retain":
            result[name] = total
        if rule is not None:
            scaled = total * requests.get(rule.get("multiplyBy", ""), 1)
            for output, factor in (rule.get("outputs") or {}).items():
                made[output] = made.get(output, Fraction(0)) + scaled * quantity.parse(factor)
    for output, total in made.items():
        result[output] = result.get(output, Fraction(0)) + max(total, Fraction(0))
    return result


def _counts(workload: Json, settings: Settings) -> dict[str, int]:
    """Pods that still need something (rules/01 §7.3)."""
    reclaimable = {p["name"]: p["count"] for p in (workload.get("status") or {}).get("reclaimablePods") or ()}
    counts = {p.get("name", ""): p.get("count", 0) for p in workload["spec"].get("podSets") or ()}
    if not settings.on("ReclaimablePods"):
        return counts
    return {name: count - min(reclaimable.get(name, 0), count) for name, count in counts.items()}


def _totals_pending(workload: Json, settings: Settings) -> list[PodSetTotals]:
    counts, totals = _counts(workload, settings), []
    for pod_set in workload["spec"].get("podSets") or ():
        needed = _transformed(pod_requests((pod_set.get("template") or {}).get("spec") or {}), settings)
        count = counts[pod_set.get("name", "")]
        requests = {n: amount.multiply(max(quantity.value(n, q), 0), count) for n, q in needed.items()}
        totals.append(PodSetTotals(pod_set.get("name", ""), count, requests))
    return totals


def _totals_reserved(workload: Json, settings: Settings) -> list[PodSetTotals]:
    counts = _counts(workload, settings)
    spec = {p.get("name", ""): p.get("count", 0) for p in workload["spec"].get("podSets") or ()}
    totals = []
    for assignment in workload["status"]["admission"].get("podSetAssignments") or ():
        name, usage = assignment["name"], assignment.get("resourceUsage") or {}
        count = assignment.get("count", spec.get(name, 0))
        requests = {resource: quantity.value(resource, used) for resource, used in usage.items()}
        held = PodSetTotals(name, count, requests, assignment.get("flavors") or {})
        left = counts.get(name, 0)
        if left < count:
            per_pod = {resource: amount.divide(total, count) for resource, total in requests.items()}
            remaining = {resource: amount.multiply(one, left) for resource, one in per_pod.items()}
            held = PodSetTotals(name, left, remaining, held.flavors)
        totals.append(held)
    return totals


def _canonical_list(quantities: Mapping[str, str] | None) -> dict[str, str]:
    return {name: quantity.canonical(written) for name, written in sorted((quantities or {}).items())}


def _shape(workload: Json, totals: list[PodSetTotals], settings: Settings) -> str | None:
    """Workloads of one shape are one to the scheduler (rules/05 §4)."""
    if not settings.on("SchedulingEquivalenceHashing"):
        return None
    pod_sets = []
    for pod_set, total in zip(workload["spec"].get("podSets") or (), totals, strict=False):
        pod = (pod_set.get("template") or {}).get("spec") or {}
        containers = [
            [_canonical_list((c.get("resources") or {}).get("requests")), c.get("ports") or None]
            for kind in ("initContainers", "containers")
            for c in [*(pod.get(kind) or ()), {}]
        ]
        plain = ("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints")
        parts = [pod.get(name) or None for name in (*plain, "resourceClaims")]
        level = _canonical_list((pod.get("resources") or {}).get("requests"))
        asked = [pod_set.get("name", ""), total.count, dict(total.requests), pod_set.get("minCount")]
        request = pod_set.get("topologyRequest")
        pod_sets.append([asked, request, containers, parts, level, _canonical_list(pod.get("overhead"))])
    allowed = None
    if settings.on("ConcurrentAdmission"):
        annotations = workload["metadata"].get("annotations") or {}
        allowed = annotations.get("kueue.x-k8s.io/workload-allowed-resource-flavors")
    effective = base_priority(workload) + boost(workload, settings)
    return json.dumps([pod_sets, effective, allowed], sort_keys=True)


@dataclass
class Info:
    """A Workload with all that follows from it. `workload` is as it was when this was made (rules/01 §7).

    Args:
        key: Its key.
        uid: Its UID.
        local_queue: Key of the LocalQueue that it names.
        cluster_queue: The ClusterQueue whose quota it holds or waits for.
        totals: What its pod sets ask for or hold.
        usage: The quota that it holds (rules/01 §7.4).
        shape: Its scheduling shape, None if unknown (rules/05 §4).
        priority: Its effective priority, with `boost` in it (rules/04 §2).
        queued_at: By which time it stands in its queue (rules/05 §1).
        reserved_at: When it got its quota, None if it has none.
        is_evicted: Has it been told to stop?
        progress: How far the scan of flavors has come.
        last_generation: Generation of the object when it was last a head, 0 if it was not.
    """

    workload: Json
    key: str
    uid: str
    local_queue: str
    cluster_queue: str
    totals: list[PodSetTotals]
    usage: dict[FlavorResource, int]
    shape: str | None
    priority: int
    boost: int
    queued_at: int
    reserved_at: int | None
    is_evicted: bool
    progress: Progress | None = None
    last_generation: int = 0

    @staticmethod
    def read(workload: Json, settings: Settings, cluster_queue: str = "") -> Info:
        """Work out what a Workload asks for or, once it has an admission, holds (rules/01 §7.3, §7.4)."""
        admission = (workload.get("status") or {}).get("admission")
        totals = _totals_reserved(workload, settings) if admission else _totals_pending(workload, settings)
        boosted = boost(workload, settings)
        usage: dict[FlavorResource, int] = {}
        for pod_set in totals:
            for resource, total in pod_set.requests.items():
                if pod_set.flavors.get(resource):
                    fr = (pod_set.flavors[resource], resource)
                    usage[fr] = amount.add(usage.get(fr, 0), total)
        reserved = conditions.find(workload, "QuotaReserved") or {}
        return Info(
            workload,
            key=key(workload),
            uid=workload["metadata"].get("uid", ""),
            local_queue=local_queue_key(workload),
            cluster_queue=admission.get("clusterQueue", "") if admission else cluster_queue,
            totals=totals,
            usage=usage,
            shape=_shape(workload, totals, settings),
            priority=base_priority(workload) + boosted,
            boost=boosted,
            queued_at=queue_time(workload, settings),
            reserved_at=times.moment(reserved.get("lastTransitionTime")) if reserved.get("status") == "True" else None,
            is_evicted=conditions.is_evicted(workload),
        )

    def renewed(self, newest: Info) -> Info:
        """What is new of the same workload, in the same queue."""
        return dataclasses.replace(
            newest,
            cluster_queue=self.cluster_queue,
            progress=self.progress,
            last_generation=self.last_generation,
        )

    @property
    def pod_sets(self) -> list[Json]:
        """Its pod sets."""
        return list(self.workload["spec"].get("podSets") or ())
