"""Tables as files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from kueuecore.results.table import Column, Table

__all__ = ["SUFFIXES", "write_table"]

SUFFIXES = (".csv", ".parquet", ".arrow")
"""What the names of files may end with."""

_N_ROWS_AT_ONCE = 100_000


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in the form that the suffix of the file names; null is an empty field in CSV.

    Args:
        table: The table.
        path: The file, which is replaced if it is there.

    Raises:
        ValueError: The suffix is none of `SUFFIXES`.
        ImportError: Parquet and Arrow take the extra `arrow`.
        OSError: The file can not be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name must end with {', '.join(SUFFIXES)}")
    if path.suffix == ".csv":
        _write_csv(table, path)
        return
    arrow = table.to_arrow()
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(arrow, path)
        return
    import pyarrow.feather as feather

    feather.write_feather(arrow, path, compression="uncompressed")


def _write_csv(table: Table, path: Path) -> None:
    columns = [(table[name], _quoted_words(table[name])) for name in table.names]
    with path.open("wb") as file:
        file.write(_joined([np.array([_quoted(name)]) for name in table.names]))
        for start in range(0, len(table), _N_ROWS_AT_ONCE):
            rows = slice(start, start + _N_ROWS_AT_ONCE)
            file.write(_joined([_cells(column, words, rows) for column, words in columns]))


def _joined(columns: list[npt.NDArray[np.bytes_]]) -> bytes:
    """Cells, a column each, as lines. Text ends where numpy pads it with zeros, and holds none itself."""
    n_rows = len(columns[0])
    parts = [part for column in columns for part in (_as_bytes(column), np.full((n_rows, 1), ord(","), np.uint8))]
    parts[-1][:] = ord("\n")
    lines = np.concatenate(parts, axis=1)
    held: npt.NDArray[np.uint8] = lines[lines != 0]
    return held.tobytes()


def _as_bytes(cells: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(cells).view(np.uint8).reshape(len(cells), -1)


def _cells(column: Column, words: npt.NDArray[np.bytes_] | None, rows: slice) -> npt.NDArray[np.bytes_]:
    """Some rows of a column as text: times as in RFC 3339, null is empty."""
    values = column.values[rows]
    cells: npt.NDArray[np.bytes_]
    if words is not None:
        # A word that is none, -1, is the last of these.
        cells = words[values]
    else:
        # Making text of a number takes longest, and many are equal.
        different, places = np.unique(values, return_inverse=True)
        is_time = values.dtype.kind == "M"
        texts = np.datetime_as_string(different, unit="ns", timezone="UTC") if is_time else different
        cells = texts.astype(np.bytes_)[places]
    if column.is_null is not None:
        cells[column.is_null[rows]] = b""
    return cells


def _quoted_words(column: Column) -> npt.NDArray[np.bytes_] | None:
    return None if column.words is None else np.array([*map(_quoted, column.words), b""])


def _quoted(text: str) -> bytes:
    """A text as a cell: in quotes if it holds what separates cells."""
    if any(it in text for it in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode()
