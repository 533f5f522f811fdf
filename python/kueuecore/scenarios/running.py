"""Runs a scenario of any kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from kueuecore._arguments import instance
from kueuecore._file_kinds import OF_OBJECTS
from kueuecore._files import OF_TEXT
from kueuecore.errors import ManifestError, OutOfTimeError, Problem
from kueuecore.releases import Release
from kueuecore.scenarios.cluster_scenario import simulate_cluster
from kueuecore.scenarios.edits import Edit, parse_edit
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.time_limits import time_problems
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.run import Progress

__all__ = ["run", "run_scenario"]

_REMEDIES = {
    OF_OBJECTS: "name the objects in a scenario, at `cluster.objects`, or use `kueuecore.settle`, which runs cycles",
    OF_TEXT: "write the scenario to a file, next to those that it names",
}


def run(
    scenario: str | Path | Scenario,
    *,
    seed: int | None = None,
    edits: Sequence[str | Edit] = (),
    release: str | Release | None = None,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> ScenarioOutcome:
    """Run a scenario to its end, as `kueuecore simulate` does: `read_scenario`, then `run_scenario`.

    Args:
        scenario: Its file, or what `read_scenario` returned; only a file takes the other arguments but `progress`.
        seed: Overrides the seed in the file.
        edits: Edits of the scenario and of its objects and jobs (docs/compare.md), such as `"work[0].count=20"`.
        release: The release of Kueue that decides, over that in the file.
        allow_code: Whether `fleet.policy.use` may name a program. It runs with your privileges.
        progress: As in `run_scenario`.

    Returns:
        What happened to each job. A notebook shows it as tables; `outcome.jobs.table()` is one for polars or pandas,
        and `outcome.results` has those of the cluster.

    Raises:
        ManifestError: Everything that is wrong with the scenario.
        UnknownReleaseError: There is no such release.
        TypeError: `scenario` is neither.
        ValueError: The seed is out of range, or a scenario that has been read comes with arguments for a file.

    Example:
        >>> outcome = run("examples/scenario/scenario.yaml", edits=["work[0].count=20"])
        >>> outcome
        ScenarioOutcome(30 jobs, Complete)
        >>> outcome.jobs.table()["wait_seconds"].to_list()[:3]
        [0.0, 0.0, 0.0]
        >>> outcome.results.summary().finished
        30
    """
    if isinstance(scenario, Scenario):
        if seed is not None or edits or release is not None or allow_code:
            raise ValueError("the scenario has been read: pass seed, edits, release and allow_code to read_scenario")
        return run_scenario(scenario, progress=progress)
    if not isinstance(scenario, str | Path):
        raise TypeError(f"scenario must be a path or a Scenario, not {type(scenario).__name__}")
    from kueuecore.scenarios.scenario_reader import read_scenario  # not for one that has been read

    parsed = [parse_edit(edit) if isinstance(edit, str) else edit for edit in edits]
    try:
        read = read_scenario(scenario, seed=seed, edits=parsed, release=release, allow_code=allow_code)
    except ManifestError as error:
        raise error.mapped(_of_python) from None
    try:
        return run_scenario(read, progress=progress)
    except ManifestError as error:
        raise error.in_file(str(scenario)) from None


def _of_python(problem: Problem) -> Problem:
    """Put the remedy of a problem in terms of `run`, which is not the command `kueuecore run`."""
    return replace(problem, remedy=_REMEDIES.get(problem.remedy, problem.remedy))


def run_scenario(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    follow: Collection[str] = (),
) -> ScenarioOutcome:
    """Run a scenario to its end. The same scenario always has the same outcome.

    Args:
        scenario: The scenario.
        progress: Called now and then while a single cluster runs, with its time in nanoseconds since 1970, and the
            numbers of workloads that have arrived and of jobs that have ended.
        checkpoint: Where to save the run of a single cluster periodically, and resume it; the outcome is the same.
        follow: Workloads or jobs, as `namespace/name` or `Kind/namespace/name`, whose history is kept: for a fleet
            their versions, for a single cluster the events of all workloads, which takes memory.

    Raises:
        ManifestError: Everything that is wrong with the objects or jobs; or the scenario runs past April 2262, where 64
            bits of nanoseconds end; or the checkpoint belongs to another run, is damaged, or is not supported, which
            it is not for histories.
    """
    instance("scenario", scenario, Scenario)
    if problems := tuple(time_problems(scenario)):
        raise ManifestError(problems)
    if follow and checkpoint is not None:
        raise ManifestError.of("a checkpoint cannot save histories", remedy="run it without a checkpoint")
    try:
        if scenario.fleet is not None:
            if checkpoint is not None:
                raise ManifestError.of(
                    "a checkpoint cannot save a fleet", field="fleet", remedy="run it without a checkpoint"
                )
            from kueuecore.scenarios.fleet_scenario import simulate_fleet  # imports controllers and API servers

            return simulate_fleet(scenario, scenario.fleet, follow=follow)
        keeps = bool(follow)
        return simulate_cluster(
            scenario, scenario.cluster, progress=progress, checkpoint=checkpoint, keeps_events=keeps
        )
    except OutOfTimeError:
        remedy = "start earlier, or write `until`"
        raise ManifestError.of("the scenario runs past April 2262", field="start", remedy=remedy) from None
