"""Intervals of forecasts hold the truth about as often as they say, on clusters whose future is known."""

from __future__ import annotations

import pytest

from scripts.calibrate_eta import FAMILIES, coverage


@pytest.mark.parametrize("family", FAMILIES)
def test_80_of_100_intervals_contain_the_truth(family: str) -> None:
    found = coverage(family, n_waits=100, seed=1, n_draws=39)
    assert sum(map(len, found.states)) == 100
    # Waits of one state go together: 100 of them say as much as some 40 apart.
    assert 0.62 <= found.held <= 0.95, str(found)
