"""Reports what a job has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from kueuecore._arguments import flag, shown, text
from kueuecore._json import JsonObject, JsonValue

__all__ = ["NOTHING", "JobReport"]


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a job has reported that is not written yet.

    Args:
        finished: Reason and message of its end.
        stopped: Whether it has stopped after an eviction.
        are_ready: Whether its pods are ready.
        are_scheduled: Whether its pods have nodes.

    Raises:
        TypeError, ValueError: A value has another type, or is a text that UTF-8 cannot encode.
    """

    finished: tuple[str, str] | None = None
    stopped: bool = False
    are_ready: bool | None = None
    are_scheduled: bool | None = None

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
        if self.are_scheduled is not None:
            object.__setattr__(self, "are_scheduled", flag("are_scheduled", self.are_scheduled))

    def then(self, later: JobReport) -> JobReport:
        """Return this report with a later one added."""
        are_ready = self.are_ready if later.are_ready is None else later.are_ready
        are_scheduled = self.are_scheduled if later.are_scheduled is None else later.are_scheduled
        return JobReport(later.finished or self.finished, self.stopped or later.stopped, are_ready, are_scheduled)

    def to_json(self) -> JsonObject:
        """Return it as plain data."""
        finished: list[JsonValue] = [*self.finished] if self.finished is not None else []
        plain: JsonObject = {"finished": finished, "stopped": self.stopped, "areReady": self.are_ready}
        return plain if self.are_scheduled is None else {**plain, "areScheduled": self.are_scheduled}

    @classmethod
    def from_json(cls, plain: JsonObject) -> Self:
        """Read it from plain data.

        Raises:
            ValueError: It is malformed.
        """
        finished, stopped, are_ready = (plain.get(name) for name in ("finished", "stopped", "areReady"))
        are_scheduled = plain.get("areScheduled")
        if isinstance(stopped, bool) and isinstance(are_ready, bool | None) and isinstance(are_scheduled, bool | None):
            match finished:
                case []:
                    return cls(None, stopped, are_ready, are_scheduled)
                case [str(reason), str(message)]:
                    ended = text("reason", reason), text("message", message)
                    return cls(ended, stopped, are_ready, are_scheduled)
        raise ValueError("what a job did must have finished, stopped and areReady")


NOTHING = JobReport()
"""Nothing to report."""
