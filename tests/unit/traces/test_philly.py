"""Microsoft's Philly trace."""

import json
from collections.abc import Sequence

import pytest

from kueuecore.errors import ManifestError
from kueuecore.traces.philly import read_philly
from kueuecore.traces.trace import Trace


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, object]:
    detail = [{"ip": f"m{number}", "gpus": [f"gpu{gpu}" for gpu in range(n)]} for number, n in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def job(submitted: str | None, *attempts: object, user: str = "ce2f4c") -> dict[str, object]:
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": attempts,
        "submitted_time": submitted,
        "user": user,
    }


def read(*jobs: object) -> Trace:
    return read_philly(json.dumps(jobs).encode(), "cluster_job_log")


def problems_of(data: bytes) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read_philly(data, "cluster_job_log")
    return [str(problem) for problem in caught.value.problems]


# The example of the published description.
EXAMPLE = job(
    "2017-10-07 01:11:39",
    attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8),
    attempt("2017-10-07 01:13:30", "2017-10-09 06:53:12", 8),
)


def test_a_job_runs_as_long_as_all_its_attempts() -> None:
    trace = read(EXAMPLE)
    assert trace.run_seconds.tolist() == [74 + 193182]
    assert (trace.pods.tolist(), trace.requests["gpu"].tolist()) == ([1], [8000])
    assert {name: field.texts() for name, field in trace.fields.items()} == {
        "user": ["ce2f4c"],
        "virtualCluster": ["ee9e8c"],
        "status": ["Pass"],
    }


def test_times_count_from_the_first_job() -> None:
    span = ("2017-10-08 00:00:00", "2017-10-08 00:00:10", 1)
    trace = read(job("2017-10-08 00:00:00", attempt(*span)), EXAMPLE)
    assert trace.at.tolist() == [0, 22 * 3600 + 48 * 60 + 21]


@pytest.mark.parametrize(
    ("gpus", "pods", "milli"), [((8, 8), 2, 8000), ((8, 4), 12, 1000), ((2, 0), 1, 2000), ((1,) * 3, 3, 1000)]
)
def test_a_pod_stands_for_a_server_unless_they_are_unequal(gpus: Sequence[int], pods: int, milli: int) -> None:
    trace = read(job("2017-10-07 01:00:00", attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", *gpus)))
    assert (trace.pods.tolist(), trace.requests["gpu"].tolist()) == ([pods], [milli])


@pytest.mark.parametrize("unknown", [None, "", "None"], ids=["null", "empty", "the word"])
def test_a_job_whose_last_attempt_has_no_end_runs_forever(unknown: str | None) -> None:
    first = attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", 1)
    trace = read(job("2017-10-07 01:00:00", first, attempt("2017-10-07 02:00:00", unknown, 1)))
    assert trace.run_seconds.tolist() == [float("inf")]


def test_an_attempt_that_lost_its_times_does_not_count() -> None:
    lost = attempt("2017-10-07 01:00:00", None, 4)
    trace = read(job("2017-10-07 01:00:00", lost, attempt("2017-10-07 02:00:00", "2017-10-07 02:00:30", 4)))
    assert trace.run_seconds.tolist() == [30]


def test_what_is_left_out_is_counted_by_reason() -> None:
    span = ("2017-10-07 01:00:00", "2017-10-07 02:00:00")
    trace = read(
        job("2017-10-07 01:00:00"),
        job("2017-10-07 01:00:00", attempt(None, None, 1)),
        job("2017-10-07 01:00:00", attempt(*span)),
        job(None, attempt(*span, 1)),
        job("2017-10-07 01:00:00", attempt(span[1], span[0], 1)),
        EXAMPLE,
    )
    assert len(trace) == 1
    assert trace.dropped == {
        "never started": 1,
        "no attempt with a start and an end": 1,
        "no GPUs": 1,
        "no time of submission": 1,
        "negative time": 1,
    }


def test_entries_of_another_form_are_reported_with_their_paths() -> None:
    attempts = [{"start_time": 7, "detail": "m1"}]
    data = json.dumps([EXAMPLE, 5, {"user": 3, "attempts": attempts}]).encode()
    assert problems_of(data) == [
        "cluster_job_log: [1]: must be a job, `{...}`; remove this entry",
        "cluster_job_log: [2].user: must be a string; put it in quotes",
        "cluster_job_log: [2].attempts[0].start_time: must be a string; put it in quotes",
        "cluster_job_log: [2].attempts[0].detail: must be a list; write [] if there is none",
    ]


def test_an_invalid_time_is_reported_with_its_path() -> None:
    data = json.dumps([EXAMPLE, job("yesterday")]).encode()
    assert problems_of(data) == [
        'cluster_job_log: [1].submitted_time: not a date: "yesterday"; write it as "2017-10-07 01:12:09", or null'
    ]


def test_a_file_that_is_cut_off_is_reported_with_its_line() -> None:
    data = b'[{"user": "a"},\n {"user": "b"},\n {"us'
    assert problems_of(data) == [
        "cluster_job_log:3:3: not JSON: Unterminated string starting at; fetch or copy it again"
    ]


@pytest.mark.parametrize("data", [b"{}", b"\xff\xfe", b"[" * 100_000])
def test_a_file_without_a_list_of_jobs_is_refused(data: bytes) -> None:
    assert len(problems_of(data)) == 1
