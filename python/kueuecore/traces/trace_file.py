"""Reads the bytes of a trace, compressed or not."""

from __future__ import annotations

import errno
from pathlib import Path

from kueuecore._files import read_file
from kueuecore._gzip import GZIP, unpacked
from kueuecore.errors import ManifestError, Problem

__all__ = ["LARGEST", "MAX_NUMBER", "MAX_PROBLEMS", "ROWS_LIMIT", "check_text", "trace_bytes"]

MAX_NUMBER = 1e30
"""The largest number that is accepted: units cannot make it infinite; values no job can have are reported later."""
MAX_PROBLEMS = 20
"""Reading stops after this many broken lines."""
ROWS_LIMIT = 10_000_000
"""The most jobs in a trace: a batch of submissions cannot hold more."""
LARGEST = 2**31
"""The most bytes of a trace once it is decompressed."""


def trace_bytes(path: Path) -> bytes:
    """Read a file, decompressing gzip by its first bytes, whatever its name.

    Raises:
        ManifestError: It cannot be read, is cut off or damaged, is an archive, or has more than 2 GiB.
    """
    file = str(path)
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise ManifestError.of("there is no such file", remedy="check the name", file=file) from None
    except OSError as error:
        raise ManifestError.of(f"cannot be read: {error.strerror or error}", file=file) from None
    if data.startswith(GZIP):
        data = _decompressed(data, file)
    if data[257:262] == b"ustar":
        raise ManifestError.of("it is a tar archive", remedy="unpack it and name the file inside", file=file)
    if data.startswith(b"PK\x03\x04"):
        raise ManifestError.of("it is a zip archive", remedy="unpack it and name the file inside", file=file)
    return data


def check_text(data: bytes, file: str) -> None:
    """Refuse binary data.

    Raises:
        ManifestError: It contains NUL bytes.
    """
    place = data.find(b"\0")
    if place >= 0:
        line = data.count(b"\n", 0, place) + 1
        remedy = "name a text file, or set `format`"
        raise ManifestError([Problem("it is a binary file, not text", file=file, line=line, remedy=remedy)])


def _decompressed(data: bytes, file: str) -> bytes:
    try:
        return unpacked(data, largest=LARGEST)
    except OSError as error:
        remedy = "split it into several traces" if error.errno == errno.EFBIG else "fetch or copy it again"
        raise ManifestError.of(str(error.strerror), remedy=remedy, file=file) from None
