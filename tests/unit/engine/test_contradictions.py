"""Objects that contradict themselves come through the trusted door, too: decisions go on, nothing breaks."""

import itertools
from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.objects import Namespace
from tests.builders import T0, at, cluster_queue, flavor, local_queue, settle, usage, workload, world

Json = dict[str, Any]
LAST = 2**63 - 1
INT32 = 2**31 - 1
FOREVER, NEVER = "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"


def condition(kind: str, status: str = "True", *, reason: str = "r", time: str = "2026-01-01T00:00:00Z") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": time}


def admission(*assignments: Json, to: str = "cq") -> Json:
    return {"clusterQueue": to, "podSetAssignments": list(assignments)}


def assignment(name: str = "main", *, cpu: str = "1", count: int = 1, flavor: str = "default") -> Json:
    return {"name": name, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": cpu}, "count": count}


RESERVED = [condition("QuotaReserved"), condition("Admitted")]

STATUSES: dict[str, Json] = {
    "reserved without admission": {"conditions": RESERVED},
    "admission without reservation": {"admission": admission(assignment(), assignment("other"))},
    "admission of no pod set": {"conditions": RESERVED, "admission": admission()},
    "no ClusterQueue": {"conditions": RESERVED, "admission": admission(to="")},
    "unknown ClusterQueue": {"conditions": RESERVED, "admission": admission(assignment(), to="ghost")},
    "unknown pod sets": {"conditions": RESERVED, "admission": admission(assignment("x"), assignment(), assignment())},
    "unknown flavor": {"conditions": RESERVED, "admission": admission(assignment(flavor="ghost"))},
    "all that there is": {"conditions": RESERVED, "admission": admission(assignment(cpu=str(LAST)))},
    "less than nothing": {"conditions": RESERVED, "admission": admission(assignment(cpu="-9E", count=-INT32 - 1))},
    "no pods": {"conditions": RESERVED, "admission": admission(assignment(cpu="7", count=0))},
    "more reclaimed than there is": {
        "conditions": RESERVED,
        "admission": admission(assignment(cpu="9E", count=INT32)),
        "reclaimablePods": [{"name": "main", "count": INT32}, {"name": "other", "count": -5}],
    },
    "less reclaimed than nothing": {
        "conditions": RESERVED,
        "admission": admission(assignment(count=INT32)),
        "reclaimablePods": [{"name": "main", "count": -INT32 - 1}],
    },
    "finished and evicted": {
        "conditions": [*RESERVED, condition("Finished"), condition("Evicted")],
        "admission": admission(assignment()),
    },
    "times out of this world": {
        "conditions": [
            condition("QuotaReserved", time=FOREVER),
            condition("Evicted", time=NEVER),
            condition("Requeued", "False", reason="AdmissionCheck", time=FOREVER),
        ],
        "admission": admission(assignment()),
        "requeueState": {"count": INT32, "requeueAt": FOREVER},
        "accumulatedPastExecutionTimeSeconds": INT32,
    },
    "every state of one check": {
        "conditions": RESERVED,
        "admission": admission(assignment()),
        "admissionChecks": [
            {"name": "c", "state": state, "message": "", "lastTransitionTime": NEVER, "retryCount": INT32}
            for state in ("Pending", "Ready", "Retry", "Rejected")
        ],
    },
    "reserved and not": {"conditions": [condition("QuotaReserved"), condition("QuotaReserved", "False")]},
    "counters at their end": {
        "conditions": RESERVED,
        "admission": admission(assignment()),
        "schedulingStats": {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": INT32}]},
    },
}


def pod_set(name: str = "main", *, count: int = 1, least: int | None = None, cpu: str = "1") -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "-9E"}}}
    found: Json = {"name": name, "count": count, "template": {"spec": {"containers": [container]}}}
    return found if least is None else {**found, "minCount": least}


