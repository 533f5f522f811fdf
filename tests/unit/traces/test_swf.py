"""Logs in the Standard Workload Format."""

import numpy as np
import pytest

from kueuecore.errors import ManifestError
from kueuecore.traces.swf import read_swf


def job(**values: object) -> str:
    """A line of 18 fields: a completed job of four processors, unless values say otherwise."""
    fields: dict[str, object] = {
        "number": 1,
        "submit": 0,
        "wait": 10,
        "run": 60,
        "allocated": 4,
        "cpu_time": -1,
        "used_memory": -1,
        "requested": 4,
        "requested_time": 3600,
        "requested_memory": -1,
        "status": 1,
        "user": 7,
        "group": 3,
        "executable": -1,
        "queue": 1,
        "partition": -1,
        "preceding": -1,
        "think": -1,
    }
    assert set(values) <= set(fields)
    return " ".join(str(entry) for entry in {**fields, **values}.values())


def log(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


def problems_of(data: bytes) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read_swf(data, "log.swf")
    return [str(problem) for problem in caught.value.problems]


def test_a_job_has_a_pod_for_each_requested_processor() -> None:
    trace = read_swf(log(job(submit=5, run=60, requested=4, allocated=8, requested_memory=2048)), "log.swf")
    assert (trace.run_seconds.tolist(), trace.pods.tolist()) == ([60], [4])
    assert {name: request.tolist() for name, request in trace.requests.items()} == {
        "cpu": [1000],
        "memory": [2048 * 1024],
    }


def test_what_was_used_stands_in_for_what_was_not_requested() -> None:
    trace = read_swf(log(job(requested=-1, allocated=8, requested_memory=-1, used_memory=100)), "log.swf")
    assert (trace.pods.tolist(), trace.requests["memory"].tolist()) == ([8], [102400])


def test_unknown_fields_are_empty_texts_and_no_requests() -> None:
    trace = read_swf(log(job(user=-1, group=-1, requested_time=-1, queue=-1, status=-1)), "log.swf")
    assert list(trace.fields) == ["user", "group", "executable", "requestedSeconds", "queue", "partition", "status"]
    assert [field.texts() for field in trace.fields.values()] == [[""]] * 7
    assert trace.requests["memory"].tolist() == [0]


def test_header_comments_name_queues_and_describe_the_machine() -> None:
    head = [
        "; UnixStartTime: 1000000000",
        ";  MaxProcs:   430",
        "; Queue: 0 interactive (short jobs)",
        "; Queue: 1 batch",
    ]
    trace = read_swf(log(*head, job(queue=1), job(queue=0), job(queue=2)), "log.swf")
    assert trace.header == {"UnixStartTime": "1000000000", "MaxProcs": "430"}
    assert trace.fields["queue"].texts() == ["batch", "interactive", "2"]


def test_what_is_left_out_is_counted_by_reason() -> None:
    lines = [
        job(run=-1, status=5),
        job(run=0, status=5),
        job(run=30, status=5),  # cancelled while it ran
        job(run=-1),
        job(requested=-1, allocated=-1),
        job(requested=0, allocated=0),
        job(submit=-3),
        job(status=0),
        job(status=2),
        job(status=3),
        job(run=0),  # less than half a second
    ]
    trace = read_swf(log(*lines), "log.swf")
    assert trace.dropped == {
        "part of a job with a line of its own": 2,
        "cancelled before it started": 2,
        "no run time": 1,
        "no number of processors": 1,
        "no pods": 1,
        "negative time": 1,
    }
    assert trace.run_seconds.tolist() == [30, 60, 0]


def test_time_starts_with_the_first_job_and_jobs_are_sorted() -> None:
    trace = read_swf(log(job(submit=1_356_996_947, user=1), job(submit=1_356_996_147.5, user=2)), "log.swf")
    assert (trace.at.tolist(), trace.fields["user"].texts()) == ([0, 799.5], ["2", "1"])
    assert trace.begin == 1_356_996_147.5


def test_fields_after_those_of_the_format_are_left_out_with_one_note() -> None:
    trace = read_swf(log(job(user=1), job(user=2) + " {1,1} q_2w 1:ppn=2", job(user=3) + " x"), "log.swf")
    assert trace.fields["user"].texts() == ["1", "2", "3"]
    assert trace.notes == (
        'log.swf:2: the fields after the 18 of the format are not read, on 2 lines: "{1,1}", "q_2w", "1:ppn=2"',
    )


def test_a_line_of_names_is_left_out_with_one_note() -> None:
    trace = read_swf(log("; Computer: x", "job submit wait ...", job(), job()), "log.swf")
    assert len(trace) == 2
    assert trace.notes == ('log.swf:2: left out, as it has no numbers: "job submit wait ..."',)
    # Only the first line can be one.
    assert problems_of(log(job(), "job submit wait"))[0].startswith("log.swf:2: 3 fields instead of 18; ")


def test_an_empty_log_has_no_jobs() -> None:
    assert len(read_swf(log("; nothing", ""), "log.swf")) == 0


def test_broken_lines_are_reported_with_their_numbers() -> None:
    remedy = "write 18 numbers separated by spaces, -1 for unknown"
    lines = log("; head", job(), "1 2 3", job(run="soon"), job(submit="nan"), job(user="inf"), "4 5 6", "7")
    assert problems_of(lines) == [
        f"log.swf:3: 3 fields instead of 18, on 2 lines; {remedy}",
        f'log.swf:4: run time: not a number up to 1e30: "soon"; {remedy}',
        f'log.swf:5: submit time: not a number up to 1e30: "nan"; {remedy}',
        f'log.swf:6: user: not a number up to 1e30: "inf"; {remedy}',
        f"log.swf:8: 1 field instead of 18; {remedy}",
    ]


def test_a_number_beyond_measure_is_reported_with_its_line() -> None:
    assert problems_of(log("; head", job(), job(submit="1e30"))) == [
        "log.swf:3: at: Invalid value: 1e+30 is more than 3162240000 seconds, which is a century; "
        "correct or remove this job"
    ]
    assert problems_of(log(job(requested=10**12)))[0].startswith("log.swf:1: pods: Invalid value: 1e+12 is more than")


def test_a_binary_file_is_refused() -> None:
    assert problems_of(log(job()) + b"\0\1\2") == [
        "log.swf:2: it is a binary file, not text; name a text file, or set `format`"
    ]


def test_waits_limits_and_numbers_of_jobs_are_kept() -> None:
    known = b"7 0 10 60 4 -1 -1 4 3600 1024 1 7 2 -1 1 1 -1 -1\n"
    trace = read_swf(known + b"8 5 -1 60 4 -1 -1 4 -1 1024 1 7 2 -1 1 1 -1 -1\n", "log.swf")
    assert trace.wait_seconds is not None
    assert trace.limit_seconds is not None
    assert trace.ids is not None
    np.testing.assert_array_equal(trace.wait_seconds, [10, np.nan])
    np.testing.assert_array_equal(trace.limit_seconds, [3600, np.nan])
    assert trace.ids.texts() == ["7", "8"]
