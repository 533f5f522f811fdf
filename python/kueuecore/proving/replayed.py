"""What the moves of a counterexample did, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kueuecore.proving.explorer import Move

__all__ = [
    "Admitted",
    "Course",
    "Evicted",
    "Preempted",
    "Replay",
    "ReplayEnding",
    "ReplayedCycle",
    "ReplayedMove",
    "Waiting",
]


class ReplayEnding(StrEnum):
    """How the cycles after a move end."""

    REST = "rest"
    """Nothing changes any more."""
    REPEATS = "repeats"
    """The same state comes back again and again, each time after an eviction."""
    UNSETTLED = "unsettled"
    """It still changes after many cycles."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A workload that got quota.

    Args:
        key: Its key.
        cluster_queue: The ClusterQueue whose quota it holds.
        counts: The pods that may start, by pod set.
        amounts: What it uses, by flavor and resource.
        is_admitted: Whether it may start; false while admission checks are open.
    """

    key: str
    cluster_queue: str
    counts: Mapping[str, int]
    amounts: Mapping[str, Mapping[str, tuple[str, ...]]]
    is_admitted: bool


@dataclass(frozen=True, slots=True)
class Preempted:
    """A workload that was preempted.

    Args:
        key: Its key.
        cluster_queue: The ClusterQueue whose quota it held.
        preemptor: The key of the workload that needs the quota.
        reason: Kueue's reason, such as `InClusterQueue`.
    """

    key: str
    cluster_queue: str
    preemptor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """A workload that lost its quota, but to no other workload.

    Args:
        key: Its key.
        reason: The reason of its condition Evicted, such as `NodeFailures`.
        message: Kueue's message.
    """

    key: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A head that stayed pending.

    Args:
        key: Its key.
        cluster_queue: Where it waits.
        message: Kueue's message.
    """

    key: str
    cluster_queue: str
    message: str


@dataclass(frozen=True, slots=True)
class ReplayedCycle:
    """What one cycle did, and what followed from it at once.

    Args:
        at: When, in seconds since the beginning.
        admitted: Who got quota.
        preempted: Who was preempted.
        evicted: Who lost quota for another reason.
        waiting: The heads that stayed pending.
    """

    at: int
    admitted: tuple[Admitted, ...]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    waiting: tuple[Waiting, ...]

    @property
    def has_changed_something(self) -> bool:
        """Whether anybody got quota or lost it."""
        return bool(self.admitted or self.preempted or self.evicted)


Course: TypeAlias = tuple[ReplayedCycle, ...]


@dataclass(frozen=True, slots=True)
class ReplayedMove:
    """A move, and the cycles after it.

    Args:
        move: The move.
        at: When, in seconds since the beginning.
        subject: The key of the workload that arrives or ends, or the name of the node that is lost.
        evicted: Who lost quota before the first cycle.
        cycles: The cycles, in which nothing may have happened.
        ending: How they ended.
        visits: After how many cycles the workloads stood alike, if it repeats.
        waiting: Who waits at the end, and what Kueue says about each, by key.
    """

    move: Move
    at: int
    subject: str
    evicted: tuple[Evicted, ...]
    cycles: Course
    ending: ReplayEnding
    visits: tuple[int, ...]
    waiting: Mapping[str, str]

    @property
    def turn(self) -> Course:
        """The cycles of one turn, if it repeats."""
        return self.cycles[self.visits[-2] : self.visits[-1]] if self.visits else ()

    @property
    def preempted(self) -> Iterator[Preempted]:
        """Who was preempted, perhaps several times."""
        return (preempted for cycle in self.cycles for preempted in cycle.preempted)


@dataclass(frozen=True, slots=True)
class Replay:
    """What the moves of a counterexample did.

    Args:
        moves: The moves that were possible, in order.
        left_out: The others: who holds no quota cannot end.
    """

    moves: tuple[ReplayedMove, ...]
    left_out: tuple[Move, ...]

    @property
    def ending(self) -> ReplayEnding:
        """How the last move ended."""
        return self.moves[-1].ending if self.moves else ReplayEnding.REST

    @property
    def turn(self) -> Course:
        """The cycles of one turn, if it ended in a loop."""
        return self.moves[-1].turn if self.moves else ()

    @property
    def seconds_of_turn(self) -> int:
        """How long one turn takes, if it ended in a loop."""
        if not self.turn:
            return 0
        move = self.moves[-1]
        return self.turn[-1].at - move.cycles[move.visits[-2] - 1].at
