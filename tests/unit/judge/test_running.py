"""Worlds are played by several workers, and what they report adds up."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from kueuecore._json import JsonObject
from scripts import fidelity, fuzz_kueue
from tests.judge.playing import Found
from tests.judge.running import Plan, Report, line_of, reports

STUB = (sys.executable, str(Path(__file__).with_name("stub_oracle.py")))


def total(*command: str, worlds: int = 7, jobs: int = 2) -> Report:
    plan = Plan("0.19.2", command, 0, worlds, time.time() + 60, jobs, reference_every=0)
    found = Report()
    for report in reports(plan):
        found += report
    return found


def test_each_world_is_played_once() -> None:
    found = total(*STUB)
    assert (found.worlds, found.ended, found.failure) == (7, 2, "")
    assert sum(found.families[name] for name in ("plain", "contest", "topology", "run")) == 7
    assert found.counts["cycles"] > 20
    assert found.oracle_seconds > 0
    text = fuzz_kueue.summary(found, 2.0)
    assert "7 worlds in 2 s, 4 a second" in text
    assert "differences                         0" in text


def test_a_program_that_does_not_start_ends_the_run() -> None:
    assert total("/nowhere/kueue", jobs=1).failure == "cannot start /nowhere/kueue: No such file or directory"


def test_totals_add_up_for_the_page(tmp_path: Path) -> None:
    file = tmp_path / "played.json"
    report = Report(worlds=3)
    report.families["with topology"] = 1
    report.counts.update({"cycles": 1200, "admissions": 5})
    for _ in range(2):
        fuzz_kueue.record(report, "0.19.2", 1800, file)
    assert json.loads(file.read_text())["0.19.2"]["cycles"] == 2400
    assert fidelity.played_against(file) == [
        "- Kueue 0.19.2: 6 worlds, 2 of them with topology and 0 with fair sharing; 2,400 cycles, 10 admissions, "
        "0 preemptions. No differences, 0 worlds with something left to chance, 0 in which Kueue itself failed. "
        "1.0 hours."
    ]
    found = Found(7, "engine", "decisions cycles", "", {}, True)
    fuzz_kueue.record(Report(found=[found, found]), "0.19.2", 0, file)
    assert "2 differences were found and are mended or listed above, 0 worlds" in fidelity.played_against(file)[0]
    assert fidelity.played_against(tmp_path / "nothing.json") == ["None are counted yet."]


def test_a_difference_is_shown_with_what_plays_it_again() -> None:
    case: JsonObject = {"id": "plain/7", "objects": [{}], "input": {"events": []}, "expect": {}}
    found = Found(7, "engine", "decisions cycles", "decisions: cycles: Kueue has 1, not 0", case, True)
    assert fuzz_kueue.shown(found, "0.17") == (
        "\nengine differs: decisions: cycles: Kueue has 1, not 0\n"
        "  1 objects, 0 events; again: make fuzz-kueue RELEASE=0.17 WORLDS=1 SEED=7\n"
    )
    assert json.loads(line_of(found)) == {"why": "", **case}


def test_without_the_program_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(fuzz_kueue, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["fuzz_kueue.py", "--release", "0.17"])
    assert fuzz_kueue.main() == 2
    assert capsys.readouterr().err.endswith("kueue-0.17 is missing: make oracle RELEASE=0.17\n")
