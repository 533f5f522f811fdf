"""Spans of time as people write them: fixed, or drawn."""

from __future__ import annotations

from kueuecore.scenarios.fields import Fields
from kueuecore.scenarios.work import Span

__all__ = ["read_span"]


def read_span(section: Fields, name: str) -> Span | None:
    """A span of time: seconds, a duration, or how it is drawn; None if there is none, or it is noted to be wrong."""
    value = section.value(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        seconds = section.seconds(name)
        return None if seconds is None else Span(seconds)
    fields = section.below(value, name)
    mean, least, most = fields.seconds("mean"), fields.seconds("from"), fields.seconds("to")
    fields.end()
    if mean is not None and least is None and most is None:
        return Span(mean=mean)
    if mean is None and least is not None and most is not None and least <= most:
        return Span(least, most)
    section.complain(name, "not a duration", "write seconds, a duration, {mean: 30s} or {from: 10s, to: 5m}")
    return None
