"""Recognises what a source of history is by what it contains."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from kueuecore._gzip import GZIP
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.logged_jobs import DECISIONS
from kueuecore.saved_engine import holds_engine
from kueuecore.traces import TraceFormat

__all__ = ["HistoryKind", "is_address", "is_folder", "kind_of", "named_source", "without_password"]

_BEGINNING = 65_536
_PROMETHEUS = re.compile(rb'"(?:resultType|errorType)"\s*:')
_JOURNAL = re.compile(rb'"format"\s*:\s*"kueuecore\.(?:journal|engine)/')
_PHILLY = re.compile(rb'"(?:attempts|submitted_time|jobid)"\s*:')
_OBJECTS = re.compile(rb'"(?:apiVersion|kind)"\s*:|^(?:- |  )?(?:apiVersion|kind):', re.MULTILINE)
_REMEDY = "say what it is, such as sacct=FILE; the kinds are "


class HistoryKind(StrEnum):
    """What a source of history may be."""

    TRACE = "trace"
    """Any trace whose format shows in its name or first line."""
    DUMP = "dump"
    """Workloads as YAML or JSON, or a folder of such files."""
    JOURNAL = "journal"
    """The journal of an engine, or a saved engine."""
    LOG = "log"
    """A log of `kueuecore serve`, or the folder that its dry run keeps."""
    PROMETHEUS = "prometheus"
    """Answers of Prometheus, or its address."""


def is_address(source: str) -> bool:
    """Return whether a source is the address of a server."""
    return source.lower().startswith(("http://", "https://"))


def without_password(address: str) -> str:
    """Return an address without its user and password, to show it.

    Example:
        >>> without_password("https://ann:secret@prometheus:9090")
        'https://prometheus:9090'
    """
    scheme, slashes, rest = address.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"


def named_source(source: str) -> tuple[HistoryKind | TraceFormat | None, str]:
    """Split `KIND=FILE`; without a kind, it is None.

    Example:
        >>> named_source("sacct=jobs.txt"), named_source("a=b.txt")
        ((<TraceFormat.SACCT: 'sacct'>, 'jobs.txt'), (None, 'a=b.txt'))
    """
    name, equals, file = source.partition("=")
    kinds: dict[str, HistoryKind | TraceFormat] = {kind.value: kind for kind in (*TraceFormat, *HistoryKind)}
    return (kinds[name], file) if equals and name in kinds and file else (None, source)


def kind_of(path: Path) -> HistoryKind:
    """Recognise a file or folder.

    Raises:
        ManifestError: It cannot be read, or may be anything.
    """
    if is_folder(path):
        return HistoryKind.LOG if any(path.glob(DECISIONS)) else HistoryKind.DUMP
    if _is(path, Path.is_fifo):
        # Its first bytes would be missing when all of it is read.
        message = "it is a pipe, so it is not looked into before it is read"
        raise ManifestError.of(message, remedy=_REMEDY + ", ".join((*HistoryKind, *TraceFormat)), file=str(path))
    data = _beginning(path)
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise ManifestError.of("it is empty", remedy="name a file with the past of the cluster", file=str(path))
    if holds_engine(data):
        return HistoryKind.JOURNAL
    if text.startswith((b"{", b"[")):
        found = _of_json(text)
        if found is not None:
            return found
        remedy = _REMEDY + ", ".join((*HistoryKind, *TraceFormat))
        raise ManifestError.of("cannot see what this JSON is", remedy=remedy, file=str(path))
    return HistoryKind.DUMP if _OBJECTS.search(text) else HistoryKind.TRACE


def is_folder(path: Path) -> bool:
    """Return whether a path is one of a folder; false also if it is none at all."""
    return _is(path, Path.is_dir)


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except OSError:
        # Its name is too long, for example; reading it says so.
        return False


def _of_json(text: bytes) -> HistoryKind | None:
    if _JOURNAL.search(text):
        return HistoryKind.JOURNAL
    if _PROMETHEUS.search(text):
        return HistoryKind.PROMETHEUS
    if _is_log_line(text.partition(b"\n")[0]):
        return HistoryKind.LOG
    if _OBJECTS.search(text):
        return HistoryKind.DUMP
    if text.startswith(b"[") and _PHILLY.search(text):
        return HistoryKind.TRACE
    return None


def _is_log_line(line: bytes) -> bool:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(plain, dict) and {"time", "message"} <= plain.keys() and "kind" not in plain


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; what is damaged is reported when all of it is read."""
    try:
        with path.open("rb") as file:
            data = file.read(_BEGINNING)
    except FileNotFoundError:
        raise ManifestError.of("there is no such file", remedy="check the name", file=str(path)) from None
    except (OSError, ValueError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ManifestError.of(message, remedy="check the name", file=str(path)) from None
    if not data.startswith(GZIP):
        return data
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _BEGINNING)
    except zlib.error as error:
        message, remedy = f"the compressed file is damaged: {error}", "fetch or copy it again"
        raise ManifestError.of(message, remedy=remedy, file=str(path)) from None
