"""Workloads as columns: one pod set each, arrays of n values or scalars that hold for all."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kueuecore._arguments import number, shown, text
from kueuecore._names import label_problems, subdomain_problems
from kueuecore.times import END_NS, SECOND_NS

__all__ = ["Submissions"]

_Number = TypeVar("_Number", bound=np.generic)

_FOR_EVER = -1
_MAX_ROWS = 10_000_000

ColumnBytes: TypeAlias = tuple[list[str], bytes, bytes, bytes, bytes, list[str], bytes]
"""LocalQueues, queue, priority, created, count, resources, requests, as the extension takes them."""
Batch: TypeAlias = tuple[str, str, int, ColumnBytes]
"""Namespace, prefix, first number, and the columns."""
TimedBatch: TypeAlias = tuple[str, str, int, ColumnBytes, bytes, bytes, bytes]
"""The same, plus when they appear and how long they run, in nanoseconds (i64), and whether they then fail (u8)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Submissions:
    """Workloads that arrive during a simulation. Each value is an array of shape (n,) or a scalar for all.

    Args:
        namespace: Namespace of all of them.
        local_queues: Names of LocalQueues.
        queue: Index into `local_queues`, shape (n,), with n up to 10,000,000.
        requests: What one pod requests of each resource, as integers: milli-units for `cpu`, whole units (bytes) for
            the rest. 0: not requested.
        at: When each arrives, in seconds after the start of the simulation; also its creation time.
        run_seconds: How long its job runs once admitted; infinite: forever.
        ends_failed: Whether its job then fails, as bool: the reason of its condition Finished is `Failed` instead of
            `Succeeded`.
        count: Pods of each workload.
        priority: Priority of each workload.
        prefix: Names are this prefix and a number; the UID is the name. The names must differ from those of existing
            workloads and of other submissions.
        first: Number of the first workload.
    """

    namespace: str
    local_queues: Sequence[str]
    queue: npt.ArrayLike
    requests: Mapping[str, npt.ArrayLike]
    at: npt.ArrayLike = 0.0
    run_seconds: npt.ArrayLike = math.inf
    ends_failed: npt.ArrayLike = False
    count: npt.ArrayLike = 1
    priority: npt.ArrayLike = 0
    prefix: str = "workload-"
    first: int = 0


def encode(
    *,
    namespace: str,
    local_queues: Sequence[str],
    queue: npt.ArrayLike,
    requests: Mapping[str, npt.ArrayLike],
    count: npt.ArrayLike,
    priority: npt.ArrayLike,
    created: npt.ArrayLike,
    prefix: str,
    first: int,
) -> Batch:
    """Encode columns for the extension, which checks their values.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: Arrays have different lengths or wrong types, values are out of range, or names are invalid.
    """
    if not isinstance(requests, Mapping):
        raise TypeError(f"requests must be a dict of columns by resource, not {type(requests).__name__}")
    if isinstance(local_queues, str | AbstractSet | Mapping):
        raise TypeError(f"local_queues must be a sequence of names, not {type(local_queues).__name__}")
    n, start = _length(queue), number("first", first)
    namespace, prefix = text("namespace", namespace), text("prefix", prefix)
    _check("namespace", namespace, label_problems(namespace))
    # The last name is the longest.
    _check("prefix", prefix, subdomain_problems(f"{prefix}{start + max(n, 1) - 1}"))
    try:
        names = iter(local_queues)
    except TypeError:  # such as an array without a dimension
        raise TypeError(f"local_queues must be a sequence of names, not {type(local_queues).__name__}") from None
    queues = [text(f"local_queues[{i}]", name) for i, name in enumerate(names)]
    for i, name in enumerate(queues):
        _check(f"local_queues[{i}]", name, subdomain_problems(name))
    if "pods" in requests:
        raise ValueError("requests['pods']: Kueue counts the pods itself")
    amounts = [
        np.frombuffer(_integers(f"requests[{shown(resource)}]", values, n, "<i8"), "<i8")
        for resource, values in requests.items()
    ]
    columns = (
        queues,
        _integers("queue", queue, n, "<u4"),
        _integers("priority", priority, n, "<i4"),
        _integers("created", created, n, "<i8"),
        _integers("count", count, n, "<i4"),
        [text("a key of requests", resource) for resource in requests],
        np.stack(amounts, axis=1).tobytes() if amounts else b"",
    )
    return namespace, prefix, start, columns


def _check(name: str, value: str, problems: Sequence[str]) -> None:
    if problems:
        raise ValueError(f"{name}: {shown(value)}: {', '.join(problems)}")


def encode_submissions(submissions: Submissions, *, start: int) -> TimedBatch:
    """Encode submissions for the extension, with times in nanoseconds from `start`.

    Raises:
        TypeError: They are not Submissions.
        ValueError: Arrays have different lengths or wrong types, or values are out of range.
    """
    given: object = submissions
    if not isinstance(given, Submissions):
        raise TypeError(f"submissions must hold Submissions, not {type(given).__name__}")
    n = _length(submissions.queue)
    offset = _nanoseconds("at", submissions.at, n)
    if (offset < 0).any():
        raise ValueError("at: must be greater than or equal to 0")
    _check_end("at", start, offset)
    at = start + offset
    run = _seconds("run_seconds", submissions.run_seconds, n)
    if np.isnan(run).any() or (run < 0).any():
        raise ValueError("run_seconds: must be greater than or equal to 0; infinite for a job that runs forever")
    for_ever = np.isinf(run)
    finite = _nanoseconds("run_seconds", np.where(for_ever, 0.0, run), n)
    _check_end("run_seconds", start, offset + finite)
    run_ns = np.where(for_ever, _FOR_EVER, finite)
    batch = encode(
        namespace=submissions.namespace,
        local_queues=submissions.local_queues,
        queue=submissions.queue,
        requests=submissions.requests,
        count=submissions.count,
        priority=submissions.priority,
        created=at,
        prefix=submissions.prefix,
        first=submissions.first,
    )
    ends_failed = _flags("ends_failed", submissions.ends_failed, n)
    return (*batch, at.astype("<i8").tobytes(), run_ns.astype("<i8").tobytes(), ends_failed)


