"""What a job has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from kueuecore._arguments import flag, shown, text
from kueuecore._json import JsonObject, JsonValue

__all__ = ["NOTHING", "JobReport"]


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a job was said to have done, and is not written yet.

    Args:
        finished: Reason and message of its end.
        stopped: Has it stopped after an eviction?
        are_ready: Are its pods ready?

    Raises:
        TypeError, ValueError: One of them is of another type, or a text that UTF-8 cannot hold.
    """

    finished: tuple[str, str] | None = None
    stopped: bool = False
    are_ready: bool | None = None

    def __post_init__(self) -> None:
        match self.finished:
            case None:
                pass
            case (reason, message) if isinstance(self.finished, tuple):
                object.__setattr__(self, "finished", (text("reason", reason), text("message", message)))
            case _:
                raise TypeError(f"finished must be a reason and a message, not {shown(self.finished)}")
        object.__setattr__(self, "stopped", flag("stopped", self.stopped))
        if self.are_ready is not None:
            object.__setattr__(self, "are_ready", flag("are_ready", self.are_ready))

    def then(self, later: JobReport) -> JobReport:
        """This, and what was said later."""
        are_ready = self.are_ready if later.are_ready is None else later.are_ready
        return JobReport(later.finished or self.finished, self.stopped or later.stopped, are_ready)

    def to_json(self) -> JsonObject:
        """As plain data."""
        finished: list[JsonValue] = [*self.finished] if self.finished is not None else []
        return {"finished": finished, "stopped": self.stopped, "areReady": self.are_ready}

    @classmethod
    def from_json(cls, plain: JsonObject) -> Self:
        """The same from plain data.

        Raises:
            ValueError: It is something else.
        """
        finished, stopped, are_ready = (plain.get(name) for name in ("finished", "stopped", "areReady"))
        if isinstance(stopped, bool) and isinstance(are_ready, bool | None):
            match finished:
                case []:
                    return cls(None, stopped, are_ready)
                case [str(reason), str(message)]:
                    return cls((text("reason", reason), text("message", message)), stopped, are_ready)
        raise ValueError("what a job did must have finished, stopped and areReady")


NOTHING = JobReport()
"""Nothing to report."""
