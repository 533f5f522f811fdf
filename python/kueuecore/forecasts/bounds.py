"""Bounds on when a workload is admitted that hold however long jobs run: what must end first, and the latest time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import inf, isfinite
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore._json import int_at, object_at
from kueuecore.forecasts.base_state import Base, State
from kueuecore.forecasts.history.queue_rates import QueueRates
from kueuecore.forecasts.present_workloads import PresentWorkload, Status
from kueuecore.times import SECOND_NS

__all__ = ["MAX_BOUNDED", "Bounds", "Latest", "NotBefore", "PastWaits", "bounds_of"]

MAX_BOUNDED = 20
"""For how many workloads there are bounds in one answer."""
# How many sets of ends are tried for all workloads together, and for each at least.
_MOST_TRIES = 300
_LEAST_TRIES = 15
# Time enough for the cycles that follow the ends.
_SETTLE_SECONDS = 600.0
_MOST_STEPS = 10_000
# How often shorter runs are tried, to see whether one delays somebody.
_N_SHORTER = 12
# Cycles begin and end a little earlier or later.
_SLACK_SECONDS = 2.0
_PERCENTAGES = (50.0, 80.0, 95.0)
# A time limit has 32 bits, but a dump may say anything.
_LONGEST_LIMIT = 2**31 - 1

_Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBefore:
    """What must end before a workload is admitted, if nobody arrives who preempts.

    Args:
        n_ends: How many of the `n_holding` must end; at least 1.
        is_exact: Whether so many can be enough; false: it may take more.
        n_holding: How many hold quota in the cohorts that matter, or are admitted before it as things are.
        n_first: How many of these wait.
        workloads: If one is enough, each of those that are; else one set of so many that is enough; empty: unknown.
    """

    n_ends: int
    is_exact: bool
    n_holding: int
    n_first: int = 0
    workloads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """When a workload is admitted if all jobs run to their limits and nobody arrives.

    Args:
        seconds: How long from now.
        is_bound: Whether it was admitted no later in any trial with shorter runs. A job that ends early can delay
            others: something else starts in its place and takes longer.
    """

    seconds: float
    is_bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWaits:
    """How long workloads of a ClusterQueue have waited, as Prometheus knows it.

    Args:
        cluster_queue: Its name.
        n: How many.
        quantiles: A percentage, and the seconds that so many did not exceed; infinite: beyond the histogram.
    """

    cluster_queue: str
    n: int
    quantiles: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is known about when a workload is admitted without knowing how long jobs run.

    Args:
        not_before: What must end first; None: nothing, or that is unknown.
        latest: The latest time; None: some job that it waits for has no time limit.
        past_waits: How long others waited; None: unknown.
    """

    not_before: NotBefore | None = None
    latest: Latest | None = None
    past_waits: PastWaits | None = None


