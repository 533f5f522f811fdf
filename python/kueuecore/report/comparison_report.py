"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.studies import Comparison

__all__ = ["ComparisonReport"]


class ComparisonReport(Framed):
    """Compares configurations on one HTML page: who waits less, who waits more, and by how much.

    Like `Report`, it needs neither a network nor scripts.

    Args:
        comparison: What `kueuecore.studies.compare` returned.
        title: The heading of the page.
        sides: What each side is, by its name, such as its file or what it changes in the first.

    Example:
        >>> from kueuecore.scenarios import parse_edit, read_scenario
        >>> from kueuecore.studies import compare
        >>> before = read_scenario("examples/scenario/scenario.yaml")
        >>> after = read_scenario("examples/scenario/scenario.yaml", edits=[parse_edit("cluster.cycle=10s")])
        >>> ComparisonReport(compare(before, after, seeds=[1])).html.count("<svg")
        2
    """

    def __init__(
        self, comparison: Comparison, *, title: str = "Comparison", sides: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(title=title)
        self._comparison = comparison
        self._sides = dict(sides or {})

    @cached_property
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """
        from kueuecore.report.comparison_page import comparison_html

        return comparison_html(self._comparison, title=self._title, sides=self._sides)
