"""What a forecast answers, and on which assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, isinf

from kueuecore.forecasts.backtest import Record
from kueuecore.forecasts.bounds import Bounds
from kueuecore.forecasts.calibration import Calibration, Curve
from kueuecore.forecasts.present_workloads import Status
from kueuecore.forecasts.run_time_plan import RunTimeNote

__all__ = ["ArrivalNote", "Assumptions", "Eta", "Forecast", "quantile"]

# Nobody looks further. Far beyond a few futures that differ much, a quantile may be later than any date.
_LONGEST_SECONDS = 3660 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When one workload is admitted.

    Args:
        workload: `namespace/name`.
        job: `Kind/name` of its job; empty: unknown.
        status: Its status now.
        since: When it was admitted or ended, in nanoseconds since 1970; None: it waits, or that is unknown.
        seconds: The seconds from now until it is admitted in each future; infinite: not by the horizon. Empty: it is
            already admitted, or nothing says how long jobs run.
        never: Why it would not be admitted even if it had the cluster to itself; empty: it would.
        calibration: How forecasts of this kind turn out; None: the futures are taken as they are, since they are
            assumptions of the caller.
        bounds: What holds however long jobs run, if too few have ended to say much more; None: enough have.
    """

    workload: str
    job: str
    status: Status
    since: int | None
    seconds: tuple[float, ...]
    never: str = ""
    calibration: Calibration | None = None
    bounds: Bounds | None = None

    def quantile(self, share: float) -> float:
        """Return the seconds by which it is admitted with this probability; infinite: not by the horizon.

        A calibrated quantile may be beyond the horizon, but not by more than ten years.

        Raises:
            ValueError: There are no futures.
        """
        if not self.seconds:
            raise ValueError(f"{self.workload} has no futures: it is admitted already, or run times are unknown")
        if self.calibration is None or self.never:
            return quantile(self.seconds, share)
        found = self.calibration.seconds(Curve(self.seconds), share)
        return found if found <= _LONGEST_SECONDS else inf

    @property
    def share_not_admitted(self) -> float:
        """The share of the futures in which it is not admitted by the horizon."""
        return sum(map(isinf, self.seconds)) / len(self.seconds) if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalNote:
    """The arrivals at a LocalQueue.

    Args:
        local_queue: `namespace/name`.
        n_seen: How many arrived within the window.
        per_hour: The same, per hour.
    """

    local_queue: str
    n_seen: int
    per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a forecast is based on.

    Args:
        run_times: Where the run times of each kind of job come from.
        arrivals: A row for each LocalQueue with arrivals; empty: none besides the scenario's own work.
        window_seconds: The window that these arrivals were seen in; None: they are left out.
        n_running: How many workloads hold quota.
        n_pending: How many wait.
        n_work: How many jobs the scenario itself submits.
        warnings: What makes the forecast doubtful.
    """

    run_times: tuple[RunTimeNote, ...]
    arrivals: tuple[ArrivalNote, ...]
    window_seconds: float | None
    n_running: int
    n_pending: int
    n_work: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """The forecasts of when workloads will be admitted.

    Args:
        now: The present, in nanoseconds since 1970.
        horizon_seconds: How far the futures go.
        seeds: The seed of each future.
        forecasts: One per workload, in the order of the request.
        assumptions: What the forecasts are based on.
        n_asked: How many futures were asked for: more than there are seeds if it stopped early.
        is_shortened: Whether a future ended before the horizon that was asked for, after `most_steps`.
        record: How such forecasts of the cluster's own past turned out; None: they were not looked at.
        n_moments: At how many moments of the past they were made.
        unknown: Why there are no futures, but bounds at most; empty: there are.
    """

    now: int
    horizon_seconds: float
    seeds: tuple[int, ...]
    forecasts: tuple[Forecast, ...]
    assumptions: Assumptions
    n_asked: int
    is_shortened: bool = False
    record: Record | None = None
    n_moments: int = 0
    unknown: str = ""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of future values lies, if they are like the given ones.

    A new value is equally likely to rank anywhere among the n given ones, so the position is share * (n + 1), with
    linear interpolation between values (type 6 of R. Hyndman & Y. Fan 1996). Beyond the ends it is the end.

    Example:
        >>> quantile([1.0, 2.0, 3.0], 0.5), quantile([4.0, 1.0, 2.0, 3.0], 0.5), quantile([1.0], 0.9)
        (2.0, 2.5, 1.0)
    """
    ordered = sorted(values)
    place = min(max(share * (len(ordered) + 1), 1.0), float(len(ordered))) - 1
    low = floor(place)
    if place == low or isinf(ordered[low + 1]):
        # There is nothing between a time and never, so halfway is never.
        return ordered[low] if place == low else inf
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])
