"""The page of a run."""

from __future__ import annotations

from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.simulation.run import Run

__all__ = ["Report"]


class Report(Framed):
    """A run as one page of HTML: usage, queues, waits, jobs with arrows from preemptors, racks and nodes, cohorts.

    The page needs neither a network nor scripts; the same run gives the same bytes. A notebook shows it. It takes the
    extra `report`.

    Args:
        run: What `simulate`, `VirtualCluster.run` or `run_scenario(...).run` returned.
        title: The heading of the page.

    Example:
        >>> from kueuecore.scenarios import read_scenario, run_scenario
        >>> outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
        >>> "13 preemptions" in Report(outcome.run).html
        True
    """

    def __init__(self, run: Run, *, title: str = "Simulation") -> None:
        super().__init__(title=title)
        self._run = run

    @cached_property
    def html(self) -> str:
        """The page.

        Raises:
            ImportError: The extra `report` is not there.
        """
        from kueuecore.report.page import report_html

        return report_html(self._run, title=self._title)