SPECS: dict[str, Json] = {
    "plain": {},
    "no pod sets": {"podSets": []},
    "one name twice": {"podSets": [pod_set(), pod_set(), pod_set("")]},
    "huge": {"podSets": [pod_set(count=INT32, least=-INT32 - 1, cpu="9E"), pod_set("b", count=INT32, least=1)]},
    "negative": {"podSets": [pod_set(count=-INT32 - 1, least=INT32, cpu="-9E")]},
    "first of all": {"priority": INT32},
    "last of all": {"priority": -INT32 - 1, "maximumExecutionTimeSeconds": -INT32 - 1},
    "inactive": {"active": False},
}


def go_through_everything(engine: Engine, manifest: Json, now: int) -> None:
    """Everything that can happen to a workload, and everything that can be asked afterwards."""
    engine.apply(manifest, now=now, trusted=True)
    look(engine, now)
    changed = {**manifest, "spec": {**manifest["spec"], "priority": 7}}
    engine.apply(changed, now=now, trusted=True)
    look(engine, now)
    for call in (engine.evict, engine.release, engine.forget, engine.finish):
        call("w", namespace="ns", now=now)
        look(engine, now)
    engine.delete("ClusterQueue", "cq", now=now)
    look(engine, now)
    engine.apply([cluster_queue()], now=now)
    look(engine, now)
    engine.apply(manifest, now=now, trusted=True)
    engine.delete("Workload", "w", namespace="ns", now=now)
    look(engine, now)


def look(engine: Engine, now: int) -> None:
    # What is reported late sets no clock back.
    at = max(now, engine.now)
    engine.cycle(at)
    engine.reconcile(at)
    engine.next_wake()
    engine.workloads()
    engine.quota()
    engine.local_queue("lq", namespace="ns")
    for name in engine.cluster_queues():
        engine.cluster_queue(name)
        engine.pending(name)


@pytest.mark.parametrize("now", [T0, 0, LAST, -LAST])
@pytest.mark.parametrize("status", STATUSES)
def test_contradictory_workloads_break_nothing(status: str, now: int) -> None:
    for spec in SPECS.values():
        manifest: Json = dict(workload("w").to_manifest())
        manifest["metadata"] = {**manifest["metadata"], "generation": LAST}
        manifest["spec"] = {**manifest["spec"], **spec}
        manifest["status"] = STATUSES[status]
        go_through_everything(world(cluster_queue("other", cohort="team")), manifest, now)


def test_totals_of_an_admission_that_is_left_over_do_not_count() -> None:
    engine = world()
    manifest: Json = dict(workload("w", 2).to_manifest())
    twice = {**manifest, "spec": {**manifest["spec"], "podSets": [pod_set("a"), pod_set("b")]}}
    engine.apply(twice, now=at(0), trusted=True)
    leftover = {**manifest, "status": STATUSES["admission without reservation"]}
    engine.apply(leftover, now=at(0), trusted=True)
    assert settle(engine, at(1)) == ["w"]
    assert usage(engine) == "2"


@pytest.mark.parametrize("cpu", [1, 99])
def test_a_deleted_workload_is_not_remembered_by_an_admission_that_was_left_over(cpu: int) -> None:
    engine = world()
    manifest: Json = dict(workload("w", cpu).to_manifest())
    manifest["status"] = {"admission": admission(assignment(), to="ghost")}
    engine.apply(manifest, now=at(0), trusted=True)
    assert engine.cycle(at(1)).cycle == 1
    engine.delete("Workload", "w", namespace="ns", now=at(2))
    engine.apply([cluster_queue("ghost")], now=at(3))
    assert usage(engine, "ghost") == "0"


