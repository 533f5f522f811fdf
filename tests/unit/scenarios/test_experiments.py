"""Rules that Kueue does not have, in a scenario: how they are read, and that every output says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import ManifestError
from kueuecore._json import object_at
from kueuecore.cli import main
from kueuecore.experiments import Experiments, experiment_names
from kueuecore.report.page import report_html
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario, scenario_schema
from kueuecore.studies import WaitTarget, compare, plan, quota_scales
from kueuecore.studies.fingerprints import scenario_key
from kueuecore.ui.timeline import Timeline
from tests.regressions.scenarios import CLUSTER, EXAMPLES, FLEET, Read, problems

MONTH = EXAMPLES / "experiments-month" / "scenario.yaml"
WORK = "work: [{name: one, job: job.yaml, count: 2, runs: 1m}]\n"
NOTICE = "experiments: timeShareSeconds=14400 (not in Kueue)"


def with_experiments(text: str) -> str:
    return CLUSTER.replace("{objects", f"{{experiments: {text}, objects") + WORK


def edited(*edits: str) -> Scenario:
    return read_scenario(MONTH, edits=[parse_edit(edit) for edit in ("until=3d", *edits)])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("null", Experiments()),
        ("{}", Experiments()),
        ("{timeShareSeconds: null}", Experiments()),
        (
            "{minRunSecondsBeforeCrossQueuePreemption: 600, reclaimBackoffSeconds: 300, timeShareSeconds: 31536000}",
            Experiments(
                min_run_seconds_before_cross_queue_preemption=600,
                reclaim_backoff_seconds=300,
                time_share_seconds=31536000,
            ),
        ),
    ],
)
def test_a_cluster_has_experiments(text: str, found: Experiments, read: Read) -> None:
    scenario = read(with_experiments(text))
    assert scenario.experiments == found
    outcome = run_scenario(scenario)
    assert outcome.run is not None
    assert outcome.run.engine.configuration.experiments == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{timeShareSecond: 60}", 'cluster.experiments.timeShareSecond: unknown experiment "timeShareSecond"'),
        ("{timeShareSeconds: 0}", "cluster.experiments.timeShareSeconds: Invalid value: 0"),
        ("{reclaimBackoffSeconds: 10m}", "cluster.experiments.reclaimBackoffSeconds: Invalid value: '10m'"),
        ("[timeShareSeconds]", "cluster.experiments: must be a mapping, not a list"),
    ],
)
def test_what_is_wrong_is_named(text: str, found: str, read: Read) -> None:
    assert problems(read, with_experiments(text)) == [found]


def test_an_unknown_name_gets_a_near_one_and_its_line(read: Read) -> None:
    with pytest.raises(ManifestError) as caught:
        read(with_experiments("{timeShareSecond: 60}"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.remedy) == (3, "did you mean timeShareSeconds?")


def test_each_cluster_of_a_fleet_has_its_own(read: Read) -> None:
    text = FLEET.replace("manager: {", "manager: {experiments: {timeShareSeconds: 14400}, ")
    scenario = read(text.replace("east: {", "east: {experiments: {reclaimBackoffSeconds: 60}, ") + WORK)
    notices = (NOTICE, "worker east: experiments: reclaimBackoffSeconds=60 (not in Kueue)")
    assert scenario.experiment_notices == notices


def test_edits_turn_them_on_and_off() -> None:
    on = edited("cluster.experiments.timeShareSeconds=14400")
    assert on.experiments == Experiments(time_share_seconds=14400)
    assert edited("cluster.experiments={timeShareSeconds: 14400}").experiments == on.experiments
    off = edited("cluster.experiments.timeShareSeconds=null")
    assert (off.experiments, off.experiment_notices) == (Experiments(), ())
    with pytest.raises(ManifestError, match="did you mean reclaimBackoffSeconds"):
        edited("cluster.experiments.reclaimBackofSeconds=600")
    assert scenario_key(on) != scenario_key(off)
    assert scenario_key(off) == scenario_key(edited())


def test_a_comparison_says_which_side_has_them() -> None:
    found = compare(edited(), edited("cluster.experiments.timeShareSeconds=14400"), seeds=[1])
    assert found.is_any
    assert found.notices == ((), (NOTICE,))


def test_the_schema_knows_every_name() -> None:
    known = object_at(scenario_schema(), "$defs", "experiments", "properties")
    assert tuple(known) == experiment_names()


Ran = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs a command on three days of the example, with a time share; returns what it prints."""
    text = MONTH.read_text().replace("objects: [queues.yaml]", "objects: [queues.yaml]\n  experiments: SHARE", 1)
    text = text.replace("SHARE", "{timeShareSeconds: 14400}").replace("until: 30d", "until: 2d")
    for file in MONTH.parent.iterdir():
        (tmp_path / file.name).write_text(file.read_text(), encoding="utf-8")
    (tmp_path / "scenario.yaml").write_text(text, encoding="utf-8")

    def run(name: str, *options: str) -> str:
        assert main([name, str(tmp_path / "scenario.yaml"), *options, "-q"]) == 0
        return capsys.readouterr().out

    return run


def test_simulate_says_so_first(command: Ran) -> None:
    assert command("simulate").splitlines()[0] == NOTICE
    assert json.loads(command("simulate", "-o", "json"))["experiments"] == {"timeShareSeconds": 14400}


def test_compare_says_so_first(command: Ran) -> None:
    options = ("--seeds", "1", "--workers", "1", "--set", "cluster.experiments.timeShareSeconds=null")
    assert command("compare", *options).splitlines()[0] == f"A: {NOTICE}"
    document = json.loads(command("compare", *options, "-o", "json"))
    assert document["experiments"] == {"timeShareSeconds": 14400}
    assert [side.get("experiments") for side in document["sides"]] == [{"timeShareSeconds": 14400}, None]


def test_sweep_says_so_for_each_point(command: Ran) -> None:
    options = ("--seeds", "1", "--workers", "1", "--grid", "cluster.experiments.timeShareSeconds=[null, 14400]")
    points = json.loads(command("sweep", *options, "-o", "json"))["points"]
    assert [point.get("notices") for point in points] == [None, [NOTICE]]


def test_upgrade_says_so_first(command: Ran) -> None:
    options = ("--from", "0.19", "--seeds", "1", "--workers", "1")
    assert command("upgrade", *options).splitlines()[0] == NOTICE
    assert json.loads(command("upgrade", *options, "-o", "json"))["experiments"] == {"timeShareSeconds": 14400}


def test_the_page_of_a_run_says_so_in_its_title() -> None:
    scenario = edited("cluster.experiments.timeShareSeconds=14400")
    assert Timeline.of_scenario(scenario, title="month", command="").title == f"month; {NOTICE}"


def test_a_plan_and_a_report_say_so() -> None:
    scenario = edited("cluster.experiments.timeShareSeconds=14400")
    run = run_scenario(scenario).run
    assert run is not None
    assert NOTICE in report_html(run, title="month")
    scale = quota_scales(scenario, cluster_queues=["training"])[0]
    found = plan(scenario, WaitTarget.parse("mean<=10h"), scale, seeds=[1])
    assert found.notices == (NOTICE,)


def test_nothing_is_said_without_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(EXAMPLES / "scenario" / "scenario.yaml"), "-q"]) == 0
    assert "experiment" not in capsys.readouterr().out
