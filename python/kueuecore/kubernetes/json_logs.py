"""Logs as one JSON object a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import IO

__all__ = ["JsonFormatter", "log_to"]

# What every record has; the rest was given by who logs.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


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
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_to(stream: IO[str], *, level: str) -> logging.Handler:
    """Have everything of this package logged to a stream as JSON; returns the handler, to remove it again.

    Args:
        stream: Where to.
        level: `debug`, `info`, `warning` or `error`.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("kueuecore")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    # The election says each step that it takes.
    logging.getLogger("leaderelection").setLevel(logging.WARNING)
    return handler
