"""Traces as the past of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore import read_manifests
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import History, history_of
from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.manifests import Manifest
from kueuecore.times import nanoseconds
from kueuecore.traces import ColumnSource, JobRule, Scale, TraceRules

NOW = nanoseconds("2026-06-01T00:00:00Z")
HEAD = "JobID|JobName|User|Account|Partition|Submit|Start|End|Elapsed|State|ReqTRES|Timelimit"
SUBMIT, START, END = "2026-03-01T08:00:00", "2026-03-01T08:01:00", "2026-03-01T09:01:00"


def line(
    number: str = "7",
    *,
    name: str = "train",
    user: str = "ann",
    account: str = "lab",
    partition: str = "gpu",
    submit: str = SUBMIT,
    start: str = START,
    end: str = END,
    elapsed: str = "01:00:00",
    state: str = "COMPLETED",
    asked: str = "cpu=8,mem=16G,node=2,gres/gpu=4",
    limit: str = "02:00:00",
) -> str:
    return "|".join([number, name, user, account, partition, submit, start, end, elapsed, state, asked, limit])


def queue(namespace: str, name: str, cluster_queue: str) -> Manifest:
    metadata = {"namespace": namespace, "name": name}
    return Manifest({"kind": "LocalQueue", "metadata": {**metadata}, "spec": {"clusterQueue": cluster_queue}})


def history(tmp_path: Path, text: str, *, name: str = "jobs.txt", now: int = NOW, **given: object) -> History:
    (tmp_path / name).write_text(text)
    return history_of([str(tmp_path / name)], now=now, **given)  # type: ignore[arg-type]


def jobs(tmp_path: Path, *lines: str, **given: object) -> tuple[PastJob, ...]:
    return history(tmp_path, "\n".join([HEAD, *lines, ""]), **given).jobs  # type: ignore[arg-type]


def test_a_line_of_sacct_is_a_job(tmp_path: Path) -> None:
    assert jobs(tmp_path, line()) == (
        PastJob(
            namespace="ann",
            local_queue="gpu",
            cluster_queue="",
            name="train",
            priority=0,
            requests={"cpu": 8000, "memory": 16 << 30, "nvidia.com/gpu": 4},
            n_pods=2,
            limit_seconds=7200.0,
            labels={"user": "ann", "account": "lab", "partition": "gpu"},
            created=nanoseconds(f"{SUBMIT}Z"),
            started=nanoseconds(f"{START}Z"),
            ended=nanoseconds(f"{END}Z"),
            template=None,
        ),
    )


def test_a_running_job_was_last_seen_at_the_newest_time(tmp_path: Path) -> None:
    running, _ = jobs(tmp_path, line("1", end="Unknown", state="RUNNING", submit="2026-03-01T07:00:00"), line("2"))
    assert (running.started, running.ended, running.run_seconds) == (nanoseconds(f"{START}Z"), None, None)
    assert running.seen == nanoseconds(f"{END}Z")


def test_nothing_later_than_now_is_known(tmp_path: Path) -> None:
    lines = [line("1", name="over"), line("2", name="later", submit="2026-03-01T08:30:01")]
    lines[1] = lines[1].replace(START, "2026-03-01T08:31:00")
    now = nanoseconds("2026-03-01T08:30:00Z")
    found = history(tmp_path, "\n".join([HEAD, *lines, ""]), now=now)
    (job,) = found.jobs
    assert (job.name, job.started, job.ended, job.seen) == ("over", nanoseconds(f"{START}Z"), None, now)
    assert found.notes[-1].endswith("1 job taken; left out: 1 (submitted later than now)")
    (waiting,) = jobs(tmp_path, *lines, now=nanoseconds("2026-03-01T08:00:30Z"))
    assert (waiting.name, waiting.started, waiting.ended) == ("over", None, None)


def test_names_of_the_cluster_are_its_queues(tmp_path: Path) -> None:
    objects = [queue("ann", "gpu", "gpus"), queue("bob", "gpu", "gpus"), queue("ml", "short", "shorts")]
    lines = [
        line("1", name="namespace and queue", user="bob"),
        line("2", name="account is the namespace", user="eve", account="ann"),
        line("3", name="only one has it", partition="short"),
        line("4", name="a ClusterQueue", partition="shorts"),
        line("5", name="two have it", user="eve"),
    ]
    found = jobs(tmp_path, *lines, objects=objects)
    assert {job.name: (job.namespace, job.local_queue, job.cluster_queue) for job in found} == {
        "namespace and queue": ("bob", "gpu", "gpus"),
        "account is the namespace": ("ann", "gpu", "gpus"),
        "only one has it": ("ml", "short", "shorts"),
        "a ClusterQueue": ("ann", "", "shorts"),
        "two have it": ("eve", "gpu", ""),
    }


def test_given_queues_come_before_rules_and_names(tmp_path: Path) -> None:
    objects = [queue("ann", "gpu", "gpus"), queue("ml", "main", "all")]
    rules = TraceRules(rules=(JobRule(queue="ml/main", when={"account": ("lab",)}, priority=5),))
    lines = [line("1", name="rule", partition="x"), line("2", name="given"), line("3", name="user", user="bob")]
    found = jobs(tmp_path, *lines, objects=objects, rules=rules, queues=[("gpu", "ann/gpu"), ("user:b*", "ml/other")])
    assert {job.name: (job.namespace, job.local_queue, job.cluster_queue, job.priority) for job in found} == {
        "rule": ("ml", "main", "all", 5),
        "given": ("ann", "gpu", "gpus", 0),
        "user": ("ann", "gpu", "gpus", 0),
    }


def test_a_job_of_a_known_queue_can_be_copied_into_the_cluster(tmp_path: Path) -> None:
    objects = read_manifests("examples/eta/queues.yaml")
    (job,) = jobs(tmp_path, line(asked="cpu=4,mem=1G,node=2"), objects=objects, queues=[("gpu", "vision/jobs")])
    assert job.template is not None
    assert job.template["spec"] == {
        "queueName": "jobs",
        "priority": 0,
        "podSets": [
            {
                "name": "main",
                "count": 2,
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "512Mi"}}},
                        ],
                        "restartPolicy": "Never",
                    }
                },
            }
        ],
        "maximumExecutionTimeSeconds": 7200,
    }
    engine = Engine()
    engine.apply([*objects, Manifest(job.template)], now=NOW)
    assert engine.workload("template", namespace="vision").cluster_queue == "vision"


def test_lines_of_files_that_overlap_count_once_and_the_ended_one_wins(tmp_path: Path) -> None:
    march = [line("1", end="Unknown", state="RUNNING"), line("2")]
    april = [HEAD, line("1"), line("2"), line("2", submit="2026-03-01T08:00:30")]
    found = history(tmp_path, "\n".join([HEAD, *march, *april, ""]))
    assert [(job.created, job.run_seconds) for job in found.jobs] == [
        (nanoseconds(f"{SUBMIT}Z"), 3600.0),
        (nanoseconds(f"{SUBMIT}Z"), 3600.0),
        (nanoseconds("2026-03-01T08:00:30Z"), 3600.0),
    ]
    assert found.notes[-1].endswith("3 jobs taken; left out: 2 (the same job again)")


def test_an_end_before_the_start_leaves_the_job_out_and_a_start_before_submission_is_unknown(tmp_path: Path) -> None:
    lines = [
        line("1", name="end", start=END, end=START, elapsed=""),
        line("2", name="start", start="2026-03-01T07:00:00"),
    ]
    found = history(tmp_path, "\n".join([HEAD, *lines, ""]))
    (job,) = found.jobs
    assert (job.name, job.started, job.ended, job.run_seconds) == ("start", None, None, 3600.0)
    assert found.notes == (
        f"{tmp_path}/jobs.txt: 1 job started before submission: their starts count as unknown",
        f"{tmp_path}/jobs.txt: 1 job taken; left out: 1 (negative time)",
    )


def test_limits_that_are_none_are_none(tmp_path: Path) -> None:
    limits = ["UNLIMITED", "Partition_Limit", "", "00:00:00", "9999999-00:00:00", "1-00:00:00"]
    found = jobs(tmp_path, *(line(str(number), limit=limit) for number, limit in enumerate(limits)))
    assert sorted((job.limit_seconds or 0) for job in found) == [0, 0, 0, 0, 0, 86_400]


SWF = "1 {submit} 10 60 4 -1 -1 4 3600 1024 1 7 2 -1 1 1 -1 -1\n"


def test_swf_begins_at_its_unix_start_time(tmp_path: Path) -> None:
    text = f"; UnixStartTime: {nanoseconds('2026-01-01T00:00:00Z') // 10**9}\n" + SWF.format(submit=3600)
    (job,) = history(tmp_path, text, name="log.swf").jobs
    assert (job.created, job.started, job.ended) == tuple(
        nanoseconds(f"2026-01-01T01:{clock}Z") for clock in ("00:00", "00:10", "01:10")
    )
    assert (job.namespace, job.local_queue, job.limit_seconds) == ("7", "1", 3600.0)


@pytest.mark.parametrize("header", ["", "; UnixStartTime: soon\n", "; UnixStartTime: -5\n", "; UnixStartTime: 1e300\n"])
def test_a_clock_that_starts_with_the_trace_is_taken_to_end_now(tmp_path: Path, header: str) -> None:
    found = history(tmp_path, header + SWF.format(submit=0) + SWF.format(submit=500), name="log.swf")
    assert found.jobs[-1].ended == NOW
    assert "its times are not of a calendar: it is taken to end now" in found.notes[0]


def test_a_table_without_starts_keeps_its_run_times(tmp_path: Path) -> None:
    text = "at,run_seconds,cpu_milli,queue,limit_seconds\n2026-03-01 08:00:00,90,500,a,nan\n"
    found = history(tmp_path, text, name="jobs.csv")
    (job,) = found.jobs
    assert (job.created, job.started, job.ended) == (nanoseconds(f"{SUBMIT}Z"), None, None)
    assert (job.run_seconds, job.limit_seconds, job.requests) == (90.0, None, {"cpu": 500})
    assert "it does not say when jobs started" in found.notes[0]


def test_columns_of_rules_are_those_of_a_table(tmp_path: Path) -> None:
    rules = TraceRules(columns={"at": ColumnSource(column="when"), "run_seconds": ColumnSource(column="s")})
    (job,) = history(tmp_path, "when,s,cpu_milli\n2026-03-01 08:00:00,90,500\n", name="a.csv", rules=rules).jobs
    assert job.run_seconds == 90.0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (TraceRules(scale=Scale(sample=0.5)), "scale: it changes the jobs of a history; remove it"),
        (TraceRules(begin=5.0), "begin: it leaves out jobs of a history; remove it"),
        (
            TraceRules(rules=(JobRule(queue="a/b", when={"team": ("x",)}),)),
            'rules[0].when.team: the trace has no field "team"',
        ),
    ],
)
def test_rules_that_do_not_fit_are_errors(tmp_path: Path, rules: TraceRules, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        jobs(tmp_path, line(), rules=rules)
    assert message in str(caught.value.problems[0])


def test_a_broken_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        jobs(tmp_path, line(), line(limit="two hours"))
    assert str(caught.value.problems[0]) == (
        f'{tmp_path}/jobs.txt:3: Timelimit: not a duration: "two hours"; write it as D-HH:MM:SS'
    )


def test_an_empty_trace_has_no_jobs(tmp_path: Path) -> None:
    found = history(tmp_path, f"{HEAD}\n")
    assert (found.jobs, found.notes[-1]) == ((), f"{tmp_path}/jobs.txt: 0 jobs taken")
