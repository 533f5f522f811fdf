"""`kueuecore unblock`: tables, JSON, names and exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.progress import line_progress
from tests.command import Ran

EXAMPLE = Path(__file__).parents[3] / "examples" / "what-if"
TUNE = EXAMPLE / "asked" / "tune.yaml"

Command = Callable[..., Ran]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> Ran:
        code = main([*arguments])
        return Ran(code, *capsys.readouterr())

    return run


def test_json_has_edits_that_what_if_accepts(command: Command) -> None:
    ran = command("unblock", "-q", str(EXAMPLE), "lab/train", "--only", "Quota", "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["workload"]["status"]) == (ExitCode.OK, "Pending")
    (change,) = document["changes"]
    assert (change["kind"], change["would"], change["isLeast"]) == ("Quota", "Fits", True)
    (edit,) = change["edits"]
    asked = command(
        "what-if", "-q", str(EXAMPLE), "--settle", "--set", f"{edit['target']}={edit['value']}", "-o", "json"
    )
    (move,) = json.loads(asked.out)["settled"]["moves"]
    assert (move["workload"], move["move"]) == ("lab/train", "admitted")


def test_a_job_can_be_named_instead_of_its_workload(command: Command, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(TUNE.read_text(encoding="utf-8").replace("parallelism: 5", "parallelism: 50"), encoding="utf-8")
    outs = {
        command("unblock", "-q", str(EXAMPLE), str(job), name, "--only", "Pods").out
        for name in ("Job/tune", "Job/lab/tune")
    }
    (out,) = outs
    assert out.startswith("lab/job-tune-")
    assert "pods of pod set main" in out


def test_the_state_can_come_from_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "---\n".join((EXAMPLE / f"{name}.yaml").read_text(encoding="utf-8") for name in ("queues", "workloads"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    by_stream = command("unblock", "-q", "-", "train")
    assert by_stream.out == command("unblock", "-q", str(EXAMPLE), "lab/train").out


def test_a_workload_with_quota_is_reported_with_its_stage(command: Command) -> None:
    ran = command("unblock", "-q", str(EXAMPLE), "lab/eval", "--fail-on-pending")
    assert ran == (ExitCode.OK, "lab/eval is Admitted in ClusterQueue vision\n", "")
    assert command("unblock", "-q", str(EXAMPLE), "train", "--only", "Start", "--fail-on-pending").code == 1


def test_it_says_so_if_no_change_helps(command: Command) -> None:
    ran = command("unblock", "-q", str(EXAMPLE), "train", "--only", "BorrowingLimit")
    assert ran.code == ExitCode.OK
    assert "no single change and no pair admits it; " in ran.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody", 'there is no workload "nobody"; write NAMESPACE/NAME, as `run -A` shows it'),
        ("other/train", 'there is no workload "other/train"'),
        ("Job/train", 'there is no workload "Job/train"'),
        ("a/b/c", 'there is no workload "a/b/c"'),
    ],
)
def test_an_unknown_name_is_an_error(command: Command, name: str, message: str) -> None:
    ran = command("unblock", "-q", str(EXAMPLE), name)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert message in ran.err


def test_a_name_in_two_namespaces_is_an_error(command: Command, tmp_path: Path) -> None:
    text = (EXAMPLE / "workloads.yaml").read_text(encoding="utf-8")
    (tmp_path / "twice.yaml").write_text(text.replace("namespace: lab", "namespace: other"), encoding="utf-8")
    ran = command("unblock", "-q", str(EXAMPLE), str(tmp_path / "twice.yaml"), "train")
    assert ran.code == ExitCode.BAD_INPUT
    assert '"train" means 2 workloads; give the namespace too, such as lab/train' in ran.err


def test_it_says_so_when_it_stops_before_all_is_tried(command: Command) -> None:
    ran = command("unblock", "-q", str(EXAMPLE), "train", "--tries", "12")
    assert "stopped after 12 tries; --tries raises the limit" in ran.out
    document = json.loads(command("unblock", "-q", str(EXAMPLE), "train", "--tries", "12", "-o", "json").out)
    assert (document["tried"], document["isStopped"]) == (12, True)
    ran = command("unblock", "-q", str(EXAMPLE), "train", "--tries", "3")
    assert "none of the changes tried admits it; stopped after 3 tries" in ran.out


def test_a_line_is_written_every_three_seconds_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 1.0, 3.0, 3.5, 4.0, 7.0, 7.0))
    report = line_progress(quiet=False, clock=lambda: next(times))
    for n in range(4):
        report(lambda n=n: f"line {n}")  # type: ignore[misc]
    assert capsys.readouterr().err == "line 1\nline 3\n"
    report = line_progress(quiet=True, clock=lambda: 0.0)
    report(lambda: "hidden")
    assert capsys.readouterr().err == ""
