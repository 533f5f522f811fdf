"""Spans of time, formatted for people."""

from __future__ import annotations

from kueuecore._spans import span
from kueuecore.times import SECOND_NS

__all__ = ["change", "seconds", "span"]


def seconds(given: float | None) -> str:
    """Format a span given in seconds; `-` for none."""
    return "-" if given is None else span(round(given * SECOND_NS))


def change(given: float | None) -> str:
    """Format a difference in seconds, with its sign.

    Example:
        >>> change(-90.0), change(0.0), change(None)
        ('-1m30s', '0s', '-')
    """
    if given is None or round(given * 10) == 0:
        return seconds(given and 0.0)
    return ("+" if given > 0 else "-") + seconds(abs(given))
