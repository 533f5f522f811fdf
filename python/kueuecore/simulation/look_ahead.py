"""Looks ahead in a run: gives its jobs run times, adds arrivals, and stops once what it is played for is admitted."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
import numpy.typing as npt

from kueuecore import _core
from kueuecore.checks import WorkloadKey
from kueuecore.errors import ManifestError
from kueuecore.simulation.copies import Copies, encode_copies
from kueuecore.simulation.run import Happening, RunEnding
from kueuecore.simulation.scheduled import event_line, located_events
from kueuecore.simulation.stepper import Stepper
from kueuecore.times import SECOND_NS

__all__ = ["LookAhead"]

_FOR_EVER = -1
# No time in a run is later, so a longer run does not end.
_LONGEST_SECONDS = 2.0**62 / SECOND_NS


class LookAhead:
    """A run of which only matters when some of its Workloads are first admitted.

    Its numbers of Workloads are those of its forks, too.

    Args:
        stepper: The run; best one without a log.
    """

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self._core = _core.LookAhead(stepper.clock)

    def fork(self) -> LookAhead:
        """Return an independent copy.

        Raises:
            ValueError: The run cannot be copied (`Stepper.can_fork`).
        """
        return LookAhead(self.stepper.fork())

    @property
    def seconds(self) -> float:
        """The time, in seconds after the start."""
        return (self.stepper.now - self.stepper.start) / SECOND_NS

    def arrive(self) -> None:
        """Do everything that happens now, up to where a cycle begins or time goes by."""
        self.stepper.go(self._core.arrive)

    def numbers_of(self, keys: Sequence[WorkloadKey]) -> bytes:
        """Return the numbers of Workloads, as the methods here take them; one that is gone is ignored there."""
        return self._core.numbers_of(self.stepper.core, list(keys))

    def set_runs(
        self, numbers: bytes, run_seconds: npt.NDArray[np.float64], done_seconds: npt.NDArray[np.float64]
    ) -> None:
        """Set how long the jobs of Workloads run.

        Args:
            numbers: The Workloads.
            run_seconds: How long each job runs in total; infinite: forever.
            done_seconds: How much of that is done by now; it is lost in an eviction.

        Raises:
            ValueError: A value is not a number or negative, or there are more or fewer values than Workloads.
        """
        for name, values in (("run_seconds", run_seconds), ("done_seconds", done_seconds)):
            if not (values >= 0).all():
                raise ValueError(f"{name}: must be 0 or more seconds")
        ends = run_seconds < _LONGEST_SECONDS
        runs = np.where(ends, _nanoseconds(np.where(ends, run_seconds, 0.0)), _FOR_EVER)
        done = _nanoseconds(np.minimum(done_seconds, _LONGEST_SECONDS))
        self._core.set_runs(self.stepper.core, numbers, runs.astype("<i8").tobytes(), done.astype("<i8").tobytes())

    def templates(self, templates: Sequence[Happening]) -> _core.CopyTemplates:
        """Read the templates of copies once, for this run and its forks.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        lines = b"\n".join(map(event_line, templates))
        try:
            return self._core.copy_templates(self.stepper.core, lines, self.stepper.trusted)
        except ManifestError as error:
            raise located_events(error, templates) from None

    def schedule_copies(self, copies: Copies, templates: _core.CopyTemplates) -> None:
        """Schedule copies of templates that have been read.

        Raises:
            ValueError: A time or duration is invalid, or columns do not match.
        """
        self._core.schedule_read_copies(templates, encode_copies(copies, start=self.stepper.start))
        if not self.stepper.can_fork:
            self.stepper.expect_copies(copies)

    def watch(self, numbers: bytes) -> None:
        """From now on watch these Workloads; those whose jobs run count as admitted now."""
        self._core.watch(self.stepper.core, numbers)

    @property
    def has_seen_all(self) -> bool:
        """Whether all watched Workloads have been admitted."""
        return self._core.has_seen_all

    @property
    def n_counted(self) -> int:
        """How many arrivals, admissions, evictions and ends there were; an eviction counts as five."""
        return self._core.n_counted

    @property
    def admitted_seconds(self) -> tuple[float, ...]:
        """When each watched Workload was first admitted, in seconds after the start; infinite: not yet."""
        start = self.stepper.start
        return tuple(inf if time is None else (time - start) / SECOND_NS for time in self._core.admitted)

    def play(self, until_seconds: float, *, most_steps: int | None = None) -> bool:
        """Play until all watched Workloads have been admitted, or up to a time.

        Args:
            until_seconds: The time, in seconds after the start.
            most_steps: The value of `n_counted` at which to stop earlier; None: none.

        Returns:
            False if it is no use to go on, because the run has reached its limit of cycles.

        Raises:
            OutOfTimeError: Something would happen or end after April 2262.
        """
        until = self.stepper.start + round(until_seconds * SECOND_NS)
        return self.stepper.go(lambda core: self._core.look_ahead(core, until, most_steps)) != RunEnding.CYCLE_LIMIT


def _nanoseconds(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(seconds * SECOND_NS).astype(np.int64)
