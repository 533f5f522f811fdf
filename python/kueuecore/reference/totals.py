"""What a workload requests and holds, by pod set, and its scheduling shape (rules/01 §7.3 to §7.5, 05 §4)."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from kueuecore.reference import amount, conditions, quantity, times
from kueuecore.reference.objects import FlavorResource, key, local_queue_key
from kueuecore.reference.pods import pod_requests
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.capacity import TopologyUse
from kueuecore.reference.topology.encoding import decoded
from kueuecore.reference.topology.nodes import single_pod

ALLOWED_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors"


@dataclass(frozen=True)
class PodSetTotals:
    """The requests of all pods of a pod set, with flavors once it holds quota (rules/01 §7.3, §7.4).

    Args:
        topology: Where its pods are placed, and what each uses there (rules/08 §4.5).
        delayed: Whether the placement is still to come: empty, Pending or Ready (rules/08 §11.2).
        of_one_pod: What one pod requests, unless it holds quota.
    """

    name: str
    count: int
    requests: Mapping[str, int]
    flavors: Mapping[str, str] = field(default_factory=dict)
    topology: TopologyUse | None = None
    delayed: str = ""
    of_one_pod: Mapping[str, int] = field(default_factory=dict)

    def scaled(self, count: int) -> PodSetTotals:
        """Return the totals for another number of pods, unless they are placed somewhere (rules/01 §7.5)."""
        if self.topology is not None:
            return self
        if self.count in (0, count):
            return dataclasses.replace(self, delayed="")
        scaled = {n: amount.multiply(amount.divide(asked, self.count), count) for n, asked in self.requests.items()}
        return dataclasses.replace(self, count=count, requests=scaled, delayed="")


@dataclass
class Progress:
    """How far the flavor scan of a pending workload has come (rules/03 §6)."""

    tried: list[dict[str, int]] = field(default_factory=list)
    generation: int = 0
    cycle: int = 0
    shape: str | None = None

    @property
    def has_pending_flavors(self) -> bool:
        """Return whether there is a flavor that was not tried yet."""
        return any(index != -1 for pod_set in self.tried for index in pod_set.values())

    def matches(self, shape: str | None) -> bool:
        """Return whether it was made for this shape. An unknown shape matches every shape."""
        return shape is None or self.shape is None or shape == self.shape

    def start(self, pod_set: int, resource: str) -> int:
        """Return the index of the flavor to start with (rules/03 §4 2)."""
        return self.tried[pod_set].get(resource, -1) + 1 if pod_set < len(self.tried) else 0


@cache
def resource_order(resource: str) -> tuple[int, str]:
    """Return the sort key of the canonical order of resources: by FNV-1a hash (rules/03 §1)."""
    hashed = 0xCBF29CE484222325
    for byte in resource.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return hashed, resource


def boost(workload: Json, settings: Settings) -> int:
    """Return what an annotation adds to the priority (rules/09 §5)."""
    written = workload["metadata"]["annotations"].get("kueue.x-k8s.io/priority-boost", "")
    try:
        number = int(written) if settings.on("PriorityBoost") else 0
    except ValueError:
        return 0
    return number if -(2**31) <= number < 2**31 else 0


def priority(workload: Json, settings: Settings) -> int:
    """Return the effective priority (rules/04 §2)."""
    return int(workload["spec"].get("priority") or 0) + boost(workload, settings)


def queue_time(workload: Json, settings: Settings, requeuing_timestamp: str = "") -> int:
    """Return the time that orders it in its queue: of an eviction for pods or checks, or its creation (rules/05 §1)."""
    status, reason = conditions.said(workload, "Evicted")
    timestamp = requeuing_timestamp or settings.requeuing_strategy.get("timestamp") or "Eviction"
    reasons = ("AdmissionCheck", *(["PodsReadyTimeout"] if timestamp == "Eviction" else []))
    if status == "True" and reason in reasons:
        return conditions.since(workload, "Evicted")
    preempted = conditions.said(workload, "Preempted") == ("True", "InCohortReclaimWhileBorrowing")
    if preempted and not settings.on("PrioritySortingWithinCohort"):
        return conditions.since(workload, "Preempted") + times.SECOND // 1000
    if settings.time_share is not None and conditions.said(workload, "Preempted") == ("True", "InClusterQueue"):
        return conditions.since(workload, "Preempted")  # rules/13 §4
    return times.moment(workload["metadata"].get("creationTimestamp"))


def _transformed(requests: dict[str, Fraction], settings: Settings) -> dict[str, Fraction]:
    """Apply the exclusions and transformations of the Configuration (rules/01 §7.3 3 and 4)."""
    is_apart = settings.has("TransformationsAreSummedApart")
    may_be_inputs = is_apart and settings.has("ExcludedResourcesAreInputs")
    if not may_be_inputs:
        requests = _without_excluded(requests, settings)
    kept: dict[str, Fraction] = {}
    made: dict[str, Fraction] = {}
    # rules/01 §7.3: Kueue took no order, in which whoever overwrites another comes by chance.
    for name, total in sorted(requests.items()):
        rule = settings.transformations.get(name, {})
        scaled = total * _factor(requests.get(rule.get("multiplyBy", ""), Fraction(1)), settings)
        outputs = (rule.get("outputs") or {}).items()
        base = _factor(scaled, settings)
        made = quantity.total(made, {output: base * quantity.parse(factor) for output, factor in outputs})
        if (rule.get("strategy") or "Retain") == "Retain":
            (kept if is_apart else made)[name] = total if is_apart else scaled
    if may_be_inputs:
        kept = _without_excluded(kept, settings)
    return quantity.total(kept, {name: max(total, Fraction(0)) for name, total in made.items()} if is_apart else made)


def _without_excluded(requests: dict[str, Fraction], settings: Settings) -> dict[str, Fraction]:
    return {name: total for name, total in requests.items() if not name.startswith(settings.excluded_prefixes)}


def _factor(number: Fraction, settings: Settings) -> Fraction:
    """Return a request as what it is multiplied with counts it (rules/01 §7.3)."""
    return number if settings.has("TransformationsAreExact") else Fraction(quantity.away_from_zero(number))


def _totals(workload: Json, settings: Settings) -> list[PodSetTotals]:
    """Return what the pods that are not done request, or hold (rules/01 §7.3, §7.4)."""
    reclaimable, pod_sets = {}, workload["spec"]["podSets"]
    if settings.on("ReclaimablePods"):
        reclaimable = {p["name"]: p["count"] for p in workload["status"].get("reclaimablePods") or ()}
    counts = {pod_set["name"]: pod_set["count"] for pod_set in pod_sets}
    left = {name: count - min(reclaimable.get(name, 0), count) for name, count in counts.items()}
    totals = []
    if not conditions.admission(workload):
        for pod_set in pod_sets:
            name = pod_set["name"]
            needed = _transformed(pod_requests(pod_set["template"]["spec"], settings), settings)
            least = 0 if settings.has("RequestsAreNotNegative") else amount.LEAST
            single = {n: max(quantity.value(n, q), least) for n, q in needed.items()}
            asked = {n: amount.multiply(value, left[name]) for n, value in single.items()}
            totals.append(PodSetTotals(name, left[name], asked, of_one_pod=single))
        return totals
    for assignment in conditions.admission(workload).get("podSetAssignments") or ():
        name, usage = assignment["name"], assignment.get("resourceUsage") or {}
        count = assignment.get("count", counts.get(name, 0))
        used = {resource: quantity.value(resource, each) for resource, each in usage.items()}
        held = PodSetTotals(name, count, used, assignment.get("flavors") or {})
        held = held.scaled(min(count, left.get(name, 0)))
        if settings.on("TopologyAwareScheduling"):
            use = _topology_use(workload, assignment, PodSetTotals(name, count, used), settings)
            held = dataclasses.replace(held, topology=use, delayed=assignment.get("delayedTopologyRequest") or "")
        totals.append(held)
    return totals


def _leave_when_done(settings: Settings) -> bool:
    """Return whether a pod set of which no pods are left takes no room of its domains (rules/08 §4.5)."""
    return settings.on("ReclaimablePods") and settings.has("DonePodSetsLeaveNodes")


def _done(workload: Json) -> set[str]:
    """Return the pod sets of which no pods are left."""
    counts = {pod_set["name"]: pod_set["count"] for pod_set in workload["spec"]["podSets"]}
    gone = {p["name"]: p["count"] for p in workload["status"].get("reclaimablePods") or ()}
    return {name for name, count in counts.items() if gone.get(name, 0) >= count}


def _topology_use(workload: Json, assignment: Json, held: PodSetTotals, settings: Settings) -> TopologyUse | None:
    """Return where the pods are placed: each uses its template's requests, or its part of the quota (rules/08 §4.5)."""
    stands = decoded(assignment.get("topologyAssignment"))
    templates = [p["template"]["spec"] for p in workload["spec"]["podSets"] if p["name"] == assignment["name"]]
    if stands is None:
        return None
    if not settings.has("NodeUsageIsThatOfPods"):
        templates = []
    return TopologyUse(stands, single_pod(templates[0], settings) if templates else held.scaled(1).requests)


