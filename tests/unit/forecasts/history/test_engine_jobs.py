"""Journals and saves of an engine as the past of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import History, history_of
from kueuecore.times import END_NS, SECOND_NS, nanoseconds
from tests.unit.forecasts.present_states import QUEUES, START, workload

MINUTE = 60 * SECOND_NS


def lived_engine() -> Engine:
    """Four workloads of which one fits at a time: finished, deleted while it ran, deleted while it waited, running."""
    engine = Engine(keeps_journal=True)
    engine.apply(QUEUES, now=START)
    engine.apply([workload(name, created=60 - number) for number, name in enumerate("abcd")], now=START)
    engine.cycle(START)
    engine.finish("a", namespace="ns", now=START + 10 * MINUTE)
    engine.delete("Workload", "a", namespace="ns", now=START + 11 * MINUTE)
    engine.cycle(START + 12 * MINUTE)
    engine.delete("Workload", "c", namespace="ns", now=START + 13 * MINUTE)
    engine.delete("Workload", "b", namespace="ns", now=START + 20 * MINUTE)
    engine.cycle(START + 21 * MINUTE)
    engine.reconcile(START + 22 * MINUTE)
    return engine


def history(path: Path, data: bytes, *, now: int = START + 60 * MINUTE) -> History:
    path.write_bytes(data)
    return history_of([str(path)], now=now)


def minutes(time: int | None) -> int | None:
    return None if time is None else (time - START) // MINUTE


def test_a_journal_tells_of_those_that_are_gone(tmp_path: Path) -> None:
    found = history(tmp_path / "j.json", json.dumps(lived_engine().journal()).encode())
    assert [(job.name, minutes(job.started), minutes(job.ended), minutes(job.seen)) for job in found.jobs] == [
        ("a", 0, 10, None),
        ("b", 12, 20, None),
        ("c", None, 13, None),
        ("d", 21, None, 22),
    ]
    job = found.jobs[0]
    assert (job.namespace, job.local_queue, job.cluster_queue, job.requests) == ("ns", "lq", "cq", {"cpu": 4000})
    assert job.created == nanoseconds("2026-01-05T11:59:00Z")


def test_a_journal_is_read_up_to_now(tmp_path: Path) -> None:
    now = START + 15 * MINUTE
    found = history(tmp_path / "j.json", json.dumps(lived_engine().journal()).encode(), now=now)
    assert [(job.name, minutes(job.started), minutes(job.ended), minutes(job.seen)) for job in found.jobs] == [
        ("a", 0, 10, None),
        ("b", 12, None, 15),
        ("c", None, 13, None),
        ("d", None, None, 15),
    ]


def test_submissions_are_jobs(tmp_path: Path) -> None:
    engine = Engine(keeps_journal=True)
    engine.apply(QUEUES, now=START)
    created = [START, 0]
    engine.submit(
        namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": [3000, 2000]}, created=created, now=START
    )
    engine.cycle(START + MINUTE)
    found = history(tmp_path / "j.json", json.dumps(engine.journal()).encode())
    assert [(job.requests, minutes(job.created), minutes(job.started)) for job in found.jobs] == [
        ({"cpu": 3000}, 0, None),
        ({"cpu": 2000}, None, 1),
    ]


def test_a_saved_engine_is_like_a_dump(tmp_path: Path) -> None:
    found = history(tmp_path / "engine.bin", lived_engine().save())
    assert [(job.name, minutes(job.started), minutes(job.seen)) for job in found.jobs] == [("d", 21, 22)]


def test_a_changed_journal_is_an_error(tmp_path: Path) -> None:
    journal = {**lived_engine().journal(), "now": 5}
    with pytest.raises(ManifestError) as caught:
        history(tmp_path / "j.json", json.dumps(journal).encode())
    assert str(caught.value.problems[0]).startswith(
        f"{tmp_path}/j.json: it cannot be replayed: this is not a valid journal: its digest does not match; give the"
    )


@pytest.mark.parametrize("n_bytes", [5, 200, 2_000])
def test_a_save_that_is_cut_off_is_an_error(tmp_path: Path, n_bytes: int) -> None:
    with pytest.raises(ManifestError) as caught:
        history_of([f"journal={_written(tmp_path / 'e.bin', lived_engine().save()[:n_bytes])}"], now=END_NS)
    assert "e.bin: it cannot be" in str(caught.value.problems[0])


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_an_engine_without_workloads_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        history(tmp_path / "j.json", json.dumps(Engine(keeps_journal=True).journal()).encode())
    assert "j.json: no Workload is in it" in str(caught.value.problems[0])
