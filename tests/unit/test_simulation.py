"""Runs through virtual time."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from kueuecore import Configuration, KueuecoreError, ManifestError, VirtualCluster, simulate
from kueuecore.engine import Objects
from kueuecore.manifests import JsonObject, parse_manifests
from kueuecore.simulation import Happening, JobPlan, Operation, RunEnding, Step, StepKind
from kueuecore.simulation.copies import Copies, joined_names
from kueuecore.submissions import Submissions
from kueuecore.times import nanoseconds

NOW = "2026-01-01T00:00:00Z"
QUEUES = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default-flavor}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {namespace: ns, name: lq}
spec: {clusterQueue: cluster-queue}
"""


def workload(name: str, *, cpu: str = "3", priority: int = 0) -> JsonObject:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template: JsonObject = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {
            "queueName": "lq",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    }


def reported(steps: tuple[Step, ...], start: int) -> list[tuple[float, str, str]]:
    return [((step.time - start) / 10**9, step.kind.value, step.key) for step in steps]


def test_a_run_stops_at_a_time() -> None:
    events = [
        Happening(at=at, op=Operation.CREATE, object=workload(f"w{at}"), plan=JobPlan(run_seconds=60)) for at in (0, 5)
    ]
    whole = simulate(QUEUES, events, now=NOW)
    cut = simulate(QUEUES, events, now=NOW, until="2026-01-01T00:01:00Z")
    steps = reported(whole.steps, whole.start)
    assert reported(cut.steps, cut.start) == [step for step in steps if step[0] <= 60] != steps


def test_happenings_and_dicts_are_equivalent() -> None:
    plain: list[Mapping[str, object]] = [
        {"at": 1, "op": "create", "object": workload("a"), "runSeconds": 0.5},
        {"at": 2, "op": "create", "object": workload("b")},
        {"at": 3, "op": "finish", "key": "ns/b"},
        {"at": 4, "op": "delete", "key": "ns/b"},
    ]
    typed = [
        Happening(at=1, op=Operation.CREATE, object=workload("a"), plan=JobPlan(run_seconds=0.5)),
        Happening(at=2, op=Operation.CREATE, object=workload("b")),
        Happening(at=3, op=Operation.FINISH, key="ns/b"),
        Happening(at=4, op=Operation.DELETE, key="ns/b"),
    ]
    runs = [simulate(QUEUES, events, now=NOW) for events in (plain, typed)]
    assert runs[0].steps == runs[1].steps
    assert reported(runs[0].steps, runs[0].start) == [
        (1, "Created", "ns/a"),
        (1, "Admitted", "ns/a"),
        (1.5, "Finished", "ns/a"),
        (2, "Created", "ns/b"),
        (2, "Admitted", "ns/b"),
        (3, "Finished", "ns/b"),
        (4, "Deleted", "ns/b"),
    ]


def test_the_engine_holds_the_state_at_the_end() -> None:
    run = simulate(QUEUES, [{"at": 1, "op": "create", "object": workload("a")}], now=NOW)
    assert (run.ending, run.n_cycles) == (RunEnding.COMPLETE, 1)
    assert run.engine.now == run.end == run.start + 2 * 10**9
    assert [state.key for state in run.engine.workloads()] == ["ns/a"]
    assert run.engine.cluster_queue("cluster-queue").admitted_workloads == 1


def test_a_cycle_returns_its_decision() -> None:
    events = [
        Happening(at=0, op=Operation.CREATE, object=workload("a")),
        Happening(at=5, op=Operation.CREATE, object=workload("b", priority=1)),
        Happening(at=9, op=Operation.CREATE, object=workload("c")),
    ]
    run = simulate(QUEUES, events, now=NOW, eviction_seconds=30, messages=True)
    by_victim = {victim.key: cycle for cycle in run.cycles for victim in cycle.decision.preemptions}
    assert by_victim["ns/a"].decision.preemptions[0].preemptor == "ns/b"
    assert [step.key for step in run.steps if step.kind is StepKind.STOPPED] == ["ns/a"]
    # The two are alike, so one is looked at for both.
    parking = next(cycle for cycle in run.cycles if cycle.parked)
    assert parking.parked == ("ns/a", "ns/c")
    assert "insufficient unused quota" in next(e.message for e in parking.decision.events if e.key == "ns/a")


def test_a_limit_of_cycles_ends_the_run() -> None:
    events = [Happening(at=at, op=Operation.CREATE, object=workload(f"w{at}", cpu="100m")) for at in range(5)]
    run = simulate(QUEUES, events, now=NOW, max_cycles=2)
    assert (run.ending, run.n_cycles) == (RunEnding.CYCLE_LIMIT, 2)


