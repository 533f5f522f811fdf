"""Runs that are saved, cut off and taken up come to what they would have come to."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kueuecore import Configuration, ManifestError, simulate
from kueuecore.simulation import Checkpoint, Run, RunEnding
from kueuecore.simulation.stepper import Stepper
from kueuecore.submissions import Submissions
from tests.command import QUEUES
from tests.random_runs import random_run

NOW = "2026-01-01T00:00:00Z"
OBJECTS = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: team}}}}\n---{QUEUES}"
JOBS = Submissions(
    namespace="team",
    local_queues=["lq"],
    queue=np.zeros(1200, int),
    requests={"cpu": np.full(1200, 1000)},
    at=np.arange(1200) * 7,
    run_seconds=20,
    ends_failed=np.arange(1200) % 3 == 1,
)


def contents(run: Run) -> tuple[Any, ...]:
    """All that is to be known of a run."""
    record = run._core
    usage = (*record.usage_changes(), *record.usage_amounts(), record.usage_names(), record.homes(), record.keys())
    rest = (record.preemption_columns(), record.placement_columns(), record.domains(), record.node_columns())
    labels = (record.evictions(), record.priority_classes(), record.work_columns(), record.endings())
    series = [record.series(is_queue, run.start, run.end, None, (b"", b"", b"")) for is_queue in (True, False)]
    quotas = (record.nominal_changes(), series)
    return (
        run.ending,
        run.end,
        run.n_cycles,
        run.outcome_table.tobytes(),
        usage,
        rest,
        labels,
        quotas,
        run.engine.save(),
    )


def play(checkpoint: Checkpoint | None = None, interrupts_at: int | None = None, **arguments: Any) -> Run:
    n_reports = 0

    def progress(now: int, n_created: int, n_finished: int) -> None:
        nonlocal n_reports
        n_reports += 1
        if n_reports == interrupts_at:
            raise KeyboardInterrupt

    given = {"now": NOW, "submissions": [JOBS], "cycles": False, "finished": False, **arguments}
    return simulate(OBJECTS, progress=progress, checkpoint=checkpoint, **given)


@pytest.mark.parametrize("every_seconds", [0, 3600])
def test_a_run_interrupted_many_times_has_the_same_result(tmp_path: Path, every_seconds: float) -> None:
    unbroken = play()
    expected = contents(unbroken)
    assert unbroken.failed.sum() == 400
    path = tmp_path / "run"
    endings: list[RunEnding] = []
    while endings.count(RunEnding.INTERRUPTED) < 100:
        checkpoint = Checkpoint(path=path, every_seconds=every_seconds, resume=True)
        run = play(checkpoint, interrupts_at=5)
        endings.append(run.ending)
        if run.ending is RunEnding.COMPLETE:
            break
        # What was written after the checkpoint that counts is not part of it.
        with checkpoint.log_path.open("ab") as log:
            log.write(b"half a part")
    assert len(endings) > 3
    assert contents(run) == expected
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(16))
def test_random_runs_resumed_after_each_step_have_the_same_result(seed: int, tmp_path: Path) -> None:
    case = random_run(seed)
    head = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    settings = {key: row for key, row in case["config"].items() if key in ("waitForPodsReady", "fairSharing")}

    def begun() -> Stepper:
        stepper = Stepper(
            case["objects"],
            configuration=Configuration.parse(json.dumps(head | settings), feature_gates=case["featureGates"]),
            now=NOW,
            checks=(),
            trusted=True,
            cycle_seconds=1,
            max_cycles=200,
            eviction_seconds=case["config"]["evictionSeconds"],
            messages=False,
            cycles=False,
            finished=seed % 2 == 0,
        )
        stepper.schedule(case["input"]["events"])
        stepper.happened()
        return stepper

    unbroken = begun()
    unbroken.advance()
    checkpoint, stepper, n_steps = Checkpoint(path=tmp_path / "run", resume=True), begun(), 0
    writer = stepper.writer(checkpoint)
    while stepper.step():
        stepper.save(writer)
        stepper, n_steps = begun(), n_steps + 1
        writer = stepper.writer(checkpoint)
    assert n_steps > 1
    assert contents(stepper.run()) == contents(unbroken.run())


def test_an_existing_checkpoint_without_resume_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert play(Checkpoint(path=path), interrupts_at=3).ending is RunEnding.INTERRUPTED
    saved = path.read_bytes()

    def refused(message: str, resume: bool = True, **arguments: Any) -> None:
        with pytest.raises(ManifestError, match=message):
            play(Checkpoint(path=path, resume=resume), **arguments)

    refused(r"run: a checkpoint exists; resume it, or delete it", resume=False)
    refused("checkpoint belongs to another run; resume with the same scenario", cycle_seconds=2)
    refused("checkpoint belongs to another run", configuration=Configuration(release="0.17"))
    refused("checkpoint belongs to another run", submissions=[replace(JOBS, run_seconds=21)])
    refused("checkpoint belongs to another run", submissions=[replace(JOBS, ends_failed=False)])
    path.write_bytes(saved[:-1])
    refused("this is not a whole save")
    path.write_bytes(b"something else")
    refused("this is not a checkpoint of a run")
    path.write_bytes(saved)
    log = path.with_name("run.log").read_bytes()
    path.with_name("run.log").write_bytes(log[:-1])
    refused(r"run.log: it should have \d+ bytes, and has \d+; restore both files from the same copy, or delete both")
    path.with_name("run.log").write_bytes(bytes(len(log)))
    refused("this is not the log of a run")
    path.with_name("run.log").write_bytes(log)
    with pytest.raises(ManifestError, match="cannot be read or written"):
        play(Checkpoint(path=tmp_path / "nowhere" / "run", every_seconds=0))
    with pytest.raises(ValueError, match="cycles=False"):
        play(Checkpoint(path=path, resume=True), cycles=True)
    assert contents(play(Checkpoint(path=path, resume=True))) == contents(play())


def test_links_in_the_place_of_its_files_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"as it was")
    for name in ("run", "run.log", "run.new"):
        (tmp_path / name).symlink_to(precious)
    (tmp_path / "run").unlink()
    checkpoint = Checkpoint(path=tmp_path / "run", every_seconds=0)
    assert play(checkpoint, interrupts_at=3).ending is RunEnding.INTERRUPTED
    assert (precious.read_bytes(), checkpoint.path.is_symlink()) == (b"as it was", False)
    # Later, the log that counts must not be a link either.
    checkpoint.log_path.rename(tmp_path / "log")
    checkpoint.log_path.symlink_to(tmp_path / "log")
    with pytest.raises(ManifestError, match="it is a link, and links are not followed"):
        play(replace(checkpoint, resume=True))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kueuecore", "simulate", "scenario.yaml", "-o", "json", *arguments]


def test_the_command_resumes_after_kill_9_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}],
                }
            }
        },
    }
    work = [{"job": job, "count": 10_000, "every": {"mean": 8}, "runs": {"from": 5, "to": 20}}]
    scenario = {"apiVersion": "kueuecore/v1", "kind": "Scenario", "cluster": {"objects": ["queues.yaml"]}, "work": work}
    (tmp_path / "scenario.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    expected = subprocess.run(command(), cwd=tmp_path, capture_output=True, check=True).stdout
    saves = ("--checkpoint", "saved", "--checkpoint-every", "10ms", "--resume")
    path, n_cut_off, n_runs = tmp_path / "saved", 0, 0
    while n_cut_off < 3:
        assert (n_runs := n_runs + 1) < 50, "every run was over before it was killed"
        before = path.stat().st_mtime_ns if path.exists() else 0
        with subprocess.Popen(command(*saves), cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
            while running.poll() is None and not (path.exists() and path.stat().st_mtime_ns != before):
                time.sleep(0.01)
            running.kill()
        # A run that ends removes its checkpoint, also one that ends while it is being killed; the next starts over.
        n_cut_off = n_cut_off + 1 if path.exists() else 0
    again = subprocess.run(command("--checkpoint", "saved"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (again.returncode, "a checkpoint exists" in again.stderr) == (2, True)
    resumed = subprocess.run(command(*saves), cwd=tmp_path, capture_output=True, check=True).stdout
    assert resumed == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["queues.yaml", "scenario.yaml"]


def test_options_without_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("apiVersion: kueuecore/v1\nkind: Scenario\n", encoding="utf-8")
    ran = subprocess.run(command("--resume"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "--resume needs a checkpoint file; name it with --checkpoint FILE" in ran.stderr
