"""The building blocks of contests: trees of Cohorts, ClusterQueues that preempt, workloads that hold quota."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.testing.chance import Chance
from kueuecore.testing.drawn_worlds import (
    NAMESPACE,
    Limits,
    Stock,
    cluster_queues,
    configurations,
    manifest,
    preemptions,
    resource_groups,
    weights,
)
from kueuecore.testing.history import START, key_of
from kueuecore.times import SECOND_NS, format_time

__all__ = [
    "amount_of_cpu",
    "cohort_tree",
    "contest_configuration",
    "contest_stock",
    "contested_queue",
    "groups_of_cpu",
    "holding",
    "huge_holders",
    "pod_set_of",
    "preempting",
    "quota_of_cpu",
    "small_holders",
    "workload_of",
]

_LARGEST = 2**63 - 1
_RECOMPUTE = "RecomputeAssignmentUponPreemptionTargetsOverlap"
_SLICE_OF = "kueue.x-k8s.io/workload-slice-replacement-for"


def contest_stock(
    chance: Chance,
    edges: Sequence[int],
    *,
    groups: Sequence[tuple[tuple[str, ...], tuple[str, ...]]],
    n_cohorts: int,
    n_queues: int,
    quotas: tuple[str, ...],
    requests: tuple[str, ...],
    fair_sharing: bool | None = None,
) -> Stock:
    """Return the stock of a contest: nothing is stopped, missing or subject to checks."""
    largest = tuple(map(amount_of_cpu, edges))
    # The usage of LocalQueues is a running sum; the reference does not model how it saturates.
    is_usage_based = not edges and chance.rarely(10)
    return Stock(
        tuple(groups),
        tuple(f"c{number}" for number in range(1, n_cohorts + 1)),
        tuple(f"q{number}" for number in range(1, n_queues + 1)),
        ("r1",) if is_usage_based else (),
        (),
        is_usage_based,
        (),
        (*quotas, *largest[:2]) if edges else quotas,
        (*requests, *largest[:2]) if edges else requests,
        largest,
        Limits(stops=False, missing=False, checks=False, fair_sharing=fair_sharing),
    )


def amount_of_cpu(thousandths: int) -> str:
    """Return an amount of cpu, in whole units if it is one."""
    thousandths = max(0, min(_LARGEST, thousandths))
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def contest_configuration(chance: Chance, stock: Stock) -> JsonObject | None:
    """Draw settings as for any world, except that targets are not recomputed more often."""
    found = configurations(chance, stock) or {}
    # No pods are reported ready, so a timeout would end every contest after some seconds.
    found.pop("waitForPodsReady", None)
    if chance.rarely(5):
        found["featureGates"] = {**object_at(found, "featureGates"), _RECOMPUTE: False}
    return found or None


def cohort_tree(chance: Chance, stock: Stock, depth: int) -> list[JsonObject]:
    """Return the Cohorts as one tree of this depth: a chain first, then branches off it."""
    levels: list[int] = []
    found: list[JsonObject] = []
    for number, name in enumerate(stock.cohorts):
        spec: JsonObject = {}
        above = number - 1
        if number >= depth:
            above = chance.one(*(index for index in range(number) if levels[index] < depth))
        levels.append(1 if above < 0 else levels[above] + 1)
        if above >= 0:
            spec["parentName"] = stock.cohorts[above]
        if not chance.rarely(3):
            spec["resourceGroups"] = resource_groups(chance, stock, lends=above >= 0, is_queue=False)
        if (weight := weights(chance)) is not None:
            spec["fairSharing"] = weight
        found.append(manifest("Cohort", name, spec))
    return found


def contested_queue(chance: Chance, stock: Stock, name: str, **changes: JsonValue) -> JsonObject:
    """Return a ClusterQueue in which preemption is common."""
    queue = cluster_queues(chance, stock, name)
    spec = {**object_at(queue, "spec"), "namespaceSelector": {}}
    return {**queue, "spec": {**spec, "preemption": preemptions(chance), **changes}}


def quota_of_cpu(nominal: str, *, borrowing: str | None = None, lending: str | None = None) -> JsonObject:
    """Return the quota of cpu."""
    quota: JsonObject = {"name": "cpu", "nominalQuota": nominal}
    if borrowing is not None:
        quota["borrowingLimit"] = borrowing
    if lending is not None:
        quota["lendingLimit"] = lending
    return quota


def groups_of_cpu(quotas: Mapping[str, JsonObject]) -> list[JsonValue]:
    """Return one resource group: cpu in these flavors."""
    flavors: list[JsonValue] = [{"name": flavor, "resources": [quota]} for flavor, quota in quotas.items()]
    return [{"coveredResources": ["cpu"], "flavors": flavors}]


def pod_set_of(name: str, count: int, requests: JsonObject, min_count: int | None = None) -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    found: JsonObject = {"name": name, "count": count, "template": {"spec": pod}}
    return found if min_count is None else {**found, "minCount": min_count}


def workload_of(
    name: str, queue: str, priority: int, pod_sets: Sequence[JsonValue], *, created: int = 0, slice_of: str = ""
) -> JsonObject:
    metadata: JsonObject = {"annotations": {_SLICE_OF: slice_of}} if slice_of else {}
    created_at = format_time(START + created * SECOND_NS)
    spec: JsonObject = {"queueName": queue, "priority": priority, "podSets": list(pod_sets)}
    return manifest("Workload", name, spec, namespace=NAMESPACE, uid=name, creationTimestamp=created_at, **metadata)


def holding(
    workload: JsonObject,
    queue: str,
    flavors: Mapping[str, str],
    usage: Mapping[str, str],
    *,
    seconds: int,
    is_evicted: bool = False,
) -> JsonObject:
    """Return the workload (of one pod set) as one that has held quota for this many seconds at the start."""
    since = format_time(START - seconds * SECOND_NS)
    kinds = [("QuotaReserved", "QuotaReserved"), ("Admitted", "Admitted"), *[("Evicted", "Preempted")] * is_evicted]
    conditions: list[JsonValue] = [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": since}
        for kind, reason in kinds
    ]
    pod_set = object_at(list_at(workload, "spec", "podSets")[0])
    assigned: JsonObject = {
        "name": pod_set["name"],
        "count": pod_set["count"],
        "flavors": dict(flavors),
        "resourceUsage": dict(usage),
    }
    admission: JsonObject = {"clusterQueue": queue, "podSetAssignments": [assigned]}
    return {**workload, "status": {"conditions": conditions, "admission": admission}}


def small_holders(
    chance: Chance, queue: str, n: int, *, first: int, flavors: Sequence[str], priorities: Sequence[int]
) -> list[JsonObject]:
    """Return workloads of a pod or two that hold cpu of some flavor."""
    found: list[JsonObject] = []
    for number in range(first, first + n):
        count = chance.one(1, 1, 2)
        workload = workload_of(
            f"h{number:04}", queue, chance.one(*priorities), [pod_set_of("main", count, {"cpu": "1"})], created=-9
        )
        used, seconds = {"cpu": str(count)}, chance.integer(1, 4)
        is_evicted = chance.rarely(15)
        flavor = chance.one(*flavors)
        found.append(holding(workload, queue, {"cpu": flavor}, used, seconds=seconds, is_evicted=is_evicted))
    return found


def preempting(queue: JsonObject, whom: str, policy_name: str) -> JsonObject:
    """Return the ClusterQueue with this preemption policy; its other policies stay."""
    policy = {**object_at(queue, "spec", "preemption"), whom: policy_name}
    return {**queue, "spec": {**object_at(queue, "spec"), "preemption": policy}}


def huge_holders(stock: Stock, objects: Sequence[JsonObject], queue: str = "") -> list[JsonObject]:
    """Return workloads that fill each quota of cpu near the maximum; otherwise nothing there would ever be preempted.

    Args:
        stock: The stock of the contest.
        objects: All objects, among them the ClusterQueues with such quotas.
        queue: The ClusterQueue of all these workloads; empty: each is in the one whose quota it fills.
    """
    found: list[JsonObject] = []
    for one in objects:
        if one["kind"] != "ClusterQueue":
            continue
        for flavor in (
            flavor for group in list_at(one, "spec", "resourceGroups") for flavor in list_at(group, "flavors")
        ):
            quota = object_at(list_at(flavor, "resources")[0])
            nominal = text_at(quota, "nominalQuota")
            if quota["name"] == "cpu" and nominal in stock.edges:
                holder = queue or key_of(one)
                workload = workload_of(
                    f"e{len(found)}", holder, 0, [pod_set_of("main", 1, {"cpu": nominal})], created=-9
                )
                name = text_at(flavor, "name")
                found.append(holding(workload, holder, {"cpu": name}, {"cpu": nominal}, seconds=3))
    return found
