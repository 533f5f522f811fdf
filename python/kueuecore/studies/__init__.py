"""Studies: many runs of scenarios, side by side.

Example:
    >>> from kueuecore.scenarios import parse_edit, read_scenario
    >>> before = read_scenario("examples/scenario/scenario.yaml")
    >>> edit = parse_edit("ClusterQueue/team-*:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=6")
    >>> after = read_scenario("examples/scenario/scenario.yaml", edits=[edit])
    >>> comparison = compare(before, after, seeds=range(2))
    >>> comparison.total["B"]["mean_wait_seconds"].difference.values[0] < 0
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.studies.comparison import Change, Comparison, GroupChange, SideChange, compare
    from kueuecore.studies.estimates import CONFIDENCE, Estimate
    from kueuecore.studies.planning import Plan, PlanPoint, plan
    from kueuecore.studies.quota_scaling import Quota, QuotaScale, quota_scales
    from kueuecore.studies.running import processes, run_all
    from kueuecore.studies.sweeping import Axis, Journal, Sweep, drawn_points, grid_points, sweep
    from kueuecore.studies.trial import Trial, run_trial
    from kueuecore.studies.wait_target import WaitTarget

__all__ = [
    "CONFIDENCE",
    "Axis",
    "Change",
    "Comparison",
    "Estimate",
    "GroupChange",
    "Journal",
    "Plan",
    "PlanPoint",
    "Quota",
    "QuotaScale",
    "SideChange",
    "Sweep",
    "Trial",
    "WaitTarget",
    "compare",
    "drawn_points",
    "grid_points",
    "plan",
    "processes",
    "quota_scales",
    "run_all",
    "run_trial",
    "sweep",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.studies.comparison": "Change Comparison GroupChange SideChange compare",
        "kueuecore.studies.estimates": "CONFIDENCE Estimate",
        "kueuecore.studies.planning": "Plan PlanPoint plan",
        "kueuecore.studies.quota_scaling": "Quota QuotaScale quota_scales",
        "kueuecore.studies.running": "processes run_all",
        "kueuecore.studies.sweeping": "Axis Journal Sweep drawn_points grid_points sweep",
        "kueuecore.studies.trial": "Trial run_trial",
        "kueuecore.studies.wait_target": "WaitTarget",
    },
)
