"""The files that a command writes after its tables: checked before it starts to work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from kueuecore._replaced_files import check_replaceable
from kueuecore._text import shown
from kueuecore.cli.streams import OutputError, to_stderr, write
from kueuecore.errors import ManifestError

__all__ = ["remove", "require_file", "require_folder", "write_with_files"]


def require_file(option: str, path: Path | None) -> None:
    """Check before a long run that its file can be written.

    Args:
        option: The option that names it.
        path: The file; None: the option is not given.

    Raises:
        ManifestError: It cannot.
    """
    if path is None:
        return
    try:
        check_replaceable(path)
    except OSError as error:
        message = f"{option}: cannot be written: {error.strerror or error}"
        raise ManifestError.of(message, remedy="name a file in a writable folder", file=str(path)) from None


def require_folder(option: str, path: Path | None) -> None:
    """Check before a long run that a folder can be written to, or can be made.

    Args:
        option: The option that names it.
        path: The folder; None: the option is not given.

    Raises:
        ManifestError: It cannot.
    """
    if path is None:
        return
    try:
        present = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        check_replaceable(present / "any")
    except OSError as error:
        message = f"{option}: cannot be written to: {error.strerror or error}"
        raise ManifestError.of(message, remedy="name a writable folder", file=str(path)) from None


def write_with_files(text: str, writers: Iterable[Callable[[], object]]) -> None:
    """Write the tables of a run to standard output, then its files; one that fails keeps none of the others back.

    Args:
        text: The tables.
        writers: What writes the files.

    Raises:
        OutputError: Standard output, or a file, cannot be written. The first error counts.
    """
    failed: list[OutputError] = []
    for step in (lambda: write(text), *writers):
        try:
            step()
        except OutputError as error:
            failed.append(error)
    to_stderr(*(f"kueuecore: cannot write {shown(output_error.what)}: {output_error}" for output_error in failed[1:]))
    if failed:
        raise failed[0]


def remove(delete: Callable[[], None], path: Path) -> None:
    """Delete what a finished run has saved; what cannot be deleted is a warning."""
    try:
        delete()
    except OSError as error:
        to_stderr(f"warning: {shown(str(path))}: cannot be deleted: {error.strerror or error}")
