"""Reads your own tables of jobs: CSV and Parquet with a column for each column of a trace."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.csv_columns import CsvColumns, Kind, date_seconds, read_csv
from kueuecore.traces.rules import ColumnSource
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace
from kueuecore.traces.trace_file import MOST_NUMBER, ROWS_LIMIT

__all__ = ["read_csv_table", "read_parquet_table"]

_TIMES = ("at", "start", "end")
_AMOUNTS = {"cpu_milli": "cpu", "memory_bytes": "memory", "gpu_milli": "gpu"}
_NUMBERS = ("run_seconds", "pods", "priority", *_AMOUNTS)
_OTHER_RESOURCE = "requests."
_STATUS = "status"
_FAILED = frozenset(
    (
        "aborted",
        "boot_fail",
        "canceled",
        "cancelled",
        "deadline",
        "error",
        "fail",
        "failed",
        "failure",
        "killed",
        "node_fail",
        "out_of_memory",
        "preempted",
        "timeout",
    )
)


def read_csv_table(data: bytes, file: str, columns: Mapping[str, ColumnSource]) -> Trace:
    r"""Read a CSV file whose first line names its columns.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.
        columns: Columns of the trace with another name or unit in the file.

    Raises:
        ManifestError: Columns are missing, or lines are broken.

    Example:
        >>> trace = read_csv_table(b"at,run_seconds,cpu_milli,team\n60,90,500,a\n0,30,1000,b\n", "jobs.csv", {})
        >>> trace.at.tolist(), trace.requests["cpu"].tolist(), trace.fields["team"].texts()
        ([0.0, 60.0], [1000, 500], ['b', 'a'])
    """
    return _trace(read_csv(data, file, lambda header: _kinds(header, columns, file)), columns, file)


def read_parquet_table(data: bytes, file: str, columns: Mapping[str, ColumnSource]) -> Trace:
    """Read a Parquet file.

    Args:
        data: The file.
        file: Its name, for errors.
        columns: Columns of the trace with another name or unit in the file.

    Raises:
        ManifestError: The extra `arrow` is not installed, it is not a Parquet file, or a column is missing or has
            another type.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        remedy = "install the extra: pip install 'kueuecore[arrow]'"
        raise ManifestError.of("Parquet needs pyarrow", remedy=remedy, file=file) from None
    try:
        with parquet.ParquetFile(io.BytesIO(data)) as opened:
            n_rows = opened.metadata.num_rows
            if n_rows > ROWS_LIMIT:
                remedy = "split it into several traces"
                raise ManifestError.of(f"it has more than {ROWS_LIMIT} rows", remedy=remedy, file=file)
            kinds = _kinds(opened.schema_arrow.names, columns, file)
            table = opened.read(columns=list(kinds))
            if table.num_rows != n_rows:
                raise ValueError(f"it has {table.num_rows} rows instead of {n_rows}")
    except ManifestError:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:  # names that are not UTF-8 are a ValueError
        raise ManifestError.of(f"not a Parquet file: {error}", remedy="check the format", file=file) from None
    numbers, texts = {}, {}
    for name, kind in kinds.items():
        column = table.column(name)
        try:
            if kind is Kind.TEXT:
                texts[name] = _parquet_texts(column, arrow)
            else:
                numbers[name] = _parquet_numbers(column, kind, arrow)
        except (arrow.ArrowException, ValueError):
            message = f"column {quoted(name)} holds {column.type}, which cannot be read as a {kind.name.lower()}"
            raise ManifestError.of(message, field=name, remedy="convert it", file=file) from None
    # Rows have no lines; number them from 1.
    return _trace(CsvColumns(numbers, texts, np.arange(1, n_rows + 1)), columns, file)


