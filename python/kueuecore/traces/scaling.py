"""Which jobs of a trace are taken, and how its times are stretched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Scale", "sampled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How a trace is made lighter, denser or shorter.

    Args:
        time: Factor of the times at which jobs come: 0.5 brings them in half the time, twice as fast.
        runs: Factor of the times that jobs run.
        sample: Share of the jobs that are taken, above 0 up to 1.
        seed: Which jobs a sample takes.
    """

    time: float = 1.0
    runs: float = 1.0
    sample: float = 1.0
    seed: int = 0


def sampled(n: int, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Choose rows, each with the same chance, whatever becomes of the others.

    Args:
        n: How many rows there are.
        share: The chance of each.
        seed: Another seed chooses other rows. The same rows come on every machine and version.

    Returns:
        Positions in rising order.

    Example:
        >>> sampled(20, 0.25, seed=1).tolist(), len(sampled(100_000, 0.25, seed=1))
        ([15], 24896)
    """
    # SplitMix64: a counter, mixed. numpy's generators may give other numbers in a later version.
    with np.errstate(over="ignore"):
        mixed = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    draws = (mixed ^ (mixed >> np.uint64(31))) / 2.0**64
    return np.flatnonzero(draws < share).astype(np.int64)
