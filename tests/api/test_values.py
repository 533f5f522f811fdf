"""What runs and cycles return are values: frozen, comparable, short in the REPL."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

from kueuecore import Decision, Engine, simulate
from kueuecore.objects import Namespace
from kueuecore.results import Results
from kueuecore.results.table import Column, Table
from kueuecore.scenarios import ScenarioOutcome, read_scenario, run_scenario
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload

EXAMPLES = Path(__file__).parents[2] / "examples"


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


@pytest.mark.parametrize("name", ["scenario", "multikueue"])
def test_an_outcome_without_its_run_is_the_same_after_a_pickle(name: str) -> None:
    one = replace(outcome_of(name), run=None)
    again = pickle.loads(pickle.dumps(one))
    assert (again, hash(again), tuple(again.jobs)) == (one, hash(one), tuple(one.jobs))
    assert pickle.loads(pickle.dumps(again)) == one


def test_a_run_is_not_pickled_but_its_tables_are() -> None:
    run = simulate((), submissions=[], now=T0)
    for one in (run, Results.of(run)):
        with pytest.raises(TypeError, match="pickle its tables"):
            pickle.dumps(one)
    assert pickle.loads(pickle.dumps(Results.of(run).jobs)) == Results.of(run).jobs


def outcome_of(name: str) -> ScenarioOutcome:
    return run_scenario(read_scenario(EXAMPLES / name / "scenario.yaml"))


def test_a_table_shows_names_as_text() -> None:
    words = ("<script>alert(1)</script>", "a\x1b[2J")
    table = Table({"<b>": Column(values=np.array([0, 1] * 15), words=words)})
    page = table._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<th>&lt;b&gt;</th>" in page
    assert "a\\x1b[2J" in page
    assert page.count("<tr>") == 21
    assert page.endswith("<p>30 rows</p>")
    assert table == pickle.loads(pickle.dumps(table))
    assert repr(table) == "Table(30 rows: <b>)"
