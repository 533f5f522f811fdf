"""Formats spans of time for people."""

from __future__ import annotations

from kueuecore.times import SECOND_NS

__all__ = ["change", "seconds", "span"]


def span(span_ns: int) -> str:
    """Format a span of time, in whole seconds from a minute on, in tenths below.

    Example:
        >>> span(1_500_000_000), span(3_661_000_000_000)
        ('1.5s', '1h01m01s')
    """
    tenths = round(span_ns / (SECOND_NS / 10))
    if tenths < 600:
        return f"{tenths / 10:g}s"
    minutes, rest = divmod(round(span_ns / SECOND_NS), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m{rest:02}s" if hours else f"{minutes}m{rest:02}s"


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
