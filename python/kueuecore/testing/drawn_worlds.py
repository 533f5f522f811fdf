"""Random worlds: small, so that ties, limits of zero and missing objects are common.

The first option of each choice is the simplest, so a failing world shrinks to a readable one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._kinds import KUEUE
from kueuecore.testing.chance import Chance
from kueuecore.testing.history import START
from kueuecore.times import SECOND_NS, format_time

__all__ = [
    "CLASSES",
    "Limits",
    "Stock",
    "cluster_queues",
    "cohorts",
    "contents",
    "in_a_cycle",
    "local_queues",
    "stocks",
    "workloads",
]

NAMESPACE = "ns"
# Around the largest number that 64 bits hold, and the cpu quotas that count as unlimited (rules/02 §1).
_EDGES = ("9223372036854775807", "9223372036854775806", "4611686018427387904", "9223372036854775", "9223372036854774")
_FLAVORS = ("f1", "f2", "f3")
_FINAL, _INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
_OTHER_FLAVORS = ("g1", "g2")
_UNDECLARED = "example.com/disk"
# Workloads may name classes of which there is no object, as their values are in the workloads.
CLASSES = ("p1", "p2")
# Gates that affect decisions or messages, each set to the opposite of its default.
_GATES: tuple[JsonObject, ...] = (
    {"PrioritizePreemptorWorkloads": True, "FairSharingRefill": True},
    {"FlavorFungibilityPreserveScanProgress": False},
    {"FlavorFungibilityPreserveScanProgress": False, "FlavorFungibility": False},
    {"FairSharingPrioritizeNonBorrowing": False},
    {"FairSharingPreemptWithinNominal": False, "FairSharingReevaluatePreemptionCandidates": True},
    {"RecomputeAssignmentUponPreemptionTargetsOverlap": False},
    {"PrioritySortingWithinCohort": False},
    {"SchedulingEquivalenceHashing": False, "SchedulingEquivalenceHashingIgnorePodSetName": False},
    {"UnadmittedWorkloadsObservability": False},
    {"UnadmittedWorkloadsExplicitStatus": True},
    {"PartialAdmission": False, "SchedulingEquivalenceHashingIgnorePodSetName": False},
    {"QuotaCheckStrategy": False},
)
# How requests are counted.
_RESOURCES: tuple[JsonObject, ...] = (
    {"quotaCheckStrategy": "IgnoreUndeclared"},
    {"excludeResourcePrefixes": ["example.com/"]},
    {"transformations": [{"input": _UNDECLARED, "strategy": "Replace", "outputs": {"cpu": "500m"}}]},
    {"transformations": [{"input": "memory", "strategy": "Retain", "outputs": {"cpu": "1"}}]},
)
# How long pods may take to be ready, and what happens if they are not.
_WAITS_FOR_PODS: tuple[JsonObject, ...] = (
    {"timeout": "10s", "requeuingStrategy": {"backoffBaseSeconds": 5, "backoffLimitCount": 1}},
    {
        "timeout": "3s",
        "recoveryTimeout": "2s",
        "requeuingStrategy": {"backoffBaseSeconds": 30, "backoffMaxSeconds": 45},
    },
    {"timeout": "20s", "recoveryTimeout": "0s", "requeuingStrategy": {"timestamp": "Creation"}},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a world may become, and what may be in it.

    Args:
        cluster_queues: The maximum number of ClusterQueues.
        workloads: The maximum number of initial workloads.
        depth: The maximum number of cohorts above a ClusterQueue.
        edges: Whether there may be amounts near the largest that 64 bits hold.
        stops: Whether queues may be stopped.
        missing: Whether objects that others name may be missing.
        running: Whether workloads may hold quota from the beginning.
        deactivation: Whether workloads may be deactivated and activated again.
        fair_sharing: Whether fair sharing is on; `None`: in some worlds.
        usage_based: Whether LocalQueues with the least usage may go first (admission fair sharing).
        checks: Whether ClusterQueues may require admission checks.
        slices: Whether a larger workload may replace another.
        gates: Whether a feature gate may differ from its default.
    """

    cluster_queues: int = 4
    workloads: int = 7
    depth: int = 4
    edges: bool = True
    stops: bool = True
    missing: bool = True
    running: bool = True
    deactivation: bool = True
    fair_sharing: bool | None = None
    usage_based: bool = True
    checks: bool = True
    slices: bool = True
    gates: bool = True


