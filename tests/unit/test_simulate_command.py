"""`kueuecore simulate`: scenarios in, tables and JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kueuecore.cli import ExitCode, main
from tests.unit.test_cli import QUEUES

HEAD = "apiVersion: kueuecore/v1\nkind: Scenario\n"
# Two cpus, and jobs that need both.
SCENARIO = (
    HEAD
    + """
seed: 3
cluster: {objects: [queues.yaml]}
work:
- job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: both, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
    spec:
      parallelism: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, resources: {requests: {cpu: 1}}}]
  count: 3
  every: 10
  runs: 1m
"""
)


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore simulate` on a text, beside a file of queues."""
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(QUEUES, encoding="utf-8")

    def run(text: str, *arguments: str) -> Ran:
        Path("scenario.yaml").write_text(text, encoding="utf-8")
        code = main(["simulate", "scenario.yaml", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def document(ran: Ran) -> Any:
    assert ran.code == ExitCode.OK, ran.err
    return json.loads(ran.out)


def test_jobs_wait_for_one_another(simulate: Callable[..., Ran]) -> None:
    told = document(simulate(SCENARIO, "-o", "json"))
    assert [job["waitSeconds"] for job in told["jobs"]] == [0, 50, 100]
    assert [job["job"] for job in told["jobs"]] == ["Job/both-1", "Job/both-2", "Job/both-3"]
    assert told["clusterQueues"] == [
        {
            "name": "cq",
            "jobs": 3,
            "admitted": 3,
            "finished": 3,
            "waitSeconds": {"min": 0, "mean": 50, "p95": 100, "max": 100},
            "evictions": 0,
            "copies": 0,
            "wastedCopies": 0,
            "copyWaitSeconds": 0,
        }
    ]


def test_each_job_stands_in_the_table_unless_there_are_many(simulate: Callable[..., Ran]) -> None:
    few, many = SCENARIO, SCENARIO.replace("count: 3", "count: 31").replace("runs: 1m", "runs: 1s")
    assert "team/both-2  cq                 10s     1m00s     50s     2m00s" in simulate(few).out
    assert "team/both-2" not in simulate(many).out
    assert "team/both-2 " in simulate(many, "-o", "wide").out


def test_the_seed_decides_on_all_that_is_drawn(simulate: Callable[..., Ran]) -> None:
    drawn = SCENARIO.replace("every: 10", "every: {mean: 10}").replace("runs: 1m", "runs: {from: 10, to: 1m}")
    first, again, other = (simulate(drawn, "-o", "wide", "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_other_work_does_not_change_what_is_drawn(simulate: Callable[..., Ran]) -> None:
    drawn = SCENARIO.replace("every: 10", "every: {mean: 10}")
    entry = drawn.partition("work:\n")[2]
    more = document(simulate(drawn + entry.replace("both", "more"), "-o", "json"))
    alone = document(simulate(drawn, "-o", "json"))
    created = [job["created"] for job in more["jobs"] if job["work"] == "both"]
    assert created == [job["created"] for job in alone["jobs"]]


def test_a_scenario_ends_when_it_is_told_to(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO + "until: 65s\n", "-o", "json")
    told = document(ran)
    assert told["end"] == "2026-01-01T00:01:05Z"
    assert [job["admitted"] is not None for job in told["jobs"]] == [True, True, False]
    assert simulate(SCENARIO + "until: 65s\n", "--fail-on-pending").code == ExitCode.PENDING
    assert simulate(SCENARIO, "--fail-on-pending").code == ExitCode.OK


def test_everything_wrong_with_a_scenario_is_told_with_a_remedy(simulate: Callable[..., Ran]) -> None:
    ran = simulate(
        HEAD
        + """
sed: 1
start: today
cluster: {objects: [nothing.yaml, 7]}
work:
- {job: {kind: Job, metadata: {}}, count: 0, runs: {from: 5, to: 1}}
- {every: soon}
"""
    )
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.splitlines() == [
        'scenario.yaml:5: start: Invalid value: today; write a time such as "2026-01-01T00:00:00Z"',
        "nothing.yaml: there is no such file; check the name",
        "scenario.yaml:6: cluster.objects[1]: neither a file nor an object; name a file, or write an object",
        "scenario.yaml:8: work[0].job: it has no name; give it a `metadata.name`",
        "scenario.yaml:8: work[0].count: Invalid value: 0; write a whole number from 1 on",
        "scenario.yaml:8: work[0].runs: no span of time; write seconds, a duration, {mean: 30s} or {from: 10s, to: 5m}",
        "scenario.yaml:9: work[1].job: Required value; name a file with a job, or write the job itself",
        "scenario.yaml:9: work[1].every: no span of time; write seconds such as 90, or a duration such as 1m30s",
        "scenario.yaml:4: sed: unknown field; write seed",
        "kueuecore: 9 problems, nothing was decided",
    ]


def test_a_file_that_is_no_scenario_is_refused(simulate: Callable[..., Ran]) -> None:
    ran = simulate(QUEUES)
    assert ran.code == ExitCode.BAD_INPUT
    assert "begin it with `apiVersion: kueuecore/v1` and `kind: Scenario`" in ran.err


def test_what_is_wrong_with_a_job_is_told(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO.replace("parallelism: 2", "parallelism: -1"))
    assert ran.code == ExitCode.BAD_INPUT
    assert "scenario.yaml:7" in ran.err
    assert "spec.parallelism" in ran.err


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--help"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert all(code.meaning in shown for code in ExitCode)
