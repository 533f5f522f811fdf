"""Dumps as the past of a cluster."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kueuecore._json import JsonObject
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import History, history_of
from kueuecore.forecasts.past_jobs import PastJob, past_jobs_of
from kueuecore.forecasts.present_workloads import present_workloads
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.times import nanoseconds
from tests.unit.forecasts.present_states import QUEUES, START, ago, workload


def dump(path: Path, *workloads: Manifest, queues: bool = True) -> None:
    objects = [*(parse_manifests(QUEUES) if queues else ()), *workloads]
    items: list[JsonObject] = [manifest.object for manifest in objects]
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def history(*sources: Path, now: int = START, present: tuple[PastJob, ...] = ()) -> History:
    return history_of(list(map(str, sources)), now=now, present=present)


def ns_ago(seconds: float) -> int:
    return nanoseconds(ago(seconds))


def test_a_workload_seen_waiting_running_and_finished_is_one_job(tmp_path: Path) -> None:
    dump(tmp_path / "1.json", workload("a", created=3600), workload("b", created=3000, queue="other"))
    dump(tmp_path / "2.json.gz", workload("a", created=3600, admitted=1800), workload("c", created=1700))
    dump(tmp_path / "3.json", workload("a", created=3600, admitted=1800, finished=600), workload("d", created=60))
    found = history(tmp_path)
    assert [(job.name, job.started, job.ended, job.seen) for job in found.jobs] == [
        ("a", ns_ago(1800), ns_ago(600), None),
        # Gone since: it was seen to wait when the first dump was taken, which is as new as its newest time.
        ("b", None, None, ns_ago(3000)),
        ("c", None, None, ns_ago(1700)),
        ("d", None, None, ns_ago(60)),
    ]
    assert found.jobs[1].cluster_queue == "cq"
    assert found.notes == (f"{tmp_path}: 4 jobs taken; left out: 2 (an older state of the same Workload)",)


def test_a_job_that_is_gone_while_it_ran_has_run_so_long_at_least(tmp_path: Path) -> None:
    dump(tmp_path / "1.json", workload("a", created=3600, admitted=3000), workload("x", created=1000, admitted=1000))
    dump(tmp_path / "2.json", workload("b", created=500))
    job = next(job for job in history(tmp_path).jobs if job.name == "a")
    assert (job.started, job.ended, job.seen) == (ns_ago(3000), None, ns_ago(1000))


def test_the_order_is_that_of_time_not_of_names(tmp_path: Path) -> None:
    dump(tmp_path / "b.json", workload("a", created=3600))
    dump(tmp_path / "a.json", workload("a", created=3600, admitted=1800, finished=600))
    (job,) = history(tmp_path).jobs
    assert job.ended == ns_ago(600)


def test_the_same_name_with_another_uid_is_another_job(tmp_path: Path) -> None:
    again = workload("a", created=100)
    again.object["metadata"]["uid"] = "other"  # type: ignore[index, call-overload]
    dump(tmp_path / "1.json", workload("a", created=3600))
    dump(tmp_path / "2.json", again)
    assert [job.uid for job in history(tmp_path).jobs] == ["a", "other"]


def test_what_the_present_state_has_is_left_out(tmp_path: Path) -> None:
    dump(tmp_path / "1.json", workload("a", created=3600), workload("b", created=3600, admitted=10, finished=5))
    present = past_jobs_of(present_workloads([workload("a", created=3600, admitted=60)]))
    found = history(tmp_path / "1.json", present=present)
    assert [job.name for job in found.jobs] == ["b"]
    assert found.notes[-1].endswith("1 job taken; left out: 1 (in the present state)")


def test_what_happened_later_is_not_known(tmp_path: Path) -> None:
    dump(tmp_path / "1.json", workload("a", created=3600, admitted=1800, finished=600), workload("b", created=60))
    (job,) = history(tmp_path / "1.json", now=ns_ago(1000)).jobs
    assert (job.name, job.started, job.ended, job.seen) == ("a", ns_ago(1800), None, ns_ago(1000))


def test_yaml_and_text_without_workloads(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(QUEUES)
    with pytest.raises(ManifestError) as caught:
        history(tmp_path / "q.yaml")
    assert "q.yaml: no Workload is in it; give dumps with Workloads" in str(caught.value.problems[0])


def test_times_that_are_none_are_unknown(tmp_path: Path) -> None:
    odd = workload("a", created=3600, admitted=1800)
    odd.object["metadata"]["creationTimestamp"] = "yesterday"  # type: ignore[index, call-overload]
    dump(tmp_path / "1.json", odd)
    (job,) = history(tmp_path / "1.json").jobs
    assert (job.created, job.started) == (None, ns_ago(1800))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b'{"kind": "Workload"}', mtime=0)[:-6], "the compressed file is cut off"),
        (b"\x1f\x8b\x08\x00" + b"\xff" * 90, "the compressed file is damaged"),
        (b"", "it is empty; name a file with the past of the cluster"),
        (b'{"kind": "Workload", "metadata": [1', "1.json"),
        (b"[" * 100_000 + b'"kind":', "1.json"),
    ],
    ids=["cut off", "damaged", "empty", "no JSON", "nested"],
)
def test_broken_files_are_errors_that_name_them(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "1.json").write_bytes(data)
    with pytest.raises(ManifestError) as caught:
        history(tmp_path / "1.json")
    assert message in str(caught.value.problems[0])
    assert "1.json" in str(caught.value.problems[0])


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        history(tmp_path)
    assert "no file in it ends in .yaml, .yml or .json" in str(caught.value.problems[0])
