"""Reads files, directories, streams and standard input by name, and finds lines in what was read."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from kueuecore._text import shortened
from kueuecore.errors import Problem

if TYPE_CHECKING:
    from kueuecore._yaml import Tree

__all__ = ["EMPTY_NAME", "OF_TEXT", "File", "Text", "contents", "read_file"]

OF_TEXT = "use parse_manifests for YAML or JSON text"
"""What to do about a text where the name of a file is needed."""
EMPTY_NAME = Problem("the name of a file is empty", remedy='write "." for the directory you are in')

_SUFFIXES = (".yaml", ".yml", ".json")
_COMPRESSED, _GZIP = ".gz", b"\x1f\x8b"
_LARGEST = 2**30  # bytes: an endless file such as /dev/zero must not fill the memory
_MAX_NAME = 4096
_CHUNK = 2**20


@dataclass(slots=True)
class Text:
    """The text of a file; its YAML nodes are composed again when a line number is needed.

    Args:
        text: The text.
        first_line: The line of its file on which the text starts, from 1.
        first_document: The number of its first document in the file, from 1.
    """

    text: str = field(repr=False)
    first_line: int = 1
    first_document: int = 1
    _trees: list[Tree | None] | None = field(default=None, repr=False, compare=False)

    def root(self, document: int) -> Tree | None:
        """Return the nodes of a document in the file; None if the text cannot be composed."""
        if self._trees is None:
            from kueuecore._yaml import trees  # few processes need a line

            self._trees = trees(self.text)
        index = document - self.first_document
        return self._trees[index] if index < len(self._trees) else None


class File(NamedTuple):
    """A file that has been read.

    Args:
        name: Its name, or that of a stream.
        data: Its contents.
        is_found: Whether it was found in a directory, rather than given by name.
        of_tool: What it is and what to do with it, if it is a part of a chart or kustomization in the directory.
    """

    name: str
    data: str | bytes
    is_found: bool = False
    of_tool: tuple[str, str] | None = None


def read_file(path: Path) -> bytes:
    """Read the bytes of a file.

    Raises:
        OSError: It cannot be read, or has more than 1 GiB.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return _read(file)
    except ValueError as error:  # a name with a NUL
        raise OSError(errno.EINVAL, str(error)) from None


def contents(
    source: str | os.PathLike[str] | IO[str] | IO[bytes], problems: list[Problem], *, recursive: bool
) -> Iterable[File]:
    """Yield each file of a source; add those that cannot be read to `problems`."""
    if not isinstance(source, (str, os.PathLike)):
        if isinstance(source, type) or not callable(getattr(source, "read", None)):
            raise TypeError(f"sources must be names of files and open streams, not {type(source).__name__}")
        name = getattr(source, "name", None)
        yield File(name if isinstance(name, str) else "<stream>", source.read())
    elif source == "":
        problems.append(EMPTY_NAME)
    elif source == "-":
        yield from _standard_input(problems)
    else:
        yield from _files(source, problems, recursive=recursive)


def _standard_input(problems: list[Problem]) -> Iterable[File]:
    try:
        if sys.stdin is None or sys.stdin.closed:
            raise OSError(errno.EBADF, "it is closed")
        # sys.stdin may have been replaced by a text stream.
        stream = getattr(sys.stdin, "buffer", None)
        yield File("<stdin>", sys.stdin.read() if stream is None else _unpacked(_read(stream)))
    except OSError as error:
        problems.append(_unreadable(error, "<stdin>"))


def _files(source: str | os.PathLike[str], problems: list[Problem], *, recursive: bool) -> Iterable[File]:
    path = Path(os.fsdecode(source))
    try:
        is_directory = path.is_dir()
    except OSError:  # a name that is too long
        is_directory = False
    files = _directory(path, problems, recursive=recursive) if is_directory else [path]
    of_tools = _parts_of_tools(files) if is_directory else {}
    for file in files:
        try:
            yield File(str(file), _unpacked(read_file(file)), is_directory, of_tools.get(file))
        except OSError as error:
            if isinstance(source, str) and "\n" in source and file == path:
                message, remedy = "the name of a file has several lines", OF_TEXT
                problem = Problem(message, file=shortened(source), remedy=remedy)
            elif isinstance(error, FileNotFoundError):
                message = "it is a link to a file that is not there" if file.is_symlink() else "there is no such file"
                problem = Problem(message, file=str(file), remedy="check the name")
            else:
                problem = _unreadable(error, str(file))
            problems.append(problem)


def _parts_of_tools(files: Sequence[Path]) -> Mapping[Path, tuple[str, str]]:
    if not any(file.stem in ("Chart", "kustomization") for file in files):
        return {}
    from kueuecore._tree_files import parts_of_tools

    return parts_of_tools(files)


def _directory(path: Path, problems: list[Problem], *, recursive: bool) -> list[Path]:
    """Return the files in a directory that may hold manifests, sorted by path, without hidden ones."""
    found: list[Path] = []
    n_problems, has_directories = len(problems), False
    todo = [path]
    while todo:
        folder = todo.pop()
        try:
            entries = [file for file in folder.iterdir() if not file.name.startswith(".")]
        except OSError as error:
            problems.append(_unreadable(error, str(folder)))
            continue
        for entry in entries:
            is_directory = entry.is_dir()
            has_directories = has_directories or is_directory
            # A link to a directory may form a cycle.
            if is_directory and recursive and not entry.is_symlink():
                todo.append(entry)
            # Keep a broken link, so that reading reports it, but not a pipe: reading it might block forever.
            elif _may_hold_manifests(entry) and (entry.is_file() or (entry.is_symlink() and not entry.exists())):
                found.append(entry)
    if not found and len(problems) == n_problems:
        nested = has_directories and not recursive
        remedy = "pass recursive=True to read its subdirectories" if nested else "name a file, or another directory"
        message = f"no file in it ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
        problems.append(Problem(message, file=str(path), remedy=remedy))
    return sorted(found)


def _may_hold_manifests(file: Path) -> bool:
    return file.suffix in _SUFFIXES or (file.suffix == _COMPRESSED and Path(file.stem).suffix in _SUFFIXES)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    from kueuecore._gzip import unpacked  # few files are compressed

    return unpacked(data, largest=_LARGEST)


def _read(stream: IO[bytes]) -> bytes:
    chunks: list[bytes] = []
    n_bytes = 0
    while chunk := stream.read(_CHUNK):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if n_bytes > _LARGEST:
            raise OSError(errno.EFBIG, "it has more than 1 GiB; give it in several parts")
    return b"".join(chunks)


def _unreadable(error: OSError, file: str) -> Problem:
    # Nothing longer can be a file name.
    name = file if len(file) <= _MAX_NAME else shortened(file)
    return Problem(f"cannot be read: {error.strerror or error}", file=name)
