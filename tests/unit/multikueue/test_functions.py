"""Plain functions as policies of a fleet, and what a run says of workers that were lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kueuecore.multikueue import Dispatch, FunctionDispatcher, KnownCluster, Manager, Nomination
from kueuecore.multikueue.functions import as_dispatcher, is_dispatch_function
from kueuecore.scenarios import Scenario, ScenarioOutcome, read_scenario, run_scenario

EXAMPLE = "examples/multikueue/scenario.yaml"
DISPATCH = Dispatch(workload={}, clusters=(KnownCluster(name="west", is_connected=True),), now=0)


def only_west(dispatch: Dispatch) -> Iterable[str]:
    return (cluster.name for cluster in dispatch.clusters if cluster.name == "west")


def small() -> Scenario:
    given = read_scenario(EXAMPLE)
    return replace(given, work=tuple(replace(work, count=1) for work in given.work))


def clusters(outcome: ScenarioOutcome) -> set[str | None]:
    return {job.cluster for job in outcome.jobs}


@pytest.mark.parametrize("policy", [only_west, lambda dispatch: Nomination(("west",)), FunctionDispatcher(only_west)])
def test_a_function_chooses_the_workers_of_a_fleet(policy: object) -> None:
    scenario = small()
    assert scenario.fleet is not None
    fleet = replace(scenario.fleet, dispatcher=policy)  # type: ignore[arg-type]
    assert clusters(run_scenario(replace(scenario, fleet=fleet))) == {"west"}


def test_a_function_without_arguments_still_makes_a_policy() -> None:
    scenario = small()
    assert scenario.fleet is not None
    fleet = replace(scenario.fleet, dispatcher=lambda: FunctionDispatcher(only_west))
    assert clusters(run_scenario(replace(scenario, fleet=fleet))) == {"west"}


@pytest.mark.parametrize("answer", [None, "west", 3, [1]])
def test_an_answer_without_names_is_refused(answer: object) -> None:
    with pytest.raises(TypeError, match="names"):
        FunctionDispatcher(lambda _: answer).nominate(DISPATCH)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "given",
    [lambda: None, lambda a, b: None, lambda a, *, b: None, FunctionDispatcher, max, 3],
    ids=["of nothing", "of two", "of a keyword", "class", "built in", "number"],
)
def test_what_takes_no_dispatch_is_no_policy(given: object) -> None:
    assert not is_dispatch_function(given)
    with pytest.raises(TypeError, match="dispatcher must be a Dispatcher"):
        Manager(dispatcher=given)  # type: ignore[arg-type]


def test_a_dispatcher_stays_what_it_is() -> None:
    given = FunctionDispatcher(only_west)
    assert as_dispatcher(given) is given


def test_a_scenario_names_a_function(tmp_path: Path) -> None:
    (tmp_path / "chosen.py").write_text("def west(dispatch):\n    return ['west']\n", encoding="utf-8")
    folder = Path(EXAMPLE).parent.resolve()
    text = Path(EXAMPLE).read_text(encoding="utf-8").replace("objects: [", f"objects: [{folder}/")
    text = text.replace("job: ", f"job: {folder}/").replace("\nfleet:\n", "\nfleet:\n  policy: {use: 'chosen:west'}\n")
    (tmp_path / "scenario.yaml").write_text(text, encoding="utf-8")
    assert clusters(run_scenario(read_scenario(tmp_path / "scenario.yaml", allow_code=True))) == {"west"}


def test_notes_say_when_a_lost_worker_was_back() -> None:
    outcome = run_scenario(read_scenario(EXAMPLE))
    (note,) = (note for note in outcome.notes if "was lost" in note)
    assert note.startswith("east was lost after ")
    assert ", and back after " in note
