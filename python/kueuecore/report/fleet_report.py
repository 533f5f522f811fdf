"""The page of a fleet."""

from __future__ import annotations

from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.scenarios.outcomes import ScenarioOutcome

__all__ = ["FleetReport"]


class FleetReport(Framed):
    """Shows a run of a fleet on one HTML page: where jobs ran, the quota in use, who waits, waits, jobs, outages.

    Like `Report`, it needs neither a network nor scripts.

    Args:
        outcome: What `run_scenario` or `kueuecore.run` returned for a fleet.
        title: The heading of the page.

    Raises:
        ValueError: It is the outcome of a single cluster.

    Example:
        >>> from kueuecore.scenarios import run
        >>> FleetReport(run("examples/multikueue/scenario.yaml")).html.count("<svg")
        5
    """

    def __init__(self, outcome: ScenarioOutcome, *, title: str = "Simulation of a fleet") -> None:
        super().__init__(title=title)
        if outcome.fleet is None:
            raise ValueError("the outcome is that of one cluster; use Report(outcome.run)")
        self._outcome, self._results = outcome, outcome.fleet

    @cached_property
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """
        from kueuecore.report.fleet_page import fleet_html

        return fleet_html(self._outcome, self._results, title=self._title)