@dataclass(frozen=True, slots=True)
class Stock:
    """What the objects of one world have in common.

    Args:
        groups: Resources and flavors of each resource group.
        cohorts: Names of the cohorts.
        queues: Names of the ClusterQueues; their LocalQueues have the same names.
        others: Names of additional LocalQueues, all of the first ClusterQueue.
        checks: Names of the AdmissionChecks; usually none.
        is_usage_based: Whether LocalQueues with the least usage go first.
        undeclared: Resources that pods request and no ClusterQueue has; usually none.
        quotas: Amounts of quota, the simplest first.
        requests: Amounts that pods request.
        edges: Amounts near the largest possible; usually none.
        limits: How large the world may become, and what may be in it.
    """

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    cohorts: tuple[str, ...]
    queues: tuple[str, ...]
    others: tuple[str, ...]
    checks: tuple[str, ...]
    is_usage_based: bool
    undeclared: tuple[str, ...]
    quotas: tuple[str, ...]
    requests: tuple[str, ...]
    edges: tuple[str, ...]
    limits: Limits

    @property
    def flavors(self) -> tuple[str, ...]:
        """All flavors of the world."""
        return tuple(flavor for _, flavors in self.groups for flavor in flavors)


def manifest(kind: str, name: str, spec: JsonObject | None = None, **metadata: JsonValue) -> JsonObject:
    """Return an object of Kueue."""
    head: JsonObject = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **metadata}}
    return head if spec is None else {**head, "spec": spec}


def stocks(chance: Chance, limits: Limits) -> Stock:
    """Draw the stock of a world."""
    shape = chance.integer(0, 9)
    # Most worlds have cpu in one flavor: that is where workloads compete.
    n_flavors = chance.one(1, 1, 2, 2, 3)
    resources = ("cpu",) if shape < 7 else ("cpu", "memory")
    if chance.rarely(20):
        # Every pod counts as one of these, whatever it requests.
        resources = (*resources, "pods")
    groups = [(resources, _FLAVORS[:n_flavors])]
    if shape in (6, 9):
        groups.append((("example.com/gpu",), _OTHER_FLAVORS[: chance.one(1, 2)]))
    n_cohorts = min(chance.one(1, 1, 1, 2, 2, 3, 4, 0), limits.depth)
    n_queues = min(chance.one(2, 2, 1, 3, 4), limits.cluster_queues)
    quotas: tuple[str, ...] = ("4", "4", "5", "4", "6", "4", "3", "8", "2", "0", "1500m")
    requests: tuple[str, ...] = ("2", "1", "1", "2", "3", "1", "2", "4", "500m", "0")
    is_usage_based = limits.usage_based and chance.rarely(6)
    # The usage of LocalQueues is a running sum; the reference does not model how it saturates.
    edges = _EDGES if limits.edges and not is_usage_based and chance.rarely(12) else ()
    checks = ("a1", "a2")[: chance.one(1, 2)] if limits.checks and chance.rarely(7) else ()
    return Stock(
        tuple(groups),
        tuple(f"c{number}" for number in range(1, n_cohorts + 1)),
        tuple(f"q{number}" for number in range(1, n_queues + 1)),
        ("r1",) if is_usage_based else (),
        checks,
        is_usage_based,
        (_UNDECLARED,) if chance.rarely(25) else (),
        (*quotas, *edges),
        (*requests, *edges),
        edges,
        limits,
    )


def resource_groups(chance: Chance, stock: Stock, *, lends: bool, is_queue: bool) -> list[JsonValue]:
    """Draw the resource groups of a ClusterQueue or Cohort; without a cohort above it, there are no limits."""
    found: list[JsonValue] = []
    for resources, flavors in stock.groups:
        offered = list(flavors)
        if len(flavors) > 1 and chance.rarely(4):
            offered = chance.shuffled(flavors)[: chance.integer(1, len(flavors))]
        rows: list[JsonValue] = []
        for flavor in offered:
            quotas: list[JsonValue] = []
            for resource in resources:
                # With more than one flavor or resource, less of each is needed for the same contention.
                nominal = chance.one(*stock.quotas) if is_queue else chance.one("0", "2", "4")
                quota: JsonObject = {"name": resource, "nominalQuota": nominal}
                if lends and chance.rarely(4):
                    quota["borrowingLimit"] = chance.one("0", "1", "2", "1000", *stock.edges)
                if lends and chance.rarely(3):
                    # A lending limit may not exceed the quota, where that is checked.
                    quota["lendingLimit"] = chance.one("0", nominal) if is_queue else chance.one("0", "1", "4")
                quotas.append(quota)
            rows.append({"name": flavor, "resources": quotas})
        found.append({"coveredResources": list(resources), "flavors": rows})
    return found


