"""The smallest quota with which waits are as short as they are to be."""

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
from kueuecore.scenarios import Scenario, run_scenario
from kueuecore.scenarios.edits import with_edits
from kueuecore.studies.quota_scaling import QuotaScale
from kueuecore.studies.running import run_all
from kueuecore.studies.trial import run_trial
from kueuecore.studies.wait_target import WaitTarget

__all__ = ["Plan", "PlanPoint", "plan"]

# How many steps around the answer are tried: waits need not fall with every step.
_NEAR = 3
# Parts of the answer that make a curve of what was tried.
_CURVE = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(5, 4), Fraction(3, 2), Fraction(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPoint:
    """What came of one quota.

    Args:
        n_units: The total of what is counted, in cores, GiB or pieces.
        waits: The figure of the target with each seed, in seconds; infinite: it takes jobs that are never admitted.
        n_never: How many jobs are never admitted, with each seed.
        utilisation: Which part of what is counted is used, with each seed; none where there is no quota.
        share: In which share of the seeds the target has to be met.
    """

    n_units: int
    waits: tuple[float, ...]
    n_never: tuple[int, ...]
    utilisation: tuple[float, ...]
    share: float

    @property
    def wait(self) -> float:
        """The wait that is not exceeded in the share of the seeds that counts; of half of them it is their median."""
        return sorted(self.waits)[self.n_needed - 1]

    @property
    def n_needed(self) -> int:
        """With how many seeds the target has to be met."""
        return max(ceil(round(self.share * len(self.waits), 6)), 1)

    @property
    def median_utilisation(self) -> float | None:
        """The median over seeds; None without quota."""
        return median(self.utilisation) if self.utilisation else None

    @property
    def median_never(self) -> float:
        """How many jobs are never admitted: the median over seeds."""
        return median(self.n_never)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The smallest quota that meets a target, and the curve of all that was tried.

    Args:
        scale: What varies.
        target: What waits are to be.
        seeds: The seeds.
        step: How many units lie between two quotas that may be.
        points: All quotas that were tried, from the smallest; without the one that is no limit.
        answer: The smallest of them that meets the target, as all larger ones do, while one step less does not; None:
            no quota does.
        unlimited: What came of a quota that is no limit.
        reasons: Without an answer, why jobs are never admitted even then, and how many of the first seed.
        warnings: What is odd about the objects, and about the runs.
    """

    scale: QuotaScale
    target: WaitTarget
    seeds: tuple[int, ...]
    step: int
    points: tuple[PlanPoint, ...]
    answer: PlanPoint | None
    unlimited: PlanPoint
    reasons: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def n_needed(self) -> int:
        """With how many seeds the target has to be met."""
        return self.unlimited.n_needed

    def meets(self, point: PlanPoint) -> bool:
        """Does a quota meet the target?"""
        return point.wait <= self.target.seconds

    @property
    def rises(self) -> tuple[tuple[PlanPoint, PlanPoint], ...]:
        """Where waits get longer from one quota to the next larger one that was tried."""
        return tuple((a, b) for a, b in pairwise(self.points) if a.wait < b.wait)

    @property
    def smaller(self) -> tuple[PlanPoint, ...]:
        """Quotas below the answer that meet the target, too, but of which a larger one does not."""
        end = 0 if self.answer is None else self.answer.n_units
        return tuple(it for it in self.points if it.n_units < end and self.meets(it))


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
    """Look for the smallest quota that meets a target.

    First the quota is no limit: if waits are too long even then, no quota helps. Else it is bisected, between one that
    does not meet the target and one that does. Then the steps around the answer are tried, and some further away; if a
    larger quota does not meet the target, the search goes on above it.

    Args:
        scenario: The scenario.
        target: What waits are to be. Those are until the first admission; a job that is never admitted waits for ever.
        scale: What varies: one of `quota_scales(scenario)`.
        cluster_queues: The jobs of these ClusterQueues count; by default all.
        seeds: Seeds for all quotas, each once.
        share: In which share of the seeds the target has to be met, above 0.
        step: How many units lie between two quotas that may be.
        executor: What runs them; None: one after the other, here. The answer does not depend on it.
        progress: Is called after each run with how many are over, and of how many.

    Raises:
        ManifestError: The scenario is wrong, or no job counts.
        ValueError: There is no seed, or one twice; the share is not above 0 and at most 1; the step is below 1.

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
        raise ValueError("seeds must be at least one, and each of them once")
    if not 0 < share <= 1 or step < 1:
        raise ValueError("share must be above 0 and no more than 1, and step at least 1")
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
    points = [search.points[it] for it in sorted(search.points) if it != most]
    return Plan(
        scale=scale,
        target=target,
        seeds=tuple(seeds),
        step=step,
        points=tuple(points),
        answer=None if answer is None else search.points[answer],
        unlimited=search.points[most],
        reasons=reasons,
        warnings=(*scale.warnings(scenario), *search.warnings),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a plan needs of one run: little enough to be sent between processes."""

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
        is_of = np.array([it in cluster_queues for it in trial.cluster_queues.texts], np.bool_)
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
    """Tries quotas, each once. They are counted in steps."""

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
        cut_off = f"{self._n_cut_off} of {n_all} runs did not come to an end"
        return (*self._warnings, *([cut_off] if self._n_cut_off else ()))

    def scenario_at(self, n_steps: int) -> Scenario:
        return with_edits(self.scenario, self.scale.edits(n_steps * self.step))

    def meets(self, n_steps: int) -> bool:
        self.try_all([n_steps])
        return self.points[n_steps].wait <= self.target.seconds

    def try_all(self, steps: Iterable[int]) -> None:
        """Run what was not tried before, all at once."""
        new = sorted(set(steps) - self.points.keys())
        calls = [
            (scenario, seed, self.target, self.cluster_queues, self.scale.name)
            for scenario in map(self.scenario_at, new)
            for seed in self.seeds
        ]
        n_before, found = len(self.points) * len(self.seeds), dict[int, _Found]()
        for index, it in run_all(_run, calls, self.executor):
            found[index] = it
            if self.progress is not None:
                self.progress(n_before + len(found), n_before + len(calls))
        for place, n_steps in enumerate(new):
            first = place * len(self.seeds)
            self._take(n_steps, [found[index] for index in range(first, first + len(self.seeds))])

    def _take(self, n_steps: int, found: Sequence[_Found]) -> None:
        if not any(it.n_jobs for it in found):
            whose = f" to {', '.join(sorted(self.cluster_queues))}" if self.cluster_queues else ""
            raise ManifestError.of(f"no job comes{whose}, so nobody waits", remedy="give the scenario work there")
        self._n_cut_off += sum(it.is_cut_off for it in found)
        self._warnings |= dict.fromkeys(warning for it in found for warning in it.warnings)
        self.points[n_steps] = PlanPoint(
            n_units=n_steps * self.step,
            waits=tuple(it.wait for it in found),
            n_never=tuple(it.n_never for it in found),
            utilisation=tuple(it.utilisation for it in found if it.utilisation is not None),
            share=self.share,
        )

    def answer(self, now: int, most: int) -> int:
        """The smallest number of steps that meets the target, as all larger ones do that were tried."""
        large = max(now, 1)
        while large < most and not self.meets(large):
            large = min(2 * large, most)
        found = self._bisected()
        self.try_all({ceil(part * found) for part in _CURVE})
        while True:
            found = self._bisected()
            near = {it for it in range(found - _NEAR, found + _NEAR + 1) if 0 <= it <= most}
            if near <= self.points.keys():
                return found
            self.try_all(near)

    def _bisected(self) -> int:
        """Halve the gap between the largest that does not meet the target and the next, until there is none."""
        while True:
            failing = max((it for it in self.points if not self.meets(it)), default=-1)
            meeting = min(it for it in self.points if it > failing)
            if meeting - failing <= 1:
                return meeting
            self.try_all([(failing + meeting) // 2])


def _reasons(scenario: Scenario, seed: int, cluster_queues: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """Why jobs are never admitted, the most frequent reason first."""
    jobs = run_scenario(replace(scenario, seed=seed)).jobs
    counts: Counter[str] = Counter()
    for row in np.flatnonzero(jobs.numbers["admitted"] < 0).tolist():
        job = jobs[row]
        if job.message and (not cluster_queues or job.cluster_queue in cluster_queues):
            counts[job.message] += 1
    return tuple(sorted(counts.items(), key=lambda it: (-it[1], it[0])))
