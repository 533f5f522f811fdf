"""Writes tables to files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import IO

from kueuecore._replaced_files import replaced
from kueuecore.results.table import Table

__all__ = ["SUFFIXES", "write_table"]

SUFFIXES = (".csv", ".parquet", ".arrow")
"""The supported file suffixes."""

_N_ROWS_AT_ONCE = 100_000


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in the format of the file's suffix; null is an empty field in CSV.

    Args:
        table: The table.
        path: The file; an existing one is replaced.

    Raises:
        ValueError: The suffix is not one of `SUFFIXES`.
        ImportError: Parquet and Arrow need the extra `arrow`.
        OSError: The file cannot be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name must end with {', '.join(SUFFIXES)}")
    if path.suffix == ".csv":
        with replaced(path) as file:
            _write_csv(table, file)
        return
    arrow = table.to_arrow()
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        with replaced(path) as file:
            parquet.write_table(arrow, file)
        return
    import pyarrow.feather as feather

    with replaced(path) as file:
        feather.write_feather(arrow, file, compression="uncompressed")


def _write_csv(table: Table, file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.names)
    for start in range(0, len(table), _N_ROWS_AT_ONCE):
        writer.writerows(zip(*table.texts(start, start + _N_ROWS_AT_ONCE), strict=True))
    # The file stays open for whoever opened it.
    text.detach()