@pytest.mark.parametrize(
    "event",
    [
        {"at": 1, "op": "create", "object": {"kind": "Workload"}},
        {"at": 1, "op": "finish", "key": "no-namespace"},
        {"at": 1, "op": "stop", "key": "ns/a"},
        {"op": "finish", "key": "ns/a"},
    ],
)
def test_odd_events_are_refused(event: Mapping[str, object]) -> None:
    with pytest.raises(ManifestError) as caught:
        simulate(QUEUES, [event], now=NOW)
    assert isinstance(caught.value, KueuecoreError)


def test_ctrl_c_ends_a_run_that_never_ends() -> None:
    # Its pods are never ready: it is evicted and admitted again until the end of time.
    events = [Happening(at=0, op=Operation.CREATE, object=workload("a"), plan=JobPlan(ready_seconds=[None]))]
    again = {"backoffBaseSeconds": 1, "backoffMaxSeconds": 1}
    configuration = Configuration.trusted({"waitForPodsReady": {"timeout": "1s", "requeuingStrategy": again}})
    # Whoever runs the tests in the background may have it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    try:
        run = simulate(QUEUES, events, now=NOW, configuration=configuration, max_cycles=None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.ending is RunEnding.INTERRUPTED
    assert {step.kind for step in run.steps} >= {StepKind.CREATED, StepKind.ADMITTED, StepKind.STOPPED}


def test_columns_and_events_give_the_same_run() -> None:
    jobs = Submissions(
        namespace="ns",
        local_queues=["lq"],
        queue=np.zeros(3, int),
        requests={"cpu": 3000},
        at=[0, 5, 5],
        run_seconds=[60, 30, np.inf],
        priority=[0, 0, 9],
        prefix="w",
    )
    events: list[Happening] = []
    for name, second, runs, priority in (("w0", 0, 60, 0), ("w1", 5, 30, 0), ("w2", 5, None, 9)):
        created = {**workload(name, priority=priority)}
        created["metadata"] = {
            "namespace": "ns",
            "name": name,
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:0{second}Z",
        }
        events.append(Happening(at=second, op=Operation.CREATE, object=created, plan=JobPlan(run_seconds=runs)))
    by_columns = simulate(QUEUES, submissions=[jobs], now=NOW)
    by_events = simulate(QUEUES, events, now=NOW)
    assert by_columns.steps == by_events.steps
    assert by_columns.workload_keys == ("ns/w0", "ns/w1", "ns/w2")
    assert (by_columns.outcome_table == by_events.outcome_table).all()
    table = by_columns.outcome_table
    assert table["admitted"].tolist() == [by_columns.start, -1, by_columns.start + 6 * 10**9]
    assert (table["admissions"].tolist(), table["evictions"].tolist()) == ([1, 0, 1], [1, 0, 0])
    assert (table["finished"] == -1).all()


def test_tables_of_a_run_say_what_its_steps_and_cycles_say() -> None:
    jobs = Submissions(
        namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": 3000}, run_seconds=[10, 20], prefix="w"
    )
    run = simulate(QUEUES, submissions=[jobs], now=NOW, messages=True)
    kinds = list(StepKind)
    rows = [(row["time"], kinds[row["kind"]], run.workload_keys[row["workload"]]) for row in run.step_table]
    assert rows == [(step.time, step.kind, step.key) for step in run.steps]
    cycles = [
        (c.number, c.time, len(c.decision.admissions), len(c.decision.preemptions), c.n_parked) for c in run.cycles
    ]
    assert run.cycle_table.tolist() == cycles
    assert [len(c.parked) for c in run.cycles] == [c.n_parked for c in run.cycles]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": [0, 1, 2]}, r"at: must be a scalar or have the shape \(2,\), not \(3,\)"),
        ({"at": np.nan}, "at: must be a number of seconds within a century"),
        ({"run_seconds": -1}, "run_seconds: must be greater than or equal to 0"),
        ({"queue": [0, 7]}, r"queue\[1\]: 7: must be an index of local_queues"),
        ({"count": 1.5}, "count: must be integers, not float64"),
        ({"first": 2**63}, "first must be a number from 0 to 9223372036854775807"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    columns: dict[str, Any] = {"namespace": "ns", "local_queues": ["lq"], "queue": [0, 0], "requests": {"cpu": 1}}
    with pytest.raises(ValueError, match=message):
        simulate(QUEUES, submissions=[Submissions(**columns | change)], now=NOW)


def contended(n: int) -> Copies:
    """Jobs of two priorities that do not fit together, and push each other out."""
    low, high = workload("low"), workload("high", priority=9)
    names, ends = joined_names([f"job-{row}" for row in range(n)])
    return Copies(
        templates=[Happening(at=0, op=Operation.CREATE, object=entry) for entry in (low, high)],
        template=(np.arange(n) % 3 == 2).astype(np.uint32),
        names=names,
        ends=ends,
        at=np.arange(n, dtype=np.float64) * 2.5,
        run_seconds=10 + np.arange(n, dtype=np.float64) % 7,
    )


def test_copies_and_events_give_the_same_run() -> None:
    copies = contended(60)
    rows = range(len(copies))
    events = [
        Happening(
            at=copies.at[row], op=Operation.CREATE, object=other, plan=JobPlan(run_seconds=copies.run_seconds[row])
        )
        for row, other in ((row, copies.manifest(row, start=nanoseconds(NOW)).object) for row in rows)
    ]
    by_copies, by_events = simulate(QUEUES, copies=copies, now=NOW), simulate(QUEUES, events, now=NOW)
    assert by_copies.steps == by_events.steps
    assert by_copies.outcome_table["evictions"].sum() > 0
    name = "job-7"
    assert by_copies.engine.workload(name, namespace="ns") == by_events.engine.workload(name, namespace="ns")


def test_a_run_that_drops_finished_workloads_decides_the_same() -> None:
    whole, lean = (
        simulate(QUEUES, copies=contended(60), now=NOW, cycles=keeps, finished=keeps) for keeps in (True, False)
    )
    assert (whole.steps, whole.n_cycles, whole.end) == (lean.steps, lean.n_cycles, lean.end)
    assert (len(whole.engine.workload_keys()), len(lean.engine.workload_keys())) == (60, 0)
    assert (len(whole.cycles) > 0, lean.cycles) == (True, ())


def test_a_run_reports_how_far_it_has_come() -> None:
    reports: list[tuple[int, int, int]] = []
    run = simulate(QUEUES, copies=contended(200), now=NOW, progress=lambda *it: reports.append(it))
    times, created, finished = zip(*reports, strict=True)
    assert run.start < times[0] < times[-1] < run.end
    assert (sorted(times), sorted(created), sorted(finished)) == (list(times), list(created), list(finished))
    assert all(n_finished <= n_created <= 200 for _, n_created, n_finished in reports)


def test_an_exception_from_progress_ends_the_run() -> None:
    def fail(*_: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        simulate(QUEUES, copies=contended(200), now=NOW, progress=fail)
    run = simulate(QUEUES, copies=contended(200), now=NOW, progress=interrupted)
    assert run.ending is RunEnding.INTERRUPTED
    assert 0 < (run.outcome_table["finished"] >= 0).sum() < 200


def interrupted(*_: int) -> None:
    raise KeyboardInterrupt


SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
until: 1h
"""


@pytest.mark.parametrize(
    "objects",
    [SCENARIO, SCENARIO.encode(), parse_manifests(SCENARIO), f"{QUEUES}---{SCENARIO}"],
    ids=["text", "bytes", "manifests", "queues and a scenario"],
)
@pytest.mark.parametrize("into", [simulate, VirtualCluster])
def test_a_scenario_is_not_an_object_of_a_cluster(objects: Objects, into: Callable[..., object]) -> None:
    with pytest.raises(ManifestError) as caught:
        into(objects, now=NOW)
    (problem,) = caught.value.problems
    assert problem.object is not None
    assert (problem.object.kind, problem.field) == ("Scenario", "kind")
    assert problem.remedy == "`kueuecore.run` runs a Scenario from its file"


def test_a_virtual_cluster_stays_as_it_was_when_it_is_given_a_scenario() -> None:
    cluster = VirtualCluster(QUEUES, now=NOW)
    other = "{apiVersion: v1, kind: Namespace, metadata: {name: other}}"
    with pytest.raises(ManifestError, match="not an object of a cluster"):
        cluster.apply(f"{other}\n---{SCENARIO}")
    assert [it["metadata"] for it in cluster.engine.objects("Namespace")] == [{"name": "ns"}]


def test_what_only_mentions_a_scenario_is_simulated() -> None:
    other = "{apiVersion: examples.org/v1, kind: Scenario, metadata: {name: a, annotations: {by: kueuecore/v1}}}"
    assert simulate(f"{QUEUES}\n---\n{other}", now=NOW).ending is RunEnding.COMPLETE


@pytest.mark.parametrize("name", ["examples/scenario/scenario.yaml", "queues.yml", "dump.json.gz"])
def test_the_name_of_a_file_is_no_text_with_objects(name: str) -> None:
    with pytest.raises(ManifestError) as caught:
        simulate(name, now=NOW)
    assert (caught.value.field, caught.value.problems[0].message) == (
        "objects",
        "this is the name of a file, and no text with objects",
    )
    assert f"read_manifests('{name}')" in caught.value.remedy
    assert "kueuecore.run" in caught.value.remedy
