"""Finds the smallest quota that keeps waits short enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from statistics import median

import numpy as np

from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.scenarios import Scenario, run_scenario
from kueuecore.scenarios.edits import with_edits
from kueuecore.studies.quota_scaling import QuotaScale
from kueuecore.studies.running import run_all
from kueuecore.studies.trial import run_trial
from kueuecore.studies.wait_target import WaitTarget

__all__ = ["Plan", "PlanPoint", "plan"]

# Steps to try around the answer, because waits need not fall with every step.
_NEAR = 3
# Multiples of the answer to try, to draw a curve.
_CURVE = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(5, 4), Fraction(3, 2), Fraction(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPoint:
    """The outcome of one quota.

    Args:
        n_units: The total quota, in cores, GiB or pieces.
        waits: The target's figure for each seed, in seconds; infinite: it depends on jobs that are never admitted.
        n_never: How many jobs are never admitted, for each seed.
        utilisation: The used share of the quota, for each seed; empty without quota.
        share: The share of seeds that must meet the target.
    """

    n_units: int
    waits: tuple[float, ...]
    n_never: tuple[int, ...]
    utilisation: tuple[float, ...]
    share: float

    @property
    def wait(self) -> float:
        """The wait that the required share of seeds does not exceed; with a share of one half, their median."""
        return sorted(self.waits)[self.n_needed - 1]

    @property
    def n_needed(self) -> int:
        """How many seeds must meet the target."""
        return max(ceil(round(self.share * len(self.waits), 6)), 1)

    @property
    def median_utilisation(self) -> float | None:
        """The median over seeds; None without quota."""
        return median(self.utilisation) if self.utilisation else None

    @property
    def median_never(self) -> float:
        """The median over seeds of the number of jobs that are never admitted."""
        return median(self.n_never)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The smallest quota that meets a target, and all quotas that were tried.

    Args:
        scale: What varies.
        target: The target for waits.
        seeds: The seeds.
        step: The quota is a multiple of this many units.
        points: All quotas that were tried, from the smallest, without the unlimited one.
        answer: The smallest of them that meets the target, as all larger ones do, while one step less does not; None:
            no quota does.
        unlimited: The outcome without this limit.
        release: The release of Kueue that decides.
        notices: Which rules decide that Kueue does not have.
        reasons: Without an answer, why jobs are never admitted even then, and how many for the first seed.
        warnings: What is odd about the objects and the runs.
    """

    scale: QuotaScale
    target: WaitTarget
    seeds: tuple[int, ...]
    step: int
    points: tuple[PlanPoint, ...]
    answer: PlanPoint | None
    unlimited: PlanPoint
    release: Release
    reasons: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def n_needed(self) -> int:
        """How many seeds must meet the target."""
        return self.unlimited.n_needed

    def meets(self, point: PlanPoint) -> bool:
        """Return whether a quota meets the target."""
        return point.wait <= self.target.seconds

    @property
    def rises(self) -> tuple[tuple[PlanPoint, PlanPoint], ...]:
        """The pairs of neighboring quotas where the larger one has longer waits."""
        return tuple((a, b) for a, b in pairwise(self.points) if a.wait < b.wait)

    @property
    def smaller(self) -> tuple[PlanPoint, ...]:
        """Quotas below the answer that also meet the target, although a larger one does not."""
        end = 0 if self.answer is None else self.answer.n_units
        return tuple(point for point in self.points if point.n_units < end and self.meets(point))


