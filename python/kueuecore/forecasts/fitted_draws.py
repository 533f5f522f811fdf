"""Draws futures: how long each job runs, and what arrives when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import numpy.typing as npt

from kueuecore.forecasts.arrivals import ArrivalBlock, Arrivals
from kueuecore.forecasts.draws import ArrivalColumns
from kueuecore.forecasts.given_run_times import RunTimes, Sampler
from kueuecore.forecasts.normal import below
from kueuecore.forecasts.similar_jobs import JobsAt, Spread
from kueuecore.manifests import Manifest

__all__ = ["FittedDraws", "GivenDraws"]

_Floats = npt.NDArray[np.float64]

# The part of the variance that alike jobs have in common: jobs submitted together often run equally long.
_SHARED = 0.6
_RUNS, _ARRIVALS, _RUNS_OF_ARRIVALS = range(3)


@dataclass(frozen=True, slots=True)
class GivenDraws:
    """Run times that the caller gives.

    Args:
        run_times: How long jobs run, by the name of a group.
        of_present: The group of present workloads, by index.
        of_arrivals: The group of arrivals, by index.
    """

    run_times: Mapping[str, RunTimes] = field(default_factory=dict)
    of_present: Mapping[int, str] = field(default_factory=dict)
    of_arrivals: Mapping[int, str] = field(default_factory=dict)


class FittedDraws:
    """Draws run times from those of similar jobs, and arrivals from those of the past.

    Args:
        past: The past jobs.
        present: The index of each present workload among them.
        arrivals: What arrives.
        given: Run times that the caller gives instead.
    """

    def __init__(
        self,
        past: JobsAt,
        present: Sequence[int],
        arrivals: Arrivals,
        given: GivenDraws | None = None,
    ) -> None:
        self.coming = arrivals
        self.given = given or GivenDraws()
        self.elapsed = np.array([past.elapsed(job) for job in present], np.float64)
        self.present = _Spreads([past.spread(job) for job in present])
        self.kinds = np.unique(np.array([past.kind_of(job) for job in present], np.intp), return_inverse=True)[1]
        self.known = past.run_seconds()[arrivals.jobs]
        unknown = np.flatnonzero(np.isnan(self.known))
        self.unknown = _Spreads([past.spread(int(job)) for job in arrivals.jobs[unknown]])
        self.place_of_unknown = np.full(len(self.known), -1, np.intp)
        self.place_of_unknown[unknown] = np.arange(len(unknown))

    @property
    def templates(self) -> Sequence[Manifest]:
        """See `Draws`."""
        return self.coming.templates

    def drawn(self, seed: int) -> _FittedFuture:
        """See `Draws`."""
        return _FittedFuture(self, seed)


class _FittedFuture:
    """The draws of one future."""

    def __init__(self, draws: FittedDraws, seed: int) -> None:
        self._draws, self._seed = draws, seed
        random = _random(seed, _RUNS)
        n = len(draws.kinds)
        shared = random.standard_normal(int(draws.kinds.max(initial=-1)) + 1)[draws.kinds]
        scores = np.sqrt(_SHARED) * shared + np.sqrt(1 - _SHARED) * random.standard_normal(n)
        self.run_seconds = draws.present.at(np.arange(n), below(scores))
        self.done_seconds = draws.elapsed.copy()
        self._samplers: dict[str, Sampler] = {}
        for place, group in draws.given.of_present.items():
            self.run_seconds[place], self.done_seconds[place] = self._given(group, float(draws.elapsed[place]))
        self._blocks = draws.coming.blocks(_random(seed, _ARRIVALS))
        self._random = _random(seed, _RUNS_OF_ARRIVALS)
        self._rest: ArrivalBlock | None = next(self._blocks, None)

    def arrivals(self, begin: float, end: float) -> ArrivalColumns:
        """See `Drawn`."""
        blocks = list(self._until(end))
        draws = self._draws
        at = np.concatenate([np.empty(0), *(block.at for block in blocks)])
        rows = np.concatenate([np.empty(0, np.intp), *(block.rows for block in blocks)])
        runs = draws.known[rows]
        drawn = self._random.random(len(rows))
        unknown = np.flatnonzero(np.isnan(runs))
        runs[unknown] = draws.unknown.at(draws.place_of_unknown[rows[unknown]], drawn[unknown])
        if draws.given.of_arrivals:
            for place, row in enumerate(rows.tolist()):
                if (group := draws.given.of_arrivals.get(row)) is not None:
                    runs[place] = self._given(group, 0.0)[0]
        return at, draws.coming.template[rows], runs

    def _until(self, end: float) -> Iterator[ArrivalBlock]:
        """Yield what arrives before a time; of the last block, the first part."""
        while self._rest is not None and self._rest.begin < end:
            block = self._rest
            n = int(np.searchsorted(block.at, end))
            yield ArrivalBlock(block.begin, end, block.at[:n], block.rows[:n])
            if block.end > end:
                self._rest = ArrivalBlock(end, block.end, block.at[n:], block.rows[n:])
                return
            self._rest = next(self._blocks, None)

    def _given(self, group: str, elapsed: float) -> tuple[float, float]:
        if group not in self._samplers:
            model = self._draws.given.run_times[group]
            self._samplers[group] = model.sampler(Random(f"{self._seed}/eta/runs/{group}"))
        return self._samplers[group](elapsed)


class _Spreads:
    """Many distributions in one array: the shares of the k-th are shifted by k, so that one search serves all."""

    def __init__(self, spreads: Sequence[Spread]) -> None:
        lengths = [len(spread.seconds) for spread in spreads]
        self._ends = np.cumsum(np.array(lengths, np.intp))
        self._seconds = np.concatenate([np.empty(0), *(spread.seconds for spread in spreads)])
        self._shares = np.concatenate([np.empty(0), *(spread.shares + k for k, spread in enumerate(spreads))])

    def at(self, places: npt.NDArray[np.intp], shares: _Floats) -> _Floats:
        """Return the quantile at a share of each of some distributions."""
        if not len(places):
            return np.empty(0)
        found = np.searchsorted(self._shares, shares + places)
        return self._seconds[np.minimum(found, self._ends[places] - 1)]


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed % 2**64, stream])
