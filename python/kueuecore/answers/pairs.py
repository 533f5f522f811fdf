"""Tries pairs of changes where no single one admits a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from kueuecore.answers.changes import Change
from kueuecore.answers.dials import Dial, Failure, least_change
from kueuecore.answers.trials import Trials

__all__ = ["paired_changes"]

# Enough for all kinds; a cluster with many flavors has many changes of one kind.
_MAX_OF_A_KIND = 2
_MAX_PAIRS = 60


def paired_changes(trials: Trials, failures: Sequence[Failure]) -> Iterator[Change]:
    """The smallest changes of two kinds that admit the workload together.

    Args:
        trials: Tries them.
        failures: Changes of which none is enough.
    """
    chosen = _chosen(failures)
    pairs = [pair for pair in combinations(chosen, 2) if not _clash(*pair)]
    for first, second in pairs[:_MAX_PAIRS]:
        found = least_change(trials, [*first.dials, *second.dials])
        if isinstance(found, Change):
            yield found


def _chosen(failures: Sequence[Failure]) -> list[Failure]:
    chosen: list[Failure] = []
    for failure in failures:
        if sum(other.kind is failure.kind for other in chosen) < _MAX_OF_A_KIND:
            chosen.append(failure)
    return chosen


def _clash(first: Failure, second: Failure) -> bool:
    """Whether both change the same fields, or are of one kind: those have been tried together."""
    return first.kind is second.kind or bool(_targets(first.dials) & _targets(second.dials))


def _targets(dials: Sequence[Dial]) -> set[str]:
    edits = [edit for dial in dials for edit in (*dial.base, *dial.edits(dial.most))]
    return {edit.target for edit in edits}
