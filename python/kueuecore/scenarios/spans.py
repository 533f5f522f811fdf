"""Reads spans of time, fixed or random."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from math import isfinite

from kueuecore._fields import Fields, seconds_of, shown
from kueuecore._files import contents
from kueuecore._json import JsonValue
from kueuecore.errors import Problem
from kueuecore.scenarios.distributions import Empirical, Gamma, InOrder, LogNormal, Span, Spans, Weibull

__all__ = ["checked_number", "read_span", "read_spans", "read_weights"]

_FORMS = "write seconds, a duration, {mean: 30s} or {from: 10s, to: 5m}"
_ALL_FORMS = f"{_FORMS}, or one of lognormal, weibull, gamma, values, file"
_MAX_SIGMA = 10.0
_SHAPES = (0.05, 1000.0)
_DURATION = "write seconds such as 90, or a duration such as 1m30s"


def read_span(section: Fields, name: str) -> Span | None:
    """Read a fixed, uniform or exponential span; None if absent, or if wrong, which is recorded."""
    value = section.value(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        seconds = section.seconds(name)
        return None if seconds is None else Span(seconds)
    fields = section.below(value, name)
    mean, least, most = fields.seconds("mean"), fields.seconds("from"), fields.seconds("to")
    fields.end()
    if mean is not None and least is None and most is None:
        return Span(mean=mean)
    if mean is None and least is not None and most is not None and least <= most:
        return Span(least, most)
    section.complain(name, "not a duration", _FORMS)
    return None


def read_spans(section: Fields, name: str) -> Spans | None:
    """Read spans of any distribution; None if absent, or if wrong, which is recorded."""
    value = section.value(name)
    given = [reader for reader in _READERS if reader in value] if isinstance(value, dict) else []
    if not isinstance(value, dict) or not given:
        if not isinstance(value, dict) or value.keys() & {"mean", "from", "to"}:
            return read_span(section, name)
        section.below(value, name).end_with([*_READERS, "mean", "from", "to"])
        section.complain(name, "not a duration", _ALL_FORMS)
        return None
    if len(given) > 1:
        section.complain(name, f"both {given[0]} and {given[1]} are given", "remove one of them")
        return None
    fields = section.below(value, name)
    n_problems = len(fields.problems)
    found = _READERS[given[0]](fields)
    fields.end()
    return found if len(fields.problems) == n_problems else None


def _lognormal(fields: Fields) -> Spans | None:
    part = fields.part("lognormal")
    if part is None:
        fields.complain("lognormal", "Required value", "write {median: 5m, sigma: 1} or {mean: 5m, p95: 15m}")
        return None
    median, mean, p95 = _positive(part, "median"), _positive(part, "mean"), _positive(part, "p95")
    has_sigma = part.value("sigma") is not None
    sigma = checked_number(part, "sigma", 0.0, _MAX_SIGMA) if has_sigma else None
    part.end()
    by_median, by_mean = median is not None and has_sigma, mean is not None and p95 is not None
    n_given = sum(part.plain.get(name) is not None for name in ("median", "sigma", "mean", "p95"))
    if n_given != 2 or not (by_median or by_mean):
        part.complain("", "not a lognormal distribution", "write {median: 5m, sigma: 1} or {mean: 5m, p95: 15m}")
    elif median is not None and sigma is not None:
        return LogNormal(median=median, sigma=sigma)
    elif mean is not None and p95 is not None:
        try:
            return LogNormal.of_mean(mean, p95=p95)
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            part.complain("p95", message, remedy)
    return None


def _weibull(fields: Fields) -> Spans | None:
    found = _shape_and_scale(fields, "weibull")
    return None if found is None else Weibull(shape=found[0], scale=found[1])


def _gamma(fields: Fields) -> Spans | None:
    found = _shape_and_scale(fields, "gamma")
    return None if found is None else Gamma(shape=found[0], scale=found[1])


def _shape_and_scale(fields: Fields, name: str) -> tuple[float, float] | None:
    part = fields.part(name)
    if part is None:
        fields.complain(name, "Required value", "write {shape: 1.5, scale: 5m}")
        return None
    shape, scale = checked_number(part, "shape", *_SHAPES), _positive(part, "scale")
    part.has("shape", "write a number such as 1.5")
    part.has("scale", _DURATION)
    part.end()
    return None if shape is None or scale is None else (shape, scale)


def _empirical(fields: Fields) -> Spans | None:
    entries = fields.entries("values")
    values = _all_seconds(fields, entries)
    in_order = fields.truth("inOrder", default=False)
    if not entries:
        fields.complain("values", "Required value", "write at least one duration")
        return None
    weights = read_weights(fields, "weights", len(entries))
    if in_order and weights:
        fields.complain("weights", "values in order have no weights", "remove weights, or inOrder")
    return InOrder(values=values) if in_order else Empirical(values=values, weights=weights or None)


def _all_seconds(fields: Fields, entries: Sequence[JsonValue]) -> tuple[float, ...]:
    found = []
    for index, entry in enumerate(entries):
        seconds = seconds_of(entry)
        if seconds is None:
            fields.complain(f"values[{index}]", f"not a duration: {shown(entry)}", _DURATION)
        else:
            found.append(seconds)
    return tuple(found)


def read_weights(section: Fields, name: str, n: int, *, remedy: str = "") -> tuple[float, ...]:
    """Read numbers of at least 0, not all 0; empty if absent, or if wrong, which is recorded.

    Args:
        section: The mapping that has them.
        name: Their field.
        n: The required number of them.
        remedy: What to write if there are more or fewer.
    """
    entries, found = section.entries(name), list[float]()
    if section.value(name) is None:
        return ()
    for index, entry in enumerate(entries):
        is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
        if is_number and 0 <= entry <= 1e9:  # type: ignore[operator]  # it is a number
            found.append(float(entry))  # type: ignore[arg-type]
        else:
            section.complain(f"{name}[{index}]", f"Invalid value: {shown(entry)}", "write a number from 0 to 1e9")
    if len(entries) != n:
        section.complain(name, f"{len(entries)} weights", remedy or f"write {n}, one for each value")
    elif len(found) == n and not any(found):
        section.complain(name, "all weights are 0", "write a larger one")
    else:
        return tuple(found)
    return ()


def _column(fields: Fields) -> Spans | None:
    file, column = fields.text("file"), fields.text("column")
    in_order = fields.truth("inOrder", default=False)
    if not file:
        fields.complain("file", f"Invalid value: {shown(fields.value('file'))}", "name a CSV file")
    if not column:
        fields.complain("column", "Required value", "name the column with the spans")
    values = _column_values(fields, file, column) if file and column else ()
    if not values:
        return None
    return InOrder(values=values) if in_order else Empirical(values=values)


def _column_values(fields: Fields, file: str, column: str) -> tuple[float, ...]:
    if any(ord(entry) < ord(" ") for entry in file):
        fields.complain("file", f"Invalid value: {shown(file)}", "name a CSV file")
        return ()
    path = fields.folder / file
    found = list(contents(path, fields.problems, recursive=False)) if not path.is_dir() else []
    if path.is_dir():
        fields.complain("file", "it is a directory", "name a CSV file")
    values: list[float] = []
    for content in found:
        try:
            text = content.data if isinstance(content.data, str) else content.data.decode("utf-8-sig")
            values += _of_rows(fields, content.name, text, column)
        except UnicodeDecodeError:
            fields.complain("file", "it is not UTF-8", "save the file as UTF-8")
        except csv.Error as error:
            fields.complain("file", f"not CSV: {error}", "separate values with commas")
    return tuple(values)


def _of_rows(fields: Fields, file: str, text: str, column: str) -> list[float]:
    """Return the values of a column; the first wrong one is recorded."""
    rows = csv.DictReader(text.splitlines())
    names = rows.fieldnames or ()
    if column not in names:
        remedy = f"write one of {', '.join(names)}" if names else "write the column names in the first line"
        fields.complain("column", f"Not found: {shown(column)}", remedy)
        return []
    values = []
    for row in rows:
        cell = (row[column] or "").strip()
        seconds = _cell_seconds(cell)
        if seconds is None:
            message = f"not a duration: {shown(cell)}"
            fields.problems.append(Problem(message, field=column, file=file, line=rows.line_num, remedy=_DURATION))
            return []
        values.append(seconds)
    if not values:
        fields.complain("file", "it has no rows", "write one row for each span")
    return values


def _cell_seconds(cell: str) -> float | None:
    try:
        return seconds_of(float(cell))
    except ValueError:
        return seconds_of(cell)


def checked_number(section: Fields, name: str, least: float, most: float) -> float | None:
    """Read a number within bounds; None if absent, or if wrong, which is recorded."""
    if section.value(name) is None:
        return None
    n_problems = len(section.problems)
    found = section.number(name)
    if len(section.problems) > n_problems:
        return None
    if not isfinite(found) or not least <= found <= most:
        section.complain(
            name, f"Invalid value: {shown(section.value(name))}", f"write a number from {least:g} to {most:g}"
        )
        return None
    return found


def _positive(section: Fields, name: str) -> float | None:
    """Read a span above 0; None if absent, or if wrong, which is recorded."""
    seconds = section.seconds(name)
    if seconds is not None and seconds <= 0:
        section.complain(name, f"Invalid value: {shown(section.value(name))}", "write a duration above 0")
        return None
    return seconds


_READERS: dict[str, Callable[[Fields], Spans | None]] = {
    "lognormal": _lognormal,
    "weibull": _weibull,
    "gamma": _gamma,
    "values": _empirical,
    "file": _column,
}
