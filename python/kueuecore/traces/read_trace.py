"""A trace from a file, by the format that is named or found out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from kueuecore._text import quoted
from kueuecore.errors import ManifestError
from kueuecore.traces.alibaba import OPENB_COLUMNS, read_openb, read_pai
from kueuecore.traces.helios import HELIOS_COLUMNS, read_helios
from kueuecore.traces.philly import read_philly
from kueuecore.traces.rules import ColumnSource
from kueuecore.traces.swf import read_swf
from kueuecore.traces.table_files import read_csv_table, read_parquet_table
from kueuecore.traces.trace import Trace
from kueuecore.traces.trace_file import trace_bytes

__all__ = ["TraceFormat", "read_trace"]

_PAI_TASKS = "pai_task_table"
_PAI_JOBS = "pai_job_table"
_PARQUET = b"PAR1"


class TraceFormat(StrEnum):
    """What a trace can be written in."""

    SWF = "swf"
    """Standard Workload Format."""
    PHILLY = "philly"
    """Microsoft Philly, `cluster_job_log`."""
    HELIOS = "helios"
    """SenseTime Helios, `cluster_log.csv`."""
    ALIBABA_2020 = "alibaba2020"
    """Alibaba PAI, `pai_task_table.csv` with `pai_job_table.csv` beside it."""
    ALIBABA_2023 = "alibaba2023"
    """Alibaba, `openb_pod_list_*.csv`."""
    CSV = "csv"
    """A table with a column for each column of a trace."""
    PARQUET = "parquet"
    """The same."""


def read_trace(
    path: str | Path,
    *,
    trace_format: TraceFormat | str | None = None,
    columns: Mapping[str, ColumnSource] | None = None,
) -> Trace:
    """Read a trace; compressed files (gzip) are read as they are.

    Args:
        path: The file.
        trace_format: Its format; by default found out from its name and its beginning.
        columns: For tables, the columns that have other names there (`TraceRules.columns`).

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
    match _format_of(path, data) if trace_format is None else _named_format(trace_format):
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
        case TraceFormat.ALIBABA_2023:
            return read_openb(data, file)
        case TraceFormat.CSV:
            return read_csv_table(data, file, sources)
        case TraceFormat.PARQUET:
            return read_parquet_table(data, file, sources)


def _named_format(name: str) -> TraceFormat:
    try:
        return TraceFormat(name)
    except ValueError:
        raise ValueError(f"trace_format: {quoted(name)} is none of {', '.join(TraceFormat)}") from None


def _format_of(path: Path, data: bytes) -> TraceFormat:
    """The format by the name of the file, else by its beginning."""
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
    header = tuple(it.strip() for it in beginning.split(b"\n")[0].decode("utf-8", "replace").split(","))
    if header[: len(HELIOS_COLUMNS)] == HELIOS_COLUMNS:
        return TraceFormat.HELIOS
    if header[: len(OPENB_COLUMNS)] == OPENB_COLUMNS:
        return TraceFormat.ALIBABA_2023
    if name.endswith(".csv"):
        return TraceFormat.CSV
    remedy = f"say which `format` it has: {', '.join(TraceFormat)}"
    raise ManifestError.of("the format cannot be found out from its name or beginning", remedy=remedy, file=str(path))
