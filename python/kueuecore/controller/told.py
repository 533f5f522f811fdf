"""What a job has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from kueuecore._json import JsonObject, JsonValue, list_at

__all__ = ["NOTHING", "Told"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a job was said to have done, and is not written yet.

    Args:
        finished: Reason and message of its end.
        stopped: Has it stopped after an eviction?
        are_ready: Are its pods ready?
    """

    finished: tuple[str, str] | None = None
    stopped: bool = False
    are_ready: bool | None = None

    def then(self, later: Told) -> Told:
        """This, and what was said later."""
        are_ready = self.are_ready if later.are_ready is None else later.are_ready
        return Told(later.finished or self.finished, self.stopped or later.stopped, are_ready)

    def to_json(self) -> JsonObject:
        """As plain data."""
        finished: list[JsonValue] = [*self.finished] if self.finished is not None else []
        return {"finished": finished, "stopped": self.stopped, "areReady": self.are_ready}

    @classmethod
    def from_json(cls, plain: JsonObject) -> Self:
        """The same from plain data."""
        finished, are_ready = list_at(plain, "finished"), plain.get("areReady")
        ended = (str(finished[0]), str(finished[1])) if finished else None
        return cls(ended, plain.get("stopped") is True, are_ready if isinstance(are_ready, bool) else None)


NOTHING = Told()
"""Nothing is to be told."""
