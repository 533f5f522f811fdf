"""The past waits of a replay that are known at a moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benches.forecast.dump import KEPT_SECONDS
from benches.forecast.replay import Replay
from kueuecore.times import SECOND_NS

__all__ = ["Past", "Waits"]

_SIZES = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Waits that are over, in the order in which they ended.

    Args:
        seconds: How long each was, shape (n,).
        queue: The queue of each.
        size: Its class of sizes: up to 1, 4, 16, 64, ... processors.
    """

    seconds: npt.NDArray[np.float64]
    queue: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]


class Past:
    """The past of one replay: jobs in the order in which they were admitted.

    Args:
        replay: The replay.
    """

    def __init__(self, replay: Replay) -> None:
        order = np.argsort(replay.admitted, kind="stable")
        self._times = replay.admitted[order]
        self.queue = replay.log.queue.codes
        self.size = np.ceil(np.log(replay.log.pods) / np.log(_SIZES) - 1e-9).astype(np.int64)
        self._waits = Waits(replay.wait_seconds[order], self.queue[order], self.size[order])

    def n_at(self, now: int) -> int:
        """Return how many waits were over at a time, in nanoseconds since 1970."""
        return int(np.searchsorted(self._times, now, side="right"))

    def recent(self, now: int) -> Waits:
        """Return those that ended within as long as a dump shows finished Workloads."""
        return self.between(int(np.searchsorted(self._times, now - KEPT_SECONDS * SECOND_NS)), self.n_at(now))

    def between(self, first: int, end: int) -> Waits:
        """Return some of them by their place in the order."""
        some = slice(first, end)
        return Waits(self._waits.seconds[some], self._waits.queue[some], self._waits.size[some])
