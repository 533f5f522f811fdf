"""What stands in the way of `kueuecore serve`, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Level", "Obstacle"]


class Level(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """It stands in the way."""
    WARNING = "warning"
    """`serve` works, but not as somebody may expect."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way of `serve`, or is worth knowing before it starts.

    Args:
        level: How bad it is.
        check: Which check has found it, such as `webhooks`.
        object: What it is about: kind and name, or a resource.
        message: What is wrong, and what follows from it.
        mends: The commands that mend it, in this order.
    """

    level: Level
    check: str
    object: str
    message: str
    mends: tuple[str, ...] = ()
