"""What runs and cycles return are values: frozen, comparable, short in the REPL."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kueuecore import Decision, Engine, simulate
from kueuecore.configuration import Configuration
from kueuecore.objects import ClusterQueuePreemption, Namespace, WithinClusterQueuePolicy
from kueuecore.results import Results
from kueuecore.results.table import Column, Table
from kueuecore.scenarios import ScenarioOutcome, read_scenario, run_scenario
from kueuecore.simulation import Happening, JobPlan, Operation, Run
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload

EXAMPLES = Path(__file__).parents[2] / "examples"
PARTS_OF_A_RECORD = (
    *("usage_changes", "usage_amounts", "usage_names", "nominal_changes", "priority_classes", "evictions", "homes"),
    *("work_columns", "endings", "present_columns", "names", "keys", "n_workloads"),
)


def decided(name: str = "a") -> Decision:
    engine = Engine()
    engine.apply([Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload(name)], now=T0)
    return engine.cycle(at(1))


def test_a_decision_is_a_value() -> None:
    one = decided()
    assert (one, hash(one)) == (decided(), hash(decided()))
    assert one != decided("b")
    with pytest.raises(FrozenInstanceError):
        one.cycle = 2  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.admissions, repr(again)) == (one, one.admissions, repr(one))
    assert again.admission_table.tolist() == one.admission_table.tolist()


def test_results_are_values() -> None:
    one, other = (Results.of(simulate((), submissions=[], now=T0)) for _ in range(2))
    assert (one, hash(one)) == (other, hash(other))
    assert repr(one) == "Results(0 jobs, 0 cycles, Complete)"
    with pytest.raises(FrozenInstanceError):
        one._run = other._run


def test_an_outcome_is_a_value() -> None:
    one, other = (outcome_of("scenario") for _ in range(2))
    assert repr(one) == "ScenarioOutcome(60 jobs, Complete)"
    assert (one, hash(one)) == (other, hash(other))
    assert one != outcome_of("multikueue")


@pytest.mark.parametrize("name", ["scenario", "multikueue", "lost-rack"])
def test_an_outcome_is_the_same_after_a_pickle(name: str) -> None:
    one = outcome_of(name)
    again = pickle.loads(pickle.dumps(one))
    assert (again, hash(again), tuple(again.jobs)) == (one, hash(one), tuple(one.jobs))
    if one.run is not None:
        assert_same(again.run, one.run)
    assert pickle.loads(pickle.dumps(again)) == one


@pytest.mark.parametrize("options", [{}, {"messages": True}, {"cycles": False}])
def test_a_run_is_the_same_after_a_pickle(options: dict[str, bool]) -> None:
    run = preempting_run(**options)
    assert_same(pickle.loads(pickle.dumps(run)), run)


def test_a_run_that_was_cut_shows_its_loop_after_a_pickle() -> None:
    run = preempting_run(max_cycles=2)
    again = pickle.loads(pickle.dumps(run))
    assert_same(again, run)
    assert again.loop == run.loop


def test_a_run_keeps_its_configuration_and_goes_on_after_a_pickle() -> None:
    head = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration"
    configuration = Configuration.parse(f"{head}, featureGates: {{PartialAdmission: false}}}}")
    run = preempting_run(configuration=configuration)
    again = pickle.loads(pickle.dumps(run))
    assert again.engine.configuration.to_dict() == configuration.to_dict()
    for engine in (run.engine, again.engine):
        engine.apply(workload("later", cpu=9), now=run.end)
    assert again.engine.cycle(run.end) == run.engine.cycle(run.end)


def test_results_are_the_same_after_a_pickle() -> None:
    results = Results.of(preempting_run())
    again = pickle.loads(pickle.dumps(results))
    assert (again, repr(again), again.jobs) == (results, repr(results), results.jobs)
    assert again.cluster_queues(step_seconds=30) == results.cluster_queues(step_seconds=30)
    assert (again.summary(), again.prometheus()) == (results.summary(), results.prometheus())


def outcome_of(name: str) -> ScenarioOutcome:
    return run_scenario(read_scenario(EXAMPLES / name / "scenario.yaml"))


def preempting_run(**options: Any) -> Run:
    preemption = ClusterQueuePreemption(within_cluster_queue=WithinClusterQueuePolicy.LOWER_PRIORITY)
    jobs = [
        Happening(
            at=at_seconds,
            op=Operation.CREATE,
            object=workload(name, cpu=6, priority=priority),
            plan=JobPlan(run_seconds=60),
        )
        for name, at_seconds, priority in (("low", 1, 0), ("high", 20, 9), ("large", 30, 0))
    ]
    queue = cluster_queue(preemption=preemption)
    return simulate([Namespace("ns"), flavor(), queue, local_queue()], jobs, now=T0, **options)


def assert_same(again: Run, run: Run) -> None:
    assert (again, hash(again)) == (run, hash(run))
    assert (again.cycles, again.steps, again.domains) == (run.cycles, run.steps, run.domains)
    for table in ("cycle_table", "outcome_table", "preemption_table", "placement_table", "node_table", "failed"):
        assert getattr(again, table).tolist() == getattr(run, table).tolist()
    for part in PARTS_OF_A_RECORD:
        assert getattr(again._core, part)() == getattr(run._core, part)(), part
    assert again.engine.save() == run.engine.save()


def test_a_table_shows_names_as_text() -> None:
    words = ("<script>alert(1)</script>", "a\x1b[2J")
    table = Table({"<b>": Column(values=np.array([0, 1] * 15), words=words)})
    page = table._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert '<th scope="col">&lt;b&gt;</th>' in page
    assert "a\\x1b[2J" in page
    assert page.count("<tr>") == 21
    assert page.endswith("<p>10 more of 30 rows</p>")
    assert table == pickle.loads(pickle.dumps(table))
    assert repr(table) == "Table(30 rows: <b>)"
