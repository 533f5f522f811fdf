"""Write the pictures of docs/ again: parts of reports on examples.

python -m scripts.pictures [FOLDER]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from kueuecore.report import ComparisonReport, PlanReport, Report
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario
from kueuecore.studies import WaitTarget, compare, plan, quota_scales

# The file, the example, the heading of the figure.
PICTURES = (
    ("two-teams-usage.svg", "scenario", "Usage of default/cpu"),
    ("two-teams-waits.svg", "scenario", "Waits"),
    ("two-teams-jobs.svg", "scenario", "Jobs"),
    ("lost-rack-nodes.svg", "lost-rack", "Racks and nodes"),
    ("fair-sharing-waits.svg", "fair-sharing-month", "By how much"),
    ("quota-waits.svg", "how-much-quota", "Waits by quota of a100/nvidia.com/gpu"),
)
# What can be read on a light and on a dark page.
_GREY = "#7a8594"


def main(folder: Path) -> None:
    """Write all of them."""
    pages: dict[str, str] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for file, example, heading in PICTURES:
        if example not in pages:
            pages[example] = _PAGES.get(example, _run)(_read(example))
        (picture,) = re.findall(rf'aria-label="{heading}: .*?>(<svg.*?</svg>)', pages[example], re.DOTALL)
        (folder / file).write_text(picture.replace("currentColor", _GREY) + "\n", encoding="utf-8")


def _read(example: str, *edits: str) -> Scenario:
    return read_scenario(f"examples/{example}/scenario.yaml", edits=[parse_edit(it) for it in edits])


def _run(scenario: Scenario) -> str:
    run = run_scenario(scenario).run
    assert run is not None
    return Report(run).html


def _with_fair_sharing(scenario: Scenario) -> str:
    strategies = "[LessThanOrEqualToFinalShare, LessThanInitialShare]"
    fair = _read("fair-sharing-month", f"cluster.configuration.fairSharing.preemptionStrategies={strategies}")
    return ComparisonReport(compare(scenario, fair, seeds=range(scenario.seed, scenario.seed + 10))).html


def _quota(scenario: Scenario) -> str:
    target, seeds = WaitTarget.parse("p95<=1h"), range(scenario.seed, scenario.seed + 5)
    return PlanReport([plan(scenario, target, it, seeds=seeds) for it in quota_scales(scenario)]).html


# What the READMEs of these examples show is not one run.
_PAGES: dict[str, Callable[[Scenario], str]] = {"fair-sharing-month": _with_fair_sharing, "how-much-quota": _quota}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
