"""The reference model: worked examples of the rules."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.reference import Decision, World, simulate
from kueuecore.reference.amount import LEAST, UNLIMITED, add, subtract
from kueuecore.reference.forest import Forest
from kueuecore.reference.objects import ClusterQueue, complete
from kueuecore.reference.quantity import canonical, limit, text, value
from kueuecore.reference.quota import Usage
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import Progress

NOW = "2026-01-01T00:00:00Z"
CPU = ("default", "cpu")


def manifest(kind: str, name: str, namespace: str = "", **spec: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def groups(nominal: int, **limits: int) -> list[Json]:
    resource = {"name": "cpu", "nominalQuota": nominal, **limits}
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [resource]}]}]


def workload(name: str, cpu: int, *, queue: str = "a", priority: int = 0, created: int = 0, count: int = 1) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    pod_set = {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}
    made = manifest("Workload", name, "ns", queueName=queue, podSets=[pod_set], priority=priority)
    made["metadata"] |= {"uid": name, "creationTimestamp": f"2026-01-01T00:00:{created:02}Z"}
    return made


def cohort_of(*queues: tuple[str, int], **preemption: Any) -> list[Json]:
    """ClusterQueues of one cohort, by name and nominal CPUs, with a LocalQueue of the same name each."""
    made = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
        manifest("ResourceFlavor", "default"),
    ]
    for name, nominal in queues:
        spec: Json = {"cohortName": "root", "namespaceSelector": {}, "resourceGroups": groups(nominal)}
        made.append(manifest("ClusterQueue", name, **spec, preemption=preemption))
        made.append(manifest("LocalQueue", name, "ns", clusterQueue=name))
    return made


def victims(decision: Decision) -> list[tuple[str, str]]:
    return [(preemption.name, preemption.reason) for preemption in decision.preemptions]


def filled(objects: list[Json], *running: Json, configuration: Json | None = None) -> World:
    """A world in which each of `running` got quota, one after the other."""
    world = World(objects, configuration=configuration, now=NOW)
    for second, each in enumerate(running):
        world.apply([each])
        assert world.cycle(f"2026-01-01T00:00:{second:02}Z").admissions
    return world


def test_without_limit_stays_so() -> None:
    assert (add(UNLIMITED, 1), subtract(UNLIMITED, UNLIMITED), subtract(1, UNLIMITED)) == (UNLIMITED, 0, LEAST)


@pytest.mark.parametrize(
    ("resource", "written", "number"), [("cpu", "1500m", 1500), ("memory", "1500m", 2), ("gpu", "1Ki", 1024)]
)
def test_cpu_counts_in_thousandths_and_all_else_in_units(resource: str, written: str, number: int) -> None:
    assert value(resource, written) == number


def test_quantities_print_as_in_kubernetes() -> None:
    printed = [text("cpu", 1500), text("memory", 2**30), text("memory", 1500), text("gpu", 1000)]
    assert printed == ["1500m", "1Gi", "1500", "1k"]
    assert [canonical(written) for written in ("3000m", "1024Mi", "1e3")] == ["3", "1Gi", "1e3"]


def test_a_quota_at_the_end_of_the_range_is_without_limit() -> None:
    assert (limit("cpu", "10P"), limit("cpu", "1P")) == (UNLIMITED, 10**18)


def test_what_a_tree_has_left_is_that_of_the_worked_example() -> None:
    """rules/02 §3."""
    usage = Usage()
    forest = Forest(usage.rebuild)
    forest.set_cohort(manifest("Cohort", "root"))
    forest.set_cohort(manifest("Cohort", "left", parentName="root", resourceGroups=groups(0, lendingLimit=5)))
    forest.set_cohort(manifest("Cohort", "right", parentName="root", resourceGroups=groups(10, borrowingLimit=5)))
    limits: dict[str, dict[str, int]] = {"a": {"lendingLimit": 6}, "b": {"borrowingLimit": 4}, "c": {}}
    for name, cohort, nominal in (("a", "left", 10), ("b", "left", 10), ("c", "right", 0)):
        resource_groups = groups(nominal, **limits[name])
        queue = manifest("ClusterQueue", name, cohortName=cohort, resourceGroups=resource_groups)
        forest.set_cluster_queue(ClusterQueue(complete(queue)))
    nodes = forest.cluster_queues

    def available() -> list[int]:
        return [usage.available(nodes[name], CPU) // 1000 for name in "abc"]

    found = [available()]
    for name, used in (("a", 9), ("b", 8), ("c", 12)):
        usage.add(nodes[name], {CPU: used * 1000})
        found.append(available())
    assert found == [[30, 14, 15], [21, 14, 15], [13, 6, 13], [1, 1, 1]]
    assert [usage.level(nodes["a"], CPU, more * 1000) for more in (1, 2, 6)] == [(0, True), (1, True), (2, False)]
    usage.remove(nodes["a"], {CPU: 9000})
    assert available() == [10, 6, 3]


def test_a_queue_takes_back_what_was_borrowed_from_the_newest() -> None:
    """rules/04 §4.6."""
    objects = cohort_of(("p", 6), ("q", 6), reclaimWithinCohort="Any", withinClusterQueue="LowerPriority")
    world = filled(objects, workload("old", 4, queue="q"), workload("new", 4, queue="q"))
    world.apply([workload("w", 5, queue="p")])
    assert victims(world.cycle("2026-01-01T00:01:00Z")) == [("new", "InCohortReclamation")]


@pytest.mark.parametrize(("in_c", "expected"), [(1, [("b0", "InCohortFairSharing")]), (0, [])])
def test_fair_sharing_takes_only_from_those_with_more(in_c: int, expected: list[tuple[str, str]]) -> None:
    """rules/04 §5.7: the second time the preemptor asks for two, and would have as much as it takes from."""
    objects = cohort_of(("a", 3), ("b", 3), ("c", 3), reclaimWithinCohort="Any")
    strategies = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}}
    running = [workload(f"a{i}", 1) for i in range(3)]
    running += [workload(f"b{i}", 1, queue="b", priority=i) for i in range(5)]
    running += [workload(f"c{i}", 1, queue="c") for i in range(in_c)]
    world = filled(objects, *running, configuration=strategies)
    world.apply([workload("w", 2 - in_c)])
    assert victims(world.cycle("2026-01-01T00:01:00Z")) == expected


def test_a_head_that_failed_parks_all_of_its_shape() -> None:
    world = filled(cohort_of(("a", 3)), workload("running", 2))
    world.apply([workload("first", 2), workload("second", 2, created=1), workload("small", 1, created=2)])
    decision = world.cycle("2026-01-01T00:01:00Z")
    assert (decision.pending[0].reason, decision.parked) == ("WaitingForQuota", ["ns/second"])
    assert [admission.name for admission in world.cycle("2026-01-01T00:01:01Z").admissions] == ["small"]


def test_a_parked_workload_comes_back_when_quota_is_free() -> None:
    world = filled(cohort_of(("a", 3)), workload("running", 2))
    world.apply([workload("waiting", 2)])
    world.cycle("2026-01-01T00:01:00Z")
    world.finish("running", namespace="ns", now="2026-01-01T00:02:00Z")
    assert [admission.name for admission in world.cycle("2026-01-01T00:02:00Z").admissions] == ["waiting"]


def test_a_stopped_queue_keeps_its_heads_until_it_runs_again() -> None:
    objects = cohort_of(("a", 3))
    running = objects[2]
    stopped = {**running, "spec": {**running["spec"], "stopPolicy": "Hold"}}
    world = World([*objects[:2], stopped, *objects[3:], workload("w", 1)], now=NOW)
    assert (world.cycle(NOW).cycle, world.pending("a")) == (0, [("ns/w", "active")])
    world.apply([running])
    assert [admission.name for admission in world.cycle(NOW).admissions] == ["w"]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_scan_goes_on_in_a_new_queue_unless_its_workload_is_written_before(is_written: bool) -> None:
    """rules/05 §2.1: the generation of the queue that is gone is the larger one, so the scan is not outdated."""
    objects = [*cohort_of(("a", 3)), manifest("ResourceFlavor", "other")]
    flavors = objects[2]["spec"]["resourceGroups"][0]["flavors"]
    flavors.append({**flavors[0], "name": "other"})
    world = World([*objects, workload("w", 5)], now=NOW)
    info = world.queues["a"].waiting()["ns/w"]
    info.progress = Progress([{"cpu": 0}], generation=100, cycle=0, shape=info.shape)
    world.delete("ClusterQueue", "a")
    if is_written:
        world.reconcile(NOW)
    world.apply([objects[2]])
    message = world.cycle(NOW).pending[0].message
    assert ("flavor default" in message, "flavor other" in message) == (is_written, True)


def test_a_fork_shares_nothing_that_changes() -> None:
    world = World([*cohort_of(("a", 3)), workload("w", 1)], now=NOW)
    fork = world.fork()
    assert fork.cycle(NOW).admissions
    assert world.pending("a") == [("ns/w", "active")]


def test_a_run_goes_on_until_nothing_is_left_to_happen() -> None:
    happenings = [
        {"at": at, "op": "create", "object": workload(name, 2, created=at), "runSeconds": 10}
        for at, name in enumerate(("first", "second"))
    ]
    run = simulate(cohort_of(("a", 3)), happenings, now=NOW)
    admitted = [
        (cycle.time - run.start, cycle.decision.admissions[0].name) for cycle in run.cycles if cycle.decision.admissions
    ]
    assert admitted == [(0, "first"), (10 * 10**9, "second")]
    assert run.world.now - run.start == 20 * 10**9