def plan(
    scenario: Scenario,
    target: WaitTarget,
    scale: QuotaScale,
    *,
    cluster_queues: Collection[str] = (),
    seeds: Sequence[int] = range(5),
    share: float = 0.5,
    step: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Find the smallest quota that meets a target.

    It first tries without this limit: if waits are too long even then, no quota helps. Otherwise it bisects between a
    quota that fails and one that meets the target. Then it tries the steps around the answer, and some further away; if
    a larger quota fails, the search continues above it.

    Args:
        scenario: The scenario.
        target: The target for waits until the first admission. A job that is never admitted waits forever.
        scale: What to vary: one of `quota_scales(scenario)`.
        cluster_queues: The ClusterQueues whose jobs count; by default all.
        seeds: Distinct seeds for all quotas.
        share: The share of seeds that must meet the target, above 0.
        step: Try multiples of this many units.
        executor: What runs them; None: one at a time, in this process. The answer does not depend on it.
        progress: Called after each run with the numbers of finished runs and of all runs.

    Raises:
        ManifestError: The scenario is wrong, or no job counts.
        ValueError: There is no seed, a seed occurs twice, the share is not in (0, 1], or the step is below 1.

    Example:
        >>> from kueuecore.scenarios import read_scenario
        >>> from kueuecore.studies.quota_scaling import quota_scales
        >>> scenario = read_scenario("examples/scenario/scenario.yaml")
        >>> (scale,) = quota_scales(scenario)
        >>> found = plan(scenario, WaitTarget.parse("p95<=5m"), scale, seeds=[1])
        >>> found.answer.n_units, scale.split(found.answer.n_units)
        (12, (6, 6))
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError("seeds must be distinct, and at least one")
    if not 0 < share <= 1 or step < 1:
        raise ValueError("share must be above 0 and at most 1, and step at least 1")
    search = _Search(
        scenario=scenario,
        target=target,
        scale=scale,
        cluster_queues=frozenset(cluster_queues),
        seeds=tuple(seeds),
        share=share,
        step=step,
        executor=executor,
        progress=progress,
    )
    most, now = -(-scale.most // step), ceil(scale.now / step)
    search.try_all({0, now, most})
    answer: int | None = None
    reasons: tuple[tuple[str, int], ...] = ()
    if search.meets(most):
        answer = search.answer(now, most)
    else:
        reasons = _reasons(search.scenario_at(most), seeds[0], frozenset(cluster_queues))
    points = [search.points[point] for point in sorted(search.points) if point != most]
    return Plan(
        scale=scale,
        target=target,
        seeds=tuple(seeds),
        step=step,
        points=tuple(points),
        answer=None if answer is None else search.points[answer],
        unlimited=search.points[most],
        release=scenario.release,
        notices=scenario.experiment_notices,
        reasons=reasons,
        warnings=(*scale.warnings(scenario), *search.warnings),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a plan needs from one run: small enough to send between processes."""

    wait: float
    n_jobs: int
    n_never: int
    utilisation: float | None
    is_cut_off: bool
    warnings: tuple[str, ...]


def _run(scenario: Scenario, seed: int, target: WaitTarget, cluster_queues: frozenset[str], quota_name: str) -> _Found:
    trial = run_trial(scenario, seed)
    waits = trial.wait_seconds
    if cluster_queues:
        is_of = np.array([text in cluster_queues for text in trial.cluster_queues.texts], np.bool_)
        waits = waits[is_of[trial.cluster_queues.codes]]
    return _Found(
        wait=target.wait_of(waits),
        n_jobs=len(waits),
        n_never=int(np.isnan(waits).sum()),
        utilisation=trial.measures.get(f"utilisation/{quota_name}"),
        is_cut_off=trial.is_cut_off,
        warnings=trial.warnings,
    )


@dataclass(slots=True, kw_only=True)
class _Search:
    """Tries quotas, each once, counted in steps."""

    scenario: Scenario
    target: WaitTarget
    scale: QuotaScale
    cluster_queues: frozenset[str]
    seeds: tuple[int, ...]
    share: float
    step: int
    executor: Executor | None
    progress: Callable[[int, int], None] | None
    points: dict[int, PlanPoint] = field(default_factory=dict)
    _n_cut_off: int = 0
    _warnings: dict[str, None] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        n_all = len(self.points) * len(self.seeds)
        cut_off = f"{self._n_cut_off} of {n_all} runs did not finish"
        return (*self._warnings, *([cut_off] if self._n_cut_off else ()))

    def scenario_at(self, n_steps: int) -> Scenario:
        return with_edits(self.scenario, self.scale.edits(n_steps * self.step))

    def meets(self, n_steps: int) -> bool:
        self.try_all([n_steps])
        return self.points[n_steps].wait <= self.target.seconds

    def try_all(self, steps: Iterable[int]) -> None:
        """Run everything not tried before, all at once."""
        new = sorted(set(steps) - self.points.keys())
        calls = [
            (scenario, seed, self.target, self.cluster_queues, self.scale.name)
            for scenario in map(self.scenario_at, new)
            for seed in self.seeds
        ]
        n_before, found = len(self.points) * len(self.seeds), dict[int, _Found]()
        for index, row in run_all(_run, calls, self.executor):
            found[index] = row
            if self.progress is not None:
                self.progress(n_before + len(found), n_before + len(calls))
        for place, n_steps in enumerate(new):
            first = place * len(self.seeds)
            self._take(n_steps, [found[index] for index in range(first, first + len(self.seeds))])

    def _take(self, n_steps: int, found: Sequence[_Found]) -> None:
        if not any(run.n_jobs for run in found):
            whose = f" at {', '.join(sorted(self.cluster_queues))}" if self.cluster_queues else ""
            raise ManifestError.of(f"no job arrives{whose}, so none waits", remedy="give the scenario work there")
        self._n_cut_off += sum(run.is_cut_off for run in found)
        self._warnings |= dict.fromkeys(warning for run in found for warning in run.warnings)
        self.points[n_steps] = PlanPoint(
            n_units=n_steps * self.step,
            waits=tuple(run.wait for run in found),
            n_never=tuple(run.n_never for run in found),
            utilisation=tuple(run.utilisation for run in found if run.utilisation is not None),
            share=self.share,
        )

    def answer(self, now: int, most: int) -> int:
        """Return the smallest number of steps that meets the target, as all larger ones tried do."""
        large = max(now, 1)
        while large < most and not self.meets(large):
            large = min(2 * large, most)
        found = self._bisected()
        self.try_all({ceil(part * found) for part in _CURVE})
        while True:
            found = self._bisected()
            near = {number for number in range(found - _NEAR, found + _NEAR + 1) if 0 <= number <= most}
            if near <= self.points.keys():
                return found
            self.try_all(near)

    def _bisected(self) -> int:
        """Halve the gap between the largest that fails and the next, until there is none."""
        while True:
            failing = max((point for point in self.points if not self.meets(point)), default=-1)
            meeting = min(point for point in self.points if point > failing)
            if meeting - failing <= 1:
                return meeting
            self.try_all([(failing + meeting) // 2])


def _reasons(scenario: Scenario, seed: int, cluster_queues: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """Return why jobs are never admitted, the most frequent reason first."""
    jobs = run_scenario(replace(scenario, seed=seed)).jobs
    counts: Counter[str] = Counter()
    for row in np.flatnonzero(jobs.numbers["admitted"] < 0).tolist():
        job = jobs[row]
        if job.message and (not cluster_queues or job.cluster_queue in cluster_queues):
            counts[job.message] += 1
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
