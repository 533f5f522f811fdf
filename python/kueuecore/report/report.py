"""The page of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.simulation.left_out import LeftOut
from kueuecore.simulation.run import Run

__all__ = ["Report"]


class Report(Framed):
    """Shows a run on one HTML page: usage, queues, waits, jobs and their preemptors, racks and nodes, cohorts.

    The page needs neither a network nor scripts; the same run gives the same bytes. A notebook displays it. Requires
    the extra `report`.

    Args:
        run: What `simulate`, `VirtualCluster.run` or `run_scenario(...).run` returned.
        title: The heading of the page.
        left_out: The jobs of traces that the run leaves out: `ScenarioOutcome.left_out`.

    Example:
        >>> from kueuecore.scenarios import read_scenario, run_scenario
        >>> outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
        >>> "13 preemptions" in Report(outcome.run).html
        True
    """

    def __init__(self, run: Run, *, title: str = "Simulation", left_out: Sequence[LeftOut] = ()) -> None:
        super().__init__(title=title)
        self._run, self._left_out = run, tuple(left_out)

    @cached_property
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """
        from kueuecore.report.page import report_html

        return report_html(self._run, title=self._title, left_out=self._left_out)