def _canonical(quantities: Mapping[str, str] | None) -> Json:
    return {name: quantity.canonical(written) for name, written in (quantities or {}).items()}


def _shape(workload: Json, totals: list[PodSetTotals], settings: Settings) -> str | None:
    """Return the scheduling shape: workloads of one shape are equal to the scheduler (rules/05 §4)."""
    if not settings.on("SchedulingEquivalenceHashing"):
        return None
    plain = ("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints")
    names_count = not settings.on("SchedulingEquivalenceHashingIgnorePodSetName")
    shape: list[Any] = []
    for pod_set, total in zip(workload["spec"]["podSets"], totals, strict=False):
        pod = pod_set["template"]["spec"]
        containers = [*(pod.get("initContainers") or ()), {}, *(pod.get("containers") or ())]
        containers.append({"resources": pod.get("resources")})
        asked = [[_canonical((c.get("resources") or {}).get("requests")), c.get("ports") or None] for c in containers]
        parts = [pod.get(name) or None for name in (*plain, "resourceClaims")]
        name = pod_set["name"] if names_count else ""
        counted = [name, total.count, dict(total.requests), pod_set.get("minCount")]
        shape.append([counted, pod_set.get("topologyRequest"), asked, parts, _canonical(pod.get("overhead"))])
    allowed = None
    if settings.on("ConcurrentAdmission"):
        allowed = workload["metadata"]["annotations"].get(ALLOWED_FLAVORS)
    return json.dumps([shape, priority(workload, settings), allowed], sort_keys=True)