def bounds_of(
    state: State, targets: Sequence[PresentWorkload], rates: Sequence[QueueRates], *, horizon_seconds: float
) -> Mapping[str, Bounds]:
    """Return bounds for waiting workloads, by `namespace/name`; for the first `MAX_BOUNDED`.

    Args:
        state: What matters to them.
        targets: The workloads. Each of them would be admitted in an empty cluster.
        rates: What is known of past waits.
        horizon_seconds: How far to look.
    """
    targets = targets[:MAX_BOUNDED]
    if not targets:
        return {}
    everybody = _Trials(state, targets)
    at_once = everybody.ended(())
    latest = _latest(everybody, state, horizon_seconds)
    waits = {each.cluster_queue: each for each in rates if each.waits.total >= 1}
    # Those that run count as admitted.
    first = _Trials(state, state.workloads).ended(())
    n_tries = max(_MOST_TRIES // len(targets), _LEAST_TRIES)
    found = {}
    for place, target in enumerate(targets):
        # It needs no end: quota is free, or somebody is preempted.
        is_blocked = target.status is Status.PENDING and not at_once[place]
        others = [number for number, it in enumerate(state.workloads) if first[number] and it.key != target.key]
        known = waits.get(target.cluster_queue)
        found[target.key] = Bounds(
            not_before=_not_before(state, target, others, n_tries) if is_blocked else None,
            latest=latest[place],
            past_waits=None if known is None else _past_waits(known),
        )
    return found


class _Trials:
    """Plays a state on without arrivals, with chosen run times.

    Args:
        state: The state.
        targets: Whose admissions to look at.
    """

    def __init__(self, state: State, targets: Sequence[PresentWorkload]) -> None:
        self._base = Base(state, [target.namespace_and_name for target in targets])
        now = state.scenario.start
        self.done = np.array([max(now - (it.started or now), 0) / SECOND_NS for it in state.workloads], np.float64)

    def seconds(self, left: _Floats, *, until: float) -> tuple[float, ...]:
        """Return when each target is admitted; infinite: not until then.

        Args:
            left: For how long the job of each workload runs from when it is admitted, or from now.
            until: How far to play, in seconds.
        """
        run, numbers = self._base.future(0)
        run.set_runs(numbers, np.round(self.done + left, 3), self.done)
        run.play(until, most_steps=_MOST_STEPS)
        return run.admitted_seconds

    def ended(self, places: Sequence[int]) -> list[bool]:
        """Return whether each target is admitted once some workloads have ended and all others run on."""
        left = np.full(len(self.done), inf)
        left[list(places)] = 1.0
        return [isfinite(second) for second in self.seconds(left, until=_SETTLE_SECONDS)]


def _not_before(state: State, target: PresentWorkload, in_the_way: Sequence[int], most_tries: int) -> NotBefore | None:
    """Return the least number of ends that let a workload in: with the others that wait, or without them.

    Workloads that hold the same are interchangeable, so one set of each kind is tried, the smallest ones first.
    """
    holding = [place for place, it in enumerate(state.workloads) if it.status is not Status.PENDING]
    kept = [*(state.workloads[place] for place in holding), target]
    alone, everybody = _Trials(replace(state, workloads=tuple(kept)), [target]), _Trials(state, [target])
    if not alone.ended(range(len(holding)))[0]:
        # It waits for something else.
        return None
    # If only those are in its way that will go first, it says nothing that it is admitted without them.
    tells_alone = not alone.ended(())[0]
    place_alone = {place: number for number, place in enumerate(holding)}

    def is_enough(places: Sequence[int]) -> bool:
        those = [place_alone[place] for place in places if place in place_alone]
        return (tells_alone and alone.ended(those)[0]) or everybody.ended(places)[0]

    ways: dict[str, list[int]] = {}
    for place in in_the_way:
        ways.setdefault(_held(state.workloads[place]), []).append(place)
    n_first = sum(state.workloads[place].status is Status.PENDING for place in in_the_way)
    found = NotBefore(n_ends=1, is_exact=False, n_holding=len(in_the_way), n_first=n_first)
    n_tries = 0
    for n_ends in range(1, len(in_the_way) + 1):
        enough: list[list[int]] = []
        for places in _sets(list(ways.values()), n_ends):
            n_tries += 1
            if n_tries > most_tries:
                return found
            if is_enough(places):
                enough.append(places)
                if n_ends > 1:
                    break
        if enough:
            named = enough[0]
            if n_ends == 1:
                named = sorted(place for [one] in enough for alike in ways.values() if one in alike for place in alike)
            keys = tuple(state.workloads[place].key for place in named)
            return replace(found, n_ends=n_ends, is_exact=True, workloads=keys)
        if tells_alone:
            # More must end in any case.
            found = replace(found, n_ends=min(n_ends + 1, len(in_the_way)))
    return found if in_the_way else None


def _sets(groups: Sequence[Sequence[int]], n: int) -> Iterator[list[int]]:
    """Yield sets of so many members of groups; of those with equally many of each group, one."""
    for chosen in combinations_with_replacement(range(len(groups)), n):
        counts = Counter(chosen)
        if all(count <= len(groups[group]) for group, count in counts.items()):
            yield [place for group, count in counts.items() for place in groups[group][:count]]


def _held(workload: PresentWorkload) -> str:
    """Return what others can have when it ends, and by which rules they may have it sooner."""
    admission = object_at(workload.manifest.object, "status", "admission")
    return json.dumps([workload.cluster_queue, workload.local_queue, workload.priority, admission], sort_keys=True)


def _latest(everybody: _Trials, state: State, horizon_seconds: float) -> list[Latest | None]:
    limits = np.array([_limit(workload) for workload in state.workloads], np.float64)
    left = np.maximum(limits - everybody.done, 0.0)
    longest = everybody.seconds(left, until=horizon_seconds)
    if not any(map(isfinite, longest)):
        return [None] * len(longest)
    random = np.random.default_rng(0)
    is_bound = [True] * len(longest)
    for _ in range(_N_SHORTER):
        # Some of those without a limit end, too.
        shares = random.random(len(left))
        shorter = np.where(np.isfinite(left), left * shares, np.where(shares < 0.5, inf, shares * horizon_seconds))
        for place, second in enumerate(everybody.seconds(shorter, until=horizon_seconds)):
            is_bound[place] &= second <= longest[place] + _SLACK_SECONDS
    return [
        Latest(seconds=second, is_bound=bound) if isfinite(second) else None
        for second, bound in zip(longest, is_bound, strict=True)
    ]


def _limit(workload: PresentWorkload) -> float:
    limit = int_at(workload.manifest.object, "spec", "maximumExecutionTimeSeconds")
    return float(min(limit, _LONGEST_LIMIT)) if limit > 0 else inf


def _past_waits(rates: QueueRates) -> PastWaits:
    quantiles = tuple((percent, rates.waits.bound(percent / 100)) for percent in _PERCENTAGES)
    return PastWaits(cluster_queue=rates.cluster_queue, n=round(rates.waits.total), quantiles=quantiles)
