"""The way between the manager and one worker: how long messages take, which get lost, and when nothing gets through."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["Link", "LinkSettings"]

_MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """How good a way is.

    Args:
        least_ms: The shortest time that a message takes, in milliseconds.
        most_ms: The longest.
        lost_requests: How many of a thousand requests never arrive.
        lost_answers: How many of a thousand are carried out without an answer.
        repeated_events: How many of a thousand events of a watch come twice.
        timeout_ms: After this time without an answer a request is given up.
    """

    least_ms: int = 5
    most_ms: int = 20
    lost_requests: int = 0
    lost_answers: int = 0
    repeated_events: int = 0
    timeout_ms: int = 10_000


class Link:
    """The way to one worker.

    Args:
        settings: How good it is.
        random: Where its delays and losses come from.
    """

    def __init__(self, settings: LinkSettings, random: Random) -> None:
        self.settings = settings
        self.is_cut = False
        """Does nothing get through?"""
        self.epoch = 0
        """Counts connections: what a watch of an earlier one says is not heard any more."""
        self._random = random

    def delay_ns(self) -> int:
        """How long the next message takes."""
        return self._random.randint(self.settings.least_ms, self.settings.most_ms) * _MILLISECOND_NS

    @property
    def timeout_ns(self) -> int:
        """How long to wait for an answer."""
        return self.settings.timeout_ms * _MILLISECOND_NS

    def loses_request(self) -> bool:
        """Does the next request never arrive?"""
        return self._has(self.settings.lost_requests)

    def loses_answer(self) -> bool:
        """Is the next answer lost?"""
        return self._has(self.settings.lost_answers)

    def repeats_event(self) -> bool:
        """Does the next event come twice?"""
        return self._has(self.settings.repeated_events)

    def _has(self, of_a_thousand: int) -> bool:
        return of_a_thousand > 0 and self._random.randrange(1000) < of_a_thousand
