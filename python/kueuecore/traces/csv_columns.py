"""Reads CSV files into columns of numbers, dates and strings, and reports bad cells with their lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.text_column import TextColumn, TextColumnBuilder
from kueuecore.traces.trace_file import MAX_NUMBER, MAX_PROBLEMS, ROWS_LIMIT, check_text

__all__ = ["CsvColumns", "Kind", "date_seconds", "delimiter_of", "header_of", "read_csv"]

_CHUNK = 2_000
_DELIMITERS = (",", "\t", "|")
_MAX_HEADER = 65_536
_UNKNOWN = frozenset({"", "nan", "NaN", "None", "NULL", "null", "NaT", "Unknown"})


class _Reader(Protocol):
    """The reader of the module `csv`, whose class has no public name."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


class Kind(Enum):
    """The type of a column's cells."""

    NUMBER = auto()
    """Numbers up to 1e30; NaN where unknown."""
    DATE = auto()
    """Dates and times as seconds since 1970, in UTC unless they have a zone."""
    TIME = auto()
    """Numbers of seconds, or dates, whichever comes first."""
    TEXT = auto()
    """Strings; empty where unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class CsvColumns:
    """The requested columns, n rows each.

    Args:
        numbers: Columns of numbers and times.
        texts: Columns of strings.
        lines: The line of each row, shape (n,).
    """

    numbers: Mapping[str, npt.NDArray[np.float64]]
    texts: Mapping[str, TextColumn]
    lines: npt.NDArray[np.int64]


def read_csv(
    data: bytes,
    file: str,
    kinds: Mapping[str, Kind] | Callable[[Sequence[str]], Mapping[str, Kind]],
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    has_quotes: bool = True,
) -> CsvColumns:
    """Read columns of a CSV file.

    Args:
        data: The file.
        file: Its name, for errors.
        kinds: The columns to read, and their types; or a function that returns them from the header.
        names: The names of the columns, if the file has no header.
        delimiter: The character between cells.
        has_quotes: Whether cells may stand in double quotes, which then may contain the delimiter.

    Raises:
        ManifestError: A column is missing, a line has too many or too few fields, or a cell is not a number or date.
    """
    check_text(data, file)
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    reader = csv.reader(text, delimiter=delimiter, quoting=quoting, strict=True)
    problems: list[Problem] = []
    try:
        header = [entry.strip() for entry in next(reader, [])] if names is None else list(names)
        wanted = kinds if isinstance(kinds, Mapping) else kinds(header)
        _check_header(header, wanted, file)
        columns = [_column(header.index(name), name, kind) for name, kind in wanted.items()]
        lines = _read_rows(reader, header, columns, file, problems)
    except UnicodeDecodeError as error:
        remedy = "save it as UTF-8"
        raise ManifestError([Problem(f"it is not UTF-8: {error.reason}", file=file, remedy=remedy)]) from None
    except csv.Error as error:
        problem = Problem(f"not CSV: {error}", file=file, line=reader.line_num, remedy="check quotes and separators")
        raise ManifestError([problem]) from None
    if problems:
        raise ManifestError(problems)
    return CsvColumns(
        {column.name: column.numbers() for column in columns if column.kind is not Kind.TEXT},
        {column.name: column.text_column() for column in columns if column.kind is Kind.TEXT},
        lines,
    )


def delimiter_of(data: bytes) -> str:
    r"""Return the character between the names in the first line of a table: a comma, a tab or `|`.

    Example:
        >>> [delimiter_of(it) for it in (b"at,run_seconds", b"at\trun_seconds", b"JobID|Submit", b"at")]
        [',', '\t', '|', ',']
    """
    return max(_DELIMITERS, key=_first_line(data).count)


def header_of(data: bytes) -> tuple[str, ...]:
    """Return the names in the first line of a table."""
    names = _first_line(data).split(delimiter_of(data))
    return tuple(name.strip().removeprefix('"').removesuffix('"') for name in names)


def _first_line(data: bytes) -> str:
    line = data[:_MAX_HEADER].removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").partition(b"\n")[0]
    return line.decode("utf-8", "replace").strip("\r")


def _check_header(header: Sequence[str], wanted: Mapping[str, Kind], file: str) -> None:
    if missing := [name for name in wanted if name not in header]:
        found = ", ".join(map(quoted, header[:30])) if header else "nothing"
        remedy = f"the first line has {found}; check the format, or map names under `columns` in the rules"
        problems = [Problem(f"column {quoted(text)} is missing", file=file, line=1, remedy=remedy) for text in missing]
        raise ManifestError(problems)
    if repeated := [name for name in wanted if header.count(name) > 1]:
        message = f"column {quoted(repeated[0])} occurs more than once"
        raise ManifestError([Problem(message, file=file, line=1, remedy="rename one of them")])


def _read_rows(
    reader: _Reader,
    header: Sequence[str],
    columns: Sequence[_Column],
    file: str,
    problems: list[Problem],
) -> npt.NDArray[np.int64]:
    """Read all rows into the columns, and return their lines."""
    all_lines: list[npt.NDArray[np.int64]] = []
    n_rows = 0
    for rows, lines in _chunks(reader, header, file, problems):
        n_rows += len(rows)
        if n_rows > ROWS_LIMIT:
            remedy = "split it into several traces"
            raise ManifestError.of(f"it has more than {ROWS_LIMIT} rows", remedy=remedy, file=file)
        all_lines.append(np.array(lines, np.int64))
        cells = list(zip(*rows, strict=True))
        for column in columns if rows else ():
            column.add(cells[column.place], lines, file, problems)
        if len(problems) >= MAX_PROBLEMS:
            raise ManifestError(problems[:MAX_PROBLEMS])
    return np.concatenate(all_lines) if all_lines else np.zeros(0, np.int64)


def _chunks(
    reader: _Reader, header: Sequence[str], file: str, problems: list[Problem]
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Yield rows and their lines in chunks, without blank lines and lines that repeat the names."""
    rows: list[list[str]] = []
    lines: list[int] = []
    names = list(header)
    for row in reader:
        if len(row) == len(names):
            # People join the files of several months, or add names to a file that normally has none.
            if row[0].strip() == names[0] and [entry.strip() for entry in row] == names:
                continue
            rows.append(row)
            lines.append(reader.line_num)
        elif row:
            message = f"{len(row)} fields instead of {len(names)}"
            problems.append(Problem(message, file=file, line=reader.line_num, remedy="complete the line or remove it"))
        if len(rows) == _CHUNK or len(problems) >= MAX_PROBLEMS:
            yield rows, lines
            rows, lines = [], []
    if rows:
        yield rows, lines


