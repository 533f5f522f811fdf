"""Compares two states of an engine: which workloads got quota, lost it, or moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kueuecore.states import Stage, WorkloadState

__all__ = ["Move", "Standing", "moves_between"]

_WITH_QUOTA = (Stage.QUOTA_RESERVED, Stage.ADMITTED)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a workload at one time.

    Args:
        stage: Its stage.
        cluster_queue: Its ClusterQueue; `None` if its LocalQueue does not exist.
        flavors: The flavors it holds quota in, by pod set and resource.
        message: Kueue's message.
    """

    stage: Stage
    cluster_queue: str | None
    flavors: Mapping[str, Mapping[str, str]]
    message: str

    @classmethod
    def of(cls, state: WorkloadState) -> Self:
        """Take it from the state of a workload in an engine."""
        holding = state.status.get("admission", {}).get("clusterQueue") or state.cluster_queue
        return cls(state.stage, holding, state.flavors, state.message)

    @property
    def has_quota(self) -> bool:
        """Whether it holds quota."""
        return self.stage in _WITH_QUOTA


@dataclass(frozen=True, slots=True)
class Move:
    """A workload whose stage, queue or flavors have changed.

    Args:
        key: `namespace/name`.
        before: Its state before; `None` if it did not exist.
        after: Its state after; `None` if it was deleted.
    """

    key: str
    before: Standing | None
    after: Standing | None

    @property
    def what(self) -> str:
        """What happened to it, in one word."""
        had, has = (bool(entry and entry.has_quota) for entry in (self.before, self.after))
        if self.after is None:
            return "deleted"
        if has and not had:
            return "admitted"
        if had and not has:
            return "finished" if self.after.stage is Stage.FINISHED else "evicted"
        return "moved" if self.before else "waits"


def moves_between(before: Iterable[WorkloadState], after: Iterable[WorkloadState]) -> tuple[Move, ...]:
    """List the workloads that have moved, sorted by key. A changed message is not a move.

    Example:
        >>> moves_between((), ())
        ()
    """
    old, new = ({state.key: Standing.of(state) for state in states} for states in (before, after))
    found = (Move(key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys()))
    return tuple(name for name in found if _place(name.before) != _place(name.after))


def _place(standing: Standing | None) -> object:
    return standing and (standing.stage, standing.cluster_queue, standing.flavors)
