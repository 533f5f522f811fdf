"""Futures drawn from the past."""

from __future__ import annotations

import numpy as np
import pytest

from kueuecore.forecasts.arrivals import arrivals_of
from kueuecore.forecasts.draws_part import DrawsPart
from kueuecore.forecasts.fitted_draws import FittedDraws, GivenDraws
from kueuecore.forecasts.given_run_times import GivenRunTimes
from kueuecore.forecasts.similar_jobs import SimilarJobs
from kueuecore.scenarios import Span
from tests.unit.forecasts.past import job
from tests.unit.forecasts.present_states import START

ENDED = [
    job(created=end + run, started=end + run, ended=end, queue=queue, template=f"{queue}-{run}")
    for queue in ("lq", "other")
    for place, run in enumerate((60.0, 600.0, 1200.0, 3600.0) * 5)
    for end in [100.0 + 30 * place]
]
RUNS, WAITS, WAITS_TOO = job(created=900, started=900), job(created=50), job(created=40)
JOBS = [*ENDED, RUNS, WAITS, WAITS_TOO]
PRESENT = [len(ENDED), len(ENDED) + 1, len(ENDED) + 2]


def draws(given: GivenDraws | None = None) -> FittedDraws:
    return FittedDraws(SimilarJobs(JOBS).at(START / 1e9), PRESENT, arrivals_of(JOBS, now=START), given)


def test_run_times_are_those_of_the_past_and_longer_than_so_far() -> None:
    found = np.array([draws().drawn(seed).run_seconds for seed in range(100)])
    assert set(found[:, 0]) == {1200.0, 3600.0}
    assert set(found[:, 1]) == {60.0, 600.0, 1200.0, 3600.0}
    assert draws().drawn(1).done_seconds.tolist() == [900.0, 0.0, 0.0]


def test_alike_jobs_run_about_as_long_in_one_future() -> None:
    found = np.log(np.array([draws().drawn(seed).run_seconds[1:] for seed in range(300)]))
    assert np.corrcoef(found.T)[0, 1] == pytest.approx(0.6, abs=0.15)


def test_windows_give_the_same_arrivals_as_one() -> None:
    whole = draws().drawn(5).arrivals(0, 36000)
    parts = draws().drawn(5)
    windows = [parts.arrivals(begin, begin + 3600) for begin in range(0, 36000, 3600)]
    assert len(whole[0]) > 20
    for place in (0, 1):
        assert whole[place].tolist() == np.concatenate([window[place] for window in windows]).tolist()
    assert (np.diff(whole[0]) >= 0).all()


def test_what_arrives_runs_as_long_as_what_it_is_like() -> None:
    _, template, runs = draws().drawn(5).arrivals(0, 36000)
    ended = [draws().templates[place].object["metadata"]["name"] for place in template]
    for name, seconds in zip(ended, runs.tolist(), strict=True):
        if name != "template":
            assert name.endswith(f"-{seconds}")


def test_seeds_differ_and_the_same_one_does_not() -> None:
    first, again, other = (draws().drawn(seed).arrivals(0, 7200)[0].tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_given_run_times_replace_fitted_ones() -> None:
    given = GivenDraws({"given/": GivenRunTimes(Span(7))}, {1: "given/"}, dict.fromkeys(range(100), "given/"))
    found = draws(given).drawn(1)
    assert found.run_seconds[1] == 7
    assert set(found.arrivals(0, 36000)[2].tolist()) == {7.0}


def test_a_part_of_a_cluster_has_the_draws_that_it_has_in_the_whole() -> None:
    whole = draws()
    part = DrawsPart(whole, [0, 2], {("ns", "lq")})
    assert part.drawn(3).run_seconds.tolist() == whole.drawn(3).run_seconds[[0, 2]].tolist()
    at, template, runs = whole.drawn(3).arrivals(0, 36000)
    mine = [whole.templates[place].object["spec"] == {"queueName": "lq"} for place in template.tolist()]
    of_part = part.drawn(3).arrivals(0, 36000)
    assert 0 < sum(mine) < len(at)
    assert (of_part[0].tolist(), of_part[2].tolist()) == (at[mine].tolist(), runs[mine].tolist())
    assert {part.templates[place].object["spec"]["queueName"] for place in of_part[1]} == {"lq"}
