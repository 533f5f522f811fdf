"""How long jobs run, as the caller says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeAlias

from kueuecore.scenarios import Spans

__all__ = ["GivenRunTimes", "LeftRunTimes", "RunTimes", "Sampler"]

# For a job that has run longer than almost any draw: after so many draws, expect nothing longer.
_MAX_DRAWS = 1000

Sampler: TypeAlias = Callable[[float], tuple[float, float]]
"""Takes how long a job has run so far; draws how long it runs in total, and how much of that is done; in seconds."""


class RunTimes(Protocol):
    """A model of how long jobs run."""

    def sampler(self, random: Random) -> Sampler:
        """Return what draws the run times of one possible future."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRunTimes:
    """Run times from a given distribution.

    Args:
        spans: How long jobs run in total.

    Example:
        >>> from kueuecore.scenarios import Span
        >>> sample = GivenRunTimes(Span(60, 120)).sampler(Random(1))
        >>> sample(0), sample(100)
        ((68.062, 0.0), (110.846, 100))
    """

    spans: Spans

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`. A job that has already run longer than any draw runs for another whole run time."""
        draws = self.spans.draws(random)

        def sample(elapsed: float) -> tuple[float, float]:
            seconds = next(draws)
            if elapsed <= 0:
                return seconds, 0.0
            for _ in range(_MAX_DRAWS):
                if seconds > elapsed:
                    return seconds, elapsed
                seconds = next(draws)
            return elapsed + seconds, elapsed

        return sample


@dataclass(frozen=True, slots=True)
class LeftRunTimes:
    """How much longer jobs run, however long they have run; after an eviction, the same again (`present.runs`).

    Args:
        spans: How much longer.
    """

    spans: Spans

    def sampler(self, random: Random) -> Sampler:
        """See `RunTimes`."""
        draws = self.spans.draws(random)
        return lambda elapsed: (next(draws), 0.0)
