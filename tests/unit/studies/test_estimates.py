"""Intervals of medians."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from kueuecore.studies import Estimate
from kueuecore.studies.estimates import paired


@pytest.mark.parametrize(
    # The ranks of printed tables of this interval at 95 %.
    ("n", "ranks"),
    [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (15, (4, 12)), (20, (6, 15)), (30, (10, 21))],
)
def test_the_interval_has_binomial_ranks(n: int, ranks: tuple[int, int]) -> None:
    values = list(range(1, n + 1))
    Random(n).shuffle(values)
    assert Estimate(tuple(map(float, values))).interval == ranks


@pytest.mark.parametrize("n", range(6))
def test_fewer_than_six_values_have_no_interval(n: int) -> None:
    assert Estimate((1.0,) * n).interval is None


def test_the_interval_contains_the_true_median_as_often_as_it_claims() -> None:
    random = Random(1)
    # A skewed distribution: half of it lies below log 2.
    samples = [Estimate(tuple(random.expovariate(1) for _ in range(12))) for _ in range(2000)]
    held = sum(sample.interval is not None and sample.interval[0] <= 0.6931 <= sample.interval[1] for sample in samples)
    assert 0.95 <= held / 2000 < 0.98  # 0.961 by the binomial distribution


def test_estimates_have_medians_and_paired_differences() -> None:
    assert Estimate(()).median is None
    assert Estimate((3.0, 1.0)).median == median([1.0, 3.0])
    assert paired([1.0, None, 2.0], [3.0, 1.0, 2.0]).values == (2.0, 0.0)
