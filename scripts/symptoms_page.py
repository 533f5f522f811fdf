"""Write docs/symptoms.md: what people see, which command names the cause, and what it says, from tests/incidents.

python -m scripts.symptoms_page
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.incidents.incident import Incident, incidents

PAGE = Path(__file__).parents[1] / "docs" / "symptoms.md"
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
_HEAD = """# Symptoms and causes

<!-- written by `make symptoms-page` from tests/incidents -->

Find what you see, and ask. On a cluster the commands are as below; for a dump, name its files first: `kueuecore explain dump.yaml --trusted
lab/train`. A link leads to where such a case was reported or discussed. Each row is [a file of objects](../tests/incidents) with the
question, the answer and what helped, which tests ask from the file and from a cluster; ask it yourself:

```sh
kueuecore explain tests/incidents/quota-used.yaml lab/train
```

What would help in your case, [`kueuecore unblock`](unblock.md) tries out.
"""
_COLUMNS = "\n| what you see | ask | the answer says | cause |\n|---|---|---|---|\n"


def page() -> str:
    """Return the text of the page."""
    found = sorted(incidents(), key=lambda incident: _SUBJECTS.index(incident.subject))
    grouped = groupby(found, key=lambda incident: incident.subject)
    return _HEAD + "".join(f"\n## {subject}\n{_COLUMNS}{''.join(map(_row, rows))}" for subject, rows in grouped)


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
