"""Tracks writes that wait for an answer, and when to resend those that get none."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore.controller.versions import Key
from kueuecore.times import SECOND_NS, backoff_ns

__all__ = ["SentWrites"]

# A missing answer may still come; a refused write is retried soon, then less and less often.
_ANSWER_NS = 10 * SECOND_NS
_FIRST_PAUSE_NS = SECOND_NS
_MAX_PAUSE_NS = 300 * SECOND_NS


@dataclass(slots=True)
class _Sent:
    """A write that was sent.

    Args:
        stored: The version of the object that it was made for.
        again: When to resend it if the object does not change, in nanoseconds since 1970.
        n_tries: How often it was sent for this version.
    """

    stored: JsonObject
    again: int
    n_tries: int


class SentWrites:
    """The sent write of each object, until a watch shows a newer version of the object.

    A write without an answer is resent after ten seconds, a refused one after one second. The pause doubles each
    time for the same version, up to five minutes.
    """

    def __init__(self) -> None:
        self._sent: dict[Key, _Sent] = {}

    def may_send(self, key: Key, stored: JsonObject, at: int) -> bool:
        """Return whether no write of this version is on its way."""
        sent = self._sent.get(key)
        return sent is None or sent.stored is not stored or at >= sent.again

    def send(self, key: Key, stored: JsonObject, at: int) -> None:
        """Record that a write of this version is being sent."""
        sent = self._sent.get(key)
        n_tries = sent.n_tries + 1 if sent is not None and sent.stored is stored else 1
        pause_ns = backoff_ns(n_tries, first_ns=_ANSWER_NS, longest_ns=_MAX_PAUSE_NS)
        self._sent[key] = _Sent(stored, at + pause_ns, n_tries)

    def refuse(self, key: Key, at: int) -> None:
        """Record that the write was refused."""
        if (sent := self._sent.get(key)) is not None:
            sent.again = at + backoff_ns(sent.n_tries, first_ns=_FIRST_PAUSE_NS, longest_ns=_MAX_PAUSE_NS)

    def has(self, key: Key) -> bool:
        """Return whether a write was sent, for any version."""
        return key in self._sent

    def forget(self, key: Key) -> None:
        """Forget an object that needs no write, or was deleted."""
        self._sent.pop(key, None)

    def next_time(self, key: Key, stored: JsonObject) -> int:
        """Return when a write of this version may be sent, in nanoseconds since 1970; 0: at once."""
        sent = self._sent.get(key)
        return 0 if sent is None or sent.stored is not stored else sent.again
