"""Running a scenario, whatever it is of."""

from __future__ import annotations

from kueuecore.scenarios.fleets import simulate_fleet
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.single import simulate_cluster

__all__ = ["run_scenario"]


def run_scenario(scenario: Scenario) -> ScenarioOutcome:
    """Run a scenario to its end. The same scenario always comes to the same.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs.
    """
    if scenario.fleet is not None:
        return simulate_fleet(scenario, scenario.fleet)
    return simulate_cluster(scenario, scenario.cluster)
