"""Slurm's accounting, as `sacct -P` writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kueuecore.errors import ManifestError
from kueuecore.traces import ColumnSource, read_trace
from kueuecore.traces.sacct import read_sacct
from kueuecore.traces.trace import Trace

HEAD = "JobID|JobName|User|Submit|Start|End|Elapsed|State|ReqTRES|AllocTRES"
SUBMIT, START, END = "2026-03-01T08:00:00", "2026-03-01T08:01:00", "2026-03-01T09:01:00"


def line(
    number: str = "7",
    *,
    name: str = "train",
    start: str = START,
    end: str = END,
    elapsed: str = "01:00:00",
    state: str = "COMPLETED",
    asked: str = "cpu=4,mem=8G,node=1",
    got: str = "",
) -> str:
    return "|".join([number, name, "ann", SUBMIT, start, end, elapsed, state, asked, got])


def read(*lines: str, head: str = HEAD) -> Trace:
    return read_sacct("\n".join([head, *lines, ""]).encode(), "jobs.txt")


def problems_of(*lines: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read(*lines, head=head)
    return [str(problem) for problem in caught.value.problems]


def requests_of(trace: Trace) -> dict[str, list[int]]:
    return {name: amounts.tolist() for name, amounts in trace.requests.items()}


def test_steps_belong_to_their_job() -> None:
    trace = read(line("7"), line("7.batch"), line("7.extern"), line("7.0"), line("8_1"), line("8_1.0"))
    assert (len(trace), trace.dropped) == (2, {})


def test_a_job_of_which_only_steps_are_there_is_left_out_once() -> None:
    trace = read(line("6.batch"), line("6.0"), line("7"))
    assert (len(trace), trace.dropped) == (1, {"only its steps are in the file": 1})


@pytest.mark.parametrize(
    ("elapsed", "seconds"),
    [("1-02:03:04", 93_784), ("02:03:04", 7_384), ("03:04", 184), ("03:04.5", 184.5), ("10-00:00:00", 864_000)],
)
def test_durations_have_days_before_a_hyphen(elapsed: str, seconds: float) -> None:
    assert read(line(elapsed=elapsed)).run_seconds.tolist() == [seconds]


def test_a_job_is_shared_among_its_nodes_or_else_its_gpus() -> None:
    trace = read(
        line(asked="billing=9,cpu=32,gres/gpu=16,mem=128G,node=2"),
        line(asked="cpu=10,gres/gpu:a100=3,gres/gpu:h100=2,mem=500M,node=2"),
        line(asked="cpu=10,mem=1.5T,node=3"),
    )
    assert trace.pods.tolist() == [2, 5, 3]
    # A third of ten CPUs is rounded up to a thousandth.
    assert requests_of(trace) == {
        "cpu": [16_000, 2_000, 3_334],
        "memory": [64 * 2**30, 100 * 2**20, 2**39],
        "gpu": [8_000, 1_000, 0],
    }
    assert trace.fields["gpuType"].texts() == ["", "a100,h100", ""]


def test_what_was_allocated_counts_where_nothing_was_requested() -> None:
    trace = read(line(asked="cpu=2,node=1", got="cpu=128,mem=256G,node=1"), line(asked="", got="cpu=1,mem=512,node=1"))
    assert requests_of(trace)["cpu"] == [2_000, 1_000]
    # An amount of memory without a unit is in MiB.
    assert requests_of(trace)["memory"] == [2**38, 2**29]


def test_older_columns_stand_in_for_tres() -> None:
    head = "JobIDRaw|Submit|ElapsedRaw|State|NNodes|NCPUS|ReqMem"
    trace = read(
        f"1|{SUBMIT}|60|COMPLETED|2|8|4Gn",
        f"2|{SUBMIT}|60|COMPLETED|2|8|4Gc",
        f"3|{SUBMIT}|60|COMPLETED|1K|1K|1T",
        head=head,
    )
    assert trace.pods.tolist() == [2, 2, 1024]
    assert requests_of(trace) == {"cpu": [4_000, 4_000, 1_000], "memory": [2**32, 2**34, 2**30], "gpu": [0, 0, 0]}


def test_states_decide_how_jobs_end() -> None:
    trace = read(
        line("1", state="CANCELLED by 1000"),
        line("2", state="TIMEOUT"),
        line("3", end="Unknown", state="RUNNING"),
        line("4", start="Unknown", end="Unknown", state="PENDING", elapsed="00:00:00"),
        line("5", start=END, end=END, state="CANCELLED by 0", elapsed="00:00:00"),
    )
    assert trace.fields["status"].texts() == ["CANCELLED", "TIMEOUT", "RUNNING"]
    assert (trace.ends_failed.tolist(), trace.run_seconds.tolist()) == ([True, True, False], [3600, 3600, np.inf])
    assert trace.dropped == {"never started": 1, "cancelled before it started": 1}


def test_names_may_contain_quotes_and_the_last_line_of_names_may_end_with_a_bar() -> None:
    trace = read(f"{line(name=chr(34) + 'a')}|", head=f"{HEAD}|")
    assert trace.fields["name"].texts() == ['"a']


def test_files_of_several_months_may_be_joined() -> None:
    assert len(read(line("7"), HEAD, line("8"))) == 2


def test_broken_cells_are_reported_with_line_and_column() -> None:
    assert problems_of(line(), line("8", elapsed="long")) == [
        'jobs.txt:3: Elapsed: not a duration: "long"; write it as D-HH:MM:SS'
    ]
    assert problems_of(line(asked="cpu=many")) == [
        'jobs.txt:2: ReqTRES: not amounts such as cpu=4,mem=16G,node=1: "cpu=many"; correct it, or leave it empty'
    ]


def test_missing_columns_are_reported_with_the_command_that_writes_them() -> None:
    problems = problems_of("1|a|COMPLETED", head="JobID|JobName|State")
    assert [problem.partition(";")[0] for problem in problems] == [
        'jobs.txt:1: column "Submit" is missing',
        'jobs.txt:1: column "Elapsed" is missing',
        'jobs.txt:1: no column says what jobs request: "ReqTRES" or "AllocTRES"',
    ]
    assert all("`sacct -a -P -o JobID,Submit," in problem for problem in problems)


def test_columns_of_a_fixed_width_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("JobID           JobName  State\n------------ ---------- ------\n7  train  COMPLETED\n")
    with pytest.raises(ManifestError, match="its columns have a fixed width, which cuts cells off; write it with `sac"):
        read_trace(path)


def test_a_table_with_columns_in_the_rules_is_read_by_them(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("JobID,Submit,Elapsed,State,CPUs\n7,10,60,COMPLETED,2\n")
    named = {"at": "Submit", "run_seconds": "Elapsed", "cpu_milli": "CPUs"}
    trace = read_trace(path, columns={name: ColumnSource(column=column) for name, column in named.items()})
    assert trace.run_seconds.tolist() == [60]


def test_waits_limits_and_numbers_of_jobs_are_kept() -> None:
    head = "JobID|Submit|Start|End|Elapsed|State|ReqCPUS|Timelimit|TimelimitRaw"
    rows = [("7", "02:00:00", ""), ("8", "UNLIMITED", "UNLIMITED"), ("9", "Partition_Limit", ""), ("10", "", "90")]
    jobs = read(
        *(f"{n}|{SUBMIT}|{START}|{END}|01:00:00|COMPLETED|4|{limit}|{raw}" for n, limit, raw in rows), head=head
    )
    assert jobs.wait_seconds is not None
    assert jobs.limit_seconds is not None
    assert jobs.ids is not None
    assert (jobs.wait_seconds.tolist(), jobs.ids.texts()) == ([60.0] * 4, ["7", "8", "9", "10"])
    np.testing.assert_array_equal(jobs.limit_seconds, [7200, np.nan, np.nan, 5400])
