"""What a change of manifests changes about the decisions: both revisions at rest, with the same work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore.dumps import Deciding
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest
from kueuecore.upgrades.differences import Difference, differences_between
from kueuecore.upgrades.fates import Fate, Outcome, outcome_of

__all__ = ["Revision", "revise"]

# Numbered in the order of the objects: another object moves those behind it.
_UID = re.compile(r"UID: [-0-9a-f]{36}")


@dataclass(frozen=True, slots=True)
class Revision:
    """What a change of manifests changes.

    Args:
        before: The old objects at rest, without those that an API server with Kueue refuses.
        after: The new objects at rest.
        differences: The decisions that change: workloads first, by key.
        texts: Where only reason or message change.
    """

    before: Outcome
    after: Outcome
    differences: tuple[Difference, ...]
    texts: tuple[Difference, ...]

    @property
    def n_workloads(self) -> int:
        """How many workloads there are, before or after."""
        return len({key for outcome in (self.before, self.after) for kind, key in outcome.fates if kind == "Workload"})

    @property
    def n_changed(self) -> int:
        """About how many workloads the decisions change."""
        return sum(difference.kind == "Workload" for difference in self.differences)

    @property
    def refused(self) -> tuple[Problem, ...]:
        """What was wrong with the old objects."""
        return tuple(problem for problems in self.before.refused.values() for problem in problems)


def revise(
    old: Iterable[Manifest], new: Iterable[Manifest], *, deciding_old: Deciding, deciding_new: Deciding
) -> Revision:
    """Run two revisions of some objects to rest, and compare what is decided.

    Args:
        old: The objects before.
        new: The objects after.
        deciding_old: How to decide about the old ones.
        deciding_new: How to decide about the new ones.

    Raises:
        ManifestError: An API server with Kueue refuses some of the new objects, or something is wrong that is not about
            one object.

    Example:
        >>> from kueuecore import read_manifests
        >>> from kueuecore.answers import edit_manifests
        >>> from kueuecore.scenarios import parse_edit
        >>> old = read_manifests("examples/two-teams")
        >>> new, _ = edit_manifests(old, [parse_edit("ClusterQueue/team-b:spec.stopPolicy=HoldAndDrain")])
        >>> found = revise(old, new, deciding_old=Deciding(now=0), deciding_new=Deciding(now=0))
        >>> [it.key for it in found.differences][-1], found.n_changed, found.n_workloads
        ('team-b', 3, 7)
    """
    after = outcome_of(tuple(new), deciding_new)
    if after.refused:
        raise ManifestError([problem for problems in after.refused.values() for problem in problems])
    before = outcome_of(tuple(old), deciding_old)
    found = tuple(differences_between(before, after))
    return Revision(
        before,
        after,
        tuple(difference for difference in found if not difference.is_of_text),
        tuple(difference for difference in found if difference.is_of_text and _says_other(difference)),
    )


def _says_other(difference: Difference) -> bool:
    """Whether reason or message differ, but for the UIDs in them."""
    return _said(difference.before) != _said(difference.after)


def _said(fate: Fate | None) -> list[str]:
    return [] if fate is None else [_UID.sub("", text) for text in fate.said]