def _kinds(header: Sequence[str], columns: Mapping[str, ColumnSource], file: str) -> dict[str, Kind]:
    """Return the types of the columns to read: all of them, as a rule may use any."""
    name_of = {source.column: name for name, source in columns.items()}
    problems = [
        Problem(
            f"column {quoted(source.column)} is missing",
            field=f"columns.{name}",
            file=file,
            remedy=f"its columns are {', '.join(map(quoted, header[:30]))}",
        )
        for name, source in columns.items()
        if source.column not in header
    ]
    kinds = {it: _kind(name_of.get(it, it)) for it in header if it in name_of or it not in columns}
    given = {name_of.get(it, it) for it in kinds}
    remedy = "add it, or map it to its column under `columns` in the rules"
    if "at" not in given and not problems:
        problems.append(Problem('column "at" is missing', file=file, line=1, remedy=remedy))
    if "run_seconds" not in given and not {"start", "end"} <= given and not problems:
        message = 'column "run_seconds" is missing, or "start" and "end" instead of it'
        problems.append(Problem(message, file=file, line=1, remedy=remedy))
    if problems:
        raise ManifestError(problems)
    return kinds


def _kind(name: str) -> Kind:
    if name in _TIMES:
        return Kind.TIME
    return Kind.NUMBER if name in _NUMBERS or name.startswith(_OTHER_RESOURCE) else Kind.TEXT


def _trace(table: CsvColumns, columns: Mapping[str, ColumnSource], file: str) -> Trace:
    source_of = {name: source.column for name, source in columns.items()}
    numbers = {
        name: table.numbers[source] * (columns[name].times if name in columns else 1.0)
        for name, source in _named(table.numbers, source_of).items()
    }
    texts = {name: table.texts[source] for name, source in _named(table.texts, source_of).items()}
    n = len(table.lines)
    drop: list[tuple[str, npt.NDArray[np.bool_]]] = []
    if "run_seconds" in numbers:
        run = numbers["run_seconds"]
        if "start" in numbers:
            drop.append(("never started", np.isnan(numbers["start"])))
    else:
        start, end = numbers["start"], numbers["end"]
        drop.append(("never started", np.isnan(start)))
        run = np.where(np.isnan(end), np.inf, end - start)
    requests = {resource: numbers[name] for name, resource in _AMOUNTS.items() if name in numbers}
    for name in numbers:
        if name.startswith(_OTHER_RESOURCE):
            requests[name.removeprefix(_OTHER_RESOURCE)] = numbers[name]
    return made_trace(
        at=numbers["at"],
        run_seconds=run,
        pods=numbers.get("pods", np.ones(n)),
        requests=requests,
        drop=drop,
        ends_failed=_has_failed(texts[_STATUS]) if _STATUS in texts else False,
        priority=numbers.get("priority", 0),
        fields=texts,
        lines=table.lines,
        file=file,
    )


def _has_failed(status: TextColumn) -> npt.NDArray[np.bool_]:
    """Return which jobs did not succeed, by the first word: Slurm writes `CANCELLED by 1000`."""
    words = [next(iter(name.lower().split()), "") for name in status.names]
    return status.renamed(words).is_one_of(_FAILED)


def _named(found: Mapping[str, object], source_of: Mapping[str, str]) -> dict[str, str]:
    """Return the column of the file for each column of the trace."""
    name_of = {source: name for name, source in source_of.items()}
    return {name_of.get(source, source): source for source in found}


def _parquet_texts(column: Any, arrow: Any) -> TextColumn:  # pyarrow has no types
    encoded = column.cast(arrow.string()).combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    if encoded.null_count == 0:
        return TextColumn(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), tuple(names))
    if "" not in names:
        names.append("")
    codes = encoded.indices.fill_null(names.index("")).to_numpy(zero_copy_only=False)
    return TextColumn(codes.astype(np.int64), tuple(names))


def _parquet_numbers(column: Any, kind: Kind, arrow: Any) -> npt.NDArray[np.float64]:
    """Return numbers, with NaN for nulls and times as seconds."""
    if kind is Kind.TIME and arrow.types.is_timestamp(column.type):
        times = column.cast(arrow.timestamp("ns")).to_numpy().astype("datetime64[ns]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e9)
    if kind is Kind.TIME and arrow.types.is_string(column.type):
        return date_seconds(["" if it is None else it for it in column.to_pylist()])
    numbers: npt.NDArray[np.float64] = column.cast(arrow.float64()).to_numpy().astype(np.float64)
    if (np.abs(numbers) > MOST_NUMBER).any():
        raise ValueError("too large")
    return numbers
