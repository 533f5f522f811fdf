"""`kueuecore sweep`, and what is behind it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from kueuecore import ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.report import SweepReport
from kueuecore.scenarios import Edit, Scenario, parse_edit, parse_target, read_scenario, run_scenario
from kueuecore.studies import Axis, Journal, drawn_points, grid_points, processes, sweep
from tests.command import Ran
from tests.signals import listen_to_ctrl_c

EXAMPLE = "examples/scenario/scenario.yaml"
QUOTA = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"
AXES = [Axis(parse_target(QUOTA), (4, 6)), Axis(parse_target("work[0].count"), (10, 20, 30))]


def read(edits: Sequence[Edit]) -> Scenario:
    return read_scenario(EXAMPLE, edits=edits)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        code = main(["sweep", EXAMPLE, "--workers", "1", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def test_a_grid_has_every_combination_and_each_run_is_that_of_the_scenario_itself() -> None:
    found = sweep(read, grid_points(AXES), seeds=[3, 1])
    assert len(found.points) == 6
    edits = [parse_edit(f"{QUOTA}=6"), parse_edit("work[0].count=20")]
    assert [point.value for point in found.points[4]] == [edit.value for edit in edits]
    for index, seed in enumerate([3, 1]):
        outcome = run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits))
        assert found.estimate(4, "mean_wait_seconds").values[index] == pytest.approx(outcome.all.mean)
        assert found.estimate(4, "p95_wait_seconds").values[index] == outcome.all.p95
        assert found.estimate(4, "evictions").values[index] == outcome.all.n_evictions


def test_the_table_has_a_row_for_each_run() -> None:
    table = sweep(read, grid_points(AXES), seeds=[3, 1]).table()
    assert table["point"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert table[QUOTA].to_list() == ["4"] * 6 + ["6"] * 6
    assert table["work[0].count"].to_list()[:6] == ["10", "10", "20", "20", "30", "30"]
    assert table["seed"].to_list()[:4] == [3, 1, 3, 1]


NAMED = "work[0].count={few: 1, many: 2}"


def test_named_values_have_their_names_in_all_outputs(run: Callable[..., Ran]) -> None:
    arguments = ("--set", "work[1].count=1", "--grid", NAMED)
    shown = run(*arguments).out
    assert re.search(r"^ +few .*\n +many ", shown, re.MULTILINE)
    assert "VALUE few: 1\nVALUE many: 2\n" in shown
    rows = [*csv.DictReader(io.StringIO(run(*arguments, "-o", "csv").out))]
    assert [row["work[0].count"] for row in rows] == ["few", "many"]
    points = json.loads(run(*arguments, "-o", "json").out)["points"]
    assert [point["edits"] for point in points] == [{"work[0].count": 1}, {"work[0].count": 2}]
    assert [point["names"] for point in points] == [{"work[0].count": "few"}, {"work[0].count": "many"}]


def test_named_values_have_their_names_on_the_page() -> None:
    pytest.importorskip("altair")
    axis = Axis(parse_target("work[0].count"), (1, 2), names=("few", "many"))
    found = sweep(
        lambda edits: read_scenario(EXAMPLE, edits=[parse_edit("work[1].count=1"), *edits]),
        sorted(drawn(axis), key=str),
    )
    page = SweepReport(found).html
    assert "<td>few</td>" in page
    assert "<td>many</td>" in page


def drawn(axis: Axis) -> set[tuple[Edit, ...]]:
    """The values of an axis, drawn at random until each has come."""
    return {*drawn_points([axis], 20, seed=1)}


def test_names_are_one_for_each_value(run: Callable[..., Ran]) -> None:
    for names in (("a",), ("a", "a"), ("a", "")):
        with pytest.raises(ValueError, match="give each value a name of its own"):
            Axis(parse_target("work[0].count"), (1, 2), names=names)
    with pytest.raises(ValueError, match="and a range none"):
        Axis(parse_target("work[0].count"), (1, 2), is_range=True, names=("a", "b"))
    assert "write TARGET=[V, ...], or TARGET={NAME: V, ...}" in run("--grid", "work[0].count={}").err


def test_results_do_not_depend_on_the_executor() -> None:
    points = grid_points(AXES)
    plain = sweep(read, points, seeds=[1, 2])
    with ThreadPoolExecutor(3) as threads:
        assert sweep(read, points, seeds=[1, 2], executor=threads) == plain
    with processes(2) as pool:
        assert sweep(read, points, seeds=[1, 2], executor=pool) == plain


def test_drawn_points_lie_in_their_ranges_and_do_not_depend_on_how_many_there_are() -> None:
    axes = [
        Axis(parse_target("work[0].count"), (5, 9), is_range=True),
        Axis(parse_target("work[0].fails.share"), (0.1, 0.2), is_range=True),
        Axis(parse_target("work[1].count"), (1, 7)),
    ]
    points = drawn_points(axes, 200, seed=1)
    assert points[:20] == drawn_points(axes, 20, seed=1) != drawn_points(axes, 20, seed=2)
    counts, shares, chosen = ([point[axis].value for point in points] for axis in range(3))
    assert set(counts) == {5, 6, 7, 8, 9}
    assert set(chosen) == {1, 7}
    assert all(isinstance(share, float) and 0.1 <= share <= 0.2 for share in shares)


def test_a_sweep_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path, points = tmp_path / "sweep.jsonl", grid_points(AXES)
    seen: list[int] = []

    def stop(n_over: int, n_all: int) -> None:
        seen.append(n_all)
        if n_over == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(read, points, seeds=[1, 2], progress=stop, journal=Journal(path, resume=False))
    with path.open("a") as file:
        file.write('{"trial": "cut o')  # as by kill -9
    over: list[int] = []
    journal = Journal(path, resume=True)
    assert len(journal.known) == 5
    found = sweep(read, points, seeds=[1, 2], progress=lambda n, _: over.append(n), journal=journal)
    assert over == [6, 7, 8, 9, 10, 11, 12]
    assert found == sweep(read, points, seeds=[1, 2])
    assert len(path.read_text().splitlines()) == 12


def test_trials_of_another_scenario_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    sweep(read, grid_points(AXES[:1]), journal=Journal(path, resume=False))
    later = partial(read_scenario, EXAMPLE)
    edit = parse_edit("work[0].runs=2m")
    over: list[int] = []
    journal = Journal(path, resume=True)
    found = sweep(
        lambda edits: later(edits=[edit, *edits]),
        grid_points(AXES[:1]),
        progress=lambda n, _: over.append(n),
        journal=journal,
    )
    assert over == [1, 2]
    assert found != sweep(read, grid_points(AXES[:1]))


@pytest.mark.parametrize("text", ["no json\n", '{"trial": 1}\n', "[]\n", '{"trial": "x", "figures": {"a": "b"}}\n'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_text(text)
    with pytest.raises(ManifestError, match="not a trial"):
        Journal(path, resume=True)
    with pytest.raises(ManifestError, match="the file exists; pass --resume"):
        Journal(path, resume=False)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "axis",
    [((),), ((1, 2, 3), True), ((2, 1), True), (("a", "b"), True), ((True, False), True)],
)
def test_impossible_axes_are_refused(axis: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="work"):
        Axis(parse_target("work[0].count"), *axis)  # type: ignore[arg-type]


def test_points_and_seeds_must_be_given() -> None:
    with pytest.raises(ValueError, match="no point"):
        sweep(read, [])
    with pytest.raises(ValueError, match="seeds"):
        sweep(read, grid_points(AXES), seeds=[1, 1])
    with pytest.raises(ValueError, match="a grid needs values"):
        grid_points([Axis(parse_target("work[0].count"), (1, 2), is_range=True)])


def test_the_command_prints_a_table_of_points(run: Callable[..., Ran]) -> None:
    ran = run("--grid", f"{QUOTA}=[8, 4]", "--seeds", "2", "--sort", "mean_wait_seconds")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    lines = ran.out.splitlines()
    assert lines[:2] == ["2 points, 2 seeds each", f"VALUE: {QUOTA}"]
    assert [line.split()[0] for line in lines[3:]] == ["VALUE", "8", "4"]


def test_jobs_that_fail_are_a_column_and_a_figure(run: Callable[..., Ran]) -> None:
    axis = "work[0].fails.share=[0.0, 0.5]"
    seeds = (1, 2)
    edits = [parse_edit("work[0].fails.share=0.5")]
    runs = [run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits)) for seed in seeds]
    failed = [sum(job.has_failed for job in outcome.jobs) for outcome in runs]
    assert min(failed) > 10
    found = json.loads(run("--grid", axis, "--seeds", "2", "-o", "json").out)
    assert [point["figures"]["failed"] for point in found["points"]] == [[0, 0], failed]
    ran = run("--grid", axis, "--seeds", "1", "--sort", "failed")
    header, *rows = (re.split(r" {2,}", line.strip()) for line in ran.out.splitlines()[3:])
    assert [row[header.index("FAILED")] for row in rows] == ["0", str(failed[0])]


def test_csv_has_a_row_for_each_run_and_json_everything(run: Callable[..., Ran]) -> None:
    arguments = ["--random", "3", "--range", "work[0].count=10..40", "--set", f"{QUOTA}=5", "--seeds", "2"]
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "-o", "csv").out)))
    assert len(rows) == 6
    found = json.loads(run(*arguments, "-o", "json").out)
    waits = [wait for point in found["points"] for wait in point["figures"]["mean_wait_seconds"]]
    assert [float(row["mean_wait_seconds"]) for row in rows] == waits
    assert [point["edits"]["work[0].count"] for point in found["points"]] == [
        int(row["work[0].count"]) for row in rows[::2]
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing varies; give a field"),
        (["--grid", "work[0].count=3"], "has no list of values; write TARGET=[V, ...]"),
        (["--grid", "work[0].count=[]"], "has no list of values"),
        (["--grid", "work[0].count"], "has no value"),
        (["--range", "work[0].count=1..2"], "say how many to draw with --random N"),
        (["--random", "2", "--range", "work[0].count=1"], "write TARGET=LOW..HIGH"),
        (["--random", "2", "--range", "work[0].count=a..b"], "write TARGET=LOW..HIGH"),
        (["--grid", "work[0].count=[1]", "--resume"], "--resume needs a checkpoint file"),
        (["--grid", "work[0].count=[1, -1]"], "work[0].count"),
        (["--grid", "Cohort/x:spec.a=[1]"], "no object matches Cohort/x"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(run: Callable[..., Ran], arguments: list[str], message: str) -> None:
    ran = run(*arguments)
    assert ran.code == ExitCode.BAD_INPUT
    assert message in ran.err
    assert ran.out == ""


def test_the_command_resumes_after_kill_9(tmp_path: Path, run: Callable[..., Ran]) -> None:
    path = tmp_path / "sweep.jsonl"
    arguments = ["--grid", f"{QUOTA}=[4, 5, 6]", "--seeds", "60", "-o", "csv"]
    command = [sys.executable, "-m", "kueuecore", "sweep", EXAMPLE, "--workers", "1", *arguments]
    with subprocess.Popen([*command, "--checkpoint", str(path)], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while (not path.exists() or path.stat().st_size < 600) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert 0 < len(Journal(path, resume=True).known) < 180
    ran = run(*arguments, "--checkpoint", str(path), "--resume")
    assert not path.exists()
    assert ran.out == run(*arguments).out


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_answers_at_once_and_says_how_to_go_on(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "sweep.jsonl"
    arguments = ["--grid", f"{QUOTA}=[4, 5, 6]", "--seeds", "500", "--workers", workers, "--checkpoint", str(path)]
    command = [sys.executable, "-m", "kueuecore", "sweep", EXAMPLE, *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=listen_to_ctrl_c
    ) as process:
        deadline = time.monotonic() + 60
        while (not path.exists() or path.stat().st_size < 600) and time.monotonic() < deadline:
            time.sleep(0.01)
        # As a terminal does: to all processes of the command.
        os.killpg(process.pid, signal.SIGINT)
        _, reported = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert f"note: saved in {path}: continue with --resume" in reported
    assert "Traceback" not in reported


def test_the_seed_cannot_be_an_axis(run: Callable[..., Ran]) -> None:
    ran = run("--grid", "seed=[1, 2]")
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert "every point runs with each of the seeds" in ran.err
    assert "more --seeds" in ran.err
