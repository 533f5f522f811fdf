"""Assigns a rule and a queue to each job of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from kueuecore._text import quoted
from kueuecore.traces.queue_names import PLACEHOLDER, labels_of, rendered
from kueuecore.traces.rules import JobRule, TraceRules
from kueuecore.traces.text_column import TextColumn

__all__ = ["Assignment", "assign"]

_NO_RULE = -1


@dataclass(frozen=True, slots=True)
class _Part:
    """A namespace or LocalQueue, literal in the rules or filled in from a job's fields."""

    text: str
    is_filled_in: bool


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """The rule and the queue of each of n jobs.

    Args:
        rule: Index into `TraceRules.all_rules()`, shape (n,).
        queue: Index into `queues`, shape (n,).
        queues: Namespaces and names of LocalQueues, in order.
    """

    rule: npt.NDArray[np.int64]
    queue: npt.NDArray[np.int64]
    queues: tuple[tuple[str, str], ...]


def assign(n: int, fields: Mapping[str, TextColumn], rules: TraceRules) -> Assignment:
    """Find the rule and the queue of each job.

    Args:
        n: The number of jobs.
        fields: Their text fields.
        rules: The rules.

    Raises:
        ManifestError: A rule names a field that the trace does not have, or no rule matches some job.
    """
    chosen = np.full(n, _NO_RULE, np.int64)
    for index, (rule, name) in enumerate(zip(rules.all_rules(), rules.rule_names(), strict=True)):
        _check_fields(rule, name, fields, rules)
        matches = chosen == _NO_RULE
        for field, patterns in rule.when.items():
            matches &= _matching(fields[field], patterns)
        chosen[matches] = index
    if (chosen == _NO_RULE).any():
        _refuse_unmatched(chosen, fields, rules)
    queue = np.zeros(n, np.int64)
    names: list[tuple[_Part, _Part]] = []
    for index, rule in enumerate(rules.all_rules()):
        rows = np.flatnonzero(chosen == index)
        used = {text: fields[text].rows(rows) for text in sorted(set(PLACEHOLDER.findall(rule.queue)))}
        codes, found = _rendered(rule.queue, used, len(rows))
        queue[rows] = codes + len(names)
        names += found
    return _in_order(chosen, queue, names)


def _check_fields(rule: JobRule, name: str, fields: Mapping[str, TextColumn], rules: TraceRules) -> None:
    used = [(f"{name}.when.{row}", row) for row in rule.when]
    used += [(f"{name}.queue", found) for found in PLACEHOLDER.findall(rule.queue)]
    for path, field in used:
        if field not in fields:
            known = f"its fields are {', '.join(sorted(fields))}" if fields else "it has no fields"
            raise rules.error(f"the trace has no field {quoted(field)}", path, known)


def _matching(column: TextColumn, patterns: Sequence[str]) -> npt.NDArray[np.bool_]:
    names = [any(fnmatchcase(name, pattern) for pattern in patterns) for name in column.names]
    return np.array(names, np.bool_)[column.codes]


def _refuse_unmatched(chosen: npt.NDArray[np.int64], fields: Mapping[str, TextColumn], rules: TraceRules) -> None:
    rows = np.flatnonzero(chosen == _NO_RULE)
    values = ", ".join(f"{key}: {quoted(column.names[column.codes[rows[0]]])}" for key, column in fields.items())
    message = f"no rule matches {len(rows)} of {len(chosen)} jobs, such as one with {values or 'no fields'}"
    raise rules.error(message, "rules", "add a rule, or `default: {queue: namespace/localqueue}`")


def _rendered(
    template: str, fields: Mapping[str, TextColumn], n: int
) -> tuple[npt.NDArray[np.int64], list[tuple[_Part, _Part]]]:
    """Return the queue of each job as a number, and the names: one for each combination of values that occurs."""
    if not fields:
        return np.zeros(n, np.int64), [_parts(template, fields, 0)] if n else []
    combined = np.zeros(n, np.int64)
    for column in fields.values():
        # Renumber each time, so that the product stays below the square of the number of rows.
        combined = combined * max(len(column.names), 1) + column.codes
        combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    names = [_parts(template, fields, row) for row in first.tolist()]
    return codes.astype(np.int64), names


def _parts(template: str, fields: Mapping[str, TextColumn], row: int) -> tuple[_Part, _Part]:
    def value(name: str) -> str:
        column = fields[name]
        return column.names[int(column.codes[row])]

    namespace, queue = (
        _Part(rendered(part, value), is_filled_in=PLACEHOLDER.search(part) is not None) for part in template.split("/")
    )
    return namespace, queue


def _in_order(
    rule: npt.NDArray[np.int64], queue: npt.NDArray[np.int64], names: Sequence[tuple[_Part, _Part]]
) -> Assignment:
    """Turn filled-in parts into labels, and number queues by their names."""
    # Literal names are labels already; no other name may become the same.
    namespaces = labels_of(namespace.text for namespace, _ in names)
    local_queues = labels_of(name.text for _, name in names)
    queues = [
        (
            namespaces[namespace.text] if namespace.is_filled_in else namespace.text,
            local_queues[name.text] if name.is_filled_in else name.text,
        )
        for namespace, name in names
    ]
    ordered = sorted(set(queues))
    places = {queue: place for place, queue in enumerate(ordered)}
    to_place = np.array([places[queue] for queue in queues], np.int64)
    return Assignment(rule, to_place[queue] if len(queue) else queue, tuple(ordered))