def weights(chance: Chance) -> JsonObject | None:
    """Draw a fair-sharing weight; `None`: not set."""
    weight = chance.one(None, None, "1", "2", "0", "500m", "3", "1000000")
    return None if weight is None else {"weight": weight}


def cohorts(chance: Chance, stock: Stock) -> list[JsonObject]:
    """Draw the Cohorts of a world: a tree, a chain or a forest; a root may exist only by name."""
    found: list[JsonObject] = []
    for number, name in enumerate(stock.cohorts):
        spec: JsonObject = {}
        if number:
            # Usually each is below the one before, so that depth is common; otherwise beside it, or a root itself.
            above = chance.one(*((number - 1, number - 1, 0, -1) if number > 1 else (0, 0, 0, -1)))
            if above >= 0:
                spec["parentName"] = stock.cohorts[above]
        if chance.rarely(3):
            spec["resourceGroups"] = resource_groups(chance, stock, lends="parentName" in spec, is_queue=False)
        if (weight := weights(chance)) is not None:
            spec["fairSharing"] = weight
        has_object: bool = chance.boolean()
        if spec or has_object:
            found.append(manifest("Cohort", name, spec))
    return found


def in_a_cycle(chance: Chance, stock: Stock, cohort: JsonObject) -> JsonObject:
    """Return a Cohort below any of the cohorts, itself included: often in a cycle, or below one (rules/02 §4)."""
    return {**cohort, "spec": {**object_at(cohort, "spec"), "parentName": chance.one(*stock.cohorts)}}


def preemptions(chance: Chance) -> JsonObject:
    """Draw a preemption policy of every kind."""
    reclaim = chance.one(*["Any", "LowerPriority"] * 3, "Never")
    policy: JsonObject = {
        "withinClusterQueue": chance.one(*["LowerPriority", "LowerOrNewerEqualPriority"] * 4, "Never"),
        "reclaimWithinCohort": reclaim,
    }
    # Kueue refuses it without reclaimWithinCohort.
    if reclaim != "Never" and chance.rarely(3):
        borrow: JsonObject = {"policy": "LowerPriority"}
        if chance.boolean():
            borrow["maxPriorityThreshold"] = chance.one(0, 1, -1, 2147483647)
        policy["borrowWithinCohort"] = borrow
    return policy


def fungibilities(chance: Chance) -> JsonObject:
    """Draw when the search for a flavor ends."""
    policy: JsonObject = {
        "whenCanBorrow": chance.one("MayStopSearch", "TryNextFlavor"),
        "whenCanPreempt": chance.one("TryNextFlavor", "MayStopSearch"),
    }
    if set(policy.values()) == {"TryNextFlavor"} and chance.boolean():
        policy["preference"] = chance.one("BorrowingOverPreemption", "PreemptionOverBorrowing")
    return policy


