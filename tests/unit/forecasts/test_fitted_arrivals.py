"""What comes to a cluster as it has come."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from statistics import mean

import numpy as np
import pytest

from kueuecore.forecasts.arrivals import ArrivalBlock, Arrivals, arrivals_of
from tests.unit.forecasts.past import job
from tests.unit.forecasts.present_states import START

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0


def seen(*created: float, window_seconds: float | None = None) -> Arrivals:
    """Jobs created so long ago, after one that ended an hour before."""
    first = job(created=2 * HOUR, started=2 * HOUR, ended=HOUR)
    jobs = [first, *(job(created=ago) for ago in created)]
    return arrivals_of(jobs, now=START, window_seconds=window_seconds)


def drawn(found: Arrivals, seed: int, *, until: float) -> list[tuple[float, int]]:
    """When what arrives in one future."""
    blocks: list[ArrivalBlock] = list(takewhile(lambda it: it.begin < until, found.blocks(np.random.default_rng(seed))))
    pairs = [(at, row) for block in blocks for at, row in zip(block.at.tolist(), block.rows.tolist(), strict=True)]
    return [pair for pair in pairs if pair[0] < until]


def test_arrivals_since_the_first_end_continue() -> None:
    found = seen(4000, 3000, 2000, 100)
    assert found.window_seconds == HOUR
    assert found.at.tolist() == [-3000, -2000, -100]
    assert found.n_by_queue == [(("ns", "lq"), 3)]


def test_a_window_leaves_out_what_came_before() -> None:
    found = seen(3000, 500, 100, window_seconds=600)
    assert (found.window_seconds, found.at.tolist()) == (600, [-500, -100])


def test_without_an_end_the_window_begins_with_the_first_creation() -> None:
    found = arrivals_of([job(created=3600), job(created=1800)], now=START)
    assert (found.window_seconds, len(found.at)) == (3600, 1)


def test_nothing_arrives_if_nothing_has_arrived() -> None:
    assert drawn(seen(4000), 1, until=WEEK) == []


def test_workloads_that_arrived_together_arrive_together() -> None:
    times = Counter(at for at, _ in drawn(seen(3000, 3000, 3000, 100), 1, until=100 * HOUR))
    assert set(times.values()) == {1, 3}


def test_arrivals_keep_their_rate_on_average_over_many_futures() -> None:
    found = seen(*(36.0 * number + 10 for number in range(90)))
    counts = [len(drawn(found, seed, until=HOUR)) for seed in range(300)]
    assert mean(counts) == pytest.approx(90, rel=0.05)
    # The rate is not known for certain: counts vary more than those of one Poisson process.
    assert mean((count - 90) ** 2 for count in counts) > 130


def weeks(n: int) -> Arrivals:
    """Weeks in which one job arrives at noon of each working day, ten minutes after the other."""
    moments = [(week * 7 + day) * DAY + 600.0 * k for week in range(n) for day in range(2, 7) for k in range(3)]
    jobs = [job(created=ago + 60, name=f"j-{ago}") for ago in moments]
    jobs.append(job(created=n * WEEK + 100, started=n * WEEK + 100, ended=n * WEEK))
    return arrivals_of(jobs, now=START)


def test_from_two_weeks_on_arrivals_follow_the_hour_and_the_weekday() -> None:
    found = weeks(4)
    assert found.window_seconds == 4 * WEEK
    for seed in range(20):
        for at, row in drawn(found, seed, until=3 * WEEK):
            back = (at - found.at[row]) / WEEK
            assert back == pytest.approx(round(back))
            assert back >= 1


def test_from_two_days_on_they_follow_the_hour() -> None:
    jobs = [job(created=day * DAY + 60) for day in range(1, 4)]
    found = arrivals_of([job(created=4 * DAY, started=4 * DAY, ended=3.5 * DAY), *jobs], now=START)
    times = {round(at % DAY) for seed in range(10) for at, _ in drawn(found, seed, until=2 * DAY)}
    assert times == {round(DAY - 60)}


def test_a_future_longer_than_the_past_has_arrivals_throughout() -> None:
    times = [at for at, _ in drawn(weeks(2), 3, until=10 * WEEK)]
    assert max(np.diff([0.0, *times])) < 2 * WEEK
    assert times == sorted(times)


def test_a_long_time_without_arrivals_is_a_hole() -> None:
    def window(*created: float) -> Arrivals:
        jobs = [job(created=ago) for ago in created]
        return arrivals_of([job(created=60 * DAY, started=60 * DAY, ended=50 * DAY), *jobs], now=START)

    assert window(*(DAY * number for number in range(1, 50))).hole is None
    assert window(49 * DAY, 48 * DAY, 10.0).hole == (-48 * DAY, -10.0)
    assert seen(10.0).hole is None


def test_what_had_arrived_at_an_earlier_moment() -> None:
    found = seen(3000, 2000, 100).seen(1000)
    assert found.at.tolist() == [-2000, -1000]
    assert found.window_seconds == 2600


def test_an_earlier_moment_has_as_long_a_window_as_now() -> None:
    found = seen(4000, 3000, 2000, 100).seen(1000, longest=1500)
    assert (found.at.tolist(), found.window_seconds) == ([-1000.0], 1500)
    assert seen(3000, 100).seen(1000, longest=HOUR * 24).window_seconds == seen(3000, 100).seen(1000).window_seconds


def test_a_window_of_no_time_has_no_endless_rate() -> None:
    found = seen(3000, 0, window_seconds=1e-9)
    assert (len(found.at), found.window_seconds) == (1, 1e-9)
    assert len(drawn(found, 1, until=60)) < 1000


def test_equal_workloads_share_a_template() -> None:
    jobs = [job(created=3600), job(created=60), job(created=50), job(created=40, template="other")]
    found = arrivals_of(jobs, now=START)
    assert found.template.tolist() == [0, 0, 1]
    assert len(found.templates) == 2


def test_the_same_seed_draws_the_same() -> None:
    found = seen(3000, 2000)
    first, again, other = (drawn(found, seed, until=DAY) for seed in (1, 1, 2))
    assert first == again != other
