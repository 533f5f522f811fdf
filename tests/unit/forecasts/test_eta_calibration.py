"""Intervals of forecasts hold the truth about as often as they say, on a cluster whose future is known.

`make forecast-quick` checks the other families of such clusters.
"""

from __future__ import annotations

from scripts.calibrate_eta import LEAST_HELD, MOST_HELD, coverage


def test_80_of_100_intervals_contain_the_truth() -> None:
    found = coverage("one-queue", n_waits=100, seed=1, n_draws=39)
    assert sum(map(len, found.states)) == 100
    assert LEAST_HELD <= found.held <= MOST_HELD, str(found)
