"""Jobs that come by the hour, and jobs that fail."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kueuecore.scenarios import HourlyArrivals, run_scenario
from kueuecore.times import nanoseconds
from tests.regressions.scenarios import CLUSTER, Read, problems

# A Thursday, in the middle of an hour.
START = nanoseconds("2026-01-01T10:30:00Z")
DAY = 86400.0


def hours(arrivals: HourlyArrivals, begin: float = 0.0) -> Counter[tuple[int, int]]:
    """How many jobs come, by weekday (from Monday) and hour."""
    absolute = [(arrivals.start // 10**9 + time) // 3600 for time in arrivals.times(Random(3), begin)]
    return Counter(((int(time) // 24 + 3) % 7, int(time) % 24) for time in absolute)


def test_jobs_come_at_the_hours_and_days_that_have_weights() -> None:
    by_hour = tuple(float(hour in (9, 10)) for hour in range(24))
    found = hours(
        HourlyArrivals(per_hour=30, until=70 * DAY, start=START, by_hour=by_hour, by_weekday=(1, 1, 0, 3, 1, 0, 0))
    )
    assert set(found) == {(day, hour) for day in (0, 1, 3, 4) for hour in (9, 10)}
    # Three times as many on Thursdays.
    assert found[3, 9] / found[0, 9] == pytest.approx(3, rel=0.1)


def test_weights_leave_the_mean_as_it_is() -> None:
    plain = HourlyArrivals(per_hour=30, until=70 * DAY, start=START)
    shaped = HourlyArrivals(
        per_hour=30, until=70 * DAY, start=START, by_hour=tuple(range(24)), by_weekday=(9, 8, 7, 6, 5, 4, 3)
    )
    expected = 30 * 24 * 70
    for entry in (plain, shaped):
        assert entry.n_expected == pytest.approx(expected)
        assert hours(entry).total() == pytest.approx(expected, rel=0.01)


def test_jobs_come_in_order_and_within_their_time() -> None:
    times = list(HourlyArrivals(per_hour=60, until=2 * DAY, start=START).times(Random(1), DAY))
    assert times == sorted(times)
    assert times[0] >= DAY
    assert times[-1] < 2 * DAY
    assert len(times) == pytest.approx(60 * 24, rel=0.1)


def test_nothing_arrives_without_a_rate() -> None:
    assert list(HourlyArrivals(per_hour=0, until=DAY, start=START).times(Random(1), 0)) == []


def test_a_scenario_whose_hours_bring_no_job_ends_at_once(read: Read) -> None:
    scenario = read(CLUSTER + "work: [{job: job.yaml, arrivals: {perHour: 0.001, until: 1s}}]\n")
    assert run_scenario(scenario).all.n_jobs == 0


def test_hours_are_those_of_the_start(read: Read) -> None:
    morning = ", ".join(["1"] + ["0"] * 23)
    scenario = read(
        f"start: 2026-01-01T23:00:00Z\nuntil: 3d\n{CLUSTER}"
        f"work: [{{job: job.yaml, runs: 1s, arrivals: {{perHour: 2, byHour: [{morning}]}}}}]\n"
    )
    times = [at for at, *_ in scenario.work[0].times(scenario.seed)]
    assert {int(at // 3600) for at in times} == {1, 25, 49}
    assert run_scenario(scenario).all.n_jobs == len(times)


def test_a_single_hourly_job_is_numbered_too(read: Read) -> None:
    (work,) = read(CLUSTER + "work: [{job: job.yaml, arrivals: {perHour: 3, until: 1h}}]\n").work
    assert {arrival.key[2].rpartition("-")[0] for arrival in work.arrivals(1)} == {"small"}


@pytest.mark.parametrize(
    ("work", "wrong"),
    [
        ("arrivals: {perHour: 3}", "arrivals.until: Required value"),
        ("arrivals: {until: 1h}", "arrivals.perHour: Required value"),
        ("arrivals: {perHour: -3, until: 1h}", "arrivals.perHour: Invalid value: -3"),
        ("arrivals: {perHour: 1000000, until: 100d}", "arrivals.perHour: 2400000000 jobs are too many"),
        ("arrivals: {perHour: 3, until: 1h, byHour: [1]}", "arrivals.byHour: 1 weights"),
        ("arrivals: {perHour: 3, until: 1h, byHour: []}", "arrivals.byHour: 0 weights"),
        (
            "arrivals: {perHour: 3, until: 1h, byWeekday: [0, 0, 0, 0, 0, 0, 0]}",
            "arrivals.byWeekday: all weights are 0",
        ),
        ("arrivals: {perHour: 3, until: 1h, byDay: []}", "arrivals.byDay: unknown field"),
        ("count: 3, arrivals: {perHour: 3, until: 1h}", "count: both count and arrivals are given"),
        ("every: 3, arrivals: {perHour: 3, until: 1h}", "every: both every and arrivals are given"),
        ("fails: {share: 2}, runs: 5", "fails.share: Invalid value: 2"),
        ("fails: {after: 2}, runs: 5", "fails.share: Required value"),
        ("fails: {share: 0.5}", "fails.after: Required value"),
        ("fails: {share: 0.5, retries: 3}, runs: 5", "fails.retries: unknown field"),
    ],
)
def test_problems_of_arrivals_name_the_field(read: Read, work: str, wrong: str) -> None:
    assert problems(read, CLUSTER + f"work: [{{job: job.yaml, {work}}}]\n") == [f"work[0].{wrong}"]


def test_some_jobs_fail_and_no_other_time_changes(read: Read) -> None:
    work = "{job: job.yaml, count: 2000, every: {mean: 1m}, runs: {from: 10m, to: 20m}"
    (plain,) = read(CLUSTER + f"work: [{work}}}]\n").work
    (failing,) = read(CLUSTER + f"work: [{work}, fails: {{share: 0.1, after: 1m}}}}]\n").work
    pairs = list(zip(plain.times(5), failing.times(5), strict=True))
    assert all(before[0] == after[0] for before, after in pairs)
    assert {after[1:] for before, after in pairs if before != after} == {(60, True)}
    assert sum(before != after for before, after in pairs) == pytest.approx(200, rel=0.2)


def test_jobs_fail_at_any_time_of_their_run_unless_it_is_said(read: Read) -> None:
    (work,) = read(CLUSTER + "work: [{job: job.yaml, count: 2000, runs: 100, fails: {share: 1}}]\n").work
    runs = [run for _, run, fails in work.times(1) if run is not None and fails]
    assert len(runs) == 2000
    assert 0 <= min(runs) < 1
    assert 99 < max(runs) < 100


def test_a_job_that_would_run_forever_may_fail(read: Read) -> None:
    (work,) = read(CLUSTER + "work: [{job: job.yaml, count: 2, fails: {share: 1, after: 30}}]\n").work
    assert [time[1:] for time in work.times(1)] == [(30, True), (30, True)]
