"""Jobs of a trace that a run leaves out are counted wherever its results are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.scenarios import read_scenario
from kueuecore.simulation import LeftOut
from kueuecore.studies import run_trial
from tests.command import QUEUES

SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
cluster: {objects: [queues.yaml]}
traces: [{file: jobs.csv, rules: rules.yaml}]
"""
RULES = """
apiVersion: kueuecore/v1
kind: TraceRules
default: {queue: team/lq}
begin: 100
"""
# One comes before time starts, one never started, one requests nothing.
JOBS = "at,start,run_seconds,cpu_milli\n0,1,60,1000\n100,101,60,1000\n110,,60,1000\n120,121,60,0\n"
LINE = "3 of the 4 jobs of trace jobs are left out: never started (1), requests nothing (1), before `begin` (1)"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("queues.yaml", QUEUES), ("scenario.yaml", SCENARIO), ("rules.yaml", RULES), ("jobs.csv", JOBS)):
        Path(name).write_text(text, encoding="utf-8")


def test_table_notes_summary_and_page_say_how_many_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "scenario.yaml", "--results", "out", "--report", "page.html"]) == ExitCode.OK
    shown = capsys.readouterr()
    assert LINE in shown.out.splitlines()
    assert f"note: {LINE}" in shown.err.splitlines()
    assert json.loads(Path("out/summary.json").read_text())["left_out"] == [
        {
            "trace": "jobs",
            "jobs": 3,
            "of": 4,
            "reasons": {"never started": 1, "requests nothing": 1, "before `begin`": 1},
        }
    ]
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<dt>left out of trace jobs</dt><dd>3 of 4: never started (1)," in page


def test_the_document_lists_them_by_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "scenario.yaml", "-o", "json", "--quiet"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert [(load["trace"], load["jobs"], load["of"]) for load in document["leftOut"]] == [("jobs", 3, 4)]
    assert len(document["jobs"]) == 1


def test_nothing_is_said_where_none_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("jobs.csv").write_text("at,run_seconds,cpu_milli\n100,60,1000\n")
    assert main(["simulate", "scenario.yaml"]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "left out" not in shown.out + shown.err


def test_studies_warn_of_them_and_progress_does_not_wait_for_them() -> None:
    assert read_scenario("scenario.yaml").n_jobs == 1
    assert LINE in run_trial(read_scenario("scenario.yaml"), 1).warnings


def test_one_job_is_left_out_in_the_singular() -> None:
    assert str(LeftOut(trace="a", n_in_file=2, reasons={"no run time": 1})) == (
        "1 of the 2 jobs of trace a is left out: no run time (1)"
    )
