"""Read logs in the Standard Workload Format as the jobs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kueuecore.errors import ManifestError
from kueuecore.times import SECOND_NS, nanoseconds
from kueuecore.traces import TextColumn, Trace
from kueuecore.traces.queue_names import labels_of
from kueuecore.traces.swf import read_swf
from kueuecore.traces.trace_file import trace_bytes

__all__ = ["Log", "log_files", "log_of", "read_log"]

# For a log that does not say when it began: a Monday.
_MONDAY = "2001-01-01T00:00:00Z"
_UNKNOWN = 0
_LONGEST_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """The jobs of a machine in order of submission, n rows.

    Args:
        name: The name of the file before its first dot.
        start: When the first job was submitted, in nanoseconds since 1970.
        processors: How many processors the machine has.
        at: When each job was submitted, in seconds from the start, shape (n,).
        run_seconds: How long it ran.
        ends_failed: Whether it failed or was cancelled.
        pods: How many processors it requested.
        limit: For how many seconds it requested them; 0: unknown.
        user: Its user.
        app: Its executable.
        queue: Its queue; one name for all if the log has no queues.
        dropped: How many jobs were left out, by reason.
    """

    name: str
    start: int
    processors: int
    at: npt.NDArray[np.float64]
    run_seconds: npt.NDArray[np.float64]
    ends_failed: npt.NDArray[np.bool_]
    pods: npt.NDArray[np.int64]
    limit: npt.NDArray[np.int64]
    user: TextColumn
    app: TextColumn
    queue: TextColumn
    dropped: dict[str, int]

    def __len__(self) -> int:
        return len(self.at)


def log_files(places: Sequence[Path]) -> list[Path]:
    """Return the logs in folders and the files named, each once.

    Raises:
        ManifestError: A place does not exist.
    """
    found: list[Path] = []
    for place in places:
        if not place.exists():
            raise ManifestError.of("there is no such file", remedy="name a log in SWF or a folder", file=str(place))
        found += sorted([*place.glob("*.swf"), *place.glob("*.swf.gz")]) if place.is_dir() else [place]
    return list(dict.fromkeys(found))


def read_log(path: Path) -> Log:
    """Read a log, compressed or not.

    Raises:
        ManifestError: It cannot be read, is broken, or has no jobs.
    """
    return log_of(read_swf(trace_bytes(path), str(path)), path.name.partition(".")[0], str(path))


def log_of(trace: Trace, name: str, file: str = "") -> Log:
    """Turn the jobs of a log into those of a cluster; jobs larger than the machine are left out.

    Args:
        trace: The log.
        name: Its name.
        file: Its file, for errors.

    Raises:
        ManifestError: It has no jobs.
    """
    header = trace.header
    processors = _number(header.get("MaxProcs", ""))
    n_in_file = len(trace)
    if processors:
        trace = trace.rows(np.flatnonzero(trace.pods <= processors))
    if not len(trace):
        raise ManifestError.of("it has no jobs that fit its machine", remedy="check MaxProcs", file=file)
    start = (_number(header.get("UnixStartTime", "")) * SECOND_NS or nanoseconds(_MONDAY)) + round(
        trace.begin * SECOND_NS
    )
    dropped = dict(trace.dropped)
    if len(trace) < n_in_file:
        dropped["larger than the machine"] = n_in_file - len(trace)
    limits = np.array([min(_number(text), _LONGEST_LIMIT) for text in trace.fields["requestedSeconds"].names], np.int64)
    return Log(
        name=name,
        start=start,
        processors=processors or int(trace.pods.max()),
        at=trace.at,
        run_seconds=trace.run_seconds,
        ends_failed=trace.ends_failed,
        pods=trace.pods,
        limit=limits[trace.fields["requestedSeconds"].codes],
        user=_labels(trace.fields["user"]),
        app=_labels(trace.fields["executable"]),
        queue=_labels(trace.fields["queue"], alone="all"),
        dropped=dropped,
    )


def _labels(column: TextColumn, *, alone: str = "unknown") -> TextColumn:
    """Return names that Kubernetes takes; `alone` if all are unknown."""
    unknown = alone if set(column.names) == {""} else "unknown"
    names = [text or unknown for text in column.names]
    labels = labels_of(names)
    return column.renamed([labels[name] for name in names])


def _number(text: str) -> int:
    try:
        return max(int(float(text.split()[0])), _UNKNOWN)
    except (ValueError, IndexError, OverflowError):
        return _UNKNOWN
