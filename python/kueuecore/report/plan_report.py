"""The page of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from kueuecore.report.framed import Framed
from kueuecore.studies import Plan

__all__ = ["PlanReport"]


class PlanReport(Framed):
    """Shows how waits depend on quota on one HTML page, with a curve for each plan.

    Like `Report`, it needs neither a network nor scripts.

    Args:
        plans: What `kueuecore.studies.plan` returned, at least one.
        title: The heading of the page.

    Example:
        >>> from kueuecore.scenarios import read_scenario
        >>> from kueuecore.studies import WaitTarget, plan, quota_scales
        >>> scenario = read_scenario("examples/scenario/scenario.yaml")
        >>> plans = [plan(scenario, WaitTarget.parse("p95<=1h"), it, seeds=[1]) for it in quota_scales(scenario)]
        >>> PlanReport(plans).html.count("<svg")
        1
    """

    def __init__(self, plans: Sequence[Plan], *, title: str = "Plan") -> None:
        super().__init__(title=title)
        self._plans = plans

    @cached_property
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """
        from kueuecore.report.plan_page import plan_html

        return plan_html(self._plans, title=self._title)
