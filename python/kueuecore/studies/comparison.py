"""Compares two configurations with the same work: who waits less, who waits more, who is evicted, what is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.scenarios import Scenario
from kueuecore.scenarios.job_outcomes import Labels, rows_by_code
from kueuecore.studies.estimates import Estimate, paired
from kueuecore.studies.running import run_all
from kueuecore.studies.trial import Trial, run_trial

__all__ = ["Change", "Comparison", "GroupChange", "compare"]

_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Change:
    """One measure under both configurations, over seeds.

    Args:
        a: Its value under the first.
        b: Its value under the second.
        difference: Second minus first, seed by seed.
    """

    a: Estimate
    b: Estimate
    difference: Estimate

    @property
    def is_any(self) -> bool:
        """Whether it differs for any seed."""
        return any(self.difference.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """How the jobs of one `work` entry in one ClusterQueue fare.

    Args:
        work: The name of the work in the first scenario; empty: all jobs.
        cluster_queues: Its ClusterQueues under the first and the second configuration; empty if there are several.
        n_jobs: The number of jobs, over all seeds.
        n_less: How many of them wait less under the second configuration. An admitted job waits less than one that is
            never admitted.
        n_more: How many wait more.
        measures: `mean_wait_seconds` and `p95_wait_seconds` of the jobs admitted under both; `never_admitted`,
            `failed`, `evictions`, `evicted_jobs` and `lost_seconds` of all; for all jobs also those of
            `Trial.measures`.
    """

    work: str
    cluster_queues: tuple[str, str]
    n_jobs: int
    n_less: int
    n_more: int
    measures: Mapping[str, Change]

    def __getitem__(self, name: str) -> Change:
        return self.measures[name]

    @property
    def is_any(self) -> bool:
        """Whether anything differs."""
        return bool(self.n_less or self.n_more or any(measure.is_any for measure in self.measures.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing two configurations.

    Args:
        seeds: The seeds.
        total: All jobs.
        groups: The jobs of each work in each ClusterQueue, by name.
        releases: The release of Kueue that decides under each; for a fleet, on the manager.
        warnings: What is odd about the objects or runs of either.
    """

    seeds: tuple[int, ...]
    total: GroupChange
    groups: tuple[GroupChange, ...]
    releases: tuple[Release, Release]
    warnings: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether anything differs."""
        return self.total.is_any or any(group.is_any for group in self.groups)


def compare(
    a: Scenario,
    b: Scenario,
    *,
    seeds: Sequence[int] = range(10),
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run the same work under two configurations, once per seed.

    Jobs are paired in order of arrival, so names may differ.

    Args:
        a: One scenario.
        b: The other: the same work and random draws, but other objects or another Configuration.
        seeds: Distinct seeds for both.
        executor: What runs them; None: one at a time, in this process.
        progress: Called after each run with the numbers of finished runs and of all runs.

    Raises:
        ManifestError: A scenario is wrong, or their work differs.
        ValueError: There is no seed, or a seed occurs twice.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError("seeds must be distinct, and at least one")
    calls = [(scenario, seed) for seed in seeds for scenario in (a, b)]
    over: dict[int, Trial] = {}
    for index, trial in run_all(run_trial, calls, executor):
        over[index] = trial
        if progress is not None:
            progress(len(over), len(calls))
    trials = [over[index] for index in range(len(calls))]
    pairs = list(zip(trials[::2], trials[1::2], strict=True))
    for first, second in pairs:
        _check_same_work(first, second)
    return Comparison(
        seeds=tuple(seeds),
        total=_change("", [(pair, np.arange(len(pair[0]))) for pair in pairs], is_total=True),
        groups=tuple(_groups(pairs)),
        releases=(a.release, b.release),
        warnings=(*_cut_off(pairs), *dict.fromkeys(warning for trial in trials for warning in trial.warnings)),
    )


def _cut_off(pairs: Sequence[tuple[Trial, Trial]]) -> list[str]:
    """Say which runs were cut off, in one sentence for each scenario."""
    found = []
    for which, trials in zip("AB", zip(*pairs, strict=True), strict=True):
        seeds = [str(trial.seed) for trial in trials if trial.is_cut_off]
        if seeds:
            runs = "1 run" if len(seeds) == 1 else f"{len(seeds)} runs"
            found.append(f"{runs} of {which} did not finish (seed {', '.join(seeds)}): its figures say little")
    return found


def _check_same_work(a: Trial, b: Trial) -> None:
    """Check that two runs have the same work.

    Raises:
        ManifestError: It differs.
    """
    remedy = "give both scenarios the same work, and change only their objects or their Configuration"
    if len(a) != len(b):
        raise ManifestError.of(
            f"with seed {a.seed}, {len(a)} jobs arrive in the first scenario and {len(b)} in the second", remedy=remedy
        )
    differs = np.flatnonzero(a.created != b.created)
    if len(differs):
        row = int(differs[0])
        times = f"{a.created[row] / 1e9:g} s and {b.created[row] / 1e9:g} s"
        works = f"{a.works[row]} and {b.works[row]}"
        message = f"with seed {a.seed}, job {row + 1} of {len(a)} ({works}) arrives at {times}"
        raise ManifestError.of(message, remedy=remedy)


def _groups(pairs: Sequence[tuple[Trial, Trial]]) -> list[GroupChange]:
    """Group the jobs by work and by ClusterQueue in the first configuration."""
    rows: dict[tuple[str, str], list[tuple[tuple[Trial, Trial], _Rows]]] = {}
    for pair in pairs:
        works, queues = pair[0].works, pair[0].cluster_queues
        codes = works.codes * len(queues.texts) + queues.codes
        for code, members in rows_by_code(codes):
            work, queue = divmod(code, len(queues.texts))
            rows.setdefault((works.texts[work], queues.texts[queue]), []).append((pair, members))
    return [_change(work, members) for (work, _), members in sorted(rows.items(), key=lambda item: item[0])]


def _change(work: str, members: Sequence[tuple[tuple[Trial, Trial], _Rows]], *, is_total: bool = False) -> GroupChange:
    """Compare some rows of each pair of trials."""
    n_less = n_more = 0
    for (a, b), rows in members:
        before, after = _ranked(a.wait_seconds[rows]), _ranked(b.wait_seconds[rows])
        n_less += int((after < before).sum())
        n_more += int((after > before).sum())
    both = [_measures(*pair, rows) for pair, rows in members]
    if is_total:
        both = [(a.measures | of_a, b.measures | of_b) for ((a, b), _), (of_a, of_b) in zip(members, both, strict=True)]
    changes = {}
    for name in dict.fromkeys(name for of_a, of_b in both for name in (*of_a, *of_b)):
        of_a, of_b = [member[0].get(name) for member in both], [member[1].get(name) for member in both]
        changes[name] = Change(_known(of_a), _known(of_b), paired(of_a, of_b))
    homes = (
        ("", "")
        if is_total
        else (
            _home([(pair[0].cluster_queues, rows) for pair, rows in members]),
            _home([(pair[1].cluster_queues, rows) for pair, rows in members]),
        )
    )
    return GroupChange(
        work=work,
        cluster_queues=homes,
        n_jobs=sum(len(rows) for _, rows in members),
        n_less=n_less,
        n_more=n_more,
        measures=changes,
    )


def _measures(a: Trial, b: Trial, rows: _Rows) -> tuple[dict[str, float], dict[str, float]]:
    # A job that is never admitted has no finite wait, so means cover the jobs admitted under both.
    in_both = rows[np.isfinite(a.wait_seconds[rows]) & np.isfinite(b.wait_seconds[rows])]
    return a.figures(rows, in_both), b.figures(rows, in_both)


def _ranked(waits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(np.isnan(waits), np.inf, waits)


def _known(values: Sequence[float | None]) -> Estimate:
    return Estimate(tuple(value for value in values if value is not None))


def _home(members: Sequence[tuple[Labels, _Rows]]) -> str:
    """Return the ClusterQueue of some jobs; empty if there are several."""
    names = {labels.texts[code] for labels, rows in members for code in np.unique(labels.codes[rows]).tolist()}
    return names.pop() if len(names) == 1 else ""
