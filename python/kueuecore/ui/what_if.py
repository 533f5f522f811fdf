"""The form that tries changes on a copy: quotas, the priority of a workload, jobs, and edits of any field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kueuecore._json import list_at, text_at
from kueuecore._text import quoted
from kueuecore.cli.asking import ask
from kueuecore.cli.state_source import StateSource
from kueuecore.errors import UnknownObjectError
from kueuecore.states import QuotaRow, WorkloadState
from kueuecore.ui.questions import Answer, answer_of
from kueuecore.ui.state_view import StateView

__all__ = ["QuotaField", "QuotaRowFields", "WhatIfForm"]

_LIMITS = (("nominalQuota", "nominal"), ("borrowingLimit", "borrowing_limit"), ("lendingLimit", "lending_limit"))
_WORDS = {"nominalQuota": "nominal quota", "borrowingLimit": "borrowing limit", "lendingLimit": "lending limit"}
# What removes a limit.
_NONE = "none"
# The nodes whose quotas are offered; any other is reached by an edit.
_MOST_ROWS = 24


@dataclass(frozen=True, slots=True)
class QuotaField:
    """A field of the form for one limit of one quota.

    Args:
        name: Its name in the form.
        label: What it is.
        now: Its present value.
        target: The edit that sets it, without the value.
        path: The same as errors name it.
        value: What the reader has written; empty: nothing changes.
    """

    name: str
    label: str
    now: str
    target: str
    path: str
    value: str = ""

    @property
    def edit(self) -> str:
        """The edit that the reader asks for."""
        return f"{self.target}={'null' if self.value.casefold() == _NONE else self.value}"


@dataclass(frozen=True, slots=True)
class QuotaRowFields:
    """The fields of one quota.

    Args:
        title: Whose quota of what it is.
        kind: `ClusterQueue` or `Cohort`.
        of: Its name.
        fields: The fields.
    """

    title: str
    kind: str
    of: str
    fields: Sequence[QuotaField]

    @property
    def is_changed(self) -> bool:
        """Whether the reader has written anything here."""
        return any(field.value for field in self.fields)


@dataclass(frozen=True)
class WhatIfForm:
    """The form, as it was filled in.

    Args:
        queue: The ClusterQueue whose quotas it offers, with those of the cohorts above.
        workload: The workload that it is about, if it is about one.
        rows: The quotas.
        priority: A priority for that workload.
        job: Objects in YAML.
        edits: Edits, one a line.
        deletions: Objects to delete, one a line.
    """

    queue: str
    workload: WorkloadState | None
    rows: Sequence[QuotaRowFields]
    priority: str = ""
    job: str = ""
    edits: str = ""
    deletions: str = ""
    answer: Answer | None = field(default=None)

    @classmethod
    def of(cls, view: StateView, asked: Mapping[str, str]) -> WhatIfForm:
        """Read what was filled in.

        Args:
            view: The state.
            asked: The parameters of the request.

        Raises:
            UnknownObjectError: It names a workload or a queue that does not exist.
        """
        workload = None
        key = asked.get("workload", "")
        if key:
            namespace, _, name = key.partition("/")
            workload = view.engine.workload(name, namespace=namespace)
        queue = asked.get("queue", "") or (workload.cluster_queue if workload else None) or ""
        found = [_row(view, row, asked) for row in _chain(view.quota, queue)[:_MOST_ROWS]] if queue else []
        rows = tuple(row for row in found if row.fields)
        priority, edits, deletions = (asked.get(name, "").strip() for name in ("priority", "edits", "deletions"))
        job = asked.get("job", "").replace("\r\n", "\n")
        return cls(queue, workload, rows, priority=priority, job=job, edits=edits, deletions=deletions)

    @property
    def asks(self) -> dict[str, str]:
        """What was filled in, for the address of a later question."""
        found = {field.name: field.value for row in self.rows for field in row.fields if field.value}
        for name in ("queue", "priority", "job", "edits", "deletions"):
            found |= {name: value} if (value := getattr(self, name)) else {}
        return found

    def answered(self, source: StateSource) -> WhatIfForm:
        """Return the form with the answer, or with what is wrong beside each field."""
        arguments = ["--settle", *(f"--set={edit}" for edit in self._all_edits())]
        arguments += [f"--delete={line}" for line in _lines(self.deletions)]
        arguments += ["-f", "-"] if self.job.strip() else []
        answered = ask(source, "what-if", *arguments, "-o", "json", "-q", given=self.job)
        answer = answer_of(answered, given=self.job if self.job.strip() else "")
        return replace(self, answer=self._sorted(answer))

    def _all_edits(self) -> Iterator[str]:
        for row in self.rows:
            yield from (field.edit for field in row.fields if field.value)
        if self.priority and self.workload is not None:
            yield f"Workload/{self.workload.key}:spec.priority={self.priority}"
        yield from _lines(self.edits)

    def _sorted(self, answer: Answer) -> Answer:
        """Move each problem to the field that it is about."""
        by_field: dict[str, list[str]] = {}
        for problem in answer.problems:
            by_field.setdefault(self._field_of(problem), []).append(problem)
        return replace(answer, problems=by_field.pop("", []), by_field=by_field)

    def _field_of(self, problem: str) -> str:
        if problem.startswith("<stdin>"):
            return "job"
        for row in self.rows:
            for entry in row.fields:
                is_meant = f"{row.kind} {quoted(row.of)}: {entry.path}:" in problem or entry.target in problem
                if entry.value and is_meant:
                    return entry.name
        if self.priority and "spec.priority" in problem:
            return "priority"
        if any(_is_about(problem, line.partition(":")[0]) for line in _lines(self.edits)):
            return "edits"
        return "deletions" if any(_is_about(problem, line) for line in _lines(self.deletions)) else ""


def _is_about(problem: str, named: str) -> bool:
    kind, _, name = named.partition("/")
    return named in problem or f"{kind} {quoted(name)}: " in problem


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _chain(rows: Sequence[QuotaRow], queue: str) -> list[QuotaRow]:
    """The quotas of a ClusterQueue and of the cohorts above it that have any."""
    by_node: dict[tuple[str, str], list[QuotaRow]] = {}
    for row in rows:
        by_node.setdefault((row.kind, row.name), []).append(row)
    found: list[QuotaRow] = []
    node: tuple[str, str] | None = ("ClusterQueue", queue)
    seen = set()
    while node is not None and node in by_node and node not in seen:
        seen.add(node)
        found += by_node[node]
        parent = by_node[node][0].parent
        node = None if parent is None else ("Cohort", parent)
    return found


def _row(view: StateView, row: QuotaRow, asked: Mapping[str, str]) -> QuotaRowFields:
    fields = []
    for limit, attribute in _LIMITS:
        # A root has nobody to borrow from or to lend to.
        place = _place(view, row) if limit == "nominalQuota" or row.parent is not None else None
        if place is None:
            continue
        target, path = place
        name = f"{limit}|{row.kind}|{row.name}|{row.flavor}|{row.resource}"
        now = getattr(row, attribute)
        without = "no limit" if limit == "nominalQuota" or row.nominal is None else "none"
        value = asked.get(name, "").strip()
        fields.append(QuotaField(name, _WORDS[limit], now or without, f"{target}.{limit}", f"{path}.{limit}", value))
    return QuotaRowFields(f"{row.kind} {row.name}: {row.resource} in {row.flavor}", row.kind, row.name, fields)


def _place(view: StateView, row: QuotaRow) -> tuple[str, str] | None:
    """Where the quota stands in its object: as an edit names it, and as errors do; None where it does not."""
    try:
        plain = view.engine.object(row.kind, row.name)
    except UnknownObjectError:  # a cohort that exists only as a parent
        return None
    for group, entry in enumerate(list_at(plain, "spec", "resourceGroups")):
        for flavor, quotas in enumerate(list_at(entry, "flavors")):
            for resource, quota in enumerate(list_at(quotas, "resources")):
                if (text_at(quotas, "name"), text_at(quota, "name")) == (row.flavor, row.resource):
                    path = f"spec.resourceGroups[{group}].flavors"
                    named = f"{row.kind}/{row.name}:{path}[name={row.flavor}].resources[name={row.resource}]"
                    return named, f"{path}[{flavor}].resources[{resource}]"
    return None
