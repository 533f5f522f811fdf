"""Writes tables to files: CSV, Parquet, Arrow IPC; and all of a run to a folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from kueuecore._replaced_files import replaced
from kueuecore.results.table import Table

__all__ = ["SUFFIXES", "check_suffix", "write_folder", "write_table"]

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


def check_suffix(suffix: str) -> None:
    """Check the suffix of files to come.

    Raises:
        ValueError: It is not one of `SUFFIXES`.
    """
    if suffix not in SUFFIXES:
        raise ValueError(f"suffix must be one of {', '.join(SUFFIXES)}, not {suffix!r}")


def write_folder(
    path: str | Path, tables: Mapping[str, Table], *, suffix: str, summary: Mapping[str, object], metrics: str
) -> tuple[Path, ...]:
    """Write a run to a folder: a file for each table, `summary.json`, `metrics.prom`; return the files.

    Args:
        path: The folder; it is created if needed, and files in it are replaced.
        tables: The tables by name.
        suffix: The format of the tables, one of `SUFFIXES`.
        summary: The measures.
        metrics: The metrics.

    Raises:
        ImportError: Parquet and Arrow need the extra `arrow`.
        OSError: A file cannot be written.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        written.append(folder / f"{name}{suffix}")
        write_table(table, written[-1])
    for name, text in (("summary.json", json.dumps(summary, indent=2) + "\n"), ("metrics.prom", metrics)):
        written.append(folder / name)
        with replaced(written[-1]) as file:
            file.write(text.encode())
    return tuple(written)


def _write_csv(table: Table, file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.names)
    for start in range(0, len(table), _N_ROWS_AT_ONCE):
        writer.writerows(zip(*table.texts(start, start + _N_ROWS_AT_ONCE), strict=True))
    # The file stays open for whoever opened it.
    text.detach()
