"""Counts equal Events, combines similar ones and drops floods, as the recorder of client-go does.

https://github.com/kubernetes/client-go/blob/master/tools/record/events_cache.go
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from kueuecore._json import JsonObject, text_at
from kueuecore.times import SECOND_NS

__all__ = ["Correlated", "EventCorrelator"]

_Value = TypeVar("_Value")
_Subject: TypeAlias = tuple[str, ...]

# All as in client-go.
_MAX_ENTRIES = 4096
_MAX_SIMILAR = 10
_SIMILAR_NS = 600 * SECOND_NS
_BURST = 25
_NS_A_TOKEN = 300 * SECOND_NS
_COMBINED = "(combined from similar events): "
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion")


@dataclass(frozen=True, slots=True)
class Correlated:
    """What to write for an Event.

    Args:
        event: The Event as a whole, with a name: to create it.
        patch: What has changed since it was created, if it was: to patch it.
    """

    event: JsonObject
    patch: JsonObject | None = None


@dataclass(slots=True)
class _Similar:
    """The different messages of Events that agree in all else."""

    seen: int
    messages: OrderedDict[str, None] = field(default_factory=OrderedDict)


@dataclass(slots=True)
class _Observed:
    """An Event that was written."""

    name: str
    first: str
    count: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: int


class EventCorrelator:
    """Decides what to write for each Event: create it, count an earlier one up, or nothing.

    An Event that has come before is counted up. Of ten within ten minutes that differ in their message alone, one
    combined Event remains. Each object may have 25 Events at once, and then one in five minutes.

    Example:
        >>> correlator = EventCorrelator()
        >>> event = {"involvedObject": {"name": "w"}, "reason": "Pending", "message": "m", "lastTimestamp": "t"}
        >>> first, second = (correlator.correlate(event, now=1) for _ in range(2))
        >>> first.patch, second.patch["count"]
        (None, 2)
    """

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._observed: _Recent[_Observed] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()
        self._last_name = 0

    def correlate(self, event: JsonObject, *, now: int) -> Correlated | None:
        """Return what to write for an Event; None: nothing, as its object has had too many.

        Args:
            event: The Event to create.
            now: The time in nanoseconds since 1970.
        """
        about = tuple(text_at(event, "involvedObject", name) for name in _ABOUT)
        source = text_at(event, "source", "component")
        subject: _Subject = (source, *about, text_at(event, "type"), text_at(event, "reason"))
        message = self._message(subject, text_at(event, "message"), now)
        is_combined = message != text_at(event, "message")
        key = subject if is_combined else (*subject, message)
        found = self._observe(key, {**event, "message": message}, now)
        return found if self._is_allowed((source, *about), now) else None

    def _message(self, subject: _Subject, message: str, now: int) -> str:
        """Return the message, or that of the combined Event."""
        similar = self._similar.get(subject)
        if similar is None or now - similar.seen > _SIMILAR_NS:
            similar = _Similar(now)
        similar.messages[message] = None
        similar.seen = now
        self._similar.put(subject, similar)
        if len(similar.messages) < _MAX_SIMILAR:
            return message
        # Go drops any of its set; the oldest is as good.
        similar.messages.popitem(last=False)
        return f"{_COMBINED}{message}"

    def _observe(self, key: _Subject, event: JsonObject, now: int) -> Correlated:
        before = self._observed.get(key)
        if before is None:
            self._last_name = max(now, self._last_name + 1)
            name = f"{text_at(event, 'involvedObject', 'name')}.{self._last_name:x}"
            observed = _Observed(name, text_at(event, "firstTimestamp"), 1)
        else:
            observed = _Observed(before.name, before.first, before.count + 1)
        self._observed.put(key, observed)
        namespace = text_at(event, "metadata", "namespace")
        metadata: JsonObject = {"namespace": namespace, "name": observed.name}
        whole: JsonObject = {**event, "metadata": metadata, "firstTimestamp": observed.first, "count": observed.count}
        if before is None:
            return Correlated(whole)
        patch: JsonObject = {name: whole[name] for name in ("count", "lastTimestamp", "message") if name in whole}
        return Correlated(whole, {**patch, "metadata": metadata})

    def _is_allowed(self, key: _Subject, now: int) -> bool:
        bucket = self._buckets.get(key) or _Bucket(_BURST, now)
        bucket.tokens = min(_BURST, bucket.tokens + max(0, now - bucket.filled) / _NS_A_TOKEN)
        bucket.filled = now
        self._buckets.put(key, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


class _Recent(Generic[_Value]):
    """Values by key, of which the longest unused is forgotten."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()

    def get(self, key: Hashable) -> _Value | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Hashable, value: _Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _MAX_ENTRIES:
            self._values.popitem(last=False)
