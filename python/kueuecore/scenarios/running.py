"""Runs a scenario of any kind."""

from __future__ import annotations

from collections.abc import Collection

from kueuecore._arguments import instance
from kueuecore.errors import ManifestError, OutOfTimeError
from kueuecore.scenarios.cluster_scenario import simulate_cluster
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.time_limits import time_problems
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.run import Progress

__all__ = ["run_scenario"]


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
