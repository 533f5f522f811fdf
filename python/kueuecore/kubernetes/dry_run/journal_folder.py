"""The folder of a dry run's journal: lines that `kueuecore history` reads, and saved states, both capped."""

from __future__ import annotations

import errno
import gzip
import json
import logging
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from kueuecore._json import JsonObject
from kueuecore._replaced_files import replaced
from kueuecore._text import logged
from kueuecore.errors import ManifestError
from kueuecore.times import SECOND_NS, format_time

__all__ = ["JournalFolder"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_DAY_NS = 86_400 * SECOND_NS
_WARN_NS = 60 * SECOND_NS
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


class JournalFolder:
    """Appends to a journal, and saves states and summaries beside it. A full disk costs lines, never the dry run.

    Args:
        path: The folder; it is created.
        max_file_bytes: A file of the journal is followed by another after as many bytes, and each day.
        max_bytes: The oldest files of the journal are removed above this many bytes in all.
        max_days: And after as many days.
        max_states: How many states are kept, the newest.
        max_state_bytes: And how many bytes of them.

    Raises:
        ManifestError: The folder cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_file_bytes: int = 16 * 2**20,
        max_bytes: int = 256 * 2**20,
        max_days: int = 45,
        max_states: int = 50,
        max_state_bytes: int = 256 * 2**20,
    ) -> None:
        self.path = path
        self.n_errors = 0
        """How many writes have failed."""
        self._max_file_bytes, self._max_bytes, self._max_days = max_file_bytes, max_bytes, max_days
        self._max_states, self._max_state_bytes = max_states, max_state_bytes
        self._file: IO[bytes] | None = None
        self._day = self._n_bytes = 0
        self._warned_at: int | None = None
        try:
            (path / "states").mkdir(parents=True, exist_ok=True)
            with replaced(path / ".writable") as file:
                file.write(b"")
            (path / ".writable").unlink()
        except OSError as error:
            raise ManifestError.of(
                f"cannot be written: {error.strerror or error}", remedy="give a folder of your own", file=str(path)
            ) from None

    def append(self, line: JsonObject, *, now: int) -> None:
        """Append a line.

        Args:
            line: The line.
            now: The time, in nanoseconds since 1970.
        """
        data = json.dumps(line).encode() + b"\n"

        def write() -> None:
            file = self._open_file(now)
            # A disk that is nearly full takes a part, without an error.
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._n_bytes += len(data)

        self._try("the journal", write, now)

    def save_state(self, name: str, objects: Iterable[JsonObject], *, now: int) -> str:
        """Save objects for `kueuecore run` and `explain`; the oldest states give way.

        Args:
            name: What the state is about; the time is put before it.
            objects: The objects.
            now: The time, in nanoseconds since 1970.

        Returns:
            The path within the folder; empty if it could not be saved.
        """
        stamp = format_time(now // SECOND_NS * SECOND_NS).replace(":", "-")
        path = self.path / "states" / f"{stamp}-{_NOT_IN_NAMES.sub('-', name)[:120]}.json.gz"
        items = [{**other, "metadata": _without_managers(other.get("metadata"))} for other in objects]
        data = gzip.compress(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode(), 5, mtime=0)

        def write() -> None:
            with replaced(path) as file:
                file.write(data)
            self._remove_oldest(self.path / "states", "*.json.gz", self._max_states, self._max_state_bytes)

        return str(path.relative_to(self.path)) if self._try("a state", write, now) else ""

    def write(self, name: str, data: bytes, *, now: int) -> bool:
        """Write a file of the folder in one step.

        Args:
            name: Its name.
            data: Its content.
            now: The time, in nanoseconds since 1970.

        Returns:
            Whether it was written.
        """

        def write() -> None:
            with replaced(self.path / name) as file:
                file.write(data)

        return self._try(name, write, now)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the folder; None if there is none, or it cannot be read."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOGGER.warning("the journal cannot be read", extra={"file": str(self.path / name), "error": logged(error)})
            return None

    def remove_oldest(self, pattern: str, *, most: int) -> None:
        """Remove the oldest files of a kind, by name."""
        self._remove_oldest(self.path, pattern, most, None)

    def close(self) -> None:
        """Close the journal."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError:
                self.n_errors += 1
            self._file = None

    def _open_file(self, now: int) -> IO[bytes]:
        day = now // _DAY_NS
        if self._file is not None and (day != self._day or self._n_bytes >= self._max_file_bytes):
            self.close()
        if self._file is None:
            stamp = format_time(now // 1_000_000 * 1_000_000).replace(":", "-")
            # Never appended to an earlier file, whose last line may be torn.
            self._make_room(now)
            self._day, self._n_bytes = day, 0
            self._file = (self.path / f"decisions-{stamp}-{os.getpid()}.log").open("ab", buffering=0)
        return self._file

    def _make_room(self, now: int) -> None:
        """Remove what is old; what cannot be removed keeps no line from being written."""
        oldest = now - self._max_days * _DAY_NS
        for old in self.path.glob("decisions-*.log"):
            with suppress(OSError):
                if old.stat().st_mtime_ns < oldest:
                    old.unlink()
        self._remove_oldest(self.path, "decisions-*.log", 10_000, self._max_bytes)

    def _remove_oldest(self, folder: Path, pattern: str, most: int, most_bytes: int | None) -> None:
        files = sorted(folder.glob(pattern), reverse=True)
        total = 0
        for n, file in enumerate(files, 1):
            with suppress(OSError):
                total += file.stat().st_size
                if n > 1 and (n > most or (most_bytes is not None and total > most_bytes)):
                    file.unlink()

    def _try(self, what: str, write: Callable[[], None], now: int) -> bool:
        try:
            write()
        except OSError as error:
            self.n_errors += 1
            self._reopen()
            if self._warned_at is None or now >= self._warned_at + _WARN_NS:
                self._warned_at = now
                extra = {"file": str(self.path), "what": what, "error": logged(error), "failed": self.n_errors}
                _LOGGER.warning("the journal cannot be written", extra=extra)
            return False
        return True

    def _reopen(self) -> None:
        """Begin another file after an error, and leave neither a torn line nor an empty file behind."""
        file, n_bytes = self._file, self._n_bytes
        with suppress(OSError):
            if file is not None and n_bytes:
                file.truncate(n_bytes)
            elif file is not None:
                Path(file.name).unlink()
        self.close()


def _without_managers(metadata: object) -> JsonObject:
    return {} if not isinstance(metadata, dict) else {k: v for k, v in metadata.items() if k != "managedFields"}
