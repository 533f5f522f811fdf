"""`kueuecore history`, and `--history` of `run` and `simulate`."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import ExitCode
from kueuecore.cli.asking import ask
from kueuecore.cli.state_file import add_state
from kueuecore.cli.state_source import source_of
from tests.command import QUEUES, Ran
from tests.unit.histories.recorded_objects import (
    PREEMPTED,
    PRIORITIES,
    event,
    new_event,
    preempted_at,
    workload,
)
from tests.unit.histories.test_log_lines import event_line

EXAMPLES = Path(__file__).parents[3] / "examples"
Command = Callable[..., Ran]
TABLE = """\
lab/w is Pending; recorded: preempted once

TIME                  STEP           RULE     WHAT HAPPENED
2026-03-02T09:00:00Z  Created        10 §3    created for Job lab/train, queued in LocalQueue lq with priority 0
2026-03-02T09:02:00Z  Preempted      04 §4.1  preempted by a workload that is gone (UID 0c2d): \
b takes back quota of its own that a has borrowed
2026-03-02T09:02:30Z  QuotaReleased  04 §9    its quota is free again
2026-03-02T09:02:30Z  Requeued       04 §9    queued again at once, as a preempted workload is

not recorded: no Events about it are known: conditions hold only the last change of each kind
"""


def dumped(*objects: dict[str, Any]) -> str:
    return "---\n".join([QUEUES, *(yaml.safe_dump(plain) for plain in objects)])


def test_the_table_has_times_rules_and_what_is_not_recorded(any_command: Command) -> None:
    ran = any_command("history", "in.yaml", "--trusted", "lab/w", text=dumped(workload(*preempted_at(120, 150))))
    assert (ran.code, ran.out, ran.err) == (ExitCode.OK, TABLE, "")


def test_events_among_the_objects_are_read_and_not_warned_of(any_command: Command) -> None:
    events = [event("Preempted", PREEMPTED + PRIORITIES, 120), new_event("WaitingForQuota", "no room", 151)]
    text = dumped(workload(*preempted_at(120, 150)), *events)
    ran = any_command("history", "in.yaml", "--trusted", "train", "-o", "wide", text=text)
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert "condition Evicted, condition Preempted, event Preempted" in ran.out
    assert "waits: no room" in ran.out
    for command in ("history", "explain"):
        # Manifests without a cluster are checked, and Events among them are no objects that Kueue reads.
        assert "not read" not in any_command(command, "in.yaml", "--trusted", "lab/w", text=text).err


def test_of_a_long_wait_the_table_shows_the_first_and_the_last(any_command: Command) -> None:
    text = dumped(workload(), *(event("WaitingForQuota", f"reason {n}", n) for n in range(1, 101)))
    ran = any_command("history", "in.yaml", "--trusted", "lab/w", text=text)
    shown = [line.partition("waits: ")[2] for line in ran.out.splitlines() if "  Waiting  " in line]
    more = "94 more messages, which -o wide shows"
    assert shown == ["reason 1", "reason 2", "reason 3", more, "reason 98", "reason 99", "reason 100"]
    assert any_command("history", "in.yaml", "--trusted", "lab/w", "-o", "wide", text=text).out.count("waits: ") == 100


def test_json_has_everything(any_command: Command) -> None:
    text = dumped(workload(*preempted_at(120, 150)), event("Preempted", PREEMPTED + PRIORITIES, 120))
    document = json.loads(any_command("history", "in.yaml", "--trusted", "lab/w", "-o", "json", text=text).out)
    assert document["workload"] == {"namespace": "lab", "name": "w", "status": "Pending"}
    assert document["steps"][1] == {
        "at": "2026-03-02T09:02:00Z",
        "before": None,
        "until": None,
        "what": "Preempted",
        "by": None,
        "cluster": None,
        "rule": "04 §4.1",
        "link": "docs/rules/04-preemption.md",
        "sentence": "preempted by a workload that is gone (UID 0c2d): "
        "b takes back quota of its own that a has borrowed",
        "reason": "InCohortReclamation",
        "message": PREEMPTED + PRIORITIES,
        "count": 1,
        "sources": ["condition Evicted", "condition Preempted", "event Preempted"],
    }
    assert document["notRecorded"] == []


def test_a_workload_of_manifests_has_nothing_behind_it(any_command: Command) -> None:
    plain = workload()
    del plain["status"], plain["metadata"]["creationTimestamp"]
    ran = any_command("history", "-q", "in.yaml", "lab/w", text=dumped(plain))
    assert ran.out.startswith("lab/w is Pending; nothing is recorded about it\n")


def test_an_unknown_workload_is_an_error_with_similar_names(any_command: Command) -> None:
    ran = any_command("history", "-q", "in.yaml", "--trusted", "lab/v", text=dumped(workload()))
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert 'there is no workload "lab/v"' in ran.err


@pytest.mark.parametrize("name", ["lab/w", "Workload/lab/w", "lab/train", "Job/lab/train"])
def test_of_a_workload_that_is_gone_its_events_are_left(any_command: Command, name: str) -> None:
    events = [
        event("CreatedWorkload", "Created Workload: lab/w", 1, kind="Job", name="train", uid="4a5b"),
        event("QuotaReserved", "Quota reserved in ClusterQueue a, wait time since queued was 0s", 1),
        event("FinishedWorkload", "Workload 'lab/w' is declared finished", 9, kind="Job", name="train", uid="4a5b"),
    ]
    ran = any_command("history", "-q", "in.yaml", "--trusted", name, text=dumped(*events))
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("lab/w\n")
    assert "2026-03-02T09:00:01Z  QuotaReserved  05 §6.6  gets quota in ClusterQueue a\n" in ran.out
    assert "not recorded: the Workload is gone: only its Events are left\n" in ran.out
    if "train" in name:
        assert "2026-03-02T09:00:09Z  Finished" in ran.out
    log = event_line("QuotaReserved", "Quota reserved in ClusterQueue a", 1)
    Path("serve.log").write_text(log, encoding="utf-8")
    again = any_command("history", "-q", "in.yaml", "--trusted", "lab/w", "--journal", "serve.log", text=dumped())
    assert "gets quota in ClusterQueue a" in again.out


def test_logs_come_from_files_and_standard_input(any_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    text, line = dumped(workload()), event_line("EvictedDueToPreempted", PREEMPTED, 60)
    monkeypatch.setattr(sys, "stdin", io.StringIO(line))
    ran = any_command("history", "-q", "in.yaml", "--trusted", "lab/w", "--journal", "-", text=text)
    assert "2026-03-02T09:01:00Z  Preempted" in ran.out
    Path("serve.log").write_text(line, encoding="utf-8")
    assert (
        any_command("history", "-q", "in.yaml", "--trusted", "lab/w", "--journal", "serve.log", text=text).out
        == ran.out
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--journal", "in.yaml"),
            "in.yaml: this is no log of `kueuecore serve`; give what it writes to standard error",
        ),
        (("--journal", "none.log"), "none.log: there is no such file; check the name"),
        (("--journal", "-", "--journal", "-"), "standard input can be read only once; give - only once"),
    ],
)
def test_a_journal_that_is_no_log_is_an_error(any_command: Command, arguments: tuple[str, ...], problem: str) -> None:
    ran = any_command("history", "-q", "in.yaml", "--trusted", "lab/w", *arguments, text=dumped(workload()))
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert ran.err.startswith(problem)


def test_a_state_that_was_read_is_asked_for_a_history(tmp_path: Path) -> None:
    state = tmp_path / "in.yaml"
    state.write_text(dumped(workload(*preempted_at(120, 150))), encoding="utf-8")
    parser = argparse.ArgumentParser()
    add_state(parser)
    options = {**vars(parser.parse_args([str(state), "--trusted"])), "quiet": True, "given": None, "source": None}
    source = source_of(argparse.Namespace(**options))
    answered = ask(source, "history", "lab/w", "--journal", "-", given=event_line("Surprised", "by it", 7))
    assert (answered.code, answered.lines) == (ExitCode.OK, ())
    assert "Surprised: by it" in answered.text
    assert answered.command == f"kueuecore history {state} --trusted lab/w --journal -"
    found = ask(source, "history", "lab/w", "-o", "json").document["workload"]
    assert found == {"namespace": "lab", "name": "w", "status": "Pending"}


def test_run_shows_the_history_of_what_it_decides(any_command: Command) -> None:
    state = str(EXAMPLES / "taking-back")
    ran = any_command("run", "-q", state, "--history", "team-b/sweep", "--history", "Job/team-a/release-build")
    assert "team-b/sweep is Pending; recorded: admitted once, preempted once\n" in ran.out
    assert "team-a/job-release-build-5ad41 is Admitted; recorded: admitted once\n" in ran.out
    document = json.loads(any_command("run", "-q", state, "--history", "team-b/sweep", "-o", "json").out)
    (history,) = document["histories"]
    assert [step["by"] for step in history["steps"] if step["what"] == "Preempted"] == [
        "team-a/job-release-build-5ad41"
    ]
    assert "histories" not in json.loads(any_command("run", "-q", state, "-o", "json").out)
    assert any_command("run", "-q", state, "--history", "team-b/none").code == ExitCode.BAD_INPUT
    refused = any_command("run", "-q", state, "--history", "team-b/sweep", "-o", "yaml")
    assert (refused.code, refused.out) == (ExitCode.BAD_INPUT, "")
    assert refused.err.startswith("-o yaml has no place for --history; use -o json, or a table\n")


def test_simulate_shows_the_history_of_a_job_or_workload(any_command: Command) -> None:
    scenario = str(EXAMPLES / "scenario" / "scenario.yaml")
    ran = any_command("simulate", "-q", scenario, "--history", "team-b/large-2")
    assert "team-b/job-large-2-13190 is Finished; recorded: admitted 3 times, preempted twice\n" in ran.out
    assert ran.out.startswith(any_command("simulate", "-q", scenario).out.rstrip("\n"))
    by_workload = any_command("simulate", "-q", scenario, "--history", "team-b/job-large-2-13190", "-o", "json")
    (history,) = json.loads(by_workload.out)["histories"]
    assert sum(step["what"] == "Preempted" for step in history["steps"]) == 2
    assert history["notRecorded"] == []


@pytest.mark.parametrize("example", ["scenario/scenario.yaml", "multikueue/scenario.yaml"])
def test_simulate_names_what_is_similar_to_a_name_that_it_does_not_know(any_command: Command, example: str) -> None:
    name = {"scenario/scenario.yaml": "team-b/large-22", "multikueue/scenario.yaml": "team/trian-3"}[example]
    ran = any_command("simulate", "-q", str(EXAMPLES / example), "--history", name)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert f'the run has no workload or job "{name}"; did you mean ' in ran.err


def test_simulate_tells_the_history_of_a_job_of_a_fleet(any_command: Command) -> None:
    ran = any_command("simulate", "-q", str(EXAMPLES / "multikueue" / "scenario.yaml"), "--history", "Job/team/train-3")
    assert "its job has succeeded: Reached expected number of succeeded pods (on east)\n" in ran.out
