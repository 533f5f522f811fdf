"""Scenarios that name a dispatcher of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.scenarios import ScenarioOutcome, read_scenario, run_scenario
from kueuecore.studies import compare, processes
from kueuecore.studies.fingerprints import scenario_key

EXAMPLES = Path(__file__).parents[3] / "examples/multikueue"
SCENARIO = """apiVersion: kueuecore/v1
kind: Scenario
fleet:
  manager: {{objects: [{folder}/manager.yaml]}}
  workers:
    east: {{objects: [{folder}/east.yaml]}}
    west: {{objects: [{folder}/west.yaml]}}
  policy: {policy}
work: [{{job: {folder}/job.yaml, count: 2, every: 1m, runs: 10s}}]
"""
POLICIES = """
from __future__ import annotations
from dataclasses import dataclass
from kueuecore.multikueue import Nomination

@dataclass(frozen=True, slots=True)
class Always:
    worker: str = "west"
    waits_for_checks: bool = True

    def nominate(self, dispatch):
        return Nomination((self.worker,))

in_the_east = Always("east")

class Careless(Always):
    def nominate(self, dispatch):
        return [self.worker][1]

class Chatty(Always):
    def nominate(self, dispatch):
        return "west"

class Lazy:
    pass
"""


def ran(folder: Path, policy: str) -> ScenarioOutcome:
    (folder / "own.py").write_text(POLICIES, encoding="utf-8")
    (folder / "scenario.yaml").write_text(SCENARIO.format(folder=EXAMPLES, policy=policy), encoding="utf-8")
    return run_scenario(read_scenario(folder / "scenario.yaml", allow_code=True))


@pytest.mark.parametrize(
    ("policy", "worker"),
    [
        ("{use: own:Always}", "west"),
        ("{use: own:Always, arguments: {worker: east}}", "east"),
        ("{use: own:in_the_east}", "east"),
        # Other policies stand around it as around those that are there.
        ("{use: own:in_the_east, constraints: true, startWithin: 2m}", "east"),
    ],
)
def test_a_policy_beside_the_scenario_chooses(tmp_path: Path, policy: str, worker: str) -> None:
    outcome = ran(tmp_path, policy)
    assert [job.cluster for job in outcome.jobs] == [worker, worker]
    assert outcome.all.n_copies == 2


def test_a_policy_of_an_installed_module_chooses(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "{use: 'kueuecore.multikueue:AllAtOnce'}")
    assert outcome.all.n_copies == 4


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("{use: Always}", 'use: Invalid value: "Always"; write MODULE:NAME, such as my_policies:OneByOne'),
        ("{use: none:Always}", "use: there is no module none; put none.py next to the scenario"),
        ("{use: own:Alway}", "use: own has no Alway; write own:Always"),
        ("{use: own:Lazy}", "use: own:Lazy is not a dispatcher; give it `waits_for_checks` and `nominate`"),
        ("{use: own:Always, arguments: {place: 1}}", "use: own:Always cannot be loaded: TypeError: "),
        ("{use: own:Always, choose: cost}", "choose: unknown field; "),
        ("{use: own:Careless}", "use: own:Careless failed: IndexError: list index out of range (own.py:18); fix it"),
        ("{use: own:Chatty}", "use: own:Chatty returned str; return a Nomination"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_with_its_place(tmp_path: Path, policy: str, problem: str) -> None:
    with pytest.raises(ManifestError) as error:
        ran(tmp_path, policy)
    (found,) = error.value.problems
    assert (found.line, found.field.startswith("fleet.policy.")) == (8, True)
    assert f"scenario.yaml:8: fleet.policy.{problem}" in str(found)


def test_policies_are_sent_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(POLICIES, encoding="utf-8")
    scenarios = []
    for policy in (
        "{use: own:Always, arguments: {worker: east}, startWithin: 5m}",
        "{choose: cost, values: {east: 2, west: 1}, constraints: true}",
        "{choose: free-quota, round: 1m, prefersRoom: true}",
    ):
        path = tmp_path / "scenario.yaml"
        path.write_text(SCENARIO.format(folder=EXAMPLES, policy=policy), encoding="utf-8")
        scenarios.append(read_scenario(path, allow_code=True))
    with processes(2) as executor:
        found = compare(*scenarios, seeds=[1], executor=executor)
    assert found == compare(*scenarios, seeds=[1])
    assert [found.total[name]["jobs/east"].value.values for name in found.names] == [(2.0,), (0.0,), (2.0,)]


def test_what_is_wrong_with_a_policy_comes_back_from_other_processes(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(POLICIES, encoding="utf-8")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(folder=EXAMPLES, policy="{use: own:Careless}"), encoding="utf-8")
    scenario = read_scenario(path, allow_code=True)
    with processes(2) as executor, pytest.raises(ManifestError, match="own:Careless failed: IndexError"):
        compare(scenario, scenario, seeds=[1], executor=executor)


def test_other_arguments_are_another_scenario(tmp_path: Path) -> None:
    keys = []
    for worker in ("east", "west", "west"):
        path = tmp_path / "scenario.yaml"
        policy = f"{{use: own:Always, arguments: {{worker: {worker}}}}}"
        path.write_text(SCENARIO.format(folder=EXAMPLES, policy=policy), encoding="utf-8")
        keys.append(scenario_key(read_scenario(path, allow_code=True)))
    assert keys[0] != keys[1] == keys[2]