def cluster_queues(chance: Chance, stock: Stock, name: str) -> JsonObject:
    """Draw one ClusterQueue."""
    cohort = chance.one(*stock.cohorts[::-1] * 3, "")
    spec: JsonObject = {"namespaceSelector": {"matchLabels": {"team": "a"}} if chance.rarely(25) else {}}
    if cohort:
        spec["cohortName"] = cohort
    spec["queueingStrategy"] = chance.one("BestEffortFIFO", "StrictFIFO", "BestEffortFIFO")
    spec["resourceGroups"] = resource_groups(chance, stock, lends=bool(cohort), is_queue=True)
    if not chance.rarely(12):
        spec["preemption"] = preemptions(chance)
    if len(stock.flavors) > 1 and chance.boolean():
        spec["flavorFungibility"] = fungibilities(chance)
    if (weight := weights(chance)) is not None:
        spec["fairSharing"] = weight
    if stock.limits.stops and chance.rarely(50):
        spec["stopPolicy"] = chance.one("Hold", "HoldAndDrain")
    if asked := [name for name in stock.checks if chance.boolean()]:
        rules: list[JsonValue] = [{"name": each, **_on_flavors(chance, spec)} for each in asked]
        spec["admissionChecksStrategy"] = {"admissionChecks": rules}
    if stock.is_usage_based and not chance.rarely(4):
        spec["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    return manifest("ClusterQueue", name, spec)


def _on_flavors(chance: Chance, spec: JsonObject) -> JsonObject:
    """Apply a check to all flavors of a ClusterQueue, or sometimes to only one of them."""
    if not chance.rarely(3):
        return {}
    flavors = [flavor for group in list_at(spec, "resourceGroups") for flavor in list_at(group, "flavors")]
    return {"onFlavors": [text_at(chance.one(*flavors), "name")]}


def admission_checks(chance: Chance, name: str) -> JsonObject:
    """Draw an AdmissionCheck, usually one that works."""
    spec: JsonObject = {"controllerName": "example.com/check"}
    if chance.rarely(20):
        return manifest("AdmissionCheck", name, spec)
    condition: JsonObject = {
        "type": "Active",
        "status": "False" if chance.rarely(15) else "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": format_time(START),
    }
    return {**manifest("AdmissionCheck", name, spec), "status": {"conditions": [condition]}}


def namespaces(chance: Chance) -> JsonObject:
    """Draw the namespace of all workloads."""
    labels: JsonObject = {"team": chance.one("a", "b")} if chance.boolean() else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def local_queues(chance: Chance, stock: Stock, name: str, *, target: str = "") -> JsonObject:
    """Draw a LocalQueue: of this ClusterQueue, or that of its name, or an additional one of the first."""
    spec: JsonObject = {"clusterQueue": target or (stock.queues[0] if name in stock.others else name)}
    if stock.is_usage_based and (weight := chance.one(None, "2", "500m", "0")) is not None:
        spec["fairSharing"] = {"weight": weight}
    if stock.limits.stops and chance.rarely(60):
        spec["stopPolicy"] = chance.one("Hold", "HoldAndDrain")
    return manifest("LocalQueue", name, spec, namespace=NAMESPACE)


def priority_classes(chance: Chance, name: str) -> JsonObject:
    """Draw a WorkloadPriorityClass."""
    return {**manifest("WorkloadPriorityClass", name), "value": chance.one(1, 2, 0, -1, 3)}


def resource_flavors(chance: Chance, name: str) -> JsonObject:
    """Draw a ResourceFlavor; some have labels or a taint."""
    spec: JsonObject = {}
    if chance.rarely(8):
        spec["nodeLabels"] = {"zone": name}
    if chance.rarely(20):
        spec["nodeTaints"] = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    return manifest("ResourceFlavor", name, spec)


def pod_sets(chance: Chance, stock: Stock) -> list[JsonValue]:
    """Draw one or two pod sets; some may start with fewer pods."""
    found: list[JsonValue] = []
    for name in ("main", "side")[: chance.one(1, 1, 1, 1, 2)]:
        requests: JsonObject = {}
        for resources, _ in stock.groups:
            for resource in resources:
                if resource == "cpu" or (resource != "pods" and chance.boolean()):
                    requests[resource] = chance.one(*stock.requests)
        for resource in stock.undeclared:
            if chance.boolean():
                requests[resource] = chance.one(*stock.requests)
        pod: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
        if chance.rarely(4):
            pod["tolerations"] = [{"key": "spot", "operator": "Exists"}]
        if chance.rarely(40):
            pod["nodeSelector"] = {"zone": chance.one(*stock.flavors)}
        count = chance.one(2, 1, 3, 3, 2, 1, 4)
        pod_set: JsonObject = {"name": name, "count": count, "template": {"spec": pod}}
        # One pod set of a workload may start with fewer.
        if name == "main" and count > 1 and not chance.rarely(3):
            pod_set["minCount"] = chance.integer(1, count)
        found.append(pod_set)
    return found


def workloads(
    chance: Chance, stock: Stock, name: str, *, uid: str, created: int = 0, priorities: Sequence[int] = (0, 0, 1, -1)
) -> JsonObject:
    """Draw one workload.

    Args:
        chance: Makes the choices.
        stock: What the objects of the world have in common.
        name: Its name.
        uid: Its UID, which must be unique, or a tie would be decided by names.
        created: When it was created, in seconds after the beginning.
        priorities: The priorities to choose from.
    """
    queue = chance.one(*stock.queues, *stock.others * 2, stock.queues[0])
    if stock.limits.missing and chance.rarely(40):
        queue = "nowhere"
    spec: JsonObject = {"queueName": queue, "priority": chance.one(*priorities)}
    if chance.rarely(12):
        spec["priorityClassRef"] = {
            "group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass",
            "name": chance.one(*CLASSES),
        }
    if chance.rarely(60):
        spec["maximumExecutionTimeSeconds"] = chance.one(5, 1, 60)
    spec["podSets"] = pod_sets(chance, stock)
    stamp = format_time(START + created * SECOND_NS)
    return manifest("Workload", name, spec, namespace=NAMESPACE, uid=uid, creationTimestamp=stamp)


def reservations(chance: Chance, stock: Stock, workload: JsonObject) -> JsonObject:
    """Draw the status of a workload that already holds quota, whatever granted it."""
    assignments: list[JsonValue] = []
    spec = workload["spec"]
    assert isinstance(spec, dict)
    for pod_set in spec["podSets"] if isinstance(spec["podSets"], list) else []:
        assert isinstance(pod_set, dict)
        count = pod_set["count"]
        assert isinstance(count, int)
        assignments.append(
            {
                "name": pod_set["name"],
                "count": count,
                "flavors": {"cpu": chance.one(*stock.groups[0][1])},
                "resourceUsage": {"cpu": str(count * chance.integer(0, 2))},
            }
        )
    since = format_time(START - chance.integer(1, 2) * SECOND_NS)
    kinds = chance.one(*[("QuotaReserved", "Admitted")] * 5, ("QuotaReserved",))
    conditions: list[JsonValue] = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": since} for kind in kinds
    ]
    admission: JsonObject = {"clusterQueue": spec["queueName"], "podSetAssignments": assignments}
    return {"conditions": conditions, "admission": admission}


