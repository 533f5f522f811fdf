"""Compares configurations with the same work: who waits less, who waits more, who is evicted, what is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt

from kueuecore._arguments import text
from kueuecore._text import listed, quoted
from kueuecore.errors import ManifestError
from kueuecore.experiments import Experiments
from kueuecore.releases import Release
from kueuecore.scenarios import Scenario
from kueuecore.scenarios.job_outcomes import Labels, rows_by_code
from kueuecore.studies.estimates import Estimate, paired
from kueuecore.studies.running import run_all
from kueuecore.studies.trial import Trial, run_trial

__all__ = ["MAX_SIDES", "Change", "Comparison", "GroupChange", "SideChange", "compare", "side_names"]

MAX_SIDES = len(ascii_uppercase)
"""How many configurations a comparison may have: more are for `sweep`."""

# Names are heads of columns.
_LONGEST_NAME = 63

_Rows = npt.NDArray[np.int64]
_Trials = tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one side, over seeds.

    Args:
        value: The measure.
        difference: The measure minus that of the baseline, seed by seed; for the baseline itself, zeros.
    """

    value: Estimate
    difference: Estimate

    @property
    def is_any(self) -> bool:
        """Whether it differs from the baseline for any seed."""
        return any(self.difference.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideChange:
    """How some jobs fare on one side.

    Args:
        cluster_queue: Their ClusterQueue; empty if there are several.
        n_less: How many of them wait less than under the baseline. An admitted job waits less than one that is never
            admitted.
        n_more: How many wait more.
        measures: `mean_wait_seconds` and `p95_wait_seconds` of the jobs admitted on all sides; `never_admitted`,
            `failed`, `evictions`, `evicted_jobs` and `lost_seconds` of all; for all jobs also those of
            `Trial.measures`. All sides have the same.
    """

    cluster_queue: str
    n_less: int
    n_more: int
    measures: Mapping[str, Change]

    def __getitem__(self, name: str) -> Change:
        return self.measures[name]

    @property
    def is_any(self) -> bool:
        """Whether anything differs from the baseline."""
        return bool(self.n_less or self.n_more or any(measure.is_any for measure in self.measures.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """How the jobs of one `work` entry in one ClusterQueue fare.

    Args:
        work: The name of the work on the baseline; empty: all jobs.
        n_jobs: The number of jobs, over all seeds.
        sides: How they fare on each side, by its name.
    """

    work: str
    n_jobs: int
    sides: Mapping[str, SideChange]

    def __getitem__(self, side: str) -> SideChange:
        return self.sides[side]

    @property
    def is_any(self) -> bool:
        """Whether anything differs."""
        return any(side.is_any for side in self.sides.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing configurations.

    Args:
        names: What the sides are called, in the order in which they were given.
        baseline: The one that the others are compared with.
        seeds: The seeds.
        total: All jobs.
        groups: The jobs of each work in each ClusterQueue, by name.
        releases: The release of Kueue that decides on each side; for a fleet, on the manager.
        warnings: What is odd about the objects or runs of any.
        notices: What each says about rules that Kueue does not have.
        experiments: The experiments of each; for a fleet, on the manager.
    """

    names: tuple[str, ...]
    baseline: str
    seeds: tuple[int, ...]
    total: GroupChange
    groups: tuple[GroupChange, ...]
    releases: tuple[Release, ...]
    warnings: tuple[str, ...]
    notices: tuple[tuple[str, ...], ...]
    experiments: tuple[Experiments, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The names of all sides but the baseline."""
        return tuple(name for name in self.names if name != self.baseline)

    @property
    def is_any(self) -> bool:
        """Whether anything differs from the baseline."""
        return self.total.is_any or any(group.is_any for group in self.groups)

    def __repr__(self) -> str:
        sides = [(f"{name}: " if len(self.others) > 1 else "", self.total[name]) for name in self.others]
        waits = "; ".join(f"{who}{side.n_less} wait less, {side.n_more} longer" for who, side in sides)
        return f"Comparison({len(self.seeds)} seeds, {self.total.n_jobs} jobs: {waits})"

    def _repr_html_(self) -> str:
        """The measures of all jobs and of the groups, for notebooks."""
        from kueuecore.studies.study_html import comparison_html  # which imports this module

        return comparison_html(self)


def compare(
    *scenarios: Scenario,
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    seeds: Sequence[int] = range(10),
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run the same work under two or more configurations, once per seed.

    Jobs are paired in order of arrival, so the names of objects may differ.

    Args:
        scenarios: The sides: the same work and random draws, but other objects or another Configuration. At most 26.
        names: What they are called, each differently; None: A, B, C and so on.
        baseline: The name of the one that the others are compared with; None: the first.
        seeds: Distinct seeds for all.
        executor: What runs them; None: one at a time, in this process.
        progress: Called after each run with the numbers of finished runs and of all runs.

    Raises:
        ManifestError: A scenario is wrong, or their work differs.
        ValueError: There are fewer than two scenarios or more than 26, a name is empty, too long or occurs twice, the
            baseline is none of them, there is no seed, or a seed occurs twice.
        TypeError: One of them is not a Scenario, or a name is not a str.

    Example:
        >>> from kueuecore.scenarios import parse_edit, read_scenario
        >>> few = [parse_edit("work[0].count=3"), parse_edit("work[1].count=1")]
        >>> slow = [[*few, parse_edit(f"cluster.cycle={text}")] for text in ("1s", "10s", "1m")]
        >>> found = compare(*(read_scenario("examples/scenario/scenario.yaml", edits=it) for it in slow), seeds=[1])
        >>> found.names, [round(found.total[it]["mean_wait_seconds"].difference.median) for it in found.names]
        (('A', 'B', 'C'), [0, 0, 21])
    """
    for scenario in scenarios:
        if not isinstance(scenario, Scenario):
            raise TypeError(f"scenarios must be of class Scenario, not {type(scenario).__name__}")
    called, base = side_names(len(scenarios), names, baseline)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError("seeds must be distinct, and at least one")
    calls = [(scenario, seed) for seed in seeds for scenario in scenarios]
    over: dict[int, Trial] = {}
    for index, trial in run_all(run_trial, calls, executor):
        over[index] = trial
        if progress is not None:
            progress(len(over), len(calls))
    trials = [over[index] for index in range(len(calls))]
    of_seeds = _OfSeeds(
        [tuple(trials[at : at + len(called)]) for at in range(0, len(calls), len(called))], called, base
    )
    of_seeds.check_same_work()
    return Comparison(
        names=called,
        baseline=called[base],
        seeds=tuple(seeds),
        total=of_seeds.total(),
        groups=tuple(of_seeds.groups()),
        releases=tuple(scenario.release for scenario in scenarios),
        notices=tuple(scenario.experiment_notices for scenario in scenarios),
        experiments=tuple(scenario.experiments for scenario in scenarios),
        warnings=(*of_seeds.cut_off(), *dict.fromkeys(warning for trial in trials for warning in trial.warnings)),
    )


def side_names(n: int, names: Sequence[str] | None = None, baseline: str | None = None) -> tuple[tuple[str, ...], int]:
    """Return what the sides of a comparison are called, and which of them is the baseline.

    Args:
        n: The number of sides.
        names: Their names; None: A, B, C and so on.
        baseline: The name of the baseline; None: the first.

    Raises:
        TypeError: A name is not a str.
        ValueError: As `compare`.
    """
    if n < 2:
        raise ValueError(f"give two scenarios or more to compare, not {n}")
    if n > MAX_SIDES:
        raise ValueError(f"give at most {MAX_SIDES} scenarios to compare, not {n}; `sweep` runs more")
    called = tuple(ascii_uppercase[:n]) if names is None else tuple(text("a name", name) for name in names)
    if len(called) != n:
        raise ValueError(f"give a name for each of the {n} scenarios, not {len(called)}")
    for name in called:
        if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
            raise ValueError(f"a name must have 1 to {_LONGEST_NAME} printable characters, not {quoted(name)}")
        if called.count(name) > 1:
            raise ValueError(f"two scenarios are called {quoted(name)}; give each a name of its own")
    if baseline is not None and baseline not in called:
        raise ValueError(f"baseline must be {listed([*map(quoted, called)], 'or')}, not {quoted(str(baseline))}")
    return called, 0 if baseline is None else called.index(baseline)


@dataclass(frozen=True, slots=True)
class _OfSeeds:
    """The trials of each seed, one for each side.

    Args:
        trials: By seed, and then by side.
        names: What the sides are called.
        baseline: The index of the baseline.
    """

    trials: Sequence[_Trials]
    names: tuple[str, ...]
    baseline: int

    def cut_off(self) -> list[str]:
        """Say which runs were cut off, in one sentence for each side."""
        found = []
        for name, trials in zip(self.names, zip(*self.trials, strict=True), strict=True):
            seeds = [str(trial.seed) for trial in trials if trial.is_cut_off]
            if seeds:
                runs = "1 run" if len(seeds) == 1 else f"{len(seeds)} runs"
                found.append(f"{runs} of {name} did not finish (seed {', '.join(seeds)}): its figures say little")
        return found

    def check_same_work(self) -> None:
        """Check that all sides have the same work.

        Raises:
            ManifestError: It differs.
        """
        for trials in self.trials:
            for name, trial in zip(self.names, trials, strict=True):
                _check_same_work(self.names[self.baseline], trials[self.baseline], name, trial)

    def total(self) -> GroupChange:
        """Compare all jobs."""
        return self._change("", [(trials, np.arange(len(trials[0]))) for trials in self.trials], is_total=True)

    def groups(self) -> list[GroupChange]:
        """Group the jobs by work and by ClusterQueue on the baseline, and compare each group."""
        rows: dict[tuple[str, str], list[tuple[_Trials, _Rows]]] = {}
        for trials in self.trials:
            works, queues = trials[self.baseline].works, trials[self.baseline].cluster_queues
            codes = works.codes * len(queues.texts) + queues.codes
            for code, members in rows_by_code(codes):
                work, queue = divmod(code, len(queues.texts))
                rows.setdefault((works.texts[work], queues.texts[queue]), []).append((trials, members))
        return [self._change(work, members) for (work, _), members in sorted(rows.items(), key=lambda item: item[0])]

    def _change(self, work: str, members: Sequence[tuple[_Trials, _Rows]], *, is_total: bool = False) -> GroupChange:
        """Compare some rows of each seed's trials."""
        measured = [_measures(trials, rows, is_total=is_total) for trials, rows in members]
        named = dict.fromkeys(name for of_seed in measured for of_side in of_seed for name in of_side)
        sides = {}
        for index, side in enumerate(self.names):
            n_less = n_more = 0
            for trials, rows in members:
                before, after = (_ranked(trials[it].wait_seconds[rows]) for it in (self.baseline, index))
                n_less += int((after < before).sum())
                n_more += int((after > before).sum())
            changes = {}
            for name in named:
                base, own = ([of_seed[it].get(name) for of_seed in measured] for it in (self.baseline, index))
                changes[name] = Change(_known(own), paired(base, own))
            homes = [] if is_total else [(trials[index].cluster_queues, rows) for trials, rows in members]
            sides[side] = SideChange(cluster_queue=_home(homes), n_less=n_less, n_more=n_more, measures=changes)
        return GroupChange(work=work, n_jobs=sum(len(rows) for _, rows in members), sides=sides)


def _check_same_work(name_a: str, a: Trial, name_b: str, b: Trial) -> None:
    """Check that two runs have the same work.

    Raises:
        ManifestError: It differs.
    """
    remedy = "give all scenarios the same work, and change only their objects or their Configuration"
    if len(a) != len(b):
        raise ManifestError.of(
            f"with seed {a.seed}, {len(a)} jobs arrive in {name_a} and {len(b)} in {name_b}", remedy=remedy
        )
    differs = np.flatnonzero(a.created != b.created)
    if len(differs):
        row = int(differs[0])
        times = f"{a.created[row] / 1e9:g} s in {name_a} and {b.created[row] / 1e9:g} s in {name_b}"
        works = f"{a.works[row]} and {b.works[row]}"
        message = f"with seed {a.seed}, job {row + 1} of {len(a)} ({works}) arrives at {times}"
        raise ManifestError.of(message, remedy=remedy)


def _measures(trials: _Trials, rows: _Rows, *, is_total: bool) -> list[dict[str, float]]:
    # A job that is never admitted has no finite wait, so means cover the jobs admitted on all sides.
    in_all = rows[np.all([np.isfinite(trial.wait_seconds[rows]) for trial in trials], axis=0)]
    return [{**(trial.measures if is_total else {}), **trial.figures(rows, in_all)} for trial in trials]


def _ranked(waits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(np.isnan(waits), np.inf, waits)


def _known(values: Sequence[float | None]) -> Estimate:
    return Estimate(tuple(value for value in values if value is not None))


def _home(members: Sequence[tuple[Labels, _Rows]]) -> str:
    """Return the ClusterQueue of some jobs; empty if there are several."""
    names = {labels.texts[code] for labels, rows in members for code in np.unique(labels.codes[rows]).tolist()}
    return names.pop() if len(names) == 1 else ""
