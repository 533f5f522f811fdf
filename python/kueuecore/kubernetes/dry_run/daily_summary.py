"""The summary of a dry run's day, as data and as a page."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass

from kueuecore._json import JsonObject
from kueuecore._text import counted
from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.difference_memory import Difference, DifferenceMemory
from kueuecore.kubernetes.dry_run.judge import Verdict
from kueuecore.times import SECOND_NS, format_time

__all__ = ["DailySummary"]

_MOST_EXAMPLES = 3
_MOST_GROUPS = 50


@dataclass(frozen=True, slots=True)
class DailySummary:
    """What a dry run has found since the last summary.

    Args:
        since: Its beginning, in nanoseconds since 1970.
        until: Its end.
        kueue: The release of Kueue.
        memory: The counts and the differences.
    """

    since: int
    until: int
    kueue: str
    memory: DifferenceMemory

    @property
    def sentence(self) -> str:
        """Return the counts for a log."""
        n = {verdict: sum(c for (_, v), c in self.memory.counts.items() if v == verdict) for verdict in Verdict}
        said = counted(n[Verdict.AGREED] + n[Verdict.DIFFERED], "decision")
        return f"{said} judged: {n[Verdict.AGREED]} agreed, {n[Verdict.DIFFERED]} differed; {n[Verdict.UNJUDGED]} not"

    def to_json(self) -> bytes:
        """Return it as JSON."""
        plain = {
            "since": _time(self.since),
            "until": _time(self.until),
            "kueue": self.kueue,
            "decisions": self._table(),
            "seenLate": dict(self.memory.reasons.most_common()),
            "notes": self.memory.notes,
            "differences": [
                {"what": shape, "count": sum(row.count for row in rows), "examples": [_plain(row) for row in rows]}
                for shape, rows in self._groups()
            ],
        }
        return json.dumps(plain, indent=2).encode() + b"\n"

    def to_markdown(self) -> bytes:
        """Return it as a page."""
        lines = [
            f"# Dry run beside Kueue {self.kueue}, {_time(self.since)} to {_time(self.until)}",
            "",
            f"{self.sentence}.",
            "",
            "| decision | agreed | differed | not judged |",
            "|---|---|---|---|",
            *(
                f"| {kind} | {row['agreed']} | {row['differed']} | {row['unjudged']} |"
                for kind, row in self._table().items()
            ),
            "",
        ]
        if groups := self._groups():
            lines += ["## Differences", ""]
            for shape, rows in groups:
                lines += [f"- {_cell(shape)}: {counted(sum(row.count for row in rows), 'time')}"]
                lines += [
                    f"  - {row.workload}: {_cell(row.why)}{f' ([state]({row.state}))' if row.state else ''}"
                    for row in rows[:_MOST_EXAMPLES]
                ]
            lines += [""]
        if self.memory.reasons:
            lines += ["## Where Kueue had seen another state", ""]
            lines += [f"- {count} x {_cell(reason)}" for reason, count in self.memory.reasons.most_common(_MOST_GROUPS)]
            lines += [""]
        if self.memory.notes:
            lines += ["## What happened to Kueue and the watches", "", *(f"- {_cell(it)}" for it in self.memory.notes)]
        return "\n".join([*lines, ""]).encode("utf-8", "replace")

    def _table(self) -> dict[str, dict[str, int]]:
        return {
            kind.value: {verdict.value: self.memory.counts[kind.value, verdict.value] for verdict in Verdict}
            for kind in Kind
        }

    def _groups(self) -> list[tuple[str, list[Difference]]]:
        groups: dict[str, list[Difference]] = defaultdict(list)
        for found in self.memory.differences(since=self.since):
            groups[found.shape].append(found)
        order = sorted(groups.items(), key=lambda group: (-sum(row.count for row in group[1]), group[0]))
        return order[:_MOST_GROUPS]


def _plain(row: Difference) -> JsonObject:
    return {**asdict(row), "first": _time(row.first), "last": _time(row.last)}


def _time(at: int) -> str:
    return format_time(at // SECOND_NS * SECOND_NS)


def _cell(text: str) -> str:
    """Return text of a cluster so that it stays in its line and means nothing to Markdown."""
    plain = " ".join(text.split())
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>|#!" else char for char in plain)
