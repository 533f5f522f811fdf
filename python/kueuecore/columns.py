"""Workloads as columns: one pod set each, arrays of n values or scalars that hold for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Submissions"]

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
    indexes = np.atleast_1d(np.asarray(queue))
    n = len(indexes)
    amounts = [np.frombuffer(_integers(values, n, "<i8"), "<i8") for values in requests.values()]
    return (
        list(local_queues),
        _integers(indexes, n, "<u4"),
        _integers(priority, n, "<i4"),
        _integers(created, n, "<i8"),
        _integers(count, n, "<i4"),
        list(requests),
        np.stack(amounts, axis=1).tobytes() if amounts else b"",
    )


def encode_submissions(submissions: Submissions, *, start: int) -> tuple[str, str, int, ColumnBytes, bytes, bytes]:
    """Submissions as the extension takes them, times in nanoseconds; they count from `start`.

    Raises:
        ValueError: Arrays of other lengths or types, or values that do not fit.
    """
    n = len(np.atleast_1d(np.asarray(submissions.queue)))
    at = start + _nanoseconds("at", submissions.at, n)
    run = np.broadcast_to(np.asarray(submissions.run_seconds, dtype=np.float64), (n,))
    if np.isnan(run).any() or (run < 0).any():
        raise ValueError("run_seconds: must be greater than or equal to 0; infinite for a job that runs for ever")
    for_ever = np.isinf(run)
    run_ns = np.where(for_ever, _FOR_EVER, _nanoseconds("run_seconds", np.where(for_ever, 0.0, run), n))
    columns = encode(
        local_queues=submissions.local_queues,
        queue=submissions.queue,
        requests=submissions.requests,
        count=submissions.count,
        priority=submissions.priority,
        created=at,
    )
    times = at.astype("<i8").tobytes(), run_ns.astype("<i8").tobytes()
    return (submissions.namespace, submissions.prefix, submissions.first, columns, *times)


def _integers(values: npt.ArrayLike, n: int, kind: str) -> bytes:
    array = np.broadcast_to(np.asarray(values), (n,))
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"columns hold integers, not {array.dtype}")
    limits = np.iinfo(kind)
    if n and not (limits.min <= array.min() and array.max() <= limits.max):
        raise ValueError(f"a column holds values outside of {limits.min} ... {limits.max}")
    return array.astype(kind).tobytes()


def _nanoseconds(name: str, seconds: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    array = np.broadcast_to(np.asarray(seconds, dtype=np.float64), (n,))
    # A century leaves room for the time of the beginning.
    if n and not (np.abs(array) < 100 * 366 * 86400).all():
        raise ValueError(f"{name}: must be a number of seconds within a century")
    return np.rint(array * _SECOND_NS).astype(np.int64)
