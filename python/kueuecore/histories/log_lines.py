"""Reads a log of `kueuecore serve`: JSON, one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.histories.conditions import time_in
from kueuecore.histories.events import steps_of_events
from kueuecore.histories.facts import Found
from kueuecore.histories.timeline import What
from kueuecore.times import SECOND_NS, format_time

__all__ = ["EVENT", "LogLine", "events_of_log", "read_log", "steps_of_log", "workload_keys"]

EVENT = "event"
"""The message of a line about an Event that was emitted."""
_REF = re.compile(r'(\w{1,63}) "([^"/\s]{1,253})/([^"/\s]{1,253})"')
_NO_LOG = "this is no log of `kueuecore serve`"
_REMEDY = "give what it writes to standard error: JSON objects with `time` and `message`, one a line"
_HEAD = ("time", "level", "logger", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line of the log.

    Args:
        at: When it was written, in nanoseconds since 1970.
        level: `debug`, `info`, `warning`, `error` or `critical`.
        message: What happened, in a few words that are always the same.
        fields: What it is about, such as `object`, `job`, `workload`, `reason` or `error`.
        number: Its number in the file, from 1.
    """

    at: int
    level: str
    message: str
    fields: JsonObject = field(hash=False)
    number: int


def read_log(text: str | bytes, *, file: str = "<string>") -> tuple[LogLine, ...]:
    """Read a log. Lines of other programs, and one that was cut off, are left out.

    Args:
        text: The log.
        file: Its name, for errors.

    Raises:
        ManifestError: None of its lines is from `kueuecore serve`.

    Example:
        >>> [line] = read_log('{"time": "2026-01-01T00:00:09.120Z", "level": "info", "message": "leads"}')
        >>> line.message, line.number
        ('leads', 1)
    """
    written = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    lines = written.split("\n")
    found = tuple(line for number, row in enumerate(lines, 1) if (line := _line(row, number)) is not None)
    if not found and written.strip():
        raise ManifestError.of(_NO_LOG, remedy=_REMEDY, file=file)
    return found


def steps_of_log(
    lines: Iterable[LogLine], *, key: str, uid: str = "", jobs: Collection[tuple[str, str]] = ()
) -> tuple[list[Found], list[str]]:
    """Find what a log says about a workload: its Events, and what else was reported about it or its job.

    Args:
        lines: The log.
        key: The `namespace/name` of the Workload.
        uid: Its UID.
        jobs: Kind and name of each of its jobs.

    Returns:
        The steps, and what is not recorded, in sentences.
    """
    namespace, _, name = key.partition("/")
    refs = {str(ObjectRef(kind, of, namespace)) for kind, of in (("Workload", name), *jobs)}
    ours = [line for line in lines if _is_about(line, key, refs)]
    reports = [_report(line) for line in ours if line.message != EVENT]
    found, missing = steps_of_events(events_of_log(ours), key=key, uid=uid, jobs=jobs, source="log")
    return [*found, *reports], missing


def events_of_log(lines: Iterable[LogLine]) -> Iterator[JsonObject]:
    """Yield the Events in a log, as a cluster would show them."""
    for line in lines:
        about = _REF.fullmatch(text_at(line.fields, "object")) if line.message == EVENT else None
        if about is not None:
            yield _event(line, about[2], about[1], about[3])


def workload_keys(lines: Iterable[LogLine]) -> dict[str, str]:
    """Return the `namespace/name` of each Workload in a log by UID: those that are gone have their names there."""
    abouts = (object_at(event, "involvedObject") for event in events_of_log(lines))
    return {
        text_at(about, "uid"): f"{text_at(about, 'namespace')}/{text_at(about, 'name')}"
        for about in abouts
        if text_at(about, "kind") == "Workload" and text_at(about, "uid")
    }


def _line(row: str, number: int) -> LogLine | None:
    if not row.lstrip().startswith("{"):
        return None
    try:
        plain = json.loads(row)
    except (ValueError, RecursionError):
        return None
    at, message = time_in(plain, "time"), text_at(plain, "message")
    if at is None or not message:
        return None
    fields = {name: value for name, value in plain.items() if name not in _HEAD}
    return LogLine(at=at, level=text_at(plain, "level"), message=message, fields=fields, number=number)


def _event(line: LogLine, namespace: str, kind: str, name: str) -> JsonObject:
    """Return the Event that a line is about."""
    about: JsonObject = {"kind": kind, "namespace": namespace, "name": name, "uid": text_at(line.fields, "uid")}
    return {
        "metadata": {"resourceVersion": str(line.number)},
        "involvedObject": about,
        "reason": text_at(line.fields, "reason"),
        "message": text_at(line.fields, "note"),
        "eventTime": format_time(_second(line)),
    }


def _is_about(line: LogLine, key: str, refs: Collection[str]) -> bool:
    return any(
        text == key or text in refs or text.startswith(tuple(f"{ref}:" for ref in refs)) for text in _texts(line)
    )


def _report(line: LogLine) -> Found:
    told = "; ".join(f"{name}: {value}" for name, value in line.fields.items() if isinstance(value, str))
    what = What.WAITING if line.message == "job waits" else What.OTHER
    message = text_at(line.fields, "for") if what is What.WAITING else told
    orders = (("log", line.number),)
    sources = (f"log line {line.number}",)
    return Found(at=_second(line), what=what, reason=line.message, message=message, sources=sources, orders=orders)


def _second(line: LogLine) -> int:
    """The whole second of a line: the times of objects have no more, and the order of lines is known."""
    return line.at // SECOND_NS * SECOND_NS


def _texts(line: LogLine) -> Iterator[str]:
    return (value for value in line.fields.values() if isinstance(value, str))
