"""Logs as one JSON object a line."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO

__all__ = ["JsonFormatter", "log_to", "logged_to"]

# What every record has; the rest was given by who logs.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_NOWHERE = logging.NullHandler()


class JsonFormatter(logging.Formatter):
    """A record as JSON: time, level, logger, message, and what was given as `extra`.

    Example:
        >>> record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "listed", "created": 0})
        >>> record.kind = "Job"
        >>> print(JsonFormatter().format(record))
        {"time": "1970-01-01T00:00:00.000Z", "level": "info", "logger": "a", "message": "listed", "kind": "Job"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        # Text from a cluster may hold what has no encoding.
        return json.dumps(line, ensure_ascii=False, default=str).encode(errors="replace").decode()


def log_to(stream: IO[str], *, level: str) -> logging.Handler:
    """Have everything logged to a stream as JSON; returns the handler of the root logger, to remove it again.

    Of other packages it takes warnings, those of Python included.

    Args:
        stream: Where to.
        level: `debug`, `info`, `warning` or `error`, of what this package logs.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger("kueuecore").setLevel(level.upper())
    # The election says each step that it takes.
    logging.getLogger("leaderelection").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    return handler


@contextmanager
def logged_to(stream: IO[str], *, level: str) -> Iterator[None]:
    """`log_to` for a while; what ends a thread is logged, too.

    Args:
        stream: As for `log_to`.
        level: As for `log_to`.
    """
    before = threading.excepthook

    def log_end(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
            name = ended.thread.name if ended.thread is not None else ""
            extra = {"died": name, "error": str(ended.exc_value)}
            logging.getLogger("kueuecore.kubernetes").error("a thread has died", extra=extra, exc_info=ended.exc_value)

    handler = log_to(stream, level=level)
    # Threads that go on after the end would otherwise be logged as plain text.
    logging.getLogger("kueuecore").addHandler(_NOWHERE)
    threading.excepthook = log_end
    try:
        yield
    finally:
        threading.excepthook = before
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(handler)
