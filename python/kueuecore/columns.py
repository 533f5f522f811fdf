"""Workloads as columns: one pod set each, arrays of n values or scalars that hold for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kueuecore._arguments import number, text
from kueuecore.times import END_NS

__all__ = ["Submissions"]

_Number = TypeVar("_Number", bound=np.generic)

_SECOND_NS = 1_000_000_000
_FOR_EVER = -1

ColumnBytes: TypeAlias = tuple[list[str], bytes, bytes, bytes, bytes, list[str], bytes]
"""LocalQueues, queue, priority, created, count, resources, requests: as the extension takes them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Submissions:
    """Workloads that come in the course of a simulation. Each value is an array of shape (n,) or a scalar for all.

    Args:
        namespace: Namespace of all of them.
        local_queues: Names of LocalQueues.
        queue: Index into `local_queues`, shape (n,).
        requests: What one pod requests of each resource, as integers: milli-units of `cpu`, whole units (bytes) of the
            rest. 0: not requested.
        at: When each appears, in seconds after the beginning. It is also the time of its creation.
        run_seconds: How long its job runs once it is admitted; infinite: for ever.
        count: Pods of each workload.
        priority: Priority of each workload.
        prefix: Names are this and a number; the UID is the name.
        first: Number of the first.
    """

    namespace: str
    local_queues: Sequence[str]
    queue: npt.ArrayLike
    requests: Mapping[str, npt.ArrayLike]
    at: npt.ArrayLike = 0.0
    run_seconds: npt.ArrayLike = math.inf
    count: npt.ArrayLike = 1
    priority: npt.ArrayLike = 0
    prefix: str = "workload-"
    first: int = 0


def encode(
    *,
    local_queues: Sequence[str],
    queue: npt.ArrayLike,
    requests: Mapping[str, npt.ArrayLike],
    count: npt.ArrayLike,
    priority: npt.ArrayLike,
    created: npt.ArrayLike,
) -> ColumnBytes:
    """Columns as the extension takes them; it checks what they hold.

    Raises:
        ValueError: Arrays of other lengths or types, or values that do not fit.
    """
    if not isinstance(requests, Mapping):
        raise TypeError(f"requests maps resources to columns; it is no {type(requests).__name__}")
    if isinstance(local_queues, str) or not isinstance(local_queues, Iterable):
        raise TypeError(f"local_queues is a sequence of names, not {type(local_queues).__name__}")
    n = _length(queue)
    amounts = [
        np.frombuffer(_integers(f"requests[{resource!r}]", values, n, "<i8"), "<i8")
        for resource, values in requests.items()
    ]
    return (
        [text(f"local_queues[{i}]", name) for i, name in enumerate(local_queues)],
        _integers("queue", queue, n, "<u4"),
        _integers("priority", priority, n, "<i4"),
        _integers("created", created, n, "<i8"),
        _integers("count", count, n, "<i4"),
        [text("a key of requests", resource) for resource in requests],
        np.stack(amounts, axis=1).tobytes() if amounts else b"",
    )


def encode_submissions(submissions: Submissions, *, start: int) -> tuple[str, str, int, ColumnBytes, bytes, bytes]:
    """Submissions as the extension takes them, times in nanoseconds; they count from `start`.

    Raises:
        TypeError: They are no submissions.
        ValueError: Arrays of other lengths or types, or values that do not fit.
    """
    given: object = submissions
    if not isinstance(given, Submissions):
        raise TypeError(f"submissions holds Submissions, not {type(given).__name__}")
    n = _length(submissions.queue)
    offset = _nanoseconds("at", submissions.at, n)
    if (offset < 0).any():
        raise ValueError("at: must be greater than or equal to 0")
    _check_end("at", start, offset)
    at = start + offset
    run = _seconds("run_seconds", submissions.run_seconds, n)
    if np.isnan(run).any() or (run < 0).any():
        raise ValueError("run_seconds: must be greater than or equal to 0; infinite for a job that runs for ever")
    for_ever = np.isinf(run)
    finite = _nanoseconds("run_seconds", np.where(for_ever, 0.0, run), n)
    _check_end("run_seconds", start, offset + finite)
    run_ns = np.where(for_ever, _FOR_EVER, finite)
    columns = encode(
        local_queues=submissions.local_queues,
        queue=submissions.queue,
        requests=submissions.requests,
        count=submissions.count,
        priority=submissions.priority,
        created=at,
    )
    names = text("namespace", submissions.namespace), text("prefix", submissions.prefix)
    if not names[0]:
        raise ValueError("namespace: must not be empty")
    times = at.astype("<i8").tobytes(), run_ns.astype("<i8").tobytes()
    return (*names, number("first", submissions.first), columns, *times)


def _check_end(name: str, start: int, spans: npt.NDArray[np.int64]) -> None:
    if len(spans) and start + int(spans.max()) >= END_NS:
        raise ValueError(f"{name}: must end before April 2262, where 64 bits of nanoseconds end")


def _array(name: str, values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: must be an array of one dimension, or a scalar: {error}") from None


def _length(queue: npt.ArrayLike) -> int:
    """The number of rows: the column `queue` has a value for each."""
    array = np.atleast_1d(_array("queue", queue))
    if array.ndim != 1:
        raise ValueError(f"queue: must be an array of one dimension; this one has the shape {array.shape}")
    return len(array)


def _filled(name: str, array: npt.NDArray[_Number], n: int) -> npt.NDArray[_Number]:
    """The column, or the scalar n times."""
    try:
        return np.broadcast_to(array, (n,))
    except ValueError:
        raise ValueError(f"{name}: must be a scalar or have the shape ({n},), not {array.shape}") from None


def _integers(name: str, values: npt.ArrayLike, n: int, kind: str) -> bytes:
    array = _filled(name, _array(name, values), n)
    if not n:
        return b""
    # Time spans count as integers of numpy, but have a unit.
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: columns hold integers, not {array.dtype}")
    limits = np.iinfo(kind)
    if not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
        raise ValueError(f"{name}: holds values outside of {limits.min} ... {limits.max}")
    return array.astype(kind).tobytes()


def _seconds(name: str, seconds: npt.ArrayLike, n: int) -> npt.NDArray[np.float64]:
    array = _array(name, seconds)
    if array.size and array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: must be numbers of seconds, not {array.dtype}")
    return _filled(name, array.astype(np.float64), n)


def _nanoseconds(name: str, seconds: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    array = _seconds(name, seconds, n)
    # A century leaves room for the time of the beginning.
    if n and not (np.abs(array) < 100 * 366 * 86400).all():
        raise ValueError(f"{name}: must be a number of seconds within a century")
    return np.rint(array * _SECOND_NS).astype(np.int64)
