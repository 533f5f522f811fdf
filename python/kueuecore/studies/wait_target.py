"""Targets for waits, such as `p95<=1h`."""

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
    """A figure of waits and its upper limit.

    Args:
        figure: `mean`, `max`, or a percentile such as `p95`.
        seconds: The limit in seconds.
    """

    figure: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> WaitTarget:
        """Parse a target.

        Raises:
            ManifestError: The text has another format.

        Example:
            >>> WaitTarget.parse("p95<=1h"), WaitTarget.parse("mean <= 90")
            (WaitTarget(figure='p95', seconds=3600.0), WaitTarget(figure='mean', seconds=90.0))
        """
        match = _FORM.fullmatch(text.strip())
        if match is None or (match[2] is not None and float(match[2]) == 0):
            raise ManifestError.of(f"{quoted(text)} is not a target for waits", remedy=_REMEDY)
        seconds = seconds_of(float(match[3]) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", match[3]) else match[3])
        if seconds is None:
            raise ManifestError.of(f"{quoted(match[3])} is not a duration", remedy=_REMEDY)
        return cls(match[1], seconds)

    def wait_of(self, waits: npt.NDArray[np.float64]) -> float:
        """Return the figure for some waits; 0 if there are none.

        Args:
            waits: How long each job waits, in seconds, shape (n,); NaN: it is never admitted.

        Returns:
            Seconds; infinite if it depends on a job that is never admitted.

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
        # Products such as 0.07 * 100 are slightly above the exact whole number.
        return float(ordered[max(int(np.ceil(round(share * len(ordered), 6))), 1) - 1])

    @property
    def says(self) -> str:
        """The figure in words.

        Example:
            >>> WaitTarget("p95", 60).says, WaitTarget("max", 60).says, WaitTarget("mean", 60).says
            ('95 of 100 jobs wait', 'all jobs wait', 'jobs wait on average')
        """
        if self.figure == "mean":
            return "jobs wait on average"
        return "all jobs wait" if self.figure == "max" else f"{self.figure[1:]} of 100 jobs wait"
