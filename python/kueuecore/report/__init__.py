"""Shows a run as one HTML page with charts, which works offline and without scripts (extra `report`).

Example:
    >>> from kueuecore.scenarios import read_scenario, run_scenario
    >>> outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
    >>> page = Report(outcome.run, title="Two teams").html
    >>> page.startswith("<!DOCTYPE html>"), page.count("<svg")
    (True, 4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.report.comparison_report import ComparisonReport
    from kueuecore.report.fleet_report import FleetReport
    from kueuecore.report.plan_report import PlanReport
    from kueuecore.report.report import Report
    from kueuecore.report.sweep_report import SweepReport

__all__ = ["ComparisonReport", "FleetReport", "PlanReport", "Report", "SweepReport"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.report.comparison_report": "ComparisonReport",
        "kueuecore.report.fleet_report": "FleetReport",
        "kueuecore.report.plan_report": "PlanReport",
        "kueuecore.report.report": "Report",
        "kueuecore.report.sweep_report": "SweepReport",
    },
)