class Info:
    """A Workload as of the creation of this object, with all that follows from it (rules/01 §7).

    Args:
        workload: The Workload.
        settings: The settings.
        cluster_queue: The ClusterQueue in which it waits, if it does not hold quota.
    """

    def __init__(self, workload: Json, settings: Settings, cluster_queue: str = "") -> None:
        self.workload = workload
        self.key = key(workload)
        self.uid: str = workload["metadata"]["uid"]
        self.local_queue = local_queue_key(workload)
        admission = conditions.admission(workload)
        self.cluster_queue: str = admission.get("clusterQueue", "") if admission else cluster_queue
        self.totals = _totals(workload, settings)
        # The quota that it holds (rules/01 §7.4).
        self.usage: dict[FlavorResource, int] = {}
        for pod_set in self.totals:
            for resource, total in pod_set.requests.items():
                if flavor := pod_set.flavors.get(resource):
                    self.usage[flavor, resource] = amount.add(self.usage.get((flavor, resource), 0), total)
        # Where its pods are placed, by flavor (rules/08 §4.5).
        self.topology: dict[str, list[TopologyUse]] = {}
        done = _done(workload) if _leave_when_done(settings) else set()
        for pod_set in self.totals:
            if pod_set.topology is not None and pod_set.name not in done:
                for flavor in sorted(set(pod_set.flavors.values())):
                    self.topology.setdefault(flavor, []).append(pod_set.topology)
        self.shape = _shape(workload, self.totals, settings)
        self.priority, self.boost = priority(workload, settings), boost(workload, settings)
        self.queued_at = queue_time(workload, settings)
        # When it got its quota; None if it has none.
        held = conditions.has_reservation(workload)
        self.reserved_at = conditions.since(workload, "QuotaReserved") if held else None
        self.is_evicted = conditions.is_true(workload, "Evicted")
        # Since when it runs, for experiments (rules/13 §1); None if it does not, or was asked to stop.
        runs = conditions.is_true(workload, "Admitted") and not self.is_evicted
        self.running_since = conditions.since(workload, "Admitted") if runs else None
        # The progress of the flavor scan, and the generation of the object when it was last a head.
        self.progress: Progress | None = None
        self.last_generation = 0

    def renewed(self, newest: Info) -> Info:
        """Return an Info for the newest version of the same workload, in the same queue."""
        renewed = copy.copy(newest)
        renewed.cluster_queue, renewed.progress = self.cluster_queue, self.progress
        renewed.last_generation = self.last_generation
        return renewed

    @property
    def pod_sets(self) -> list[Json]:
        """The pod sets of the workload."""
        pod_sets: list[Json] = self.workload["spec"]["podSets"]
        return pod_sets
