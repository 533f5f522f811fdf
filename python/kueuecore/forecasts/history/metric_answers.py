"""Reads answers of Prometheus' HTTP API into series."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kueuecore._json import JsonValue, object_at, text_at, texts_at
from kueuecore._text import logged, quoted
from kueuecore.errors import ManifestError, Problem

__all__ = ["NAME", "Series", "SeriesTable", "read_answers", "take_answer"]

NAME = "__name__"
"""The label that holds the name of a metric."""
_ASK = "ask for the metric itself, such as /api/v1/query_range?query=kueue_admitted_workloads_total"
_SHAPE = 'save the whole answer of /api/v1/query_range: {"status": "success", "data": {"resultType": "matrix", ...}}'
_END_SECONDS = 9_223_372_036
_MAX_PROBLEMS = 20
# Nothing is counted that far, and sums of it stay finite.
_MOST = 1e18


@dataclass(frozen=True, slots=True)
class Series:
    """The samples of one metric with one set of labels.

    Args:
        name: The metric.
        labels: Its labels, without the name.
        samples: Times in nanoseconds since 1970 and values, in order.
    """

    name: str
    labels: Mapping[str, str]
    samples: tuple[tuple[int, float], ...]


@dataclass(slots=True)
class SeriesTable:
    """Series that come from several answers; of a time that occurs twice, the first value counts."""

    _samples: dict[tuple[str, tuple[tuple[str, str], ...]], dict[int, float]] = field(default_factory=dict)
    n_without_value: int = 0
    """How many samples are NaN, infinite, or more than anything can be."""

    def add(self, name: str, labels: Mapping[str, str], samples: Iterable[tuple[int, float]]) -> None:
        """Add samples of a series."""
        known = self._samples.setdefault((name, tuple(sorted(labels.items()))), {})
        for at, value in samples:
            if abs(value) <= _MOST:
                known.setdefault(at, value)
            else:
                self.n_without_value += 1

    def series(self, name: str) -> Iterator[Series]:
        """Yield the series of a metric that have samples, in order of their labels."""
        for (of, labels), samples in sorted(self._samples.items(), key=lambda item: item[0]):
            if of == name and samples:
                yield Series(name, dict(labels), tuple(sorted(samples.items())))

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that have samples."""
        return tuple(sorted({name for (name, _), samples in self._samples.items() if samples}))

    @property
    def span(self) -> tuple[int, int] | None:
        """The times of the first and the last sample; None: there are none."""
        firsts = [(min(samples), max(samples)) for samples in self._samples.values() if samples]
        return (min(first for first, _ in firsts), max(last for _, last in firsts)) if firsts else None


def read_answers(data: bytes, file: str) -> SeriesTable:
    """Read a file with one answer, a list of answers, or several one after the other.

    Raises:
        ManifestError: It is not JSON, or not an answer of Prometheus.
    """
    table = SeriesTable()
    n_answers = 0
    for answer in _answers(data, file):
        n_answers += 1
        take_answer(answer, table, file=file, place=f"answer {n_answers}")
    if not n_answers:
        raise ManifestError.of("it is empty", remedy=_SHAPE, file=file)
    return table


def _answers(data: bytes, file: str) -> Iterator[JsonValue]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError.of(f"not JSON: {error.reason}", remedy=_SHAPE, file=file) from None
    decoder, place = json.JSONDecoder(), 0
    while (place := _after_space(text, place)) < len(text):
        try:
            found: JsonValue
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", place)) + 1
            message = f"not JSON: {logged(getattr(error, 'msg', error))}"
            raise ManifestError([Problem(message, file=file, line=line, remedy="save the answer again")]) from None
        if isinstance(found, list):
            yield from found
        else:
            yield found


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def take_answer(answer: JsonValue, table: SeriesTable, *, file: str, place: str = "", name: str = "") -> None:
    """Add the series of an answer to a table.

    Args:
        answer: The answer, decoded.
        table: The table.
        file: Its file or address, for errors.
        place: Which of several it is, for errors.
        name: The metric that was asked for; by default the label `__name__` of each series.

    Raises:
        ManifestError: It is an error, or no answer of Prometheus.
    """
    if not isinstance(answer, dict) or text_at(answer, "status") not in ("success", "error"):
        raise ManifestError.of("this is no answer of Prometheus", field=place, remedy=_SHAPE, file=file)
    if text_at(answer, "status") == "error":
        message = f"Prometheus answered with an error: {logged(text_at(answer, 'error') or 'it does not say which')}"
        raise ManifestError.of(message, field=place, remedy="correct the query, and save its answer", file=file)
    kind, result = text_at(answer, "data", "resultType"), object_at(answer, "data").get("result")
    if kind not in ("matrix", "vector") or not isinstance(result, list):
        message = f"its data.resultType is {quoted(kind)}, with no series of samples"
        raise ManifestError.of(message, field=place, remedy=_SHAPE, file=file)
    problems: list[Problem] = []
    for index, entry in enumerate(result):
        path = f"{place}: data.result[{index}]" if place else f"data.result[{index}]"
        _take_series(entry, kind, table, _Place(file, path, problems), name)
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        raise ManifestError(problems)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a series stands, and what is wrong with it."""

    file: str
    path: str
    problems: list[Problem]

    def complain(self, message: str, field: str = "", remedy: str = _SHAPE) -> None:
        self.problems.append(Problem(message, field=f"{self.path}{field}", remedy=remedy, file=self.file))


def _take_series(entry: JsonValue, kind: str, table: SeriesTable, place: _Place, name: str) -> None:
    plain = object_at(entry)
    labels = texts_at(plain, "metric")
    called = labels.pop(NAME, "") or name
    if not called:
        place.complain(f"its metric has no label {NAME}, so it may be anything", ".metric", _ASK)
        return
    if "histograms" in plain or "histogram" in plain:
        place.complain(f"{called} is a native histogram", ".histograms", "ask for its classic buckets, `..._bucket`")
        return
    samples = plain.get("values") if kind == "matrix" else [plain.get("value")]
    if not isinstance(samples, list):
        place.complain("must be a list of samples", ".values")
        return
    read: list[tuple[int, float]] = []
    for number, sample in enumerate(samples):
        found = _sample(sample)
        if found is None:
            path = f".values[{number}]" if kind == "matrix" else ".value"
            message = (
                f'must be a time in seconds and a number in quotes, such as [1767225600, "5"], not {_shown(sample)}'
            )
            place.complain(message, path, "save the answer as Prometheus writes it")
            return
        read.append(found)
    table.add(called, labels, read)


def _sample(sample: JsonValue) -> tuple[int, float] | None:
    """Return time and value; None: it is no sample."""
    if not isinstance(sample, list) or len(sample) != 2:
        return None
    at, text = sample
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < _END_SECONDS:
        return None
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    # `1_000` is a number for Python alone.
    if isinstance(text, str) and "_" in text:
        return None
    return round(at * 1000) * 1_000_000, value


def _shown(value: JsonValue) -> str:
    return logged(json.dumps(value))[:100]
