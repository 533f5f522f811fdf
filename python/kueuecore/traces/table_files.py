"""Reads your own tables of jobs: text and Parquet with a column for each column of a trace."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kueuecore._text import quoted, shown
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.csv_columns import CsvColumns, Kind, date_seconds, delimiter_of, read_csv
from kueuecore.traces.endings import has_failed
from kueuecore.traces.rules import ColumnSource
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace
from kueuecore.traces.trace_file import LARGEST, MAX_NUMBER, ROWS_LIMIT

__all__ = ["read_csv_table", "read_parquet_table"]

_TIMES = ("at", "start", "end")
_AMOUNTS = {"cpu_milli": "cpu", "memory_bytes": "memory", "gpu_milli": "gpu"}
_NUMBERS = ("run_seconds", "limit_seconds", "pods", "priority", *_AMOUNTS)
_OTHER_RESOURCE = "requests."
_STATUS = "status"


def read_csv_table(
    data: bytes, file: str, columns: Mapping[str, ColumnSource], fields: Collection[str] | None = None
) -> Trace:
    r"""Read a table whose first line names its columns, with commas, tabs or `|` between them.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.
        columns: Columns of the trace with another name or unit in the file.
        fields: The text fields to read; None: all.

    Raises:
        ManifestError: Columns are missing, or lines are broken.

    Example:
        >>> trace = read_csv_table(b"at,run_seconds,cpu_milli,team\n60,90,500,a\n0,30,1000,b\n", "jobs.csv", {})
        >>> trace.at.tolist(), trace.requests["cpu"].tolist(), trace.fields["team"].texts()
        ([0.0, 60.0], [1000, 500], ['b', 'a'])
    """
    table = read_csv(data, file, lambda header: _kinds(header, columns, file, fields), delimiter=delimiter_of(data))
    return _trace(table, columns, file)


def read_parquet_table(
    data: bytes, file: str, columns: Mapping[str, ColumnSource], fields: Collection[str] | None = None
) -> Trace:
    """Read a Parquet file.

    Args:
        data: The file.
        file: Its name, for errors.
        columns: Columns of the trace with another name or unit in the file.
        fields: The text fields to read; None: all, except columns of lists and the like.

    Raises:
        ManifestError: The extra `arrow` is not installed, it is not a Parquet file or too large, or a column is
            missing or has another type.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        remedy = "install the extra: pip install 'kueuecore[arrow]'"
        raise ManifestError.of("Parquet needs pyarrow", remedy=remedy, file=file) from None
    numbers, texts = {}, {}
    try:
        with parquet.ParquetFile(io.BytesIO(data)) as opened:
            schema = opened.schema_arrow
            kinds = _kinds(schema.names, columns, file, fields)
            if fields is None:
                kinds = {
                    key: kind
                    for key, kind in kinds.items()
                    if kind is not Kind.TEXT or _may_be_text(schema, key, arrow)
                }
            n_rows = _checked_size(opened.metadata, kinds, file)
        # Strings stay what they are in the file, each once: a few bytes may stand for gigabytes of them.
        as_stored = [name for name, kind in kinds.items() if kind is Kind.TEXT]
        with parquet.ParquetFile(io.BytesIO(data), read_dictionary=as_stored) as opened:
            for name, kind in kinds.items():
                column = opened.read(columns=[name]).column(name)
                if len(column) != n_rows:
                    raise ValueError(f"it has {len(column)} rows instead of {n_rows}")
                if kind is Kind.TEXT:
                    texts[name] = _parquet_texts(column, name, arrow, file)
                else:
                    numbers[name] = _parquet_numbers(column, name, kind, arrow, file)
    except ManifestError:
        raise
    # Names that are not UTF-8 are a ValueError, those that occur twice a KeyError.
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise ManifestError.of(f"not a Parquet file: {error}", remedy="check the format", file=file) from None
    # Rows have no lines; number them from 1.
    return _trace(CsvColumns(numbers, texts, np.arange(1, n_rows + 1)), columns, file)


def _may_be_text(schema: Any, name: str, arrow: Any) -> bool:  # pyarrow has no types
    return not any(arrow.types.is_nested(schema.field(index).type) for index in schema.get_all_field_indices(name))


