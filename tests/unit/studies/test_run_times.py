"""Run times fitted to those that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from random import Random
from statistics import mean, median

import pytest

from kueuecore.scenarios import Empirical, Span
from kueuecore.studies.run_times import FittedRunTimes, GivenRunTimes, LeftRunTimes, RunTimes


def draws(run_times: RunTimes, elapsed: float = 0.0, n: int = 1500) -> list[float]:
    """One run time from each of this many futures."""
    return [run_times.sampler(Random(f"future {number}"))(elapsed)[0] for number in range(n)]


def exponential(n: int) -> Sequence[float]:
    return [-600 * log(1 - (number + 0.5) / n) for number in range(n)]


def test_draws_have_the_distribution_of_the_observations() -> None:
    seen = exponential(200)
    drawn = sorted(draws(FittedRunTimes.of(seen, [])))
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert drawn[int(share * len(drawn))] == pytest.approx(sorted(seen)[int(share * len(seen))], rel=0.12)


def test_a_job_that_has_run_for_a_while_runs_as_long_as_those_that_ran_longer() -> None:
    seen = [60.0] * 50 + [3600.0] * 50
    drawn = draws(FittedRunTimes.of(seen, []), elapsed=100.0)
    assert min(drawn) > 100.0
    assert median(drawn) == pytest.approx(3600.0)


def test_exponential_run_times_are_memoryless() -> None:
    run_times = FittedRunTimes.of(exponential(400), [])
    for elapsed in (0.0, 300.0, 1200.0):
        assert mean(draws(run_times, elapsed)) - elapsed == pytest.approx(600.0, rel=0.15)


def test_a_job_that_outlived_all_others_ends_at_the_rate_of_the_longest() -> None:
    seen = exponential(100)
    rest = [draw - 90_000.0 for draw in draws(FittedRunTimes.of(seen, []), elapsed=90_000.0)]
    assert min(rest) >= 0
    assert 300 < mean(rest) < 1200


def test_jobs_that_still_run_make_run_times_longer() -> None:
    ended = [60.0] * 20
    alone, beside = (FittedRunTimes.of(ended, running) for running in ([], [600.0] * 20))
    assert mean(draw > 61.0 for draw in draws(alone)) < 0.1
    assert mean(draw > 600.0 for draw in draws(beside)) == pytest.approx(0.5, abs=0.06)


def test_few_run_times_make_a_wider_forecast_than_many() -> None:
    def spread(run_times: RunTimes) -> float:
        medians = []
        for number in range(200):
            sample = run_times.sampler(Random(number))
            medians.append(median(sample(0.0)[0] for _ in range(200)))
        return sorted(medians)[180] - sorted(medians)[20]

    few, many = (FittedRunTimes.of(exponential(n), []) for n in (10, 200))
    assert spread(few) > 2 * spread(many)


@pytest.mark.parametrize("seen", [[0.0], [0.0, 0.0, 5.0], [60.0] * 30, [7.0]])
@pytest.mark.parametrize("elapsed", [0.0, 60.0, 1e6])
def test_odd_samples_give_run_times_all_the_same(seen: list[float], elapsed: float) -> None:
    for value in draws(FittedRunTimes.of(seen, [elapsed]), elapsed, 50):
        assert elapsed <= value < 1e9


def test_jobs_that_all_ran_as_long_run_so_long() -> None:
    drawn = sorted(draws(FittedRunTimes.of([60.0] * 30, [])))
    assert drawn[len(drawn) // 10] == pytest.approx(60.0) == drawn[9 * len(drawn) // 10]


def test_without_an_end_there_is_nothing_to_fit() -> None:
    with pytest.raises(ValueError, match="no job has ended"):
        FittedRunTimes.of([], [5.0])


def test_a_running_job_with_a_given_distribution_is_among_the_longer_ones() -> None:
    sample = GivenRunTimes(Empirical(values=(10.0, 500.0))).sampler(Random(1))
    assert {sample(100.0) for _ in range(20)} == {(500.0, 100.0)}


def test_a_job_that_outlived_a_given_distribution_runs_for_another_run_time() -> None:
    assert GivenRunTimes(Span(60)).sampler(Random(1))(100.0) == (160.0, 100.0)


def test_remaining_run_times_do_not_depend_on_elapsed_time() -> None:
    sample = LeftRunTimes(Span(60)).sampler(Random(1))
    assert [sample(0.0), sample(1000.0)] == [(60, 0.0), (60, 0.0)]
