"""Regenerate the pictures in docs/: parts of reports that commands on the pages write.

python -m scripts.pictures [FOLDER]
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kueuecore.cli import main as run_command

_TEAMS = "simulate examples/scenario/scenario.yaml"
_RACKS = "simulate examples/lost-rack/scenario.yaml"
_FAIR_SHARING = (
    "compare examples/fair-sharing-month/scenario.yaml --set "
    "'cluster.configuration.fairSharing.preemptionStrategies=[LessThanOrEqualToFinalShare, LessThanInitialShare]'"
)
_QUOTA = "plan examples/how-much-quota/scenario.yaml --wait 'p95<=1h'"
_CPU = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"
_SWEEP = f"sweep examples/scenario/scenario.yaml --seeds 6 --grid '{_CPU}=[3, 4, 5, 6]'"
_SWEEP_OF_TWO = (
    f"sweep examples/scenario/scenario.yaml --grid '{_CPU}=[3, 4, 5, 6]' --grid 'work[0].count=[20, 40, 60, 80]'"
)
_FLEET = "simulate examples/multikueue/scenario.yaml"
# The file, the command that writes the report, the heading of the figure.
PICTURES = (
    ("two-teams-usage.svg", _TEAMS, "Usage of default/cpu"),
    ("two-teams-waits.svg", _TEAMS, "Waits"),
    ("two-teams-jobs.svg", _TEAMS, "Jobs"),
    ("lost-rack-nodes.svg", _RACKS, "Racks and nodes"),
    ("fair-sharing-waits.svg", _FAIR_SHARING, "By how much"),
    ("fleet-cpu.svg", _FLEET, "cpu in use"),
    ("fleet-jobs.svg", _FLEET, "Jobs"),
    ("quota-waits.svg", _QUOTA, "Waits by quota of a100/nvidia.com/gpu"),
    ("swept-waits.svg", _SWEEP, "P95 wait by nominalQuota"),
    ("swept-waits-of-two.svg", _SWEEP_OF_TWO, "P95 wait by nominalQuota and count"),
)
# Readable on a light and on a dark page.
_GREY = "#7a8594"


def main(folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, command, heading in PICTURES:
        (picture,) = re.findall(rf'aria-label="{heading}: .*?>(<svg.*?</svg>)', _page(command), re.DOTALL)
        (folder / file).write_text(picture.replace("currentColor", _GREY) + "\n", encoding="utf-8")


@cache
def _page(command: str) -> str:
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        path = Path(folder) / "out.html"
        code = run_command([*shlex.split(command), "--quiet", "--report", str(path)])
        assert code == 0, command
        return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
