"""Who has moved between two states of an engine: who got quota, who lost it, who went elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kueuecore.states import Stage, WorkloadState

__all__ = ["Move", "Standing", "moves_between"]

_WITH_QUOTA = (Stage.QUOTA_RESERVED, Stage.ADMITTED)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a workload stands at one time.

    Args:
        stage: Its stage.
        cluster_queue: Its ClusterQueue; `None`: its LocalQueue does not exist.
        flavors: Pod set to resource to flavor, with quota.
        message: Kueue's message.
    """

    stage: Stage
    cluster_queue: str | None
    flavors: Mapping[str, Mapping[str, str]]
    message: str

    @classmethod
    def of(cls, state: WorkloadState) -> Self:
        """Of a workload as an engine has it."""
        holding = state.status.get("admission", {}).get("clusterQueue") or state.cluster_queue
        return cls(state.stage, holding, state.flavors, state.message)

    @property
    def has_quota(self) -> bool:
        """Does it hold quota?"""
        return self.stage in _WITH_QUOTA


@dataclass(frozen=True, slots=True)
class Move:
    """A workload that stands elsewhere than before.

    Args:
        key: `namespace/name`.
        before: Where it stood; `None`: it was not there.
        after: Where it stands; `None`: it is gone.
    """

    key: str
    before: Standing | None
    after: Standing | None

    @property
    def what(self) -> str:
        """What happened to it, in a word."""
        had, has = (bool(it and it.has_quota) for it in (self.before, self.after))
        if self.after is None:
            return "deleted"
        if has and not had:
            return "admitted"
        if had and not has:
            return "finished" if self.after.stage is Stage.FINISHED else "evicted"
        return "moved" if self.before else "waits"


def moves_between(before: Iterable[WorkloadState], after: Iterable[WorkloadState]) -> tuple[Move, ...]:
    """The workloads that stand elsewhere than before, by key. A message that changes is no move.

    Example:
        >>> moves_between((), ())
        ()
    """
    old, new = ({it.key: Standing.of(it) for it in states} for states in (before, after))
    found = (Move(key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys()))
    return tuple(it for it in found if _place(it.before) != _place(it.after))


def _place(standing: Standing | None) -> object:
    return standing and (standing.stage, standing.cluster_queue, standing.flavors)