def check_names(batches: Iterable[TimedBatch], existing: Iterable[str | None]) -> None:
    """Refuse names that exist already or occur in two batches.

    Args:
        batches: The batches.
        existing: `namespace/name` of the existing workloads.

    Raises:
        ValueError: There is such a name.
    """
    # Compare names that end in digits as numbers: with the same beginning and as many digits, they sort together.
    ranges: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for namespace, prefix, first, _, times, _, _ in batches:
        for key, begin, end in _ranges(f"{namespace}/{prefix}", first, first + len(times) // 8):
            ranges.setdefault(key, []).append((begin, end))
    for (root, n_digits), found in ranges.items():
        found.sort()
        for (_, end), (begin, _) in pairwise(found):
            if begin < end:
                name = f"{root}{begin:0{n_digits}}"
                raise ValueError(f"prefix: two submissions create Workload {name}; change prefix or first")
    for name in filter(None, existing):
        root, digits = _root_and_digits(name)
        if found := ranges.get((root, len(digits)), []):
            place = bisect_right(found, int(digits), key=lambda error: error[0]) - 1
            if place >= 0 and int(digits) < found[place][1]:
                raise ValueError(f"prefix: Workload {name} already exists; change prefix or first")


def _ranges(prefix: str, number: int, end: int) -> Iterator[tuple[tuple[str, int], int, int]]:
    """Yield ranges of names: the text before all trailing digits, their count, and the range of their numbers."""
    root, digits = _root_and_digits(prefix)
    while number < end:
        n_digits = len(str(number))
        stop = min(end, 10**n_digits)
        offset = int(digits or 0) * 10**n_digits
        yield (root, len(digits) + n_digits), offset + number, offset + stop
        number = stop


def _root_and_digits(name: str) -> tuple[str, str]:
    root = name.rstrip("0123456789")
    return root, name[len(root) :]


def _check_end(name: str, start: int, spans: npt.NDArray[np.int64]) -> None:
    if len(spans) and start + int(spans.max()) >= END_NS:
        raise ValueError(f"{name}: must end before April 2262, where 64 bits of nanoseconds end")


def _array(name: str, values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    if isinstance(values, Sized) and not isinstance(values, np.ndarray) and len(values) > _MAX_ROWS:
        raise ValueError(f"{name}: has more than {_MAX_ROWS} values; submit fewer workloads at a time")
    for part in values if isinstance(values, list | tuple) else (values,):
        if isinstance(part, int | float | str | np.generic):
            continue
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(f"{name}: has masked values; fill them, or drop the rows")
        if part is not values and ((isinstance(part, np.ndarray) and part.ndim) or isinstance(part, Sequence)):
            raise ValueError(f"{name}: must be a one-dimensional array or a scalar: it holds a {type(part).__name__}")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: must be a one-dimensional array or a scalar: {error}") from None


def _length(queue: npt.ArrayLike) -> int:
    """Return the number of rows: the column `queue` has a value for each."""
    array = np.atleast_1d(_array("queue", queue))
    if array.ndim != 1:
        raise ValueError(f"queue: must be a one-dimensional array, not one of shape {array.shape}")
    if len(array) > _MAX_ROWS:
        raise ValueError(f"queue: has {len(array)} values; submit at most {_MAX_ROWS} workloads at a time")
    return len(array)


def _filled(name: str, array: npt.NDArray[_Number], n: int) -> npt.NDArray[_Number]:
    """Return the column, or the scalar repeated n times."""
    try:
        return np.broadcast_to(array, (n,))
    except ValueError:
        raise ValueError(f"{name}: must be a scalar or have the shape ({n},), not {array.shape}") from None


def _integers(name: str, values: npt.ArrayLike, n: int, kind: str) -> bytes:
    array = _filled(name, _array(name, values), n)
    if not n:
        return b""
    # numpy's timedeltas count as integers, but have a unit.
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: must be integers, not {array.dtype}")
    limits = np.iinfo(kind)
    if not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
        raise ValueError(f"{name}: has values outside {limits.min} ... {limits.max}")
    return array.astype(kind).tobytes()


def _flags(name: str, values: npt.ArrayLike, n: int) -> bytes:
    array = _filled(name, _array(name, values), n)
    # Integers 0 and 1 might be another column by mistake.
    if n and array.dtype.kind != "b":
        raise ValueError(f"{name}: must be bools, not {array.dtype}")
    return array.astype("u1").tobytes()


def _seconds(name: str, seconds: npt.ArrayLike, n: int) -> npt.NDArray[np.float64]:
    array = _array(name, seconds)
    if array.size and array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: must be numbers of seconds, not {array.dtype}")
    return _filled(name, array, n).astype(np.float64)


def _nanoseconds(name: str, seconds: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    array = _seconds(name, seconds, n)
    # A century leaves room for the start time.
    if n and not (np.abs(array) < 100 * 366 * 86400).all():
        raise ValueError(f"{name}: must be a number of seconds within a century")
    return np.rint(array * SECOND_NS).astype(np.int64)
