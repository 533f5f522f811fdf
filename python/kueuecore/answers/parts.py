"""Changes in parts, of which as few as possible are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import change_of
from kueuecore.answers.trials import Step, Trials
from kueuecore.scenarios.edits import Edit

__all__ = ["Part", "needed_parts"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a change.

    Args:
        what: What changes, in words.
        before: What stands there now.
        after: What is to stand there.
        edits: The edits.
    """

    what: str
    before: str
    after: str
    edits: tuple[Edit, ...]


def needed_parts(trials: Trials, kind: ChangeKind, parts: Sequence[Part], what: str = "") -> Change | None:
    """The parts without any of which the workload gets no quota; `None`: not even all of them are enough.

    Args:
        trials: Tries them.
        kind: What is changed.
        parts: All parts.
        what: What is changed, in words; by default that of the parts that are needed.
    """
    needed = list(parts)
    if not needed or not trials.admits(_step(needed)):
        return None
    is_fewer = True
    while is_fewer:
        is_fewer = False
        for part in tuple(needed):
            others = [it for it in needed if it is not part]
            if others and trials.admits(_step(others)):
                needed, is_fewer = others, True
    return change_of(
        trials,
        kind,
        what or " and ".join(it.what for it in needed),
        before=", ".join(it.before for it in needed),
        after=", ".join(it.after for it in needed),
        step=_step(needed),
        less=[_step([it for it in needed if it is not part]) for part in needed if len(needed) > 1],
    )


def _step(parts: Sequence[Part]) -> Step:
    return Step(tuple(edit for part in parts for edit in part.edits))
