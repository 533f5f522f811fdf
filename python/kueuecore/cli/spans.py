"""Spans of time as people read them."""

from __future__ import annotations

__all__ = ["change", "seconds", "span"]

_SECOND_NS = 1_000_000_000


def seconds(given: float | None) -> str:
    """A span in seconds, or that there is none."""
    return "-" if given is None else span(round(given * _SECOND_NS))


def change(given: float | None) -> str:
    """By how many seconds something differs, with its sign.

    Example:
        >>> change(-90.0), change(0.0), change(None)
        ('-1m30s', '0s', '-')
    """
    if given is None or round(given * 10) == 0:
        return seconds(given and 0.0)
    return ("+" if given > 0 else "-") + seconds(abs(given))


def span(span_ns: int) -> str:
    """A span of time, to the second from a minute on, to a tenth below.

    Example:
        >>> span(1_500_000_000), span(3_661_000_000_000)
        ('1.5s', '1h01m01s')
    """
    tenths = round(span_ns / (_SECOND_NS / 10))
    if tenths < 600:
        return f"{tenths / 10:g}s"
    minutes, rest = divmod(round(span_ns / _SECOND_NS), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m{rest:02}s" if hours else f"{minutes}m{rest:02}s"
