"""Describes workloads that arrive during a run and differ only in name, time and run time, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.manifests import Manifest, plain_object
from kueuecore.simulation.run import Happening
from kueuecore.times import END_NS, SECOND_NS, format_time

__all__ = ["Copies", "CopyBytes", "encode_copies", "joined_names", "no_copies"]

_FOR_EVER = -1

CopyBytes = tuple[bytes, bytes, bytes, int, bytes, bytes]
"""Templates, names, their ends, the first UID's number, and times and run times in nanoseconds, as the extension
takes them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """Workloads as rows, each a copy of a template. Arrays have the shape (n,).

    Args:
        templates: How the Workloads to copy are created; their times and run times are ignored.
        template: The index of each row's template.
        names: The concatenated names of the rows.
        ends: Where each row's name ends in `names`, in bytes.
        at: When each arrives, in seconds after the start; also its creation time, in whole seconds.
        run_seconds: How long its job runs once admitted; infinite: forever.
        first_uid: The number in the UID of the first row. Among otherwise equal Workloads created at the same time, the
            first row goes first.
    """

    templates: Sequence[Happening]
    template: npt.NDArray[np.uint32]
    names: bytes
    ends: npt.NDArray[np.uint64]
    at: npt.NDArray[np.float64]
    run_seconds: npt.NDArray[np.float64]
    first_uid: int = 1

    def __len__(self) -> int:
        return len(self.template)

    def name(self, row: int) -> str:
        """Return the name of a row's Workload."""
        return self.names[int(self.ends[row - 1]) if row else 0 : int(self.ends[row])].decode()

    def manifest(self, row: int, *, start: int) -> Manifest:
        """Return a row's Workload as an API server stores it.

        Args:
            row: The row.
            start: The start time, in nanoseconds since 1970.
        """
        given = self.templates[int(self.template[row])].object
        plain: JsonObject = {} if given is None else plain_object(given)
        created = (start + round(float(self.at[row]) * SECOND_NS)) // SECOND_NS * SECOND_NS
        metadata: JsonObject = {
            **object_at(plain, "metadata"),
            "name": self.name(row),
            "uid": f"00000000-0000-0000-0000-{self.first_uid + row:012}",
            "creationTimestamp": format_time(created),
            "generation": 1,
        }
        return Manifest({**plain, "metadata": metadata})

    def namespace(self, row: int) -> str:
        """Return the namespace of a row."""
        given = self.templates[int(self.template[row])].object
        return "" if given is None else text_at(plain_object(given), "metadata", "namespace")


def joined_names(names: Sequence[str]) -> tuple[bytes, npt.NDArray[np.uint64]]:
    """Concatenate names; return the text and where each name ends.

    Example:
        >>> text, ends = joined_names(["a", "bc"])
        >>> text, ends.tolist()
        (b'abc', [1, 3])
    """
    text = "".join(names)
    lengths = map(len, names if text.isascii() else map(str.encode, names))
    return text.encode(), np.cumsum(np.fromiter(lengths, np.uint64, len(names)), dtype=np.uint64)


def no_copies() -> Copies:
    """Return copies without rows."""
    times = np.empty(0)
    none = np.empty(0, np.uint32)
    return Copies(templates=(), template=none, names=b"", ends=np.empty(0, np.uint64), at=times, run_seconds=times)


def encode_copies(copies: Copies, *, start: int) -> CopyBytes:
    """Encode rows for the extension; times count from `start`.

    Raises:
        ValueError: A time or duration is invalid.
    """
    at, for_ever = _nanoseconds("at", copies.at, start), np.isinf(copies.run_seconds)
    run = _nanoseconds("run_seconds", np.where(for_ever, 0.0, copies.run_seconds), start)
    if len(at) and start + int((at + run).max()) >= END_NS:
        raise ValueError("run_seconds: must end before April 2262, where 64 bits of nanoseconds end")
    return (
        copies.template.astype("<u4").tobytes(),
        copies.names,
        copies.ends.astype("<u8").tobytes(),
        copies.first_uid,
        (start + at).astype("<i8").tobytes(),
        np.where(for_ever, _FOR_EVER, run).astype("<i8").tobytes(),
    )


def _nanoseconds(name: str, seconds: npt.NDArray[np.float64], start: int) -> npt.NDArray[np.int64]:
    if not ((seconds >= 0) & (start + seconds * SECOND_NS < END_NS)).all():
        raise ValueError(f"{name}: must be 0 or more seconds and end before April 2262")
    return np.rint(seconds * SECOND_NS).astype(np.int64)
