"""Finds what an upgrade of Kueue changes about a whole run of a scenario, and which of Kueue's changes cause it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.scenarios import Scenario
from kueuecore.studies import Comparison, Trial, compare, run_trial
from kueuecore.upgrades.mixtures import MAX_RUNS, Mixtures, OutOfRunsError
from kueuecore.upgrades.switches import Switch, SwitchKind, settable_gates, switches_between

__all__ = ["FirstDifference", "RunCause", "ScenarioUpgrade", "upgrade_scenario"]


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first job, in order of arrival, that fares otherwise.

    Args:
        work: Its work.
        number: Which job of the run it is, from 1.
        created_seconds: When it arrives, in seconds from the start.
        wait_seconds: How long it waits under either release; NaN: it is never admitted.
        evictions: How often it is evicted under either release.
        cluster_queues: Its ClusterQueue under either release.
    """

    work: str
    number: int
    created_seconds: float
    wait_seconds: tuple[float, float]
    evictions: tuple[int, int]
    cluster_queues: tuple[str, str]


@dataclass(frozen=True, slots=True)
class RunCause:
    """A gate or change without which the new release does not do what it does.

    Args:
        switch: The gate or change.
        without: The figures of all jobs under the new release with this one as in the old one, as of
            `Trial.all_figures`.
        is_settable: Whether the Configuration can set it.
    """

    switch: Switch
    without: Mapping[str, float]
    is_settable: bool


@dataclass(frozen=True, slots=True)
class ScenarioUpgrade:
    """What an upgrade of Kueue changes about a scenario.

    Args:
        old: The old release.
        new: The new release.
        comparison: The runs under both, over seeds.
        seed: The seed with which causes were looked for: the first with which anything differs.
        first: The first job that fares otherwise with that seed; `None`: none does.
        causes: The gates and changes that make the difference with that seed. None of them can be left out.
        switches: All gates and changes that differ between the releases.
        n_runs: How many mixtures of the two releases were run.
        is_stopped: Whether runs ran out before the causes were found.
    """

    old: Release
    new: Release
    comparison: Comparison
    seed: int
    first: FirstDifference | None
    causes: tuple[RunCause, ...]
    switches: tuple[Switch, ...]
    n_runs: int
    is_stopped: bool


def upgrade_scenario(
    old: Scenario,
    new: Scenario,
    *,
    seeds: Sequence[int],
    executor: Executor | None = None,
    most_runs: int = MAX_RUNS,
    progress: Callable[[int, int, int], None] | None = None,
) -> ScenarioUpgrade:
    """Run a scenario under two releases of Kueue, compare, and find what causes the difference.

    The causes are the smallest set of gates and changes with which each job of the old release fares as under the new
    one. They are found by delta debugging over runs of mixtures of the two, with the first seed that shows a
    difference.

    Args:
        old: The scenario for the old release.
        new: The same for the new release.
        seeds: Distinct seeds.
        executor: What runs the seeds; None: one at a time, in this process.
        most_runs: How many mixtures to run at most.
        progress: Called with the number of mixtures run so far, of causes found, and of all differences: one.

    Raises:
        ManifestError: It is a fleet, or something is wrong with it.
    """
    if new.fleet is not None:
        remedy = "compare two scenarios, or a cluster of it alone"
        raise ManifestError.of("causes can be found for one cluster only, not for a fleet", remedy=remedy)
    names = (old.release.name, new.release.name)
    # A release may be compared with itself, and then shows no difference.
    comparison = compare(old, new, names=names if names[0] != names[1] else None, seeds=seeds, executor=executor)
    configurations = (old.cluster.configuration, new.cluster.configuration)
    switches = switches_between(*configurations)
    settable = settable_gates(new.release)

    def trial_of(configuration: Configuration, *, seed: int) -> Trial:
        return run_trial(replace(new, cluster=replace(new.cluster, configuration=configuration)), seed)

    def note(n_runs: int) -> None:
        if progress is not None:
            progress(n_runs, 0, 1)

    for seed in seeds if comparison.is_any else ():
        run = partial(trial_of, seed=seed)
        mixtures = Mixtures(*configurations, switches, run, most=most_runs, progress=note)
        if _is_same(mixtures.before, mixtures.after):
            continue
        first = _first(mixtures.before, mixtures.after)
        causes: tuple[RunCause, ...] = ()
        is_stopped = False
        try:
            found = mixtures.cause(partial(_is_same, mixtures.after))
            causes = tuple(
                RunCause(
                    switch,
                    mixtures.new_with({switch.name: switch.before}).all_figures(),
                    switch.kind is SwitchKind.GATE and switch.name in settable,
                )
                for switch in found
            )
        except OutOfRunsError:
            is_stopped = True
        releases = (old.release, new.release)
        return ScenarioUpgrade(*releases, comparison, seed, first, causes, switches, mixtures.n_runs, is_stopped)
    return ScenarioUpgrade(old.release, new.release, comparison, seeds[0], None, (), switches, 0, is_stopped=False)


def _is_same(a: Trial, b: Trial) -> bool:
    """Return whether each job fares the same in two runs."""
    return (
        np.array_equal(a.wait_seconds, b.wait_seconds, equal_nan=True)
        and np.array_equal(a.evictions, b.evictions)
        and np.array_equal(a.failed, b.failed)
        and np.array_equal(a.lost_seconds, b.lost_seconds)
        and _queues(a) == _queues(b)
    )


def _first(a: Trial, b: Trial) -> FirstDifference | None:
    for row, (before, after) in enumerate(zip(_fates(a), _fates(b), strict=True)):
        # NaN is not itself.
        if repr(before) != repr(after):
            return FirstDifference(
                a.works[row],
                row + 1,
                float(a.created[row]) / 1e9,
                (before[0], after[0]),
                (before[1], after[1]),
                (before[2], after[2]),
            )
    return None


def _fates(trial: Trial) -> list[tuple[float, int, str]]:
    return [*zip(trial.wait_seconds.tolist(), trial.evictions.tolist(), _queues(trial), strict=True)]


def _queues(trial: Trial) -> list[str]:
    return [trial.cluster_queues[row] for row in range(len(trial))]
