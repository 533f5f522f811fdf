"""Write the pictures of docs/ again: parts of reports on examples.

python -m scripts.pictures [FOLDER]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kueuecore.report import Report
from kueuecore.scenarios import read_scenario, run_scenario

# The file, the example, the heading of the figure.
PICTURES = (
    ("two-teams-usage.svg", "scenario", "Usage of default/cpu"),
    ("two-teams-waits.svg", "scenario", "Waits"),
    ("two-teams-jobs.svg", "scenario", "Jobs"),
    ("lost-rack-nodes.svg", "lost-rack", "Racks and nodes"),
)
# What can be read on a light and on a dark page.
_GREY = "#7a8594"


def main(folder: Path) -> None:
    """Write all of them."""
    pages: dict[str, str] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for file, example, heading in PICTURES:
        if example not in pages:
            run = run_scenario(read_scenario(f"examples/{example}/scenario.yaml")).run
            assert run is not None
            pages[example] = Report(run).html
        (picture,) = re.findall(rf'aria-label="{heading}: .*?>(<svg.*?</svg>)', pages[example], re.DOTALL)
        (folder / file).write_text(picture.replace("currentColor", _GREY) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
