"""The front: a page that is made when somebody looks."""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path

from kueuecore.simulation.run import Run

__all__ = ["Report"]


class Report:
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
        self._run = run
        self._title = title

    @cached_property
    def html(self) -> str:
        """The page.

        Raises:
            ImportError: The extra `report` is not there.
        """
        from kueuecore.report.page import report_html

        return report_html(self._run, title=self._title)

    def write(self, path: str | Path) -> None:
        """Write the page into a file.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            ImportError: The extra `report` is not there.
            OSError: It can not be written.
        """
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame, the style of the notebook and that of the page leave each other alone.
        frame = 'width="100%" height="800" style="border:0"'
        return f'<iframe title="{escape(self._title)}" {frame} srcdoc="{escape(self.html)}"></iframe>'
