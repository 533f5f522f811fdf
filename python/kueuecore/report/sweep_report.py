"""The page of a sweep."""

from __future__ import annotations

from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.studies import Sweep

__all__ = ["SweepReport"]


class SweepReport(Framed):
    """Shows how jobs fare at each point of a sweep on one HTML page, with a figure for each measure that varies.

    Like `Report`, it needs neither a network nor scripts.

    Args:
        sweep: What `kueuecore.studies.sweep` returned.
        title: The heading of the page.
        by: A figure (`Sweep.names`) to rank points by; by default the fewest jobs never admitted, then the shortest
            mean wait.

    Raises:
        ValueError: No run has such a figure.

    Example:
        >>> from kueuecore.scenarios import parse_target, read_scenario
        >>> from kueuecore.studies import Axis, grid_points, sweep
        >>> points = grid_points([Axis(parse_target("work[0].count"), (30, 60))])
        >>> found = sweep(lambda edits: read_scenario("examples/scenario/scenario.yaml", edits=edits), points)
        >>> ">Mean wait by count</h2>" in SweepReport(found).html
        True
    """

    def __init__(self, sweep: Sweep, *, title: str = "Sweep", by: str | None = None) -> None:
        super().__init__(title=title)
        if by is not None and by not in sweep.names:
            raise ValueError(f"no run has {by}")
        self._sweep = sweep
        self._by = by

    @cached_property
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """
        from kueuecore.report.sweep_page import sweep_html

        return sweep_html(self._sweep, title=self._title, by=self._by)
