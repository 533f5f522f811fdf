"""Forecasts corrected by how earlier ones turned out."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from kueuecore.forecasts.calibration import Calibration, Curve, Outcome

FUTURES = tuple(600.0 * number for number in range(1, 40))


def lognormal(random: Random, n: int, sigma: float) -> list[float]:
    return [random.lognormvariate(8, sigma) for _ in range(n)]


@pytest.mark.parametrize("truth_sigma", [0.6, 1.0, 1.7])
def test_intervals_hold_though_futures_are_too_narrow_or_too_wide(truth_sigma: float) -> None:
    random = Random(1)

    def outcome() -> tuple[Curve, float]:
        futures = Curve([second * random.lognormvariate(0, 0.1) for second in lognormal(random, 39, 1.0)])
        return futures, random.lognormvariate(8, truth_sigma)

    past = [outcome() for _ in range(200)]
    calibration = Calibration(tuple(Outcome(futures.score_of(truth)) for futures, truth in past))
    new = [outcome() for _ in range(600)]
    for level in (0.5, 0.8, 0.95):
        held = [
            calibration.seconds(futures, 0.5 - level / 2) <= truth <= calibration.seconds(futures, 0.5 + level / 2)
            for futures, truth in new
        ]
        assert sum(held) / len(held) == pytest.approx(level, abs=0.07)


def test_without_outcomes_intervals_are_wider_than_the_futures() -> None:
    calibration, futures = Calibration(), Curve(FUTURES)
    assert calibration.seconds(futures, 0.5) == pytest.approx(12000, rel=0.03)
    assert calibration.seconds(futures, 0.1) < futures.seconds_at(-1.2816)
    assert calibration.seconds(futures, 0.9) > futures.seconds_at(1.2816)


def test_waits_that_go_on_count_as_longer_than_so_far() -> None:
    over = tuple(Outcome(0.0) for _ in range(50))
    still = tuple(Outcome(0.0, is_over=False) for _ in range(50))
    assert Calibration((*over, *still)).score(0.8) > Calibration((*over, *over)).score(0.8)


def test_what_had_waited_for_about_as_long_counts_most() -> None:
    new = tuple(Outcome(2.0, waited=2.0) for _ in range(40))
    old = tuple(Outcome(-2.0, waited=86400.0) for _ in range(40))
    calibration = Calibration((*new, *old))
    assert calibration.after(10.0).score(0.5) > 0.3
    assert calibration.after(50000.0).score(0.5) < -0.3


@pytest.mark.parametrize("seconds", [0.0, 1.0, 600.0, 700.0, 12345.0, 23400.0, 1e6])
def test_a_score_and_back(seconds: float) -> None:
    futures = Curve(FUTURES)
    assert futures.seconds_at(futures.score_of(seconds)) == pytest.approx(seconds, abs=1)


def test_beyond_the_horizon_is_infinite() -> None:
    futures = Curve([100.0, 200.0, inf, inf])
    assert futures.seconds_at(2.0) == inf
    assert futures.seconds_at(-0.5) < 200
    assert not Curve([inf, inf]).has_finite
    assert Calibration().seconds(Curve([inf, inf]), 0.5) == inf


def test_no_quantile_is_below_zero_by_rounding() -> None:
    assert Curve([0.0]).seconds_at(1e-18) == 0


def test_among_equal_futures_a_wait_is_in_the_middle() -> None:
    assert Curve([0.0] * 9).score_of(0.0) == pytest.approx(0)


def test_quantiles_rise_and_are_never_negative() -> None:
    random = Random(3)
    for _ in range(50):
        outcomes = tuple(Outcome(random.gauss(1, 2), random.random() < 0.8) for _ in range(random.randrange(60)))
        calibration, futures = Calibration(outcomes), Curve(lognormal(random, 20, 2.0))
        found = [calibration.seconds(futures, share / 100) for share in range(1, 100)]
        assert found == sorted(found)
        assert found[0] >= 0
