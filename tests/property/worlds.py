"""Whole worlds for property tests: small, so that ties, limits of zero and missing objects are common."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.times import format_time
from tests.builders import at

FLAVORS = ("f1", "f2")
COHORTS = ("root", "left", "right", "deep")
QUEUES = ("q1", "q2", "q3", "q4")
NAMESPACES = ("a", "b")
RESOURCES = ("cpu", "memory")

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"

FAIR = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, fairSharing: {preemptionStrategies: "
    "[LessThanOrEqualToFinalShare, LessThanInitialShare]}}"
)
CONFIGURATIONS = (None, FAIR)

_amounts = st.sampled_from(["1", "2", "0", "3", "5", "1500m"])
_quotas = st.sampled_from(["4", "2", "5", "0", "8", "1500m"])
_rarely = st.sampled_from([False] * 11 + [True])
_limits = st.sampled_from([None, None, "0", "1", "4"])


def _named(kind: str, name: str, namespace: str = "") -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata}


@st.composite
def resource_groups(draw: st.DrawFn, limits: bool, is_queue: bool) -> list[Json]:
    resources = draw(st.sampled_from([("cpu",), ("cpu",), RESOURCES]))
    flavors = draw(st.sampled_from([("f1",), ("f1", "f2"), ("f2", "f1")]))
    if draw(_rarely):
        flavors = (*flavors, "missing")
    groups: list[Json] = []
    for flavor in flavors:
        quotas: list[Json] = []
        for resource in resources:
            quota: Json = {"name": resource, "nominalQuota": draw(_quotas)}
            borrowing, lending = (draw(_limits), draw(_limits)) if limits else (None, None)
            if borrowing is not None:
                quota["borrowingLimit"] = borrowing
            if lending is not None:
                quota["lendingLimit"] = "0" if is_queue else lending
            quotas.append(quota)
        groups.append({"name": flavor, "resources": quotas})
    return [{"coveredResources": list(resources), "flavors": groups}]


@st.composite
def cohorts(draw: st.DrawFn) -> list[Json]:
    """A forest of depth 0 to 3; a cohort may be only named."""
    parents = {"left": "root", "right": draw(st.sampled_from(["root", ""])), "deep": draw(st.sampled_from(COHORTS[:3]))}
    found = []
    for name in COHORTS:
        if draw(st.booleans()):
            cohort = _named("Cohort", name)
            parent = parents.get(name, "")
            cohort["spec"] = {"parentName": parent} if parent else {}
            if draw(st.booleans()):
                cohort["spec"]["resourceGroups"] = draw(resource_groups(bool(parent), False))
            if draw(st.booleans()):
                cohort["spec"]["fairSharing"] = {"weight": draw(st.sampled_from(["0", "500m", "1", "2"]))}
            found.append(cohort)
    return found


@st.composite
def cluster_queues(draw: st.DrawFn) -> list[Json]:
    found = []
    for name in QUEUES:
        if draw(_rarely):
            continue
        queue = _named("ClusterQueue", name)
        cohort = draw(st.sampled_from(["", *COHORTS]))
        queue["spec"] = {
            "namespaceSelector": {"matchLabels": {"team": "a"}} if draw(_rarely) else {},
            "queueingStrategy": draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"])),
            "resourceGroups": draw(resource_groups(bool(cohort), True)),
        }
        if cohort:
            queue["spec"]["cohortName"] = cohort
        if draw(_rarely):
            queue["spec"]["stopPolicy"] = "Hold"
        if draw(st.booleans()):
            queue["spec"]["flavorFungibility"] = {
                "whenCanBorrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
                "whenCanPreempt": "TryNextFlavor",
            }
        if draw(st.booleans()):
            queue["spec"]["preemption"] = {
                "reclaimWithinCohort": draw(st.sampled_from(["Any", "Never", "LowerPriority"])),
                "withinClusterQueue": draw(st.sampled_from(["LowerPriority", "Never", "LowerOrNewerEqualPriority"])),
            }
            if queue["spec"]["preemption"]["reclaimWithinCohort"] != "Never" and draw(st.booleans()):
                queue["spec"]["preemption"]["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if draw(st.booleans()):
            queue["spec"]["fairSharing"] = {"weight": draw(st.sampled_from(["0", "500m", "1", "2"]))}
        found.append(queue)
    return found


@st.composite
def pod_sets(draw: st.DrawFn) -> list[Json]:
    found = []
    for name in ("main", "side")[: draw(st.sampled_from([1, 1, 2]))]:
        requests = {"cpu": draw(_amounts)}
        if draw(st.sampled_from([False, False, False, True])):
            requests["memory"] = draw(st.sampled_from(["0", "1", "2"]))
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        pod_set: Json = {
            "name": name,
            "count": draw(st.integers(0, 3)),
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
        if name == "main" and pod_set["count"] > 1 and draw(st.booleans()):
            pod_set["minCount"] = 1
        found.append(pod_set)
    return found


@st.composite
def workloads(draw: st.DrawFn, names: list[str], *, uids: bool = True) -> list[Json]:
    found = []
    for name in names:
        workload = _named("Workload", name, draw(st.sampled_from(NAMESPACES)))
        workload["metadata"]["creationTimestamp"] = format_time(at(draw(st.integers(-3, 0))))
        if uids and draw(st.booleans()):
            workload["metadata"]["uid"] = f"uid-{name}"
        sets = draw(pod_sets())
        workload["spec"] = {
            "queueName": "nowhere" if draw(_rarely) else draw(st.sampled_from(["lq1", "lq2"])),
            "podSets": sets,
            "priority": draw(st.sampled_from([0, 0, 1, -1])),
        }
        if draw(st.sampled_from([False, False, False, True])):
            workload["status"] = draw(reservations(sets))
        found.append(workload)
    return found


@st.composite
def reservations(draw: st.DrawFn, sets: list[Json]) -> Json:
    """The status of a workload that another Kueue admitted, wherever."""
    assignments = []
    for pod_set in sets:
        each = draw(st.integers(0, 3))
        assignments.append(
            {
                "name": pod_set["name"],
                "count": pod_set["count"],
                "flavors": {"cpu": draw(st.sampled_from(["f1", "f2", "missing"]))},
                "resourceUsage": {"cpu": str(each * pod_set["count"])},
            }
        )
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "m", "lastTransitionTime": format_time(at(-1))}
        for kind in draw(st.sampled_from([("QuotaReserved",), ("QuotaReserved", "Admitted")]))
    ]
    queue = draw(st.sampled_from([*QUEUES, "unknown"]))
    return {"conditions": conditions, "admission": {"clusterQueue": queue, "podSetAssignments": assignments}}


@st.composite
def worlds(draw: st.DrawFn, max_workloads: int = 10) -> list[Json]:
    """All objects of a small world; some of what others name may be missing."""
    found: list[Json] = []
    for namespace in NAMESPACES:
        if not draw(_rarely):
            labels = draw(st.sampled_from([{}, {"team": "a"}, {"team": "b"}]))
            found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    found += [_named("ResourceFlavor", flavor) for flavor in FLAVORS if not draw(_rarely)]
    found += draw(cohorts())
    found += draw(cluster_queues())
    for namespace in NAMESPACES:
        for name in ("lq1", "lq2"):
            if not draw(_rarely):
                queue = _named("LocalQueue", name, namespace)
                queue["spec"] = {"clusterQueue": draw(st.sampled_from(QUEUES))}
                found.append(queue)
    names = [f"w{number}" for number in range(draw(st.integers(min(4, max_workloads), max_workloads)))]
    return found + draw(workloads(names))
