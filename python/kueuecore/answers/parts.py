"""Searches for the fewest parts of a change that are enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, change_of, failure_of
from kueuecore.answers.trials import Step, Trials
from kueuecore.scenarios.edits import Edit

__all__ = ["Part", "needed_parts"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a change.

    Args:
        what: What is changed, in words.
        before: The present value.
        after: The new value.
        edits: The edits.
    """

    what: str
    before: str
    after: str
    edits: tuple[Edit, ...]


def needed_parts(trials: Trials, kind: ChangeKind, parts: Sequence[Part], what: str = "") -> Change | Failure | None:
    """Keep only parts that are needed: without any one of them the workload gets no quota. `None` if there are none.

    Args:
        trials: Tries the parts.
        kind: What is changed.
        parts: All parts.
        what: What is changed, in words; by default the words of the needed parts.
    """
    needed = list(parts)
    if not needed:
        return None
    if not trials.admits(_step(needed)):
        return failure_of(trials, [_dial(kind, part) for part in needed])
    is_fewer = True
    while is_fewer:
        is_fewer = False
        for part in tuple(needed):
            others = [other for other in needed if other is not part]
            if others and trials.admits(_step(others)):
                needed, is_fewer = others, True
    return change_of(
        trials,
        kind,
        what or " and ".join(part.what for part in needed),
        before=", ".join(part.before for part in needed),
        after=", ".join(part.after for part in needed),
        step=_step(needed),
        less=[_step([other for other in needed if other is not part]) for part in needed if len(needed) > 1],
    )


def _dial(kind: ChangeKind, part: Part) -> Dial:
    return Dial(
        kind=kind,
        what=part.what,
        most=1,
        edits=lambda turn: part.edits if turn else (),
        shown=lambda turn: part.after if turn else part.before,
        weight=1,
    )


def _step(parts: Sequence[Part]) -> Step:
    return Step(tuple(edit for part in parts for edit in part.edits))
