"""`kueuecore simulate` on a terminal: a bar while it runs, and Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.signals import listen_to_ctrl_c

# Long enough to be seen, and to be interrupted.
GENERATOR = """
cohorts:
- className: cohort
  count: 10
  queuesSets:
  - className: cq
    count: 20
    nominalQuota: 20
    workloadsSets:
    - {count: 2000, creationIntervalMs: 60, workloads: [{className: small, runtimeMs: 500, request: 1}]}
"""
SCENARIO = "{apiVersion: kueuecore/v1, kind: Scenario, generator: generator.yaml, cluster: {cycle: 1ms}}"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "generator.yaml").write_text(GENERATOR)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def test_a_bar_shows_how_far_it_has_come_and_ctrl_c_keeps_what_there_is(scenario: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    command = [sys.executable, "-m", "kueuecore", "simulate", str(scenario)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, preexec_fn=listen_to_ctrl_c) as process:
        os.close(theirs)
        shown = b""
        while b"waiting or running at 2026-01-01" not in shown:
            shown += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        reported = process.stdout.readline().decode()
        process.stdout.read()
    os.close(ours)
    counts = re.match(r"(\d+) jobs: (\d+) finished, .*; interrupted after ", reported)
    assert counts is not None, reported
    assert (process.returncode, 0 < int(counts[2]) < int(counts[1]) <= 400_000) == (130, True)


def test_without_a_terminal_there_is_no_bar(scenario: Path) -> None:
    small = GENERATOR.replace("count: 2000", "count: 2")
    (scenario.parent / "generator.yaml").write_text(small)
    ran = subprocess.run(
        [sys.executable, "-m", "kueuecore", "simulate", str(scenario)], capture_output=True, text=True, check=True
    )
    assert (ran.stderr, ran.stdout.splitlines()[0][:22]) == ("", "400 jobs: 400 finished")