def date_seconds(cells: Sequence[str]) -> npt.NDArray[np.float64]:
    """Parse dates and times into seconds since 1970, NaN where unknown; in UTC unless they have a zone.

    Raises:
        ValueError: A cell is not a date.

    Example:
        >>> date_seconds(["1970-01-02 00:00:01", "None", "1970-01-01T01:00:00+01:00"]).tolist()
        [86401.0, nan, 0.0]
    """
    # numpy reads cells of the same length, the usual case, at once, but has no time zones.
    if all(cell in _UNKNOWN or (len(cell) == 19 and cell[13] == cell[16] == ":") for cell in cells):
        times = np.array(["NaT" if cell in _UNKNOWN else cell for cell in cells], "datetime64[s]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    return np.array([np.nan if cell in _UNKNOWN else _timestamp(cell) for cell in cells], np.float64)


def _timestamp(text: str) -> float:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()


def _numbers(cells: Sequence[str]) -> npt.NDArray[np.float64]:
    """Numbers up to 1e30; NaN where unknown."""
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        numbers = np.array([np.nan if cell in _UNKNOWN else float(cell) for cell in cells], np.float64)
    if (np.abs(numbers) > MAX_NUMBER).any():
        raise ValueError("too large")
    return numbers


def _kind_of_time(cells: Sequence[str]) -> Kind:
    """Return whether a column of times holds numbers or dates, by its first known cell; until then, either."""
    for cell in cells:
        if cell.strip() not in _UNKNOWN:
            try:
                float(cell)
            except ValueError:
                return Kind.DATE
            return Kind.NUMBER
    return Kind.TIME


_PARSERS = {
    Kind.NUMBER: (_numbers, "not a number up to 1e30", "write a number such as 4 or 0.5, or leave it empty"),
    Kind.DATE: (date_seconds, "not a date", "write it as 2020-06-09 18:41:01, or leave it empty"),
    Kind.TIME: (_numbers, "neither a number of seconds nor a date", "write 90 or 2020-06-09 18:41:01"),
}


@dataclass(slots=True)
class _Column:
    place: int
    name: str
    kind: Kind
    parts: list[npt.NDArray[np.float64]]
    texts: TextColumnBuilder

    def add(self, cells: Sequence[str], lines: Sequence[int], file: str, problems: list[Problem]) -> None:
        if self.kind is Kind.TEXT:
            self.texts.extend(cells)
            return
        if self.kind is Kind.TIME:
            self.kind = _kind_of_time(cells)
        parse, message, remedy = _PARSERS[self.kind]
        with suppress(ValueError, OverflowError):
            self.parts.append(parse(cells))
            return
        stripped = [cell.strip() for cell in cells]
        try:
            self.parts.append(parse(stripped))
        except (ValueError, OverflowError):
            n_problems = len(problems)
            for cell, line in zip(stripped, lines, strict=True):
                if len(problems) >= MAX_PROBLEMS:
                    break
                try:
                    parse([cell])
                except (ValueError, OverflowError):
                    text = f"{message}: {quoted(cell)}"
                    problems.append(Problem(text, field=self.name, file=file, line=line, remedy=remedy))
            # Each may be right alone, but they do not go together.
            if len(problems) == n_problems:
                problems.append(Problem(message, field=self.name, file=file, line=lines[0], remedy=remedy))

    def text_column(self) -> TextColumn:
        column = self.texts.column()
        names = [name.strip() for name in column.names]
        return column.renamed(["" if name in _UNKNOWN else name for name in names])

    def numbers(self) -> npt.NDArray[np.float64]:
        return np.concatenate(self.parts) if self.parts else np.zeros(0)


def _column(place: int, name: str, kind: Kind) -> _Column:
    return _Column(place, name, kind, [], TextColumnBuilder())
