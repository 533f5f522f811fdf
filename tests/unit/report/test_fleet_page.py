"""The page of a fleet."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import kueuecore
from kueuecore.cli import ExitCode, main
from kueuecore.report import FleetReport
from kueuecore.scenarios import JobOutcomes, ScenarioOutcome
from tests.html_page import Page

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

FLEET = "examples/multikueue/scenario.yaml"


@pytest.fixture(scope="module")
def outcome() -> ScenarioOutcome:
    return kueuecore.run(FLEET)


@pytest.fixture(scope="module")
def page(outcome: ScenarioOutcome) -> str:
    return FleetReport(outcome, title="A <fleet>").html


def test_the_page_shows_where_jobs_ran_what_was_used_and_who_waited(page: str) -> None:
    Page(page)
    titles = re.findall(r'<h2 id="f\d+">([^<]*)</h2>', page)
    assert titles == [
        *("Where jobs ran", "cpu in use", "Who waits where", "Waits", "Jobs"),
        *("Quota of the manager and of its workers", "Outages"),
    ]
    assert "Jobs ran in 2 clusters, most in east: 8 of 12." in page
    assert "<td>east</td><td>v0.20.0</td><td>8</td>" in page
    assert "<td>east</td><td>2m00s</td><td>4m40s</td><td>2m40s</td>" in page
    assert "(manager) uses most of its quota, 77.2% on average." in page
    assert "team/train-12 ran in east" in page
    assert page.count("<svg") == 5
    assert "A &lt;fleet&gt;" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)


def test_the_same_run_has_the_same_page(outcome: ScenarioOutcome, page: str) -> None:
    assert FleetReport(kueuecore.run(FLEET), title="A <fleet>").html == page


def test_many_jobs_are_counts(outcome: ScenarioOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueuecore.report.gantt.MAX_JOBS", 5)
    page = FleetReport(outcome).html
    assert "With more than 5 jobs, the chart shows how many run at once" in page
    assert "<td>east</td><td>9</td>" in page


def test_many_clusters_are_shown_together(outcome: ScenarioOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueuecore.report.fleet_facts._MAX_CLUSTERS", 2)
    page = FleetReport(outcome).html
    assert "2 of 3 clusters are shown by name." in page
    assert ">all others<" in page


def test_a_fleet_without_work_or_time_has_a_page(outcome: ScenarioOutcome) -> None:
    empty = kueuecore.run(FLEET, edits=["work=[]"])
    assert "<h2" in FleetReport(empty).html
    assert outcome.fleet is not None
    over = replace(outcome, jobs=JobOutcomes.of(()), fleet=replace(outcome.fleet, end=outcome.start))
    assert "0s from" in FleetReport(over).html


def test_jobs_that_never_run_are_nowhere() -> None:
    page = FleetReport(kueuecore.run(FLEET, edits=["until=3m"])).html
    assert "<td>(nowhere)</td><td>2</td><td>-</td><td>-</td><td>-</td><td>2</td>" in page
    assert "<td>still runs</td>" in page
    assert "No job has run." in FleetReport(kueuecore.run(FLEET, edits=["until=5ms"])).html


def test_one_cluster_has_another_report() -> None:
    with pytest.raises(ValueError, match="the outcome is that of one cluster; use Report"):
        FleetReport(kueuecore.run("examples/scenario/scenario.yaml", edits=["work[0].count=1", "work[1].count=1"]))


def test_the_command_writes_it(capsys: pytest.CaptureFixture[str], tmp_path: Path, outcome: ScenarioOutcome) -> None:
    path = tmp_path / "out.html"
    assert main(["simulate", FLEET, "--report", str(path)]) == ExitCode.OK
    assert f"note: wrote {path}" in capsys.readouterr().err
    assert path.read_text() == FleetReport(outcome, title=FLEET).html
