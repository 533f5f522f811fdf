"""What is decided differently about two outcomes: of two releases of Kueue, or of two revisions of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kueuecore.upgrades.fates import Fate, Outcome

__all__ = ["Difference", "differences_between"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A workload or ClusterQueue about which two sides decide differently, or of which they say something else.

    Args:
        kind: `Workload` or `ClusterQueue`.
        key: `namespace/name`, or the name of a ClusterQueue.
        before: What is decided before; `None` if there is no such object then.
        after: What is decided after; `None` if there is no such object then.
    """

    kind: str
    key: str
    before: Fate | None
    after: Fate | None

    @property
    def is_of_text(self) -> bool:
        """Whether only reason or message differ."""
        return self.before == self.after


def differences_between(before: Outcome, after: Outcome) -> Iterator[Difference]:
    """List what differs, texts included: workloads first, by key.

    Args:
        before: One outcome.
        after: The other.
    """
    for kind, key in sorted(before.fates.keys() | after.fates.keys(), key=lambda fate: (fate[0] != "Workload", fate)):
        old, new = before.fates.get((kind, key)), after.fates.get((kind, key))
        if old != new or (old is not None and new is not None and old.said != new.said):
            yield Difference(kind, key, old, new)
