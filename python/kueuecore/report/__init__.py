"""A run as one page of HTML with pictures, which works offline and without scripts (extra `report`).

Example:
    >>> from kueuecore.scenarios import read_scenario, run_scenario
    >>> outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
    >>> page = report_html(outcome.run, title="Two teams")
    >>> page.startswith("<!DOCTYPE html>"), page.count("<svg") >= 4
    (True, True)
"""

from kueuecore.report.page import report_html

__all__ = ["report_html"]
