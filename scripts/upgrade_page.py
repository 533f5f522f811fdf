"""Write docs/upgrade.md: what changed in Kueue from one release to the next, and how kueuecore plays it.

    python -m scripts.upgrade_page

The rows are those of `kueuecore/releases/upgrade_rows.yaml`, gates and changes those of `table.json` beside it, and the
text between the tables is `upgrade_page.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from string import Template
from typing import Any

from kueuecore.releases import Change, changes
from kueuecore.releases.upgrade_rows import UpgradeRow, upgrade_rows

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "upgrade.md"
_TABLE: dict[str, Any] = json.loads((ROOT / "python/kueuecore/releases/table.json").read_text(encoding="utf-8"))
# All of the page but the tables.
_TEXT = Template(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
_KUEUE = "https://github.com/kubernetes-sigs/kueue"
# Gates of metrics, caches, encodings and rates of requests, on which no decision depends.
LEFT_OUT = {
    "AssignQueueLabelsForPods",
    "CustomMetricLabels",
    "HighMaxParallelismWithinReconcile",
    "LocalQueueMetrics",
    "MetricForWorkloadCreationLatency",
    "MetricsForCohorts",
    "MultiKueueReuseClientConnectionConfigForWorkers",
    "ReclaimablePods",
    "RemoveFinalizersWithStrictPatch",
    "SchedulerLibraryIntegration",
    "ShortWorkloadNames",
    "SkipAncestorCheckForDeletedWorkloads",
    "TASAssignmentsEncodingByHostnamePrefix",
    "TASCacheNodeMatchResults",
    "TASCacheTopologyTree",
    "TASCachingRemainingResources",
    "TLSOptions",
    "VectorizedResourceRequests",
    "WorkloadIdentifierAnnotations",
}


def page() -> str:
    """Return the whole page."""
    rows = (*upgrade_rows(), *_rows_of_other_changes())
    newest, commit = (
        _TABLE["releases"][-1]["name"],
        [release["commit"] for release in _TABLE["releases"] if release["commit"]][-1],
    )
    notes = [f"[0.{n}]({_KUEUE}/blob/main/CHANGELOG/CHANGELOG-0.{n}.md)" for n in range(15, 21)]
    pulls = sorted({pull for row in rows for pull in row.pulls})
    return _TEXT.substitute(
        kueue=_KUEUE,
        newest=newest,
        line=newest.rpartition(".")[0],
        commit=commit[:12],
        changes="".join(map(_section, sorted({row.line for row in rows}), repeat(rows))),
        defaults="".join(_defaults()),
        gone="".join(_gone()),
        notes="Release notes: " + ",\n".join(notes) + ".",
        sources="".join(f"[#{pull}]: {_KUEUE}/pull/{pull}\n" for pull in pulls),
    )


def _section(line: str, rows: Iterable[UpgradeRow]) -> str:
    """Return the section about a release line."""
    first, _, minor = line.partition(".")
    head = f"\n## {first}.{int(minor) - 1} to {line}\n\n"
    head += "| What changed | In | Look for | Played by | Source |\n|---|---|---|---|---|\n"
    return head + "".join(_row(row) for row in rows if row.line == line)


def played_by(row: UpgradeRow) -> tuple[list[str], list[Change]]:
    """Return the gates and the changes that play a row, of those that kueuecore has."""
    gates = {gate["name"] for gate in _TABLE["gates"]}
    others = [change for change in changes() if {*change.pulls} & {*row.pulls} or change.name in row.changes]
    return [gate for gate in row.gates if gate in gates], others


def _rows_of_other_changes() -> Iterator[UpgradeRow]:
    """Yield a row for each change that kueuecore plays and no row is about."""
    known = {pull for row in upgrade_rows() for pull in row.pulls}
    named = {name for row in upgrade_rows() for name in row.changes}
    for change in changes():
        if not known & {*change.pulls} and change.name not in named:
            firsts = [value.removesuffix("-devel") for value in reversed(change.since)]
            # Lines after the first that has it from its `.0` on have it, too.
            whole = [first for first in firsts if first.endswith(".0")][-1]
            patches = ", ".join(first for first in firsts if not first.endswith(".0"))
            since = f"{whole}; {patches}" if patches else whole
            proof = change.proof if is_new(change) else ""
            yield UpgradeRow(
                whole.rpartition(".")[0], change.what, since, "nothing in manifests", change.pulls, known=proof
            )


def is_new(change: Change) -> bool:
    """Return whether the newest release alone has a change: nobody has compared it with a running one."""
    return change.since == (_TABLE["releases"][-1]["name"],)


def _row(row: UpgradeRow) -> str:
    gates, others = played_by(row)
    named = f"gate{'' if len(gates) == 1 else 's'} {', '.join(gates)}" if gates else ""
    shipped = f"{row.setting} of the shipped Configuration" if row.setting else ""
    played = [named, shipped, ", ".join(other.name for other in others)]
    mark = f" [Seen](upgrade-worlds.md#{row.world})" if row.world else " *Run.*" if row.is_run else ""
    mark += f" *{row.known.capitalize()}.*" if row.known else ""
    text = row.text if not mark or row.text.endswith(".") else f"{row.text}."
    cells = [
        text + mark,
        row.since,
        row.look_for,
        "as before" if row.as_before else "; ".join(filter(None, played)) or "not played",
        ", ".join(f"[#{pull}]" for pull in row.pulls),
    ]
    return _table_row(cell.replace("|", "\\|") for cell in cells)


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _defaults() -> Iterator[str]:
    """Yield the table of gates whose state differs between releases."""
    lines = dict.fromkeys(release["line"] for release in _TABLE["releases"])
    yield _table_row(["Gate", *lines])
    yield f"|---|{'---|' * len(lines)}\n"
    for gate in _gates():
        cells = [_of_line(gate, line) for line in lines]
        if len({*cells}) > 1 and not _is_gone(gate) and gate["name"] not in LEFT_OUT:
            yield _table_row([gate["name"], *cells])


def _of_line(gate: dict[str, Any], line: str) -> str:
    """Return a gate's state in the first release of a line, and where it changes within the line."""
    names = [release["name"] for release in _TABLE["releases"] if release["line"] == line and not release["commit"]]
    cell = before = _state(gate, names[0])
    for name in names[1:]:
        state = _state(gate, name)
        cell += "" if state == before else f"; {name}: {state}"
        before = state
    return cell


def _state(gate: dict[str, Any], release: str) -> str:
    """Return a gate's state in a release: `on`, `off`, `on, locked` or `-`."""
    pasts = [past for past in gate["history"] if _key(past[0]) <= _key(release)]
    if not pasts or not pasts[-1][1]:
        return "-"
    return ("on" if pasts[-1][2] else "off") + (", locked" if pasts[-1][3] else "")


def _gone() -> Iterator[str]:
    for gate in _gates():
        if _is_gone(gate):
            since, *_, remedy = gate["history"][-1]
            yield _table_row([gate["name"], since.rpartition(".")[0], remedy])


def _gates() -> list[dict[str, Any]]:
    """Return all gates by name."""
    return sorted(_TABLE["gates"], key=lambda gate: str(gate["name"]))


def _is_gone(gate: dict[str, Any]) -> bool:
    """Return whether the newest release does not have a gate that an older one had."""
    _, stage, _, _, remedy = gate["history"][-1]
    return not stage and bool(remedy)


def _key(version: str) -> tuple[int, ...]:
    first, _, development = version.partition("-")
    numbers = [*map(int, first.split("."))]
    return (*numbers[:2], -1) if development else tuple(numbers)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
