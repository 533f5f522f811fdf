"""What is random in possible futures: run times of present workloads, and arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore.manifests import Manifest

__all__ = ["ArrivalColumns", "Drawn", "Draws"]

ArrivalColumns: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.intp], npt.NDArray[np.float64]]
"""Of each arrival: when, in seconds from now, ascending; the index of its template; and how long its job runs, in
seconds."""


class Drawn(Protocol):
    """The random part of one future. Players use it from one thread only."""

    @property
    def run_seconds(self) -> npt.NDArray[np.float64]:
        """How long the job of each present workload runs in total, in the order of the state's `workloads`."""
        ...

    @property
    def done_seconds(self) -> npt.NDArray[np.float64]:
        """How much of that each has done by now, which an eviction loses; 0 where it does not run."""
        ...

    def arrivals(self, begin: float, end: float) -> ArrivalColumns:
        """Return the arrivals from one time up to and without another, in seconds from now.

        Args:
            begin: Where the window begins: 0, then the end of the last window.
            end: Where it ends.
        """
        ...


class Draws(Protocol):
    """Random futures, one for each seed.

    The draws of a LocalQueue should not depend on other queues, so that a future stays the same where cohorts are left
    out that cannot matter (`relevant_part`). Several threads may ask for seeds at once.
    """

    @property
    def templates(self) -> Sequence[Manifest]:
        """The Workloads to copy for arrivals, without names and statuses."""
        ...

    def drawn(self, seed: int) -> Drawn:
        """Return the draws of one future: the same for the same seed."""
        ...
