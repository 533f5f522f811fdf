"""Writes to standard output and standard error, which may be closed, full, unread, or not UTF-8."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import StringIO
from typing import NamedTuple, TextIO

from kueuecore._text import escaped

__all__ = ["OutputError", "Said", "captured", "is_utf8", "output", "to_stderr", "write"]


class OutputError(Exception):
    """The output cannot be written.

    Args:
        reason: Why not.
        has_reader: False if the reader, such as `head`, has closed the pipe.
        what: Standard output, or the file.
    """

    def __init__(self, reason: str, *, has_reader: bool = True, what: str = "standard output") -> None:
        super().__init__(reason)
        self.has_reader = has_reader
        self.what = what


class Said(NamedTuple):
    """Streams that stand for standard output and standard error."""

    stdout: StringIO
    stderr: StringIO

    @property
    def out(self) -> str:
        """What was written to standard output."""
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        """What was written to standard error."""
        return self.stderr.getvalue()


# Of the thread or task that captures: others go on writing to the real ones.
_SAID: ContextVar[Said | None] = ContextVar("said", default=None)


@contextmanager
def captured() -> Iterator[Said]:
    """Keep what this thread or task writes meanwhile."""
    said = Said(StringIO(), StringIO())
    token = _SAID.set(said)
    try:
        yield said
    finally:
        _SAID.reset(token)


def output() -> TextIO:
    """Standard output.

    Raises:
        OutputError: It is closed.
    """
    if (said := _SAID.get()) is not None:
        return said.stdout
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError("it is closed")
    return sys.stdout


def write(text: str) -> None:
    """Write to standard output; escapes characters that its encoding lacks.

    Raises:
        OutputError: It cannot be written.
    """
    stream = output()
    try:
        _write(stream, text)
    except OSError as error:
        _discard(stream)
        has_reader = not isinstance(error, BrokenPipeError)
        raise OutputError(error.strerror or str(error), has_reader=has_reader) from None


def to_stderr(*lines: str) -> None:
    """Write lines to standard error; failing to is not an error, as nobody could read it anyway."""
    said = _SAID.get()
    stream = sys.stderr if said is None else said.stderr
    if stream is None or stream.closed:
        return
    try:
        _write(stream, "".join(f"{escaped(line)}\n" for line in lines))
    except OSError:
        _discard(stream)


def is_utf8() -> bool:
    """Whether standard output is UTF-8, as YAML readers expect."""
    return codecs.lookup(_encoding(output())).name == "utf-8"


def _write(stream: TextIO, text: str) -> None:
    data = text.encode(_encoding(stream), "backslashreplace")
    binary = getattr(stream, "buffer", None)
    if binary is None:  # an in-memory stream
        stream.write(data.decode(_encoding(stream)))
        stream.flush()
        return
    stream.flush()
    # With PYTHONUNBUFFERED a write may be partial, for example when the disk fills up.
    left = memoryview(data)
    while left:
        n_bytes = binary.write(left)
        if n_bytes is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[n_bytes:]
    binary.flush()


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _discard(stream: TextIO) -> None:
    """Drop what is left in the buffer: Python would try to write it again at exit, and complain."""
    with suppress(OSError):  # not backed by a file descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
