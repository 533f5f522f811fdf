"""Write docs/symptoms.md from tests/incidents: what people see, which command names the cause, and what it says.

    python -m scripts.symptoms_page

The first part of the page is in symptoms_page.txt.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.incidents.incident import Incident, incidents

PAGE = Path(__file__).parents[1] / "docs" / "symptoms.md"
_HEAD = Path(__file__).with_suffix(".txt")
# In the order in which most people meet them.
_SUBJECTS = (
    "Quota",
    "Flavors",
    "Borrowing and preemption",
    "Order in the queue",
    "Namespaces and queues",
    "Admission checks",
    "Evicted and deactivated",
    "Places on nodes",
    "Fair sharing",
    "Jobs and settings",
)
_COLUMNS = "\n| what you see | ask | the answer says | cause |\n|---|---|---|---|\n"


def page() -> str:
    """Return the text of the page."""
    found = sorted(incidents(), key=lambda incident: _SUBJECTS.index(incident.subject))
    grouped = groupby(found, key=lambda incident: incident.subject)
    parts = [_HEAD.read_text(encoding="utf-8")]
    for subject, rows in grouped:
        parts += [f"\n## {subject}\n{_COLUMNS}", *map(_row, rows)]
    return "".join(parts)


def _row(incident: Incident) -> str:
    symptom = f"[{incident.symptom}]({incident.source})" if incident.source else incident.symptom
    command = " ".join(["kueuecore", *(word for word in incident.command if word != "--trusted")])
    says = "<br>".join(f"`{said.replace('|', chr(92) + '|')}`" for said in incident.says)
    return f"| {symptom} | `{command}` | {says} | {incident.cause} |\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