@pytest.mark.parametrize("nominal", ["0", "-5", str(LAST), "9E", "-9E", "1n"])
@pytest.mark.parametrize("limit", [None, "0", "-5", str(LAST)])
def test_contradictory_quotas_break_nothing(nominal: str, limit: str | None) -> None:
    quota: Json = {"name": "cpu", "nominalQuota": nominal}
    if limit is not None:
        quota |= {"borrowingLimit": limit, "lendingLimit": limit}
    flavors = [{"name": name, "resources": resources} for name, resources in (("default", [quota]), ("default", []))]
    groups = [{"coveredResources": ["cpu", "memory", "cpu"], "flavors": flavors}] * 2
    queue: Json = dict(cluster_queue(cohort="team").to_manifest())
    queue["spec"] = {**queue["spec"], "resourceGroups": groups, "fairSharing": {"weight": nominal}}
    team = {"apiVersion": queue["apiVersion"], "kind": "Cohort", "metadata": {"name": "team"}}
    team |= {"spec": {"resourceGroups": groups, "parentName": "top", "fairSharing": {"weight": nominal}}}
    engine = world(local_queue(), *(workload(f"w{i}", cpu, created=i) for i, cpu in enumerate([0, 1, LAST])))
    engine.apply([queue, team], now=at(0), trusted=True)
    for second in range(1, 5):
        look(engine, at(second))
    engine.delete("Cohort", "team", now=at(9))
    look(engine, at(9))


def cohort(name: str, parent: str) -> Json:
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": name}}
    return {**manifest, "spec": {"parentName": parent} if parent else {}}


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_cohorts_in_a_circle_admit_nothing_until_it_is_broken(order: tuple[str, ...]) -> None:
    engine = world(cluster_queue(cohort="a"))
    parents = {"a": "b", "b": "c", "c": "a"}
    for name in order:
        engine.apply(cohort(name, parents[name]), now=at(0))
        look(engine, at(0))
    engine.apply([workload("w")], now=at(1))
    assert engine.cycle(at(1)).pending == (), "no heads are taken from a queue that is not active"
    engine.reconcile(now=at(1))
    queue, waiting = engine.cluster_queue("cq"), engine.workload("w", namespace="ns")
    circle = 'Can\'t admit new workloads: Cohort "a" has a cycle in hierarchy.'
    assert (queue.is_active, queue.reason, queue.message) == (False, "CohortCycleDetected", circle)
    assert (waiting.reason, waiting.message) == ("Suspended", "ClusterQueue cq is inactive")
    engine.apply(cohort(order[0], ""), now=at(2))
    assert settle(engine, at(3)) == ["w"]
    for name in order:
        engine.delete("Cohort", name, now=at(4))
        look(engine, at(4))
    assert usage(engine) == "1"


def test_before_0_20_a_queue_below_a_circle_is_ready_and_its_head_waits() -> None:
    engine = world(cluster_queue(cohort="a"), workload("w"), configuration=Configuration(release="0.20.0-devel"))
    engine.apply([cohort("a", "b"), cohort("b", "a")], now=at(1))
    (pending,) = engine.cycle(at(1)).pending
    assert (pending.reason, pending.message) == ("Suspended", "ClusterQueue cq is inactive")
    assert (engine.cluster_queue("cq").is_active, engine.cluster_queue("cq").reason) == (True, "Ready")


def test_a_cohort_that_is_its_own_parent_is_a_circle() -> None:
    engine = world(cluster_queue(cohort="a"), workload("w"))
    engine.apply(cohort("a", "a"), now=at(0))
    assert settle(engine, at(1)) == []
    engine.apply(cohort("a", ""), now=at(2))
    assert settle(engine, at(3)) == ["w"]


def test_an_object_that_is_already_being_deleted_breaks_nothing() -> None:
    engine = Engine()
    things = [Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload("w")]
    for thing in things:
        manifest: Json = dict(thing.to_manifest())
        manifest["metadata"] = {**manifest["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        engine.apply(manifest, now=at(0), trusted=True)
    look(engine, at(1))
    assert engine.cluster_queue("cq").message == "Can't admit new workloads; clusterQueue is terminating"
