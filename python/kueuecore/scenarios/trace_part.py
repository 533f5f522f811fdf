"""The traces of a scenario: recorded jobs in addition to its work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kueuecore._fields import Fields, shown
from kueuecore.errors import ManifestError
from kueuecore.simulation.left_out import LeftOut
from kueuecore.submissions import Submissions
from kueuecore.traces import Trace, TraceFormat, TraceRules, read_rules, read_trace
from kueuecore.traces.queue_names import label_of
from kueuecore.traces.trace_file import ROWS_LIMIT

__all__ = ["TracePart", "read_traces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """A trace and its rules.

    Args:
        name: The prefix of job names, followed by a hyphen and a number.
        trace: The jobs.
        rules: The rules that assign queues.
    """

    name: str
    trace: Trace
    rules: TraceRules

    @property
    def left_out(self) -> LeftOut:
        """The jobs of its file that are not among the submissions."""
        n_in_file = len(self.trace) + sum(self.trace.dropped.values())
        return LeftOut(trace=self.name, n_in_file=n_in_file, reasons=self.trace.scaled(self.rules).dropped)

    @property
    def n_jobs(self) -> int:
        """How many jobs are among the submissions."""
        return self.left_out.n_in_file - self.left_out.n_jobs

    def submissions(self) -> tuple[Submissions, ...]:
        """Return the jobs as Workloads that arrive during the scenario, a batch for each namespace.

        Raises:
            ManifestError: The rules do not fit the trace, which cannot happen in a scenario read from a file.
        """
        return self.trace.submissions(self.rules, prefix=f"{self.name}-")


def read_traces(top: Fields, folder: Path) -> tuple[TracePart, ...]:
    """Read the traces that a scenario names under `traces`, and record problems with their positions.

    Args:
        top: The scenario.
        folder: The folder that file names are relative to.
    """
    parts: list[TracePart] = []
    names: set[str] = set()
    for section in top.parts("traces"):
        part = _read(section, folder)
        section.end()
        if part is None:
            continue
        if part.name in names:
            remedy = "give each trace its own `name`"
            section.complain("name", f"Duplicate value: {shown(part.name)}", remedy)
        names.add(part.name)
        parts.append(part)
        if sum(len(part.trace) for part in parts) > ROWS_LIMIT:
            section.complain("file", f"the traces have more than {ROWS_LIMIT} jobs together", "leave some of them out")
            break
    if top.plain.get("traces") is not None and top.plain.get("fleet") is not None:
        top.complain("traces", "traces are for one cluster", "remove them, or write cluster instead of fleet")
    return tuple(parts)


def _read(section: Fields, folder: Path) -> TracePart | None:
    trace_format = section.text("format", one_of=[*TraceFormat])
    given_name, n_problems = section.text("name"), len(section.problems)
    if given_name and given_name != label_of(given_name):
        section.complain("name", f"Invalid value: {shown(given_name)}", f"write {label_of(given_name)}")
    trace_path, rules_path = _path(section, "file", folder), _path(section, "rules", folder)
    if trace_path is None or rules_path is None:
        return None
    try:
        rules = read_rules(rules_path)
        trace = read_trace(trace_path, trace_format=trace_format or None, columns=rules.columns, fields=rules.fields())
        # Fails here if the rules do not fit the trace, so that a scenario that was read can run.
        trace.submissions(rules)
    except ManifestError as error:
        section.problems += error.problems
        return None
    if len(section.problems) > n_problems:
        return None
    stem = trace_path.name.split(".", 1)[0]
    return TracePart(name=given_name or label_of(stem), trace=trace, rules=rules)


def _path(section: Fields, name: str, folder: Path) -> Path | None:
    value = section.text(name)
    if not section.has(name, "name a file"):
        return None
    if not value or any(ord(row) < ord(" ") for row in value):
        section.complain(name, f"Invalid value: {shown(value)}", "name a file")
        return None
    return folder / value
