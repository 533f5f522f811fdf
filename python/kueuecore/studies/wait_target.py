"""What waits are to be: `p95<=1h`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore._fields import seconds_of
from kueuecore._text import quoted
from kueuecore.errors import ManifestError

__all__ = ["WaitTarget"]

_FORM = re.compile(r"(mean|max|p([0-9]{1,2}(?:\.[0-9]{1,3})?))\s*<=\s*(\S+)")
_REMEDY = "write p95<=1h, mean<=10m or max<=2h"


@dataclass(frozen=True, slots=True)
class WaitTarget:
    """A figure of waits, and what it may be at most.

    Args:
        figure: `mean`, `max`, or a percentile such as `p95`: so many of 100 jobs wait no longer.
        seconds: The most that it may be, in seconds.
    """

    figure: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> WaitTarget:
        """A target as it is written.

        Raises:
            ManifestError: It is written in another way.

        Example:
            >>> WaitTarget.parse("p95<=1h"), WaitTarget.parse("mean <= 90")
            (WaitTarget(figure='p95', seconds=3600.0), WaitTarget(figure='mean', seconds=90.0))
        """
        match = _FORM.fullmatch(text.strip())
        if match is None or (match[2] is not None and float(match[2]) == 0):
            raise ManifestError.of(f"{quoted(text)} is no target for waits", remedy=_REMEDY)
        seconds = seconds_of(float(match[3]) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", match[3]) else match[3])
        if seconds is None:
            raise ManifestError.of(f"{quoted(match[3])} is not a duration", remedy=_REMEDY)
        return cls(match[1], seconds)

    def wait_of(self, waits: npt.NDArray[np.float64]) -> float:
        """The figure of some waits; 0 if there are none.

        Args:
            waits: How long each job waits, in seconds, shape (n,); NaN: for ever, as it is never admitted.

        Returns:
            Seconds; infinite if it takes one of those who wait for ever.

        Example:
            >>> waits = np.array([10.0, np.nan, 20.0, 30.0])
            >>> [WaitTarget(figure, 0).wait_of(waits) for figure in ("p50", "p75", "max", "mean")]
            [20.0, 30.0, inf, inf]
        """
        if not len(waits):
            return 0.0
        ordered = np.sort(np.where(np.isnan(waits), np.inf, waits))
        if self.figure == "mean":
            return float(ordered.mean())
        share = 1.0 if self.figure == "max" else float(self.figure[1:]) / 100
        # Products such as 0.07 * 100 lie a little above the whole number that they are.
        return float(ordered[max(int(np.ceil(round(share * len(ordered), 6))), 1) - 1])

    @property
    def says(self) -> str:
        """The figure in words.

        Example:
            >>> WaitTarget("p95", 60).says, WaitTarget("max", 60).says, WaitTarget("mean", 60).says
            ('95 of 100 jobs wait', 'all jobs wait', 'jobs wait in the mean')
        """
        if self.figure == "mean":
            return "jobs wait in the mean"
        return "all jobs wait" if self.figure == "max" else f"{self.figure[1:]} of 100 jobs wait"
