"""Logs of `kueuecore serve` as the past of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import History, history_of
from kueuecore.times import END_NS, nanoseconds


def event(clock: str, kind: str, name: str, reason: str, note: str, uid: str = "") -> str:
    fields = {"object": f'{kind} "ns/{name}"', "uid": uid, "type": "Normal", "reason": reason, "note": note}
    time = f"2026-03-02T{clock}.120Z"
    return json.dumps({"time": time, "level": "info", "logger": "kueuecore", "message": "event", **fields})


def reserved(clock: str, name: str, uid: str, waited: int) -> str:
    note = f"Quota reserved in ClusterQueue cq, wait time since queued was {waited}s"
    return event(clock, "Workload", name, "QuotaReserved", note, uid)


def admitted(clock: str, name: str, uid: str) -> str:
    note = "Admitted by ClusterQueue cq, wait time since reservation was 5s"
    return event(clock, "Workload", name, "Admitted", note, uid)


def finished(clock: str, job: str, name: str) -> str:
    return event(clock, "Job", job, "FinishedWorkload", f"Workload 'ns/{name}' is declared finished", "job")


def created(clock: str, job: str, name: str) -> str:
    return event(clock, "Job", job, "CreatedWorkload", f"Created Workload: ns/{name}", "job")


def history(path: Path, *lines: str, now: int = END_NS) -> History:
    path.write_text("\n".join([*lines, ""]))
    return history_of([str(path)], now=now)


def clock(time: int | None) -> str:
    if time is None:
        return ""
    seconds = (time - nanoseconds("2026-03-02T00:00:00Z")) // 10**9
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def test_events_tell_when_a_job_came_started_and_ended(tmp_path: Path) -> None:
    found = history(
        tmp_path / "serve.log",
        created("09:00:00", "train", "job-train-1a2b3"),
        reserved("09:10:00", "job-train-1a2b3", "u1", 600),
        admitted("09:10:05", "job-train-1a2b3", "u1"),
        finished("10:10:05", "train", "job-train-1a2b3"),
    )
    (job,) = found.jobs
    assert (job.namespace, job.name, job.cluster_queue, job.uid) == ("ns", "train", "cq", "u1")
    assert (clock(job.created), clock(job.started), clock(job.ended)) == ("09:00:00", "09:10:05", "10:10:05")
    assert (job.requests, job.n_pods, job.seen) == ({}, 0, None)


def test_a_log_that_begins_later_knows_the_wait(tmp_path: Path) -> None:
    (job,) = history(tmp_path / "serve.log", reserved("09:10:00", "a", "u1", 600)).jobs
    assert (clock(job.created), clock(job.started), clock(job.seen)) == ("09:00:00", "09:10:00", "09:10:00")


def test_an_evicted_job_starts_over(tmp_path: Path) -> None:
    evicted = event("09:20:00", "Workload", "a", "EvictedDueToPreempted", "Preempted to accommodate", "u1")
    lines = [reserved("09:10:00", "a", "u1", 600), admitted("09:10:05", "a", "u1"), evicted]
    (waiting,) = history(tmp_path / "1.log", *lines).jobs
    assert (clock(waiting.created), waiting.started, clock(waiting.seen)) == ("09:00:00", None, "09:20:00")
    (again,) = history(tmp_path / "2.log", *lines, reserved("09:30:00", "a", "u1", 600)).jobs
    assert (clock(again.created), clock(again.started)) == ("09:00:00", "09:30:00")


def test_a_name_that_comes_again_is_another_job(tmp_path: Path) -> None:
    found = history(
        tmp_path / "serve.log",
        created("09:00:00", "train", "a"),
        reserved("09:10:00", "a", "u1", 600),
        finished("09:20:00", "train", "a"),
        created("10:00:00", "train", "a"),
        reserved("10:10:00", "a", "u2", 600),
        finished("10:40:00", "train", "a"),
        reserved("11:00:00", "a", "u3", 60),
    )
    assert [(job.uid, clock(job.created), clock(job.started), clock(job.ended)) for job in found.jobs] == [
        ("u1", "09:00:00", "09:10:00", "09:20:00"),
        ("u2", "10:00:00", "10:10:00", "10:40:00"),
        ("u3", "10:59:00", "11:00:00", ""),
    ]


def test_the_journal_of_a_dry_run_is_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "decisions-1.log").write_text(reserved("09:10:00", "a", "u1", 600) + "\n{torn")
    (tmp_path / "decisions-2.log").write_text(reserved("10:10:00", "b", "u2", 60) + "\n")
    (tmp_path / "memory.json").write_text("{}")
    found = history_of([str(tmp_path)], now=END_NS)
    assert [(job.name, clock(job.started)) for job in found.jobs] == [("a", "09:10:00"), ("b", "10:10:00")]


def test_the_log_and_a_dump_know_more_together(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    lines = [reserved("09:10:00", "job-sweep-1", "u1", 600), finished("10:00:00", "sweep", "job-sweep-1")]
    history(log, *lines)
    dump = tmp_path / "dump.yaml"
    dump.write_text("""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: Workload
    metadata: {name: job-sweep-1, namespace: ns, uid: u1, creationTimestamp: "2026-03-02T09:00:00Z"}
    spec:
      queueName: lq
      podSets:
      - {name: main, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}
    """)
    for sources in ([log, dump], [dump, log]):
        found = history_of(map(str, sources), now=END_NS)
        (job,) = found.jobs
        assert (job.local_queue, job.requests, job.n_pods) == ("lq", {"cpu": 4000}, 2)
        assert (clock(job.started), clock(job.ended)) == ("09:10:00", "10:00:00")
        assert found.notes[-1].endswith("0 jobs taken; left out: 1 (joined with another source)")


def test_a_log_about_other_things_is_an_error(tmp_path: Path) -> None:
    line = json.dumps({"time": "2026-03-02T09:00:00Z", "level": "info", "message": "leads"})
    with pytest.raises(ManifestError) as caught:
        history(tmp_path / "serve.log", line)
    assert "serve.log: no Event is in it; give a log of the leader" in str(caught.value.problems[0])
