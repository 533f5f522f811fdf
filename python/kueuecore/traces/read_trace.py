"""Reads a trace from a file, in a given or detected format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path

from kueuecore._text import quoted
from kueuecore.errors import ManifestError
from kueuecore.traces.alibaba import OPENB_COLUMNS, read_openb, read_pai
from kueuecore.traces.csv_columns import delimiter_of, header_of
from kueuecore.traces.helios import HELIOS_COLUMNS, read_helios
from kueuecore.traces.philly import read_philly
from kueuecore.traces.rules import ColumnSource
from kueuecore.traces.sacct import check_has_delimiters, is_sacct, read_sacct
from kueuecore.traces.swf import read_swf
from kueuecore.traces.table_files import read_csv_table, read_parquet_table
from kueuecore.traces.trace import Trace
from kueuecore.traces.trace_file import trace_bytes

__all__ = ["TraceFormat", "read_trace"]

_PAI_TASKS = "pai_task_table"
_PAI_JOBS = "pai_job_table"
_PARQUET = b"PAR1"
_TABLES = (".csv", ".tsv", ".psv")


class TraceFormat(StrEnum):
    """The formats of traces."""

    SWF = "swf"
    """Standard Workload Format."""
    PHILLY = "philly"
    """Microsoft Philly, `cluster_job_log`."""
    HELIOS = "helios"
    """SenseTime Helios, `cluster_log.csv`."""
    ALIBABA_2020 = "alibaba2020"
    """Alibaba PAI, `pai_task_table.csv` with `pai_job_table.csv` next to it."""
    SACCT = "sacct"
    """Slurm's accounting, as `sacct -P` writes it."""
    ALIBABA_2023 = "alibaba2023"
    """Alibaba, `openb_pod_list_*.csv`."""
    CSV = "csv"
    """A table with a column for each column of a trace, separated by commas, tabs or `|`."""
    PARQUET = "parquet"
    """The same table in Parquet."""


def read_trace(
    path: str | Path,
    *,
    trace_format: TraceFormat | str | None = None,
    columns: Mapping[str, ColumnSource] | None = None,
    fields: Collection[str] | None = None,
) -> Trace:
    """Read a trace, decompressing gzip.

    Args:
        path: The file.
        trace_format: Its format; by default detected from its name and first bytes.
        columns: For tables, the columns with other names in the file (`TraceRules.columns`).
        fields: For tables, the text fields to read, such as those that rules use (`TraceRules.fields`); by default all.

    Raises:
        ManifestError: Everything that is wrong with it, with lines and remedies.
        ValueError: There is no such format.

    Example:
        >>> trace = read_trace("examples/traces/cluster.swf")
        >>> len(trace), trace.header["MaxProcs"], dict(trace.dropped)
        (36, '64', {'cancelled before it started': 4})
    """
    path = Path(path)
    data, file = trace_bytes(path), str(path)
    sources = columns or {}
    found = _format_of(path, data, is_mapped=bool(sources)) if trace_format is None else _named_format(trace_format)
    match found:
        case TraceFormat.SWF:
            return read_swf(data, file)
        case TraceFormat.PHILLY:
            return read_philly(data, file)
        case TraceFormat.HELIOS:
            return read_helios(data, file)
        case TraceFormat.ALIBABA_2020:
            beside = path.with_name(path.name.replace(_PAI_TASKS, _PAI_JOBS))
            if beside == path or not beside.exists():
                return read_pai(data, file)
            return read_pai(data, file, jobs=trace_bytes(beside), jobs_file=str(beside))
        case TraceFormat.SACCT:
            return read_sacct(data, file)
        case TraceFormat.ALIBABA_2023:
            return read_openb(data, file)
        case TraceFormat.CSV:
            return read_csv_table(data, file, sources, fields)
        case TraceFormat.PARQUET:
            return read_parquet_table(data, file, sources, fields)


def _named_format(name: str) -> TraceFormat:
    try:
        return TraceFormat(name)
    except ValueError:
        raise ValueError(f"trace_format: {quoted(name)} is not one of {', '.join(TraceFormat)}") from None


def _format_of(path: Path, data: bytes, *, is_mapped: bool) -> TraceFormat:
    """Detect the format from the file's name, or else from its first bytes.

    Args:
        path: The file.
        data: Its contents.
        is_mapped: Whether rules say where its columns are: then it is a table of one's own.
    """
    name = path.name.removesuffix(".gz")
    if data.startswith(_PARQUET):
        return TraceFormat.PARQUET
    if name.endswith(".swf"):
        return TraceFormat.SWF
    if _PAI_TASKS in name:
        return TraceFormat.ALIBABA_2020
    beginning = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if beginning.startswith(b"["):
        return TraceFormat.PHILLY
    if beginning.startswith(b";"):
        return TraceFormat.SWF
    header = header_of(beginning)
    if not is_mapped and is_sacct(header):
        return TraceFormat.SACCT
    if header[: len(HELIOS_COLUMNS)] == HELIOS_COLUMNS:
        return TraceFormat.HELIOS
    if header[: len(OPENB_COLUMNS)] == OPENB_COLUMNS:
        return TraceFormat.ALIBABA_2023
    check_has_delimiters(beginning, str(path))
    if name.endswith(_TABLES) or delimiter_of(beginning) != ",":
        return TraceFormat.CSV
    remedy = f"set `format`: {', '.join(TraceFormat)}"
    raise ManifestError.of("cannot detect the format from its name or first bytes", remedy=remedy, file=str(path))
