"""Run times drawn from those of similar jobs."""

from __future__ import annotations

import numpy as np
import pytest

from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.forecasts.similar_jobs import SimilarJobs, Spread
from tests.unit.forecasts.past import job
from tests.unit.forecasts.present_states import START

NOW = START / 1e9


def ended(n: int, seconds: float, *, at: float = 1000.0, **fields: object) -> list[PastJob]:
    """So many jobs that ran equally long, the last of which ended so many seconds ago."""
    times = [at + number for number in range(n)]
    return [job(created=end + seconds, started=end + seconds, ended=end, **fields) for end in times]  # type: ignore[arg-type]


def spread_of(last: PastJob, *past: PastJob) -> Spread:
    return SimilarJobs([*past, last]).at(NOW).spread(len(past))


def share(spread: Spread, seconds: float) -> float:
    """The probability of a run time of at most so many seconds."""
    return float(spread.shares[np.searchsorted(spread.seconds, seconds, side="right") - 1])


def test_many_jobs_of_the_same_program_outweigh_others() -> None:
    waits = job(created=10, name="train-9")
    few = spread_of(waits, *ended(2, 60, name="train-1"), *ended(50, 7200, name="decode-1"))
    many = spread_of(waits, *ended(30, 60, name="train-1"), *ended(50, 7200, name="decode-1"))
    assert share(few, 60) < share(many, 60)
    assert share(many, 60) > 0.8


def test_newer_jobs_weigh_more() -> None:
    waits = job(created=10)
    assert share(spread_of(waits, *ended(30, 60, at=100), *ended(30, 7200, at=90000)), 60) > 0.7
    assert share(spread_of(waits, *ended(30, 60, at=90000), *ended(30, 7200, at=100)), 60) < 0.4


def test_between_limits_it_is_the_share_of_the_limit_that_is_alike() -> None:
    past = ended(20, 1800, limit=3600, name="a", queue="x", cpu=2)
    (found,) = {float(second) for second in spread_of(job(created=10, limit=7200), *past).seconds}
    assert found == 3600


def test_jobs_that_still_run_make_run_times_longer() -> None:
    waits, past = job(created=10), ended(10, 60)
    running = [job(created=5000, started=5000) for _ in range(10)]
    alone, beside = spread_of(waits, *past), spread_of(waits, *running, *past)
    assert share(alone, 60) == 1
    assert share(beside, 60) == pytest.approx(0.5, abs=0.1)
    assert beside.seconds[-1] > 5000


def test_a_job_that_has_run_for_a_while_runs_as_long_as_those_that_ran_longer() -> None:
    past = [*ended(5, 60), *ended(5, 600), *ended(5, 6000)]
    found = spread_of(job(created=100, started=100), *past)
    assert set(found.seconds.tolist()) == {600, 6000}
    assert found.shares[-1] == pytest.approx(1)


@pytest.mark.parametrize(("limit", "most"), [(3600.0, 3600.0), (None, 9000.0)])
def test_a_job_that_outlived_all_others_runs_on(limit: float | None, most: float) -> None:
    found = spread_of(job(created=2000, started=2000, limit=limit), *ended(10, 60))
    assert found.seconds.min() > 2000
    assert found.seconds.max() <= most


def test_only_what_had_ended_by_a_moment_is_known_at_it() -> None:
    jobs = [*ended(10, 60, at=5000), *ended(30, 7200, at=10), job(created=6000)]
    before, now = (SimilarJobs(jobs).at(moment) for moment in (NOW - 4000, NOW))
    assert before.n_ended == 10
    assert share(before.spread(40), 60) > share(now.spread(40), 60)
    assert np.isnan(before.run_seconds()[10:]).all()


def test_the_source_is_whose_jobs_weigh_most() -> None:
    def source(*past: PastJob) -> str:
        return SimilarJobs([*past, job(created=10)]).at(NOW).source(len(past))

    assert source(*ended(10, 60)) == "Program"
    assert source(*ended(10, 60, name="other")) == "LocalQueue"
    assert source(*ended(10, 60, queue="other")) == "ClusterQueue"
    assert source() == ""
