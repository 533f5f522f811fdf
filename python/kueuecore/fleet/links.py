"""The way between the manager and one worker: how long messages take, which get lost, and when nothing gets through."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random

from kueuecore._arguments import shown

__all__ = ["MOST_MS", "Link", "LinkSettings"]

_MILLISECOND_NS = 1_000_000
MOST_MS = 2**63 // _MILLISECOND_NS
"""The longest time of a link: 292 years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """How fast and reliable a link is, in whole numbers.

    Args:
        least_ms: The shortest time that a message takes, in milliseconds.
        most_ms: The longest.
        lost_requests: How many of a thousand requests never arrive.
        lost_answers: How many of a thousand are carried out without an answer.
        repeated_events: How many of a thousand events of a watch come twice.
        timeout_ms: After this time without an answer a request is given up: more than the longest way there and back,
            or no request that takes that long would ever be answered.

    Raises:
        TypeError: One of them is no whole number.
        ValueError: Times that are negative, longer than 292 years or in the wrong order, or a share above
            1,000 in a thousand.
    """

    least_ms: int = 5
    most_ms: int = 20
    lost_requests: int = 0
    lost_answers: int = 0
    repeated_events: int = 0
    timeout_ms: int = 10_000

    def __post_init__(self) -> None:
        """Check what was given."""
        for each in fields(self):
            value, most = getattr(self, each.name), MOST_MS if each.name.endswith("_ms") else 1000
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{each.name} must be a whole number, not {type(value).__name__}")
            if not 0 <= value <= most:
                raise ValueError(f"{each.name} is {shown(value)}; give a whole number from 0 to {most}")
        if self.most_ms < self.least_ms:
            raise ValueError(f"most_ms is {self.most_ms}; give at least least_ms, which is {self.least_ms}")
        if self.timeout_ms <= 2 * self.most_ms:
            raise ValueError(f"timeout_ms is {self.timeout_ms}; give more than twice most_ms, which is {self.most_ms}")


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
