"""Jobs that fail before their run time is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kueuecore.scenarios.distributions import Spans

__all__ = ["EarlyEnds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyEnds:
    """Makes some jobs fail, which ends them.

    Args:
        share: The share of jobs that fail, from 0 to 1.
        after: How long they run before they fail, if they would run longer; None: at any time of their run.
    """

    share: float
    after: Spans | None = None

    def run_spans(self, runs: Iterator[float | None], random: Random) -> Iterator[tuple[float | None, bool]]:
        """Yield how long each job runs, and whether it then fails.

        Args:
            runs: How long each would run, in seconds; None: forever.
            random: The random source for which fail, and when.

        Example:
            >>> from kueuecore.scenarios.distributions import Span
            >>> list(EarlyEnds(share=0.5, after=Span(5)).run_spans(iter([60, 60, None, 3]), Random(1)))
            [(5, True), (60, False), (None, False), (3, False)]
        """
        after = None if self.after is None else self.after.draws(random)
        for run in runs:
            if random.random() >= self.share:
                yield run, False
            elif after is not None:
                limit = next(after)
                fails = run is None or limit < run
                yield (limit if fails else run), fails
            elif run is None:
                yield None, False
            else:
                yield round(run * random.random(), 3), True
