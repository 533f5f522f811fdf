"""Writes tables to files: CSV, Parquet, Arrow IPC."""

from __future__ import annotations

import csv
from pathlib import Path

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
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.names)
        for start in range(0, len(table), _N_ROWS_AT_ONCE):
            writer.writerows(zip(*table.texts(start, start + _N_ROWS_AT_ONCE), strict=True))
