"""Checkpoints of a run in a file: what is alive of it, and beside it a log of what has happened."""

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
from kueuecore.errors import ManifestError
from kueuecore.simulation.run import Progress
from kueuecore.version import version

__all__ = ["Checkpoint", "CheckpointWriter", "Fingerprint"]

_Clock: TypeAlias = tuple[_core.Simulation, _core.Engine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a run is saved as it goes on, so that it can be taken up after Ctrl-C, a lost machine or `kill -9`.

    A file at `path` is as large as what is alive. Beside it, under the same name with `.log` behind it, grows what has
    happened. The file is replaced in one step, after the log is on the disk.

    Args:
        path: The file.
        every_seconds: Save again after this many seconds by the clock on the wall; 0: as often as possible.
        resume: Go on from the file if it is there. Without, a file that is there already is an error.

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
        """The file of what has happened."""
        return self.path.with_name(f"{self.path.name}.log")

    def remove(self) -> None:
        """Delete both files, once what came of the run is where it belongs."""
        self.path.unlink(missing_ok=True)
        self.log_path.unlink(missing_ok=True)


class Fingerprint:
    """What goes into a run, in a few letters: equal fingerprints are equal runs.

    Example:
        >>> one, other = Fingerprint(), Fingerprint()
        >>> one.add((b"ab", 1))
        >>> other.add((b"a", b"b", 1))
        >>> one.text == other.text
        False
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256(version().encode())

    def add(self, part: object) -> None:
        """Add bytes as they are, lists and tuples part by part, and anything else as Python writes it."""
        if isinstance(part, list | tuple):
            self.add(f"{len(part)} parts")
            for it in part:
                self.add(it)
            return
        raw = part if isinstance(part, bytes) else repr(part).encode()
        self._hash.update(f"{len(raw)}:".encode())
        self._hash.update(raw)

    @property
    def text(self) -> str:
        """The letters."""
        return self._hash.hexdigest()


class CheckpointWriter:
    """Saves one run now and then.

    Args:
        checkpoint: Where.
        clock: The run and its engine, with all that will happen, before its first step.
        fingerprint: What goes into the run.

    Raises:
        ManifestError: There is a file that is not to be resumed; or it is damaged, or that of another run.
    """

    def __init__(self, checkpoint: Checkpoint, clock: _Clock, fingerprint: str) -> None:
        self._checkpoint = checkpoint
        self._clock, self._engine = clock
        self._fingerprint = fingerprint
        self._n_logged = 0
        with self._refused():
            if checkpoint.path.exists():
                self._resume()
        self._due = time.monotonic() + checkpoint.every_seconds

    def watched(self, progress: Progress | None) -> Progress:
        """The progress of a run, which stands still when it is time to save it."""

        def report(now: int, n_created: int, n_finished: int) -> bool:
            if progress is not None:
                progress(now, n_created, n_finished)
            return time.monotonic() >= self._due

        return report

    def save(self) -> None:
        """Save the run as it stands; it is between two cycles.

        Raises:
            ManifestError: The files can not be written.
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
        with _opened(self._checkpoint.log_path) as file:
            # What was written without a checkpoint that names it is written again.
            file.truncate(self._n_logged)
            file.seek(self._n_logged)
            file.write(log)
        path = self._checkpoint.path
        fresh = path.with_name(f"{path.name}.new")
        with _opened(fresh) as file:
            file.truncate(0)
            file.write(saved)
        fresh.replace(path)
        _sync_folder(path)
        self._clock.kept()
        self._n_logged = n_logged

    def _resume(self) -> None:
        path, log_path = self._checkpoint.path, self._checkpoint.log_path
        if not self._checkpoint.resume:
            raise _refusal(path, "there is a checkpoint already", "resume it, or delete it")
        saved = path.read_bytes()
        try:
            note = json.loads(_core.Simulation.note_of(saved))
        except ValueError as error:
            raise _refusal(path, str(error), "") from None
        if text_at(note, "fingerprint") != self._fingerprint:
            remedy = "resume with the scenario, the seed and the files that it began with, or delete it"
            raise _refusal(path, "this is a checkpoint of another run", remedy)
        n_logged = int_at(note, "log_bytes")
        log = log_path.read_bytes()[:n_logged] if log_path.exists() else b""
        remedy = "take both files from one copy, or delete both"
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
            reason = f"the checkpoint can not be read or written: {error}"
            raise _refusal(self._checkpoint.path, reason, "name a file in a folder that you may write to") from None


def _refusal(path: Path, message: str, remedy: str) -> ManifestError:
    return ManifestError.of(message, remedy=remedy, file=str(path))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which is on the disk afterwards."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Have the new name of a file on the disk, too, where a folder can be opened."""
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
