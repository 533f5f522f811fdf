"""What was read from one source of a history, and what was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore._text import counted
from kueuecore.forecasts.history.queue_rates import QueueRates
from kueuecore.forecasts.past_jobs import PastJob

__all__ = ["Taken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one source knows.

    Args:
        file: The name of the source.
        jobs: Its jobs.
        rates: What it knows of ClusterQueues without knowing their jobs.
        left_out: How many jobs, or samples of a metric, are left out, by reason.
        notes: What is odd about it, in sentences.
    """

    file: str
    jobs: tuple[PastJob, ...] = ()
    rates: tuple[QueueRates, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def summary(self, n_jobs: int) -> str:
        """Return a line about what was taken.

        Args:
            n_jobs: How many of its jobs.

        Example:
            >>> Taken(file="jobs.txt", left_out={"never started": 2}).summary(0)
            'jobs.txt: 0 jobs taken; left out: 2 (never started)'
        """
        if self.rates:
            n_hours = sum(window.seconds for rates in self.rates for window in rates.windows) / 3600 / len(self.rates)
            text = f"{counted(len(self.rates), 'ClusterQueue')} taken, {n_hours:.0f} hours on average"
        else:
            text = f"{counted(n_jobs, 'job')} taken"
        reasons = ", ".join(f"{n} ({reason})" for reason, n in self.left_out.items() if n)
        return f"{self.file}: {text}" + (f"; left out: {reasons}" if reasons else "")
