"""Files that a command writes: refused before it starts, and never in the way of its tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import compare, plan, simulate, sweep
from kueuecore.cli.streams import OutputError
from kueuecore.report import Report
from kueuecore.simulation import Checkpoint
from tests.command import QUEUES, Ran

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "both", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": 2}}}],
            }
        }
    },
}
COMMANDS = {
    "simulate": ["simulate", "scenario.yaml"],
    "compare": ["compare", "scenario.yaml", "--set", "cluster.cycle=2s", "--seeds", "1", "--workers", "1"],
    "sweep": ["sweep", "scenario.yaml", "--grid", "work[0].count=[1, 2]", "--workers", "1"],
    "plan": ["plan", "scenario.yaml", "--wait", "p50<=1m", "--seeds", "1", "--workers", "1"],
}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the command beside a scenario of three jobs."""
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(QUEUES, encoding="utf-8")
    work = [{"job": JOB, "count": 3, "every": 10, "runs": 60}]
    head = {"apiVersion": "kueuecore/v1", "kind": "Scenario"}
    Path("scenario.yaml").write_text(json.dumps({**head, "cluster": {"objects": ["queues.yaml"]}, "work": work}))
    Path("folder").mkdir()
    return lambda *arguments: Ran(main([*arguments]), *capsys.readouterr())


@pytest.fixture
def runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets no scenario start."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("it has started")

    for module, name in ((simulate, "run_scenario"), (compare, "compare"), (sweep, "sweep"), (plan, "plan")):
        monkeypatch.setattr(module, name, fail)


@pytest.mark.usefixtures("runs_nothing")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", [".", "folder", "absent/out", "scenario.yaml/out", "/proc/nowhere/out"])
def test_a_page_that_cannot_be_written_is_refused_before_the_run(
    ran: Callable[..., Ran], command: str, place: str
) -> None:
    it = ran(*COMMANDS[command], "--report", place)
    assert (it.code, it.out) == (ExitCode.BAD_INPUT, "")
    assert it.err.startswith(f"{place}: --report: cannot be written: ")
    assert "; name a file in a writable folder" in it.err


@pytest.mark.parametrize(
    "place", [".", "..", "folder", "absent/out", "scenario.yaml/out", "/proc/nowhere/out", "n" * 300]
)
@pytest.mark.parametrize("command", ["simulate", "sweep"])
def test_a_checkpoint_that_cannot_be_written_is_refused(ran: Callable[..., Ran], command: str, place: str) -> None:
    for extra in ([], ["--resume"]):
        it = ran(*COMMANDS[command], "--checkpoint", place, *extra)
        assert (it.code, it.out) == (ExitCode.BAD_INPUT, "")
        assert it.err.startswith(f"{place}: ")


@pytest.mark.usefixtures("runs_nothing")
@pytest.mark.parametrize("place", ["scenario.yaml", "scenario.yaml/out", "/proc/nowhere/out"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_run(ran: Callable[..., Ran], place: str) -> None:
    it = ran("simulate", "scenario.yaml", "--results", place)
    assert (it.code, it.out) == (ExitCode.BAD_INPUT, "")
    assert it.err.startswith(f"{place}: --results: cannot be written to: ")


@pytest.mark.usefixtures("runs_nothing")
@pytest.mark.parametrize("option", ["--report", "--results"])
def test_what_a_fleet_cannot_write_is_refused_before_its_run(ran: Callable[..., Ran], option: str) -> None:
    example = Path(__file__).parents[3] / "examples" / "multikueue" / "scenario.yaml"
    it = ran("simulate", str(example), option, "scenario.yaml/out")
    assert (it.code, it.out) == (ExitCode.BAD_INPUT, "")
    assert it.err.startswith(f"scenario.yaml/out: {option}: cannot be written")


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_are_printed_even_if_the_page_cannot_be_written(
    ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    expected = ran(*COMMANDS[command])

    def fail(page: Report, path: Path, *, quiet: bool) -> None:
        raise OutputError("No space left on device", what=str(path))

    for module in (simulate, compare, sweep, plan):
        monkeypatch.setattr(module, "write_page", fail)
    it = ran(*COMMANDS[command], "--report", "out.html")
    assert (it.code, it.out) == (ExitCode.UNWRITABLE, expected.out)
    assert it.err.endswith("kueuecore: cannot write out.html: No space left on device\n")


def test_a_wrong_name_to_sort_by_costs_no_tables(ran: Callable[..., Ran]) -> None:
    expected = ran(*COMMANDS["sweep"])
    it = ran(*COMMANDS["sweep"], "--sort", "patience")
    assert (it.code, it.out) == (ExitCode.BAD_INPUT, expected.out)
    assert "no run has a figure patience: not sorted; write one of " in it.err


def test_a_checkpoint_that_cannot_be_deleted_is_a_warning(
    ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(checkpoint: Checkpoint) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Checkpoint, "remove", fail)
    it = ran("simulate", "scenario.yaml", "--checkpoint", "saved")
    assert it.code == ExitCode.OK
    assert it.err == "warning: saved: cannot be deleted: Permission denied\n"
