"""A counterexample: objects, and moves after which a property does not hold."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest
from kueuecore.proving.explorer import Explorer, Move, MoveKind, Property
from kueuecore.proving.shapes import Shape, Tier
from kueuecore.steady_state import most_flavors

__all__ = ["Counterexample"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Objects, and moves after which a property does not hold.

    Args:
        breaks: The property; the name of one of the user's own.
        facts: The objects, as few as suffice, without workloads; its time is when the moves begin.
        shapes: What arrives.
        nodes: The nodes that may be lost.
        moves: What happens; after each move, cycles run until nothing changes.
        instead: Other moves, where the property compares two lists of them.
        is_by_chance: Whether it is a loop that ends once Kueue decides a tie by chance otherwise.
    """

    breaks: Property | str
    facts: Facts
    shapes: tuple[Shape, ...]
    nodes: tuple[str, ...]
    moves: tuple[Move, ...]
    instead: tuple[Move, ...] = ()
    is_by_chance: bool = False

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The objects."""
        return self.facts.given

    @property
    def n_workloads(self) -> int:
        """How many workloads arrive."""
        return sum(move.kind in (MoveKind.ARRIVE, MoveKind.BURST) for move in self.moves)

    @property
    def needs_partial_admission(self) -> bool:
        """Whether a workload that may start with fewer pods takes part, and was not among the given ones."""
        return any(shape.tier is Tier.ELASTIC for shape in self.shapes)

    def explorer(self, facts: Facts | None = None) -> Explorer:
        """Return an explorer of its objects, with its shapes.

        Args:
            facts: Other objects in their place, with the same ClusterQueues.
        """
        where = self.facts if facts is None else facts
        queues = sorted(where.cluster_queues)
        return Explorer(
            where.engine,
            now=where.now,
            shapes=self.shapes,
            queues=queues,
            classes=range(len(queues)),
            nodes=self.nodes,
            n_flavors=most_flavors(where.engine),
        )
