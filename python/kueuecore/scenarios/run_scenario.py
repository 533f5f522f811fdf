"""Running a scenario, whatever it is of."""

from __future__ import annotations

from kueuecore._arguments import instance
from kueuecore.errors import ManifestError, OutOfTimeError
from kueuecore.scenarios.cluster_scenario import simulate_cluster
from kueuecore.scenarios.fleet_scenario import simulate_fleet
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.time_limits import time_problems
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.run import Progress

__all__ = ["run_scenario"]


def run_scenario(
    scenario: Scenario, *, progress: Progress | None = None, checkpoint: Checkpoint | None = None
) -> ScenarioOutcome:
    """Run a scenario to its end. The same scenario always comes to the same.

    Args:
        scenario: The scenario.
        progress: Is called now and then while one cluster runs, with its time in nanoseconds since 1970, how many
            workloads have come and how many jobs have ended.
        checkpoint: Where the run of one cluster is saved now and then, and taken up; it comes to the same.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs; or the scenario goes on beyond April 2262,
            where 64 bits of nanoseconds end; or the checkpoint is of another run, damaged, or of what is not saved.
    """
    instance("scenario", scenario, Scenario)
    if problems := tuple(time_problems(scenario)):
        raise ManifestError(problems)
    try:
        if scenario.fleet is not None:
            if checkpoint is not None:
                raise ManifestError.of("no checkpoint has a fleet", field="fleet", remedy="run it without a checkpoint")
            return simulate_fleet(scenario, scenario.fleet)
        return simulate_cluster(scenario, scenario.cluster, progress=progress, checkpoint=checkpoint)
    except OutOfTimeError:
        remedy = "begin earlier, or write `until`"
        raise ManifestError.of("the scenario runs past April 2262", field="start", remedy=remedy) from None