def _checked_size(metadata: Any, kinds: Mapping[str, Kind], file: str) -> int:
    """Return the number of rows.

    Raises:
        ManifestError: It has too many, or too much data in the columns to read.
    """
    n_rows: int = metadata.num_rows
    if n_rows > ROWS_LIMIT:
        remedy = "split it into several traces"
        raise ManifestError.of(f"it has more than {ROWS_LIMIT} rows", remedy=remedy, file=file)
    n_bytes = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        for place in range(group.num_columns):
            column = group.column(place)
            path = column.path_in_schema
            if path in kinds or path.partition(".")[0] in kinds:
                n_bytes += column.total_uncompressed_size
    if n_bytes > LARGEST:
        message = f"the columns to read have {n_bytes / 2**30:.1f} GiB once decompressed, more than 2 GiB"
        raise ManifestError.of(message, remedy="split it into several traces", file=file)
    return n_rows


def _kinds(
    header: Sequence[str], columns: Mapping[str, ColumnSource], file: str, fields: Collection[str] | None
) -> dict[str, Kind]:
    """Return the types of the columns to read."""
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
    kinds = {text: _kind(name_of.get(text, text)) for text in header if text in name_of or text not in columns}
    given = {name_of.get(kind, kind) for kind in kinds}
    remedy = "add it, or map it to its column under `columns` in the rules"
    if "at" not in given and not problems:
        problems.append(Problem('column "at" is missing', file=file, line=1, remedy=remedy))
    if "run_seconds" not in given and not {"start", "end"} <= given and not problems:
        message = 'column "run_seconds" is missing, or "start" and "end" instead of it'
        problems.append(Problem(message, file=file, line=1, remedy=remedy))
    if problems:
        raise ManifestError(problems)
    # If a field is missing, all are read: the error lists them.
    if fields is None or not set(fields) <= given:
        return kinds
    used = {_STATUS, *fields}
    return {key: kind for key, kind in kinds.items() if kind is not Kind.TEXT or name_of.get(key, key) in used}


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
        ends_failed=has_failed(texts[_STATUS]) if _STATUS in texts else False,
        priority=numbers.get("priority", 0),
        fields=texts,
        wait_seconds=numbers["start"] - numbers["at"] if "start" in numbers else None,
        limit_seconds=numbers.get("limit_seconds"),
        lines=table.lines,
        file=file,
    )


def _named(found: Mapping[str, object], source_of: Mapping[str, str]) -> dict[str, str]:
    """Return the column of the file for each column of the trace."""
    name_of = {source: name for name, source in source_of.items()}
    return {name_of.get(source, source): source for source in found}


def _parquet_texts(column: Any, name: str, arrow: Any, file: str) -> TextColumn:
    try:
        if not arrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        chunks = column.unify_dictionaries().chunks
        words = chunks[0].dictionary.cast(arrow.string()).to_pylist() if chunks else []
        indices = arrow.chunked_array([chunk.indices for chunk in chunks], column.type.index_type)
    except (arrow.ArrowException, ValueError):
        raise _wrong_type(name, column, Kind.TEXT, file) from None
    # The last word is for nulls. Words may be null as well, or the same.
    distinct = TextColumn.of(["" if word is None else word for word in (*words, None)])
    codes = indices.cast(arrow.int64()).fill_null(len(words)).to_numpy()
    return TextColumn(distinct.codes[codes], distinct.names)


def _parquet_numbers(column: Any, name: str, kind: Kind, arrow: Any, file: str) -> npt.NDArray[np.float64]:
    """Return numbers, with NaN for nulls and times as seconds."""
    try:
        if kind is Kind.TIME and arrow.types.is_timestamp(column.type):
            times = column.cast(arrow.timestamp("ns")).to_numpy().astype("datetime64[ns]")
            return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e9)
        if kind is Kind.TIME and arrow.types.is_string(column.type):
            return date_seconds(["" if entry is None else entry for entry in column.to_pylist()])
        numbers: npt.NDArray[np.float64] = column.cast(arrow.float64()).to_numpy().astype(np.float64)
        if (np.abs(numbers) > MAX_NUMBER).any():
            raise ValueError("too large")
    except (arrow.ArrowException, ValueError):
        raise _wrong_type(name, column, kind, file) from None
    return numbers


def _wrong_type(name: str, column: Any, kind: Kind, file: str) -> ManifestError:
    held = getattr(column.type, "value_type", column.type) if kind is Kind.TEXT else column.type
    message = f"column {quoted(name)} holds {shown(str(held))}, which cannot be read as a {kind.name.lower()}"
    return ManifestError.of(message, field=name, remedy="convert it", file=file)
