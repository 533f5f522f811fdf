"""`unblock`: the smallest changes that would admit a waiting workload, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.answers import Change, ChangeKind, unblock
from kueuecore.decisions import Outcome
from kueuecore.errors import UnknownObjectError

NOW = "2026-01-01T00:00:00Z"
KUEUE = "kueue.x-k8s.io/v1beta2"


def thing(kind: str, name: str, *, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    api_version = "v1" if kind == "Namespace" else KUEUE
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def group(**flavors: dict[str, dict[str, str]]) -> dict[str, Any]:
    """A resource group: flavor to resource to its quotas."""
    resources = list(next(iter(flavors.values())))
    of = [
        {
            "name": name.replace("_", "-"),
            "resources": [{"name": resource, **quotas[resource]} for resource in resources],
        }
        for name, quotas in flavors.items()
    ]
    return {"coveredResources": resources, "flavors": of}


def cpu(nominal: str, **limits: str) -> dict[str, dict[str, str]]:
    return {"cpu": {"nominalQuota": nominal, **limits}}


def queue(name: str, quotas: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return thing("ClusterQueue", name, spec={"namespaceSelector": {}, "resourceGroups": [quotas], **spec})


def workload(
    name: str, pods: int, *, second: int = 0, local_queue: str = "lq", priority: int = 0, **requests: str
) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": requests or {"cpu": "1"}}}]
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": containers}}}
    plain = thing(
        "Workload", name, namespace="ns", spec={"queueName": local_queue, "priority": priority, "podSets": [pod_set]}
    )
    plain["metadata"] |= {"uid": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
    return plain


def world(*objects: dict[str, Any]) -> Engine:
    engine = Engine()
    around = [thing("Namespace", "ns"), thing("ResourceFlavor", "default")]
    local = thing("LocalQueue", "lq", namespace="ns", spec={"clusterQueue": "cq"})
    engine.apply([*around, local, *objects], now=NOW)
    return engine


def changes(engine: Engine, *kinds: ChangeKind, name: str = "w") -> tuple[Change, ...]:
    return unblock(engine, name, namespace="ns", now=NOW, kinds=kinds or tuple(ChangeKind)).changes


def shown(found: tuple[Change, ...]) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    return [(change.what, change.before, change.after, str(change.outcome), change.evicted) for change in found]


def test_a_workload_with_quota_needs_no_change() -> None:
    found = unblock(world(queue("cq", group(default=cpu("2"))), workload("w", 2)), "w", namespace="ns", now=NOW)
    assert (found.changes, found.n_tried, str(found.workload.stage)) == ((), 0, "Admitted")


def test_an_unknown_workload_is_an_error() -> None:
    with pytest.raises(UnknownObjectError, match="ns/w"):
        unblock(world(), "w", namespace="ns", now=NOW)


def test_the_engine_is_not_changed() -> None:
    engine = world(queue("cq", group(default=cpu("2"))), workload("w", 3))
    before = engine.save()
    assert changes(engine)
    assert engine.save() == before


def test_quota_of_several_short_resources_is_raised_together() -> None:
    quotas = {"cpu": {"nominalQuota": "2"}, "memory": {"nominalQuota": "1Gi"}}
    engine = world(queue("cq", group(default=quotas)), workload("w", 3, cpu="1500m", memory="1Gi"))
    (found,) = changes(engine, ChangeKind.QUOTA)
    assert (found.before, found.after) == ("2, 1Gi", "4500m, 3Gi")
    assert [edit.value for edit in found.step.edits] == ["4500m", "3Gi"]
    less = [[edit.value for edit in step.edits] for step in found.less]
    assert less == [["4499m", "3Gi"], ["4500m", "3221225471"]]


def test_the_change_also_serves_workloads_ahead_in_the_queue() -> None:
    engine = world(
        queue("cq", group(default=cpu("2")), queueingStrategy="StrictFIFO"),
        workload("a", 3),
        workload("w", 1, second=1),
    )
    (found,) = changes(engine, ChangeKind.QUOTA)
    assert (found.after, found.moved, found.evicted) == ("4", ("ns/a",), ())


def test_a_cohort_without_the_flavor_gets_quota_in_it() -> None:
    engine = world(thing("Cohort", "all"), queue("cq", group(default=cpu("2")), cohortName="all"), workload("w", 3))
    of_queue, of_cohort = sorted(changes(engine, ChangeKind.QUOTA), key=lambda change: change.what)
    assert (of_queue.what, of_queue.after) == ("nominalQuota of ClusterQueue cq for cpu in default", "3")
    assert (of_cohort.what, of_cohort.before, of_cohort.after) == (
        "nominalQuota of Cohort all for cpu in default",
        "0",
        "1",
    )


def test_limits_are_raised_where_they_bind() -> None:
    binding = queue("cq", group(default=cpu("2", borrowingLimit="1")), cohortName="all")
    lender = queue("other", group(default=cpu("4")), cohortName="all")
    engine = world(binding, lender, workload("w", 5))
    (found,) = changes(engine, ChangeKind.BORROWING_LIMIT, ChangeKind.LENDING_LIMIT)
    assert (found.kind, found.before, found.after) == (ChangeKind.BORROWING_LIMIT, "1", "3")
    miser = queue("other", group(default=cpu("4", lendingLimit="1")), cohortName="all")
    engine = world(queue("cq", group(default=cpu("2")), cohortName="all"), miser, workload("w", 5))
    (found,) = changes(engine, ChangeKind.BORROWING_LIMIT, ChangeKind.LENDING_LIMIT)
    assert (found.kind, found.what) == (
        ChangeKind.LENDING_LIMIT,
        "lendingLimit of ClusterQueue other for cpu in default",
    )
    assert (found.before, found.after) == ("1", "3")


def test_fewer_or_smaller_pods_are_proposed() -> None:
    engine = world(queue("cq", group(default=cpu("2"))), workload("w", 4))
    assert shown(changes(engine, ChangeKind.PODS, ChangeKind.MIN_COUNT, ChangeKind.REQUEST)) == [
        ("minCount of pod set main", "4", "2", "Fits", ()),
        ("pods of pod set main", "4", "2", "Fits", ()),
        ("request of container c of pod set main for cpu", "1", "500m", "Fits", ()),
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"), [("batch/v1", "Job", 1), ("v1", "Pod", 0), ("jobset.x-k8s.io/v1", "JobSet", 0)]
)
def test_partial_admission_is_proposed_only_to_jobs_that_can_have_it(
    api_version: str, kind: str, expected: int
) -> None:
    owned = workload("w", 4)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": api_version, "kind": kind, "name": "j", "uid": "j"}]
    engine = world(queue("cq", group(default=cpu("2"))), owned)
    assert len(changes(engine, ChangeKind.MIN_COUNT)) == expected


def test_any_job_with_partial_admission_may_get_fewer_pods() -> None:
    owned = workload("w", 4)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Batch", "name": "j", "uid": "j"}]
    owned["spec"]["podSets"][0]["minCount"] = 3
    engine = world(queue("cq", group(default=cpu("2"))), owned)
    assert shown(changes(engine, ChangeKind.MIN_COUNT)) == [("minCount of pod set main", "3", "2", "Fits", ())]


def test_tolerations_and_node_selectors_are_proposed() -> None:
    spot = thing(
        "ResourceFlavor",
        "spot",
        spec={"nodeLabels": {"pool": "b"}, "nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]},
    )
    asked = workload("w", 3)
    asked["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    engine = world(spot, queue("cq", group(default=cpu("2"), spot=cpu("9"))), asked)
    (found,) = changes(engine, ChangeKind.NODES)
    assert found.what == "nodeSelector of pod set main and tolerations of pod set main"
    assert (found.before, found.after, len(found.less)) == ("pool=a, -", "pool=b, spot=yes", 2)


def test_another_local_queue_with_room_is_proposed() -> None:
    local = thing("LocalQueue", "roomy", namespace="ns", spec={"clusterQueue": "large"})
    engine = world(
        queue("cq", group(default=cpu("2"))), queue("large", group(default=cpu("9"))), local, workload("w", 3)
    )
    assert shown(changes(engine, ChangeKind.LOCAL_QUEUE)) == [
        ("LocalQueue", "lq", "roomy (ClusterQueue large)", "Fits", ())
    ]


def test_the_lowest_sufficient_priority_and_class_are_proposed() -> None:
    within = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    classes = [thing("WorkloadPriorityClass", name, value=n) for name, n in (("a", 3), ("b", 5), ("c", 9))]
    running = workload("r", 2, priority=4)
    engine = world(*classes, queue("cq", group(default=cpu("2")), **within), running, workload("w", 2, second=1))
    found = changes(engine, ChangeKind.PRIORITY, ChangeKind.PRIORITY_CLASS)
    assert shown(found) == [
        ("WorkloadPriorityClass", "-", "b (5)", "Preempts", ("ns/r",)),
        ("priority", "0", "5", "Preempts", ("ns/r",)),
    ]
    assert [[edit.value for edit in step.edits] for step in found[1].less] == [[4]]


def test_the_weakest_sufficient_policy_is_proposed() -> None:
    running = workload("r", 2, local_queue="other", second=0)
    lender = queue("borrower", group(default=cpu("0")), cohortName="all")
    local = thing("LocalQueue", "other", namespace="ns", spec={"clusterQueue": "borrower"})
    mine = queue("cq", group(default=cpu("2")), cohortName="all")
    engine = world(lender, local, running, mine)
    engine.cycle(NOW)
    engine.apply(workload("w", 2, second=1), now=NOW)
    (found,) = changes(engine, ChangeKind.PREEMPTION)
    assert (found.what, found.before, found.after) == ("reclaimWithinCohort of ClusterQueue cq", "Never", "Any")
    assert (found.outcome, found.evicted) == (Outcome.PREEMPTS, ("ns/r",))
    assert [[edit.value for edit in step.edits] for step in found.less] == [["LowerPriority"]]


def test_all_sets_are_searched_for_the_fewest_victims() -> None:
    running = [workload(f"r{n}", pods, priority=9) for n, pods in enumerate((1, 1, 2, 4))]
    engine = world(queue("cq", group(default=cpu("8"))), *running, workload("w", 5))
    (found,) = changes(engine, ChangeKind.VICTIMS)
    assert (found.after, found.is_least) == ("ns/r0, ns/r3", True)
    assert [[deletion.name for deletion in step.deletions] for step in found.less] == [["r3"], ["r0"]]


def test_among_many_candidates_every_victim_is_needed() -> None:
    running = [workload(f"r{n:02}", 1, priority=9 + n) for n in range(14)]
    engine = world(queue("cq", group(default=cpu("14"))), *running, workload("w", 3))
    (found,) = changes(engine, ChangeKind.VICTIMS)
    assert (found.after, found.is_least) == ("ns/r00, ns/r01, ns/r02", False)
    assert found.evicted == ("ns/r00", "ns/r01", "ns/r02")


def test_restarting_a_stopped_queue_is_proposed() -> None:
    engine = world(queue("cq", group(default=cpu("2")), stopPolicy="Hold"), workload("w", 2))
    assert shown(changes(engine)) == [("stopPolicy of ClusterQueue cq", "Hold", "None", "Fits", ())]
    asked = workload("w", 2)
    asked["spec"]["active"] = False
    engine = world(queue("cq", group(default=cpu("2")), stopPolicy="Hold"), asked)
    (found,) = changes(engine)
    assert (found.what, len(found.less)) == ("active and stopPolicy of ClusterQueue cq", 2)


def test_a_workload_in_backoff_only_needs_to_be_submitted_again() -> None:
    asked = workload("w", 2)
    requeued = {"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout", "lastTransitionTime": NOW}
    asked["status"] = {
        "conditions": [requeued | {"message": ""}],
        "requeueState": {"count": 1, "requeueAt": "2026-01-01T01:00:00Z"},
    }
    engine = world(queue("cq", group(default=cpu("2"))))
    engine.apply(asked, now=NOW, trusted=True)
    found = unblock(engine, "w", namespace="ns", now=NOW)
    assert shown(found.changes) == [("submit it again", "-", "with its creation time", "Fits", ())]


def test_changes_that_disturb_nobody_come_first() -> None:
    within = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    engine = world(queue("cq", group(default=cpu("2")), **within), workload("r", 2), workload("w", 2, second=1))
    found = changes(engine)
    assert [change.rank for change in found] == sorted(change.rank for change in found)
    assert [bool(change.evicted) for change in found] == sorted(bool(change.evicted) for change in found)
    assert {change.kind for change in found if not change.evicted} == {ChangeKind.QUOTA}


def crowded() -> Engine:
    """Four ClusterQueues that borrow from each other in eight flavors, all in use, and a queue of waiting workloads."""
    flavors = [f"f{n}" for n in range(8)]
    quotas = {flavor: {"cpu": {"nominalQuota": "10"}, "memory": {"nominalQuota": "40Gi"}} for flavor in flavors}
    objects = [thing("ResourceFlavor", flavor) for flavor in flavors]
    for n in range(4):
        objects.append(queue(f"cq-{n}", group(**quotas), cohortName="all"))
        objects.append(thing("LocalQueue", f"lq-{n}", namespace="ns", spec={"clusterQueue": f"cq-{n}"}))
    running = [workload(f"r{n}", 2, local_queue=f"lq-{n % 4}", cpu="4", memory=f"{1 + n % 5}Gi") for n in range(32)]
    waiting = [
        workload(f"w{n}", 2, second=1 + n, local_queue=f"lq-{n % 4}", cpu=f"{6000 + n}m", memory="3Gi")
        for n in range(20)
    ]
    return world(*objects, *running, *waiting)


def test_the_first_change_is_found_within_a_few_tries_and_all_within_a_few_hundred() -> None:
    seen: list[tuple[int, int]] = []
    found = unblock(
        crowded(), "w13", namespace="ns", now=NOW, progress=lambda n, changes: seen.append((n, len(changes)))
    )
    assert min(n for n, n_found in seen if n_found) < 20
    assert [n for n, _ in seen] == list(range(found.n_tried))
    assert (found.n_tried < 500, found.is_stopped) == (True, False)
    assert {ChangeKind.REQUEST, ChangeKind.QUOTA} <= {change.kind for change in found.changes}


def test_it_stops_when_its_tries_are_used_up_and_keeps_what_it_found() -> None:
    engine = crowded()
    found = unblock(engine, "w13", namespace="ns", now=NOW, max_tries=25)
    assert (found.n_tried, found.is_stopped, len(found.changes) > 0) == (25, True, True)
    every = unblock(engine, "w13", namespace="ns", now=NOW)
    assert {change.what for change in found.changes} < {change.what for change in every.changes}
    with pytest.raises(ValueError, match="max_tries must be at least 0"):
        unblock(engine, "w13", namespace="ns", now=NOW, max_tries=-1)


def test_a_quota_in_bytes_takes_few_tries() -> None:
    quotas = {"memory": {"nominalQuota": "64Gi"}}
    ahead = [workload(f"a{n}", 1, memory=f"{3 + n}Gi") for n in range(30)]
    engine = world(
        queue("cq", group(default=quotas), queueingStrategy="StrictFIFO"),
        *ahead,
        workload("w", 2, second=1, memory="5Gi"),
    )
    found = unblock(engine, "w", namespace="ns", now=NOW, kinds=[ChangeKind.QUOTA])
    assert [(change.after, [less.edits[0].value for less in change.less]) for change in found.changes] == [
        ("535Gi", ["574451875839"])
    ]
    assert found.n_tried < 30


def test_the_largest_amount_of_cpu_is_searched_in_thousandths() -> None:
    other = workload("other", 4, priority=1)
    engine = world(queue("cq", group(default=cpu("4"))), other, workload("w", 1, second=1, cpu="9223372036854775807"))
    found = unblock(engine, "w", namespace="ns", now=NOW)
    smaller = [change for change in found.changes if change.kind is ChangeKind.REQUEST]
    assert smaller
    assert all(len(change.step.edits) + len(change.step.deletions) == 2 for change in smaller)


def test_too_many_sets_of_victims_are_not_all_tried() -> None:
    running = [workload(f"r{n:02}", 1, priority=9 + n) for n in range(12)]
    engine = world(queue("cq", group(default=cpu("12"))), *running, workload("w", 6))
    found = unblock(engine, "w", namespace="ns", now=NOW, kinds=[ChangeKind.VICTIMS], max_tries=200)
    assert (len(found.changes[0].evicted), found.changes[0].is_least, found.is_stopped) == (6, False, False)
