"""Answers about a state, each tried on a fork of it: what would become of a workload, who would move.

A fork shares with the engine what neither changes; the engine itself stays as it is.
"""

from kueuecore.answers.moves import Move, Standing, moves_between
from kueuecore.answers.question import Question, edit_manifests
from kueuecore.answers.state_changes import Deletion, change_state, parse_deletion

__all__ = [
    "Deletion",
    "Move",
    "Question",
    "Standing",
    "change_state",
    "edit_manifests",
    "moves_between",
    "parse_deletion",
]
