"""What controllers beside the scheduler have in common: they follow objects, and write some by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kueuecore._json import JsonObject
from kueuecore.controller.versions import Key
from kueuecore.writes import Answer, Write

__all__ = ["SideController"]


class SideController(Protocol):
    """Follows objects, and writes when they or the time ask for it. It has no I/O and no clock.

    `Controller` lists them; none of them knows of another. Nothing of theirs is saved: all follows from what they
    observe. They differ from a `CheckController`, which answers for AdmissionChecks and may come from outside.
    """

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in an object as the API server has it now.

        Args:
            key: Kind, namespace and name, of any watched kind.
            manifest: The object; `None` if it was deleted.
            at: The time, in nanoseconds since 1970.
        """
        ...

    def take_writes(self, at: int) -> Sequence[Write]:
        """Return the writes that are due, each once. Called with every turn, after its cycle."""
        ...

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Plan a refused write anew.

        Args:
            write: A write of an object, by whomever it was made.
            answer: The API server's answer.
            at: The time, in nanoseconds since 1970.

        Returns:
            False if it was not its own.
        """
        ...

    def next_wake(self) -> int | None:
        """Return when the next write is due if nothing is observed before; 0: at once; `None`: none is."""
        ...
