"""Saves a run to two files: its current state, and a log of what has happened."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from kueuecore import _core
from kueuecore._json import int_at, text_at
from kueuecore._replaced_files import check_replaceable, open_unlinked, replaced
from kueuecore.errors import ManifestError
from kueuecore.simulation.run import Progress
from kueuecore.version import version

__all__ = ["Checkpoint", "CheckpointWriter", "Fingerprint"]

_Clock: TypeAlias = tuple[_core.Simulation, _core.Engine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where to save a run periodically, so that it can resume after Ctrl-C, a lost machine or `kill -9`.

    The file at `path` holds the current state. Next to it, the same name with `.log` appended is a growing log of what
    has happened. The state file is replaced atomically, after the log is on disk. Links are not followed: one at `path`
    is replaced, one in place of the log is an error.

    Args:
        path: The file.
        every_seconds: Save again after this many seconds of real time; 0: as often as possible.
        resume: Resume from the file if it exists. If false, an existing file is an error.

    Raises:
        ValueError: `every_seconds` is negative.

    Example:
        >>> Checkpoint(path=Path("month.checkpoint"), every_seconds=30).log_path.name
        'month.checkpoint.log'
    """

    path: Path
    every_seconds: float = 60.0
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.every_seconds >= 0:
            raise ValueError("every_seconds: must be 0 or more")

    @property
    def log_path(self) -> Path:
        """The path of the log."""
        return self.path.parent / f"{self.path.name}.log"

    def remove(self) -> None:
        """Delete both files, once the results of the run are safe."""
        self.path.unlink(missing_ok=True)
        self.log_path.unlink(missing_ok=True)


class Fingerprint:
    """A digest of a run's inputs: equal fingerprints mean equal runs.

    Example:
        >>> one, other = Fingerprint(), Fingerprint()
        >>> one.add((b"ab", 1))
        >>> other.add((b"a", b"b", 1))
        >>> one.text == other.text
        False
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256(version().encode())

    def copied(self) -> Fingerprint:
        """Return an independent copy."""
        twin = Fingerprint.__new__(Fingerprint)
        twin._hash = self._hash.copy()
        return twin

    def add(self, part: object) -> None:
        """Add bytes as they are, lists and tuples part by part, and anything else by its repr."""
        if isinstance(part, list | tuple):
            self.add(f"{len(part)} parts")
            for entry in part:
                self.add(entry)
            return
        raw = part if isinstance(part, bytes) else repr(part).encode()
        self._hash.update(f"{len(raw)}:".encode())
        self._hash.update(raw)

    @property
    def text(self) -> str:
        """The digest as text."""
        return self._hash.hexdigest()


class CheckpointWriter:
    """Saves one run periodically.

    Args:
        checkpoint: Where to save it.
        clock: The run and its engine, with all scheduled events, before its first step.
        fingerprint: The digest of the run's inputs.

    Raises:
        ManifestError: The file exists and `resume` is false, or it is damaged, or belongs to another run; or the files
            cannot be written.
    """

    def __init__(self, checkpoint: Checkpoint, clock: _Clock, fingerprint: str) -> None:
        self._checkpoint = checkpoint
        self._clock, self._engine = clock
        self._fingerprint = fingerprint
        self._n_logged = 0
        with self._refused():
            check_replaceable(checkpoint.path)
            check_replaceable(checkpoint.log_path)
            if checkpoint.path.exists():
                self._resume()
        self._due = time.monotonic() + checkpoint.every_seconds

    def watched(self, progress: Progress | None) -> Progress:
        """Return a progress callback that pauses the run when it is time to save."""

        def report(now: int, n_created: int, n_finished: int) -> bool:
            if progress is not None:
                progress(now, n_created, n_finished)
            return time.monotonic() >= self._due

        return report

    def save(self) -> None:
        """Save the run; it must be between two cycles.

        Raises:
            ManifestError: The files cannot be written.
        """
        with self._refused():
            self._write()
        self._due = time.monotonic() + self._checkpoint.every_seconds

    def _write(self) -> None:
        log = self._clock.log_part()
        n_logged = self._n_logged + len(log)
        note = json.dumps({"fingerprint": self._fingerprint, "log_bytes": n_logged}).encode()
        saved = self._clock.checkpoint(self._engine, note)
        if saved is None:
            raise RuntimeError("the run is not between two cycles")
        with self._log() as file:
            # Overwrite log entries that no checkpoint refers to.
            file.truncate(self._n_logged)
            file.seek(self._n_logged)
            file.write(log)
            file.flush()
            os.fsync(file.fileno())
        with replaced(self._checkpoint.path, is_synced=True) as file:
            file.write(saved)
        self._clock.kept()
        self._n_logged = n_logged

    def _log(self) -> IO[bytes]:
        """Open the log: a new one for a new run, whatever is in its place."""
        path = self._checkpoint.log_path
        if not self._n_logged:
            path.unlink(missing_ok=True)
            return open_unlinked(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        return open_unlinked(path, os.O_RDWR)

    def _resume(self) -> None:
        path, log_path = self._checkpoint.path, self._checkpoint.log_path
        if not self._checkpoint.resume:
            raise _refusal(path, "a checkpoint exists", "resume it, or delete it")
        saved = path.read_bytes()
        try:
            note = json.loads(_core.Simulation.note_of(saved))
        except ValueError as error:
            raise _refusal(path, str(error), "") from None
        if text_at(note, "fingerprint") != self._fingerprint:
            remedy = "resume with the same scenario, seed and files as before, or delete it"
            raise _refusal(path, "the checkpoint belongs to another run", remedy)
        n_logged = int_at(note, "log_bytes")
        log = log_path.read_bytes()[:n_logged] if log_path.exists() else b""
        remedy = "restore both files from the same copy, or delete both"
        if len(log) < n_logged:
            raise _refusal(log_path, f"it should have {n_logged} bytes, and has {len(log)}", remedy)
        try:
            self._clock.resume(self._engine, saved, log)
        except ValueError as error:
            raise _refusal(log_path, str(error), remedy) from None
        self._n_logged = n_logged

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = f"the checkpoint cannot be read or written: {error.strerror or error}"
            raise _refusal(self._checkpoint.path, reason, "name a file in a writable folder") from None


def _refusal(path: Path, message: str, remedy: str) -> ManifestError:
    return ManifestError.of(message, remedy=remedy, file=str(path))
