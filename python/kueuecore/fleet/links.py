"""The link between the manager and one worker: how long messages take, which get lost, and when it is cut."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random

from kueuecore._arguments import shown

__all__ = ["MAX_MS", "Link", "LinkSettings"]

_MILLISECOND_NS = 1_000_000
MAX_MS = 2**63 // _MILLISECOND_NS
"""The longest delay of a link: 292 years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """The speed and reliability of a link, in whole numbers.

    Args:
        least_ms: The shortest delay of a message, in milliseconds.
        most_ms: The longest delay, in milliseconds.
        lost_requests: How many requests in a thousand never arrive.
        lost_answers: How many requests in a thousand are carried out without an answer.
        repeated_events: How many watch events in a thousand arrive twice.
        timeout_ms: How long to wait for an answer before giving a request up: longer than the longest round trip, or
            the slowest requests would never be answered.

    Raises:
        TypeError: One of them is not an integer.
        ValueError: A time is negative, longer than 292 years or in the wrong order, or a share is above 1,000 in a
            thousand.
    """

    least_ms: int = 5
    most_ms: int = 20
    lost_requests: int = 0
    lost_answers: int = 0
    repeated_events: int = 0
    timeout_ms: int = 10_000

    def __post_init__(self) -> None:
        """Validate the arguments."""
        for each in fields(self):
            value, most = getattr(self, each.name), MAX_MS if each.name.endswith("_ms") else 1000
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{each.name} must be a whole number, not {type(value).__name__}")
            if not 0 <= value <= most:
                raise ValueError(f"{each.name} is {shown(value)}; give a whole number from 0 to {most}")
        if self.most_ms < self.least_ms:
            raise ValueError(f"most_ms is {self.most_ms}; give at least least_ms, which is {self.least_ms}")
        if self.timeout_ms <= 2 * self.most_ms:
            raise ValueError(f"timeout_ms is {self.timeout_ms}; give more than twice most_ms, which is {self.most_ms}")


class Link:
    """The link to one worker.

    Args:
        settings: Its quality.
        random: The source of its delays and losses.
    """

    def __init__(self, settings: LinkSettings, random: Random) -> None:
        self.settings = settings
        self.is_cut = False
        """Whether the link is cut."""
        self.epoch = 0
        """Number of the current connection: events of earlier ones are ignored."""
        self._random = random

    def delay_ns(self) -> int:
        """Draw how long the next message takes."""
        return self._random.randint(self.settings.least_ms, self.settings.most_ms) * _MILLISECOND_NS

    @property
    def timeout_ns(self) -> int:
        """Return how long to wait for an answer."""
        return self.settings.timeout_ms * _MILLISECOND_NS

    def loses_request(self) -> bool:
        """Draw whether the next request never arrives."""
        return self._has(self.settings.lost_requests)

    def loses_answer(self) -> bool:
        """Draw whether the next answer is lost."""
        return self._has(self.settings.lost_answers)

    def repeats_event(self) -> bool:
        """Draw whether the next event arrives twice."""
        return self._has(self.settings.repeated_events)

    def _has(self, of_a_thousand: int) -> bool:
        return of_a_thousand > 0 and self._random.randrange(1000) < of_a_thousand
