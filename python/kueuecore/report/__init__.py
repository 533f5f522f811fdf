"""Shows a run as one HTML page with charts, which works offline and without scripts (extra `report`).

Example:
    >>> from kueuecore.scenarios import read_scenario, run_scenario
    >>> outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
    >>> page = Report(outcome.run, title="Two teams").html
    >>> page.startswith("<!DOCTYPE html>"), page.count("<svg")
    (True, 4)
"""

from kueuecore.report.comparison_report import ComparisonReport
from kueuecore.report.plan_report import PlanReport
from kueuecore.report.report import Report
from kueuecore.report.sweep_report import SweepReport

__all__ = ["ComparisonReport", "PlanReport", "Report", "SweepReport"]
