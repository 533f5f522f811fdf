"""Run times that the caller gives."""

from __future__ import annotations

from random import Random

from kueuecore.forecasts.given_run_times import GivenRunTimes, LeftRunTimes
from kueuecore.scenarios import Empirical, Span


def test_a_running_job_with_a_given_distribution_is_among_the_longer_ones() -> None:
    sample = GivenRunTimes(Empirical(values=(10.0, 500.0))).sampler(Random(1))
    assert {sample(100.0) for _ in range(20)} == {(500.0, 100.0)}


def test_a_job_that_outlived_a_given_distribution_runs_for_another_run_time() -> None:
    assert GivenRunTimes(Span(60)).sampler(Random(1))(100.0) == (160.0, 100.0)


def test_remaining_run_times_do_not_depend_on_elapsed_time() -> None:
    sample = LeftRunTimes(Span(60)).sampler(Random(1))
    assert [sample(0.0), sample(1000.0)] == [(60, 0.0), (60, 0.0)]
