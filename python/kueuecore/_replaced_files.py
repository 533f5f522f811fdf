"""Replaces files: in one step, so that a reader sees the old one or the new one, and never through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["check_replaceable", "open_unlinked", "replaced"]

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A file mounted on its own, or a file of ours in somebody else's folder, can be written but not replaced.
_NO_NEW_FILES = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


@contextmanager
def replaced(path: Path, *, mode: int | None = None, is_synced: bool = False) -> Iterator[IO[bytes]]:
    """Open a file to write what replaces another, which stays as it is until all is written.

    The content goes to a file with a random name in the same folder, which takes the name in the end. A link is
    replaced, not followed. A pipe or device, such as /dev/stdout, is written to. If an error occurs, nothing changes.

    Args:
        path: The file. If it exists, its permissions stay.
        mode: Its permissions; by default those of the replaced file, or what the umask leaves of 0666.
        is_synced: Whether to wait until content and name are on the disk.

    Raises:
        OSError: It cannot be written.
    """
    old = _regular(path)
    file, fresh = _begin(path, old, mode)
    try:
        with file:
            yield file
            file.flush()
            if is_synced and fresh is not None:
                os.fsync(file.fileno())
        if fresh is not None:
            _take_place(fresh, path, old, mode)
    finally:
        if fresh is not None:
            with suppress(OSError):
                fresh.unlink()
    if is_synced and fresh is not None:
        _sync_folder(path)


def check_replaceable(path: Path) -> None:
    """Check before long work that a file can be replaced; leaves everything as it is.

    Args:
        path: The file; it need not exist.

    Raises:
        OSError: It cannot.
    """
    old = _regular(path)
    if old is None and path.exists():
        if not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return
    fresh = _fresh_name(path)
    try:
        open_unlinked(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL).close()
        fresh.unlink()
    except OSError as error:
        if not _can_only_be_written(old, error):
            raise
        open_unlinked(path, os.O_WRONLY).close()


def open_unlinked(path: Path, flags: int, *, mode: int = 0o666) -> IO[bytes]:
    """Open a file that is no link.

    Args:
        path: The file.
        flags: Those of `os.open`.
        mode: The permissions of a file that is created.

    Raises:
        OSError: It is a link, or cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | _NO_LINKS, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, and links are not followed") from None
        raise
    return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "wb")


def _regular(path: Path) -> os.stat_result | None:
    """Return what is there if that is a file, or a link to one or to nothing; None: nothing, or a pipe or device.

    Raises:
        OSError: It is a folder, or no such name is possible.
    """
    try:
        old = os.lstat(path)
    except FileNotFoundError:
        return None
    except ValueError as error:  # a name with a NUL
        raise OSError(errno.EINVAL, str(error)) from None
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    is_file = path.is_file() or (stat.S_ISLNK(old.st_mode) and not path.exists())
    return old if is_file else None


def _begin(path: Path, old: os.stat_result | None, mode: int | None) -> tuple[IO[bytes], Path | None]:
    """Open what is to be written: a new file, returned with its name, or what is there."""
    if old is None and path.exists():
        return path.open("wb"), None
    fresh = _fresh_name(path)
    try:
        file = open_unlinked(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o666 if mode is None else mode)
    except OSError as error:
        if not _can_only_be_written(old, error):
            raise
        return _emptied(path, mode), None
    if mode is None and old is not None and stat.S_ISREG(old.st_mode) and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
    return file, fresh


def _can_only_be_written(old: os.stat_result | None, error: OSError) -> bool:
    """Return whether a file is there that cannot be replaced, but perhaps written."""
    return old is not None and stat.S_ISREG(old.st_mode) and error.errno in _NO_NEW_FILES


def _fresh_name(path: Path) -> Path:
    return path.parent / f".kueuecore-{os.urandom(12).hex()}"


def _emptied(path: Path, mode: int | None) -> IO[bytes]:
    """Open a file to write it in place; its permissions change first, so that nobody else reads what is written."""
    file = open_unlinked(path, os.O_WRONLY)
    try:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.truncate(0)
    except OSError:
        file.close()
        raise
    return file


def _take_place(fresh: Path, path: Path, old: os.stat_result | None, mode: int | None) -> None:
    try:
        fresh.replace(path)
    except OSError as error:
        if not _can_only_be_written(old, error):
            raise
        with fresh.open("rb") as source, _emptied(path, mode) as file:
            while chunk := source.read(2**20):
                file.write(chunk)


def _sync_folder(path: Path) -> None:
    """Wait until a file's new name is on the disk, where a folder can be opened."""
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
