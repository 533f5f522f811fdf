"""What became of the work of jobs, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import VirtualCluster, simulate
from kueuecore.results import Results
from kueuecore.results.joined_texts import joined_texts
from kueuecore.simulation import Happening, JobPlan, Operation, Run
from tests import topologies
from tests.topologies import HOST, NOW, flavor, namespace, pod_set, queue, topology, workload

Json = dict[str, Any]

PREEMPTS: Json = {"preemption": {"withinClusterQueue": "LowerPriority"}}
PLAIN: Json = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "main"}}
OBJECTS: list[Json] = [namespace(), PLAIN, *queue(cpu=8, flavors=("main",), **PREEMPTS)]


def job(name: str, at: float, runs: float | None, *, pods: int = 4, priority: int = 0, **plan: Any) -> Happening:
    made = workload(name, pod_set(count=pods, cpu=2), priority=priority)
    return Happening(at=at, op=Operation.CREATE, object=made, plan=JobPlan(run_seconds=runs, **plan))


def rows(run: Run, *names: str) -> dict[str, tuple[Any, ...]]:
    """The columns of each job, by its name."""
    jobs = Results.of(run).jobs
    return dict(zip(jobs["name"].to_list(), zip(*(jobs[name].to_list() for name in names), strict=True), strict=True))


@pytest.mark.parametrize(
    ("saves", "lost", "length", "useful"),
    [
        # Evicted after 50 of 100 s: all of it is lost.
        (None, 50, 100, 100),
        # Only what was done since the last checkpoint, at 40 s, is lost; the rest takes 60 s.
        (20, 10, 60, 100),
        (25, 0, 50, 100),
        (60, 50, 100, 100),
    ],
)
def test_only_work_since_the_last_checkpoint_is_lost(
    saves: float | None, lost: float, length: float, useful: float
) -> None:
    run = simulate(OBJECTS, [job("low", 0, 100, save_seconds=saves), job("high", 50, 30, priority=1, pods=1)], now=NOW)
    columns = ("evictions", "lost_seconds", "lost_pod_seconds", "run_seconds", "outcome")
    assert rows(run, *columns)["low"] == (1, lost, 4 * lost, length, "Succeeded")
    # Both jobs keep all of the work that they need; `low` held 8 CPUs for what it lost, too.
    summary = Results.of(run).summary()
    assert summary.goodput["cpu"] == pytest.approx((8 * useful + 2 * 30) / (8 * (useful + lost) + 2 * 30))


def test_a_job_that_takes_a_while_to_stop_does_no_work_meanwhile() -> None:
    cluster = VirtualCluster(OBJECTS, now=NOW, eviction_seconds=40)
    cluster.schedule([job("low", 0, 100, save_seconds=25), job("high", 60, 30, priority=1)])
    cluster.advance()
    run = cluster.run()
    assert rows(run, "lost_seconds", "outcome")["low"] == (10.0, "Succeeded")
    # Of 60 s and 40 s of stopping, 50 s are kept.
    assert Results.of(run).summary().goodput["cpu"] == pytest.approx((100 + 30) / (100 + 50 + 30))


def test_failed_jobs_did_no_useful_work_and_have_the_outcome_failed() -> None:
    events = [
        job("good", 0, 30, pods=1),
        job("bad", 0, 90, pods=1, ends_failed=True),
        job("runs", 0, None, pods=1),
        job("waits", 0, 10, pods=6),
        job("gone", 0, 50, pods=1),
        Happening(at=10, op=Operation.DELETE, key="ns/gone"),
        job("over", 0, 20, pods=1, priority=1),
        Happening(at=100, op=Operation.DELETE, key="ns/over"),
    ]
    objects = [*OBJECTS[:2], *queue(cpu=10, flavors=("main",))]
    run = simulate(objects, events, now=NOW, until="2026-01-01T00:03:00Z", cycle_seconds=0)
    assert {name: outcome for name, (outcome,) in rows(run, "outcome").items()} == {
        "good": "Succeeded",
        "bad": "Failed",
        "runs": "Running",
        "waits": "Pending",
        "gone": "Deleted",
        "over": "Succeeded",
    }
    held = 30 + 90 + 180 + 10 + 20
    summary = Results.of(run).summary()
    assert (summary.finished, summary.failed) == (3, 1)
    assert summary.goodput["cpu"] == pytest.approx(50 / held)
    bad = run.engine.workload("bad", namespace="ns")
    assert [condition["reason"] for condition in dict(bad.status)["conditions"] if condition["type"] == "Finished"] == [
        "Failed"
    ]


def test_jobs_of_a_dump_have_the_times_that_the_cluster_knows() -> None:
    def dumped(name: str, *conditions: Json, **spec: Any) -> Json:
        made = workload(name, pod_set(count=1, cpu=2), creationTimestamp="2025-12-31T23:50:00Z", **spec)
        usage = [{"name": "main", "flavors": {"cpu": "main"}, "resourceUsage": {"cpu": 2}, "count": 1}]
        if conditions:
            made["status"] = {
                "conditions": list(conditions),
                "admission": {"clusterQueue": "q", "podSetAssignments": usage},
            }
        return made

    def condition(kind: str, status: str = "True", minute: int = 55) -> Json:
        time = f"2025-12-31T23:{minute}:00Z"
        return {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": time}

    admitted = (condition("QuotaReserved"), condition("Admitted"))
    was_evicted = condition("Evicted", "False", 54)
    objects = [dumped("runs", *admitted), dumped("again", *admitted, was_evicted), dumped("waits")]
    columns = ("wait_seconds", "run_seconds", "slowdown", "outcome", "lost_seconds")
    expected = {
        # It was admitted five minutes before the run, of which it goes on for 60 s, ten after its creation.
        "runs": (300.0, 360.0, 660 / 360, "Succeeded", 0.0),
        # Nobody knows when it was admitted first.
        "again": (None, 360.0, 660 / 360, "Succeeded", 0.0),
        "waits": (600.0, 60.0, 660 / 60, "Succeeded", 0.0),
    }
    events = [Happening(at=0, op=Operation.CREATE, object=object_, plan=JobPlan(run_seconds=60)) for object_ in objects]
    run = simulate(OBJECTS, events, now=NOW, finished=False)
    assert rows(run, *columns) == expected
    assert Results.of(run).summary().makespan_seconds == 60
    # They may be among the objects, too; then they run forever.
    run = simulate([*OBJECTS, *objects], now=NOW)
    assert rows(run, "wait_seconds", "outcome", "cluster_queue") == {
        "runs": (300.0, "Running", "q"),
        "again": (None, "Running", "q"),
        "waits": (600.0, "Running", "q"),
    }


def test_the_nodes_of_a_job_are_those_of_its_last_placement() -> None:
    def node(name: str, **arguments: Any) -> Json:
        made = topologies.node(name, "r", cpu=4, **arguments)
        made["metadata"]["labels"]["pool"] = "tas"
        return made

    tas = flavor(nodeLabels={"pool": "tas"})
    objects = [namespace(), tas, topology(topologies.RACK, HOST), *map(node, ("n1", "n2", "n3")), *queue()]
    made = workload("wide", pod_set(count=4, cpu=2, required=topologies.RACK))
    wide = Happening(at=0, op=Operation.CREATE, object=made, plan=JobPlan(run_seconds=100))
    none = replace(wide, at=1, object=workload("huge", pod_set(count=40, cpu=2, required=HOST)))
    assert rows(simulate(objects, [wide, none], now=NOW), "nodes") == {"wide": ("n1,n2",), "huge": (None,)}
    lost = Happening(at=30, op=Operation.UPDATE, object=node("n1", ready="False"))
    assert rows(simulate(objects, [wide, lost], now=NOW), "nodes", "evictions") == {"wide": ("n2,n3", 0)}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30))
def test_joined_texts_are_those_of_a_plain_loop(pairs: list[tuple[int, int]]) -> None:
    names = ["d", "a", "c", "b"]
    group, name = (np.array(entry, np.int64) for entry in (zip(*pairs, strict=True) if pairs else ((), ())))
    codes, texts = joined_texts(group, name, names, 7)
    reported = [texts[code] if code >= 0 else None for code in codes.tolist()]
    plain = [",".join(sorted({names[name] for at, name in pairs if at == place})) or None for place in range(7)]
    assert reported == plain
