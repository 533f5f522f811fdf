"""`--history` of `kueuecore eta`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import Ran
from tests.unit.forecasts.history.recorded_metrics import matrix, series
from tests.unit.forecasts.present_states import NOW, QUEUES, workload

HEAD = "JobID|User|Partition|Submit|Start|End|Elapsed|State|ReqTRES"
LINE = "7|ann|gpu|2026-01-01T08:00:00|2026-01-01T08:01:00|2026-01-01T09:01:00|01:00:00|COMPLETED|cpu=2,node=1"
PENDING = "8|ann|gpu|2026-01-01T08:00:00|Unknown|Unknown|00:00:00|PENDING|cpu=2,node=1"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs `kueuecore eta` in a folder with a dump, a file of jobs, and a file of metrics."""
    monkeypatch.chdir(tmp_path)
    waiting = json.dumps(workload("waits", created=30).object)
    Path("dump.yaml").write_text(f"{QUEUES}---\n{waiting}\n")
    Path("jobs.txt").write_text(f"{HEAD}\n{LINE}\n{PENDING}\n")
    answer = matrix([series("kueue_admitted_workloads_total", [(-7200, 1), (-3600, 2)], cluster_queue="cq")])
    Path("prometheus.json").write_text(json.dumps(answer))

    def run(*arguments: str) -> Ran:
        given = ("--run-seconds", "1h", "--arrivals", "none", "--now", NOW, "--workers", "1", "--seeds", "1")
        code = main(["eta", "dump.yaml", "waits", *arguments, *given])
        return Ran(code, *capsys.readouterr())

    return run


def test_notes_say_what_was_taken_and_what_was_not(run: Callable[..., Ran]) -> None:
    found = run("--history", "jobs.txt", "--history", "prometheus.json", "--history-queue", "gpu=ns/lq")
    assert (found.code, found.err) == (
        ExitCode.OK,
        "note: jobs.txt: 1 job taken; left out: 1 (never started)\n"
        "note: prometheus.json: it has no kueue_pending_workloads and no kueue_reserving_active_workloads: what needs "
        "that stays unknown\n"
        "note: prometheus.json: 1 ClusterQueue taken, 1 hours on average\n",
    )


def test_a_quiet_run_has_no_notes(run: Callable[..., Ran]) -> None:
    assert run("--history", "jobs.txt", "-q").err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--history", "nowhere.txt"), "nowhere.txt: there is no such file; check the name"),
        (("--history", "-"), "--history: a history is no standard input; give a file"),
        (
            ("--history-queue", "gpu=ns/lq"),
            "--history-queue works with --history only; give a --history, or leave it out",
        ),
        (("--history-rules", "r.yaml"), "--history-rules works with --history only; give a --history, or leave it out"),
        (
            ("--history", "jobs.txt", "--history-queue", "gpu=ns/lx"),
            "--history-queue: there is no LocalQueue ns/lx; write ns/lq",
        ),
        (("--history", ""), "--history: a name is missing; give a file, a folder or an address"),
        (("--history", "a" * 5000), f"{'a' * 5000}: cannot be read: File name too long"),
        (("--history", "http://"), "http://: it is no address of a server; check the address, such as http://prom"),
    ],
)
def test_what_is_wrong_ends_it(run: Callable[..., Ran], arguments: tuple[str, ...], message: str) -> None:
    found = run(*arguments)
    assert (found.code, found.out) == (ExitCode.BAD_INPUT, "")
    assert found.err.startswith(message)


def test_a_pipe_is_read_once_so_its_kind_must_be_named(run: Callable[..., Ran]) -> None:
    os.mkfifo("pipe")
    found = run("--history", "pipe")
    assert found.code == ExitCode.BAD_INPUT
    assert found.err.startswith("pipe: it is a pipe, so it is not looked into before it is read; say what it is, such")
    writer = threading.Thread(target=lambda: Path("pipe").write_text(f"{HEAD}\n{LINE}\n"))
    writer.start()
    found = run("--history", "sacct=pipe")
    writer.join()
    assert (found.code, found.err) == (ExitCode.OK, "note: pipe: 1 job taken\n")


@pytest.mark.parametrize("text", ["gpu", "gpu=lq", "=ns/lq", "gpu=ns/", "gpu=/lq", "gpu=a/b/c"])
def test_a_queue_has_a_partition_a_namespace_and_a_name(text: str, run: Callable[..., Ran]) -> None:
    found = run("--history", "jobs.txt", "--history-queue", text)
    assert found.code == ExitCode.BAD_INPUT
    assert f'"{text}" is not PARTITION=NAMESPACE/LOCALQUEUE, such as gpu=team-a/main' in found.err


def test_rules_are_those_of_a_trace(run: Callable[..., Ran], tmp_path: Path) -> None:
    rules = "apiVersion: kueuecore/v1\nkind: TraceRules\ndefault: {queue: '{team}/jobs'}\n"
    (tmp_path / "rules.yaml").write_text(rules)
    found = run("--history", "jobs.txt", "--history-rules", "rules.yaml")
    assert found.err.startswith('rules.yaml:3: default.queue: the trace has no field "team"')