def configurations(chance: Chance, stock: Stock) -> JsonObject | None:
    """Draw settings of Kueue's Configuration: fair sharing with or without strategies, usage, a gate."""
    found: JsonObject = {}
    lists: list[list[JsonValue]] = [[_FINAL, _INITIAL], [_FINAL], [_INITIAL]]
    wanted = stock.limits.fair_sharing
    if chance.boolean() if wanted is None else wanted:
        found["fairSharing"] = {"preemptionStrategies": chance.one(*lists)}
    if stock.is_usage_based:
        resource_weights: list[JsonObject] = [{}, {"cpu": 2}, {"memory": 0.5}]
        found["admissionFairSharing"] = {
            "usageHalfLifeTime": chance.one("10m", "1m", "1h", "0s"),
            "usageSamplingInterval": chance.one("1m", "5m", "1s"),
            "resourceWeights": chance.one(*resource_weights),
        }
    if stock.limits.gates and chance.rarely(5):
        found["featureGates"] = chance.one(*_GATES)
    if chance.rarely(2 if stock.undeclared else 30):
        found["resources"] = chance.one(*_RESOURCES)
    if chance.rarely(12):
        found["waitForPodsReady"] = chance.one(*_WAITS_FOR_PODS)
    return found or None


def infrastructure(chance: Chance, stock: Stock) -> list[JsonObject]:
    """Draw all objects of a world except its workloads."""

    def kept() -> bool:
        return not (stock.limits.missing and chance.rarely(150))

    found: list[JsonObject] = []
    if kept():
        found.append(namespaces(chance))
    found += [resource_flavors(chance, flavor) for flavor in stock.flavors if kept()]
    found += [in_a_cycle(chance, stock, cohort) if chance.rarely(60) else cohort for cohort in cohorts(chance, stock)]
    found += [priority_classes(chance, name) for name in CLASSES if chance.rarely(6)]
    for queue in stock.queues:
        if kept():
            found.append(cluster_queues(chance, stock, queue))
        if kept():
            found.append(local_queues(chance, stock, queue))
    found += [local_queues(chance, stock, queue) for queue in stock.others]
    found += [admission_checks(chance, name) for name in stock.checks if kept()]
    return found


def contents(chance: Chance, stock: Stock) -> tuple[tuple[JsonObject, ...], tuple[()], JsonObject | None]:
    """Draw the initial objects, no moves, and the Configuration."""
    limits = stock.limits
    configuration = configurations(chance, stock)
    objects = infrastructure(chance, stock)
    n_workloads = chance.integer(min(4, limits.workloads), limits.workloads)
    # None of their orders is that of the names.
    for number, uid in enumerate(chance.shuffled(range(n_workloads)), start=1):
        workload = workloads(chance, stock, f"w{number}", uid=f"uid-{uid:02}", created=-chance.integer(0, 2))
        if limits.running and chance.rarely(8):
            workload["status"] = reservations(chance, stock, workload)
        objects.append(workload)
    return tuple(objects), (), configuration
