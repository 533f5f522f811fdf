"""Quota, usage, what is lent and shares of ClusterQueues and cohorts, as they were at each time."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Run, simulate
from kueuecore.results import Results
from kueuecore.simulation import Happening, JobPlan, Operation, VirtualCluster
from kueuecore.submissions import Submissions

START = "2026-01-01T00:00:00Z"
MINUTE = 60 * 10**9
BEGIN = 1767225600 * 10**9


def queue(name: str, cpu: int, **spec: Any) -> dict[str, Any]:
    quota = {"name": "cpu", "nominalQuota": cpu}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "main", "resources": [quota]}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": [group], **spec},
    }


def workload(name: str, local_queue: str, cpu: str) -> dict[str, Any]:
    """One that was created before the run."""
    requests = {"resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [{"name": "c", **requests}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "ns", "creationTimestamp": "2025-12-31T00:00:00Z"},
        "spec": {"queueName": local_queue, "podSets": [{"name": "main", "count": 1, "template": template}]},
    }


def world() -> list[dict[str, Any]]:
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    local = [
        {**kueue, "kind": "LocalQueue", "metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterQueue": name}}
        for name in ("a", "b")
    ]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
        {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "main"}},
        queue("a", 4),
        queue("b", 4),
        *local,
    ]


def run(*events: Happening) -> Run:
    """A job of 6 CPUs in `a`, which has 4, for four minutes; 4 more CPUs are in `b`."""
    jobs = Submissions(namespace="ns", local_queues=["a"], queue=[0], requests={"cpu": 6000}, at=[0], run_seconds=240)
    return simulate(world(), events, submissions=[jobs], now=START)


def update(minutes: int, changed: dict[str, Any]) -> Happening:
    return Happening(at=minutes * 60, op=Operation.UPDATE, object=changed)


def rows(results: Results, name: str, *columns: str, cohort: bool = False) -> list[tuple[Any, ...]]:
    """The columns of a node by the minute."""
    table = results.cohorts(step_seconds=60) if cohort else results.cluster_queues(step_seconds=60)
    owner = table["cohort" if cohort else "cluster_queue"].to_list()
    values = zip(*(table[column].to_list() for column in columns), strict=True)
    return [row for row, of in zip(values, owner, strict=True) if of == name]


def test_what_one_borrows_the_other_lends() -> None:
    results = Results.of(run())
    assert rows(results, "a", "usage", "borrowed", "lent", "share")[:5] == [(6000, 2000, 0, 250)] * 4 + [(0, 0, 0, 0)]
    assert rows(results, "b", "usage", "borrowed", "lent", "share")[:5] == [(0, 0, 2000, 0)] * 4 + [(0, 0, 0, 0)]
    assert rows(results, "all", "nominal", "usage", "borrowed", cohort=True)[0] == (8000, 6000, 0)


def test_a_weight_divides_the_share() -> None:
    heavy = queue("a", 4, fairSharing={"weight": "2"})
    assert [row[0] for row in rows(Results.of(run(update(2, heavy))), "a", "share")[:4]] == [250, 250, 125, 125]


def test_quotas_are_those_of_each_time() -> None:
    results = Results.of(run(update(1, queue("a", 5)), update(3, queue("a", 6))))
    columns = ("nominal", "borrowed")
    expected = [(4000, 2000), (5000, 1000), (5000, 1000), (6000, 0), (6000, 0)]
    assert rows(results, "a", *columns)[:5] == expected
    assert [row[0] for row in rows(results, "all", "nominal", cohort=True)[:5]] == [8000, 9000, 9000, 10000, 10000]
    # 6 CPUs for 4 minutes, of 8 for one, 9 for two, 10 for the last, and of what the run goes on after.
    seconds = (results._run.end - BEGIN) / 10**9
    there = 8 * 60 + 9 * 120 + 10 * (seconds - 180)
    assert results.summary().utilisation == {("main", "cpu"): pytest.approx(6 * 240 / there)}


def test_a_queue_that_moves_belongs_to_its_new_cohort_from_then_on() -> None:
    results = Results.of(run(update(2, queue("b", 4, cohortName="other"))))
    assert [row[0] for row in rows(results, "all", "nominal", cohort=True)[:5]] == [8000, 8000, 4000, 4000, 4000]
    table = results.cohorts(step_seconds=60)
    names = table["cohort"].to_list()
    assert names.count("other") == names.count("all") - 2


def test_a_queue_that_is_deleted_has_no_more_rows_and_one_that_comes_has_them_from_then_on() -> None:
    gone = Happening(at=120, op=Operation.DELETE, kind="ClusterQueue", key="b")
    come = Happening(at=60, op=Operation.CREATE, object=queue("c", 1))
    results = Results.of(run(gone, come))
    at = results.cluster_queues(step_seconds=60)
    minutes: dict[str, list[int]] = {}
    for time, name in zip(at["time"].to_list(), at["cluster_queue"].to_list(), strict=True):
        minutes.setdefault(name, []).append((time - BEGIN) // MINUTE)
    assert minutes["b"] == [0, 1]
    assert minutes["c"] == minutes["a"][1:]


def test_usage_of_a_deleted_queue_counts_no_more() -> None:
    gone = Happening(at=120, op=Operation.DELETE, kind="ClusterQueue", key="a")
    results = Results.of(run(gone))
    assert [row[0] for row in rows(results, "all", "usage", cohort=True)[:3]] == [6000, 6000, 0]


def test_sums_beyond_64_bits_are_the_largest_integer() -> None:
    huge = "9223372036854775"
    results = Results.of(run(update(1, queue("b", huge)), update(1, queue("a", huge))))  # type: ignore[arg-type]
    assert rows(results, "all", "nominal", cohort=True)[1] == (2**63 - 1,)


def test_without_a_step_there_is_a_row_per_change() -> None:
    table = Results.of(run(update(1, queue("a", 5)))).cluster_queues()
    of_a = [cluster_queue == "a" for cluster_queue in table["cluster_queue"].to_list()]
    found = [
        (time - BEGIN, *values)
        for time, *values, mine in zip(
            table["time"].to_list(), table["nominal"].to_list(), table["usage"].to_list(), of_a, strict=True
        )
        if mine
    ]
    assert found == [(0, 4000, 6000), (MINUTE, 5000, 6000), (4 * MINUTE, 5000, 0)]


def test_jobs_that_were_there_before_wait_from_the_beginning() -> None:
    gone = Happening(at=120, op=Operation.DELETE, key="ns/old")
    jobs = Submissions(namespace="ns", local_queues=["a"], queue=[0], requests={"cpu": 6000}, at=[0], run_seconds=240)
    results = Results.of(simulate([*world(), workload("old", "b", "9")], [gone], submissions=[jobs], now=START))
    assert [row[0] for row in rows(results, "b", "pending")[:4]] == [1, 1, 0, 0]
    assert [row[0] for row in rows(results, "all", "pending", cohort=True)[:4]] == [1, 1, 0, 0]


def test_a_job_that_moves_waits_where_it_holds_quota_next() -> None:
    """Its ClusterQueue is drained after a minute, its LocalQueue leads to another after two."""
    drained = queue("a", 4, stopPolicy="HoldAndDrain")
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}
    moved: dict[str, Any] = {**kueue, "metadata": {"name": "a", "namespace": "ns"}, "spec": {"clusterQueue": "b"}}
    left = Happening(at=120, op=Operation.DELETE, kind="LocalQueue", key="ns/a")
    results = Results.of(run(update(1, drained), left, Happening(at=120, op=Operation.CREATE, object=moved)))
    assert rows(results, "a", "usage", "pending")[:4] == [(6000, 0), (0, 0), (0, 0), (0, 0)]
    assert rows(results, "b", "usage", "pending")[:4] == [(0, 0), (0, 1), (6000, 0), (6000, 0)]
    lines = results.prometheus().splitlines()
    role = 'replica_role="standalone"'
    for line in (
        f'kueue_admitted_workloads_total{{cluster_queue="a",priority_class="",{role}}} 1',
        f'kueue_admitted_workloads_total{{cluster_queue="b",priority_class="",{role}}} 1',
        'kueue_evicted_workloads_total{cluster_queue="a",priority_class="",reason="ClusterQueueStopped",'
        f'{role},underlying_cause=""}} 1',
    ):
        assert line in lines


def test_a_cohort_borrows_although_quota_that_it_keeps_is_idle() -> None:
    kept = queue("b", 4)
    kept["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = 0
    parents: list[dict[str, Any]] = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Cohort",
            "metadata": {"name": "all"},
            "spec": {"parentName": "root"},
        }
    ]
    objects = [row for row in world() if row.get("metadata", {}).get("name") != "b" or row["kind"] == "LocalQueue"]
    jobs = Submissions(namespace="ns", local_queues=["a"], queue=[0], requests={"cpu": 6000}, at=[0], run_seconds=240)
    objects += [*parents, kept, queue("c", 4, cohortName="root")]
    results = Results.of(simulate(objects, submissions=[jobs], now=START))
    assert rows(results, "all", "nominal", "usage", "borrowed", "share", cohort=True)[0] == (8000, 6000, 2000, 250)
    assert (rows(results, "b", "lent")[0], rows(results, "c", "lent")[0]) == ((0,), (2000,))


def test_evictions_count_when_they_are_decided_and_only_those_of_the_run() -> None:
    """A job that was evicted twice before runs, and ends by itself while it is being stopped."""
    before = {"reason": "Preempted", "underlyingCause": "", "count": 2}
    job = {**workload("old", "a", "6"), "status": {"schedulingStats": {"evictions": [before]}}}
    drain = update(1, queue("a", 4, stopPolicy="HoldAndDrain"))
    ends = Happening(at=70, op=Operation.FINISH, key="ns/old")
    run = simulate([*world(), job], [drain, ends], now=START, eviction_seconds=30)
    lines = Results.of(run).prometheus().splitlines()
    assert [line for line in lines if line.startswith("kueue_evicted_workloads_total{")] == [
        'kueue_evicted_workloads_total{cluster_queue="a",priority_class="",reason="ClusterQueueStopped",'
        'replica_role="standalone",underlying_cause=""} 1'
    ]


def test_what_is_changed_between_steps_of_a_cluster_counts_from_then_on() -> None:
    cluster = VirtualCluster(world(), now=START)
    cluster.schedule(
        [Happening(at=0, op=Operation.CREATE, object=workload("w", "a", "6"), plan=JobPlan(run_seconds=240))]
    )
    cluster.advance("2026-01-01T00:01:00Z")
    cluster.apply([queue("a", 5), queue("c", 1)])
    cluster.advance("2026-01-01T00:02:00Z")
    cluster.delete("ClusterQueue", "c")
    results = Results.of(cluster.run())
    columns = ("nominal", "borrowed", "share")
    assert rows(results, "a", *columns)[:3] == [(4000, 2000, 250), (5000, 1000, 100), (5000, 1000, 112)]
    assert len(rows(results, "c", *columns)) == 1
