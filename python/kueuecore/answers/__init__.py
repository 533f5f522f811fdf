"""Answer questions about a state by trying things on forks of it: why a workload waits, what would admit it.

A fork is copy-on-write; the engine itself never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names
from kueuecore.answers.obstacles import Obstacle, obstacles

if TYPE_CHECKING:
    from kueuecore.answers.changes import Change, ChangeKind, NotEnough, Unblocking
    from kueuecore.answers.explanation import Explanation, Fate, explain
    from kueuecore.answers.moves import Move, Standing, moves_between
    from kueuecore.answers.question import Question, edit_manifests
    from kueuecore.answers.state_changes import Deletion, change_state, parse_deletion
    from kueuecore.answers.trials import Step
    from kueuecore.answers.unblocking import unblock

__all__ = [
    "Change",
    "ChangeKind",
    "Deletion",
    "Explanation",
    "Fate",
    "Move",
    "NotEnough",
    "Obstacle",
    "Question",
    "Standing",
    "Step",
    "Unblocking",
    "change_state",
    "edit_manifests",
    "explain",
    "moves_between",
    "obstacles",
    "parse_deletion",
    "unblock",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.answers.changes": "Change ChangeKind NotEnough Unblocking",
        "kueuecore.answers.explanation": "Explanation Fate explain",
        "kueuecore.answers.moves": "Move Standing moves_between",
        "kueuecore.answers.question": "Question edit_manifests",
        "kueuecore.answers.state_changes": "Deletion change_state parse_deletion",
        "kueuecore.answers.trials": "Step",
        "kueuecore.answers.unblocking": "unblock",
    },
)
