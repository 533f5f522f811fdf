"""Plays moves on forks of an engine: workloads of given shapes arrive and end, and nodes are lost."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

from kueuecore import _core
from kueuecore.engine import Engine
from kueuecore.object_batch import Batch
from kueuecore.proving.shapes import Shape

__all__ = ["IN_EXPLORER", "MEANINGS", "Broken", "Explorer", "Move", "MoveKind", "Played", "Property", "Tried"]


class Property(StrEnum):
    """What must not happen, or what must hold."""

    LOOPS = "loops"
    """No state comes back after an eviction, unless equals take turns."""
    GUARANTEE = "guarantee"
    """What fits into the nominal quota that its ClusterQueue does not use is admitted, after evictions if need be."""
    NOMINAL_QUOTA = "nominal-quota"
    """Nobody is evicted for another ClusterQueue while its own uses no more than its nominal quota."""
    WASTE = "waste"
    """After evictions no less is in use than before."""
    STARVATION = "starvation"
    """Nobody who fits alone waits for ever while others who do not go before it are followed by others like them."""
    PLACEMENT = "placement"
    """Whatever fits into a quota is admitted if it is alone."""
    ORDER = "order"
    """The same workloads in another order of arrival are admitted in the same ClusterQueues."""
    TURNS = "turns"
    """No equals take turns for ever. Experiment `timeShareSeconds` asks for that: without it nobody does."""


MEANINGS = {
    Property.LOOPS: "workloads evict each other for ever",
    Property.GUARANTEE: "a ClusterQueue does not get back quota of its own that it does not use",
    Property.NOMINAL_QUOTA: "a workload is evicted for another ClusterQueue while its own is within nominal quota",
    Property.WASTE: "after evictions less is in use than before",
    Property.STARVATION: "a workload that fits waits for ever while others like those that run keep coming",
    Property.PLACEMENT: "a workload that fits into the quota is not admitted even if it is alone",
    Property.ORDER: "in another order of arrival, other ClusterQueues are served",
    Property.TURNS: "equals take turns for ever, as timeShareSeconds has it",
}
"""What it means that a property is broken."""

_NUMBERS = {Property(name): number for number, name in enumerate(_core.Explorer.properties())}
IN_EXPLORER = frozenset(_NUMBERS)
"""The properties that the extension judges."""
_NAMES = {number: name for name, number in _NUMBERS.items()}


class MoveKind(IntEnum):
    """What a move is; the values are those of the extension."""

    ARRIVE = 0
    BURST = 0x4000
    """It arrives, and the next move comes before any cycle."""
    END = 0x8000
    LOSE = 0xC000


class Move(NamedTuple):
    """One move.

    Args:
        kind: What it is.
        number: The shape that arrives, the arrival that ends, or the node that is lost.
    """

    kind: MoveKind
    number: int


class Broken(NamedTuple):
    """A property and the moves that break it."""

    property: Property
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What trying all moves has shown.

    Args:
        broken: The first moves that break each property.
        n_moves: How many moves were played.
        n_unsettled: After how many of them cycles did not come to an end, without a loop.
    """

    broken: tuple[Broken, ...]
    n_moves: int
    n_unsettled: int


@dataclass(frozen=True, slots=True)
class Played:
    """What a list of moves has shown.

    Args:
        broken: The properties that it breaks, with how many of its moves are needed.
        n_moves: How many moves were possible.
        n_preemptions: How often a workload was preempted.
        preemptions: A number for the kinds of preemptions.
        served: The ClusterQueues with quota in use at the end, a bit each.
    """

    broken: dict[Property, int]
    n_moves: int
    n_preemptions: int
    preemptions: int
    served: int


class Explorer:
    """A cluster at rest, and what may happen in it.

    Args:
        engine: The cluster; only forks of it are played on.
        now: The time, in nanoseconds since 1970.
        shapes: What may arrive.
        queues: The ClusterQueues of the shapes.
        classes: A number for each of them: those of one class differ in nothing but their names.
        nodes: The nodes that may be lost.
        n_flavors: The most flavors of any ClusterQueue.
        opposite: Makes the explorer in which ties that Kueue decides by chance fall the other way; None: it cannot.

    Raises:
        ManifestError: An API server would refuse a shape.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        now: int,
        shapes: Sequence[Shape],
        queues: Sequence[str],
        classes: Sequence[int],
        nodes: Sequence[str],
        n_flavors: int,
        opposite: Callable[[], Explorer | None] | None = None,
    ) -> None:
        self._engine = engine
        self._make_opposite = opposite
        self.n_shapes, self.n_nodes = len(shapes), len(nodes)
        number_of = {name: number for number, name in enumerate(queues)}

        def made(data: bytes) -> _core.Explorer:
            of = [number_of[shape.cluster_queue] for shape in shapes]
            return _core.Explorer(engine._core, data, of, list(classes), list(nodes), n_flavors, now)

        self._core = Batch.of([shape.workload for shape in shapes]).given_to(made)

    def fit_alone(self) -> list[bool]:
        """Return for each shape whether it would be admitted if it were alone."""
        return self._core.fit_alone()

    def search(self, first: Sequence[Move], depth: int, asked: Iterable[Property]) -> Tried:
        """Try all moves after the given ones, `depth` more; only the last of them is judged."""
        broken, n_moves, n_unsettled = self._core.search(_encoded(first), depth, [_NUMBERS[it] for it in asked])
        found = (Broken(_NAMES[number], _decoded(moves)) for number, moves in broken)
        return Tried(tuple(found), n_moves, n_unsettled)

    def play(self, lists: Sequence[Sequence[Move]], asked: Iterable[Property]) -> list[Played]:
        """Play lists of moves; those that are impossible are left out."""
        rows = self._core.play(list(map(_encoded, lists)), [_NUMBERS[it] for it in asked])
        return [Played({_NAMES[number]: n for number, n in broken}, *rest) for broken, *rest in rows]

    @cached_property
    def _opposite(self) -> Explorer | None:
        return None if self._make_opposite is None else self._make_opposite()

    def loops_by_chance(self, moves: Sequence[Move]) -> bool:
        """Return whether a loop ends if ties that Kueue decides by chance fall the other way."""
        if self._opposite is None:
            return False
        return Property.LOOPS not in self._opposite.play([moves], [Property.LOOPS])[0].broken

    def expand(self, moves: Sequence[Move]) -> list[tuple[tuple[Move, ...], int]]:
        """Return the moves with each move that may follow, and a number that states share if they go on alike."""
        return [(_decoded(longer), standing) for longer, standing in self._core.expand(_encoded(moves))]

    def engine_after(self, moves: Sequence[Move]) -> tuple[Engine, int] | None:
        """Return the engine after some moves, and its time; None if one of them is impossible."""
        found = self._core.engine_after(_encoded(moves))
        return None if found is None else (self._engine._like(found[0]), found[1])


def _encoded(moves: Sequence[Move]) -> bytes:
    return struct.pack(f"<{len(moves)}H", *(kind | number for kind, number in moves))


def _decoded(moves: bytes) -> tuple[Move, ...]:
    codes = struct.unpack(f"<{len(moves) // 2}H", moves)
    return tuple(Move(MoveKind(code & MoveKind.LOSE), code & ~MoveKind.LOSE) for code in codes)
