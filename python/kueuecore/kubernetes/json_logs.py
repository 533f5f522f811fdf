"""Writes logs as JSON, one object per line."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO

from kueuecore._text import logged

__all__ = ["JsonFormatter", "log_to", "logged_to"]

# The attributes of every record; any others are `extra`.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_NOWHERE = logging.NullHandler()


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, logger, message, and what was passed as `extra`.

    Example:
        >>> record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "listed", "created": 0})
        >>> record.kind = "Job"
        >>> print(JsonFormatter().format(record))
        {"time": "1970-01-01T00:00:00.000Z", "level": "info", "logger": "a", "message": "listed", "kind": "Job"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info:
            line["traceback"] = "\n".join(map(logged, self.formatException(record.exc_info).split("\n")))
        # Text from a cluster may hold what terminals act on, beyond ASCII too, and what cannot be encoded.
        return json.dumps(line, default=str).replace("\x7f", "\\u007f")


def log_to(stream: IO[str], *, level: str) -> logging.Handler:
    """Log everything to a stream as JSON; return the handler of the root logger, for removal.

    From other packages, only warnings are logged, including Python's own.

    Args:
        stream: Where to write.
        level: `debug`, `info`, `warning` or `error`, for this package.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger("kueuecore").setLevel(level.upper())
    # The election logs its every step.
    logging.getLogger("leaderelection").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    return handler


@contextmanager
def logged_to(stream: IO[str], *, level: str) -> Iterator[None]:
    """Log as `log_to` does for a while; include errors that end a thread.

    Args:
        stream: As for `log_to`.
        level: As for `log_to`.
    """
    before = threading.excepthook

    def log_end(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
            name = ended.thread.name if ended.thread is not None else ""
            extra = {"died": name, "error": logged(ended.exc_value)}
            logging.getLogger("kueuecore.kubernetes").error("a thread has died", extra=extra, exc_info=ended.exc_value)

    handler = log_to(stream, level=level)
    # Threads that outlive this would otherwise log plain text.
    logging.getLogger("kueuecore").addHandler(_NOWHERE)
    threading.excepthook = log_end
    try:
        yield
    finally:
        threading.excepthook = before
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(handler)
