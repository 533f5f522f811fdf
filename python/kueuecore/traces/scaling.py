"""Samples the jobs of a trace and stretches its times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Scale", "sampled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How to make a trace lighter, denser or shorter.

    Args:
        time: Factor for submission times: with 0.5, jobs arrive twice as fast.
        runs: Factor for run times.
        sample: Share of the jobs to take, above 0 and at most 1.
        seed: The seed of the sample.
    """

    time: float = 1.0
    runs: float = 1.0
    sample: float = 1.0
    seed: int = 0


def sampled(n: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Choose rows at random, independently and with equal probability.

    Args:
        n: The number of rows.
        share: The probability of each.
        seed: The seed. The choice is the same on every machine and version.

    Returns:
        Positions in ascending order.

    Example:
        >>> sampled(20, 0.25, seed=1).tolist(), len(sampled(100_000, 0.25, seed=1))
        ([15], 24896)
    """
    # SplitMix64, a mixed counter: numpy's generators may change in a later version.
    with np.errstate(over="ignore"):
        mixed = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    draws = (mixed ^ (mixed >> np.uint64(31))) / 2.0**64
    return np.flatnonzero(draws < share).astype(np.int64)
