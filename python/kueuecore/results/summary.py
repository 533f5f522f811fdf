"""A whole run in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore.results.job_runs import JobRuns
from kueuecore.results.jobs import JobTimes
from kueuecore.results.queues import nominal_seconds
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.left_out import LeftOut
from kueuecore.simulation.run import Run
from kueuecore.times import SECOND_NS

__all__ = ["Summary", "jain", "summarize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The measures of a run; docs/simulate.md defines them.

    Args:
        jobs: How many jobs there were.
        finished: How many of them ended.
        failed: How many of these failed.
        evictions: How many evictions there were.
        makespan_seconds: From the first creation to the last end; `None` without both.
        mean_wait_seconds: Mean wait of the admitted jobs; `None` if there were none.
        mean_slowdown: Mean bounded slowdown of the jobs that ran to their end; `None` if none did.
        fairness: Jain's index of the mean bounded slowdowns of the ClusterQueues; `None` if no job ran to its end.
        utilisation: Used share of the nominal quotas over the whole run, by flavor and resource.
        goodput: Share of the reserved resource-seconds spent on work that successful jobs kept, by resource.
        left_out: The jobs of traces that the run leaves out.
    """

    jobs: int
    finished: int
    failed: int
    evictions: int
    makespan_seconds: float | None
    mean_wait_seconds: float | None
    mean_slowdown: float | None
    fairness: float | None
    utilisation: dict[tuple[str, str], float]
    goodput: dict[str, float]
    left_out: tuple[LeftOut, ...] = ()


def jain(values: npt.ArrayLike) -> float | None:
    """Return Jain's fairness index, (sum of x)^2 / (n * sum of x^2): 1 if all are equal, 1/n if one has everything.

    Args:
        values: The x, at least 0 each.

    Returns:
        The index, or `None` if all are 0 or there are none.

    Example:
        >>> jain([2.0, 2.0]), jain([1.0, 0.0]), jain([])
        (1.0, 0.5, None)
    """
    x = np.asarray(values, np.float64)
    if not len(x) or not x.any():
        return None
    x = x / x.max()
    return min(1.0, float(x.sum() ** 2 / (len(x) * (x * x).sum())))


def summarize(
    run: Run, log: UsageLog, times: JobTimes, runs: JobRuns, *, left_out: tuple[LeftOut, ...] = ()
) -> Summary:
    """Compute the measures of a run."""
    has_come, has_ended = times.has_come, times.finished >= 0
    has_run = (times.ran >= 0) & (times.created >= 0)
    waits = (times.admitted - times.created)[(times.admitted >= 0) & (times.created >= 0)] / SECOND_NS
    slowdowns = times.slowdown[has_run]
    makespan = None
    if has_ended.any() and has_come.any():
        # What existed before counts from the start.
        makespan = float(times.finished.max() - max(int(times.created[has_come].min()), run.start)) / SECOND_NS
    queues, place = np.unique(log.home[has_run], return_inverse=True)
    means = np.bincount(place, slowdowns, len(queues)) / np.maximum(np.bincount(place, minlength=len(queues)), 1)
    used = _resource_seconds(log, np.where(log.adds, log.closed_at - log.time, 0) / SECOND_NS)
    return Summary(
        jobs=int(has_come.sum()),
        finished=int(has_ended.sum()),
        failed=int(run.failed.sum()),
        evictions=int(times.evictions.sum()),
        makespan_seconds=makespan,
        mean_wait_seconds=_mean(waits),
        mean_slowdown=_mean(slowdowns),
        fairness=jain(means),
        utilisation=_utilisation(run, log, used),
        goodput=_goodput(log, used, _resource_seconds(log, runs.useful_seconds(log, times.has_succeeded))),
        left_out=left_out,
    )


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _resource_seconds(log: UsageLog, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return amount times seconds by pair, with the given seconds for each change."""
    weights = log.amount * seconds[log.change]
    return np.bincount(log.pair, weights, len(log.pair_names)).astype(np.float64)


def _utilisation(run: Run, log: UsageLog, used: npt.NDArray[np.float64]) -> dict[tuple[str, str], float]:
    """Return the share of each pair's nominal quota that was in use over the run."""
    by_pair = dict(zip(log.pair_names, used.tolist(), strict=True))
    return {pair: by_pair[pair] / n for pair, n in sorted(nominal_seconds(run, log).items()) if n}


def _goodput(log: UsageLog, used: npt.NDArray[np.float64], useful: npt.NDArray[np.float64]) -> dict[str, float]:
    """Return the useful share of what was reserved, by resource."""
    sums: dict[str, list[float]] = {}
    for (_, resource), all_of, good in zip(log.pair_names, used.tolist(), useful.tolist(), strict=True):
        so_far = sums.setdefault(resource, [0.0, 0.0])
        so_far[0] += good
        so_far[1] += all_of
    return {resource: good / all_of for resource, (good, all_of) in sorted(sums.items()) if all_of}
