"""Makes counterexamples small: fewest moves, smallest shapes, fewest objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from kueuecore.findings.facts import Facts
from kueuecore.findings.smallest_world import with_objects
from kueuecore.manifests import Manifest
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Explorer, Move, MoveKind, Property
from kueuecore.proving.scope import Scope
from kueuecore.proving.search import Found
from kueuecore.proving.shapes import Shape
from kueuecore.shrinking import shrunk, smallest_by, without_parts
from kueuecore.waiting_cause import message_or_cause

__all__ = ["smallest"]

_MAX_TRIES = 3_000
_Judge: TypeAlias = Callable[[Explorer, tuple[Move, ...]], bool]


@dataclass(frozen=True, slots=True)
class _Step:
    """A move that does not say by a number who ends, so that others can be left out.

    Args:
        kind: What it is.
        number: The shape or the node.
        id: A number of its own.
        ends: The id of the arrival that ends.
    """

    kind: MoveKind
    number: int
    id: int
    ends: int = -1


def smallest(scope: Scope, found: Found, *, breaks: _Judge | None = None) -> Counterexample:
    """Return a counterexample of which no move and no object can be left out, and no shape be a smaller one.

    Args:
        scope: The tree in which it was found.
        found: The moves.
        breaks: Whether moves break the property; by default as the extension judges.
    """
    judge = breaks or _judge(found)
    explorer = scope.explorer(found.shapes)

    if found.property is Property.ORDER:
        return _of_orders(scope, found)

    steps = tuple(_steps(found.moves))
    steps = _fewest_steps(explorer, steps, judge)
    steps = smallest_by(
        steps,
        lambda it: _simpler(it(), found.shapes),
        lambda it: judge(explorer, _moves(it)),
        max_tries=_MAX_TRIES,
    )
    steps = _fewest_steps(explorer, steps, judge)
    shapes, facts = found.shapes, scope.facts
    if found.property is Property.PLACEMENT:
        judge = _for_the_same_reason(judge, explorer, _moves(steps))
    while True:
        shapes, steps = _cast(shapes, steps)
        facts = _fewest_objects(scope, facts, shapes, partial(_shows, judge, steps))
        # Where a node is gone, nobody need take its room.
        fewer = _fewest_steps(scope.explorer(shapes, facts=facts), steps, judge)
        if fewer == steps:
            return _of(facts, scope, found.property, shapes, _moves(steps))
        steps = fewer


def _shows(judge: _Judge, steps: Sequence[_Step], explorer: Explorer) -> bool:
    return judge(explorer, _moves(steps))


def _fewest_steps(explorer: Explorer, steps: tuple[_Step, ...], judge: _Judge) -> tuple[_Step, ...]:
    return smallest_by(steps, without_parts, lambda it: judge(explorer, _moves(it)), max_tries=_MAX_TRIES)


def _cast(shapes: Sequence[Shape], steps: Sequence[_Step]) -> tuple[tuple[Shape, ...], tuple[_Step, ...]]:
    """The shapes that take part, and the steps with their numbers."""
    arrivals = (MoveKind.ARRIVE, MoveKind.BURST)
    used = sorted({step.number for step in steps if step.kind in arrivals})
    numbered = (replace(step, number=used.index(step.number)) if step.kind in arrivals else step for step in steps)
    return tuple(shapes[number] for number in used), tuple(numbered)


def _of_orders(scope: Scope, found: Found) -> Counterexample:
    """Its moves are as few as can be already, because those with fewer workloads were tried first."""
    used = sorted({number for _, number in found.moves})
    shapes = tuple(found.shapes[number] for number in used)
    orders = [tuple(Move(kind, used.index(n)) for kind, n in moves) for moves in (found.moves, found.instead)]

    def differ(explorer: Explorer) -> bool:
        first, second = explorer.play(orders, ())
        return first.served != second.served

    facts = _fewest_objects(scope, scope.facts, shapes, differ)
    return replace(_of(facts, scope, found.property, shapes, orders[0]), instead=orders[1])


def _judge(found: Found) -> _Judge:
    property_ = found.property
    if property_ is Property.PLACEMENT:
        return lambda explorer, moves: bool(moves) and not explorer.fit_alone()[moves[0].number]
    asked = (Property(property_),)
    if property_ is Property.LOOPS and not found.is_by_chance:
        return lambda explorer, moves: (
            property_ in explorer.play([moves], asked)[0].broken and not explorer.loops_by_chance(moves)
        )
    return lambda explorer, moves: property_ in explorer.play([moves], asked)[0].broken


def _for_the_same_reason(judge: _Judge, explorer: Explorer, moves: tuple[Move, ...]) -> _Judge:
    """Judge that also has whoever waits do so for the reason it has now: without its queue, it would for another."""
    reasons = _reasons(explorer, moves)
    return lambda other, others: judge(other, others) and _reasons(other, others) == reasons


def _reasons(explorer: Explorer, moves: tuple[Move, ...]) -> list[str]:
    found = explorer.engine_after(moves)
    return [] if found is None else [message_or_cause(found[0], state) for state in found[0].workloads()]


def _steps(moves: Sequence[Move]) -> Iterator[_Step]:
    arrivals: list[int] = []
    for id_, (kind, number) in enumerate(moves):
        if kind in (MoveKind.ARRIVE, MoveKind.BURST):
            arrivals.append(id_)
        if kind is MoveKind.END:
            if number < len(arrivals):
                yield _Step(kind, 0, id_, ends=arrivals[number])
        else:
            yield _Step(kind, number, id_)


def _moves(steps: Sequence[_Step]) -> tuple[Move, ...]:
    """The moves; who did not arrive does not end."""
    found = []
    arrivals: list[int] = []
    for step in steps:
        if step.kind is not MoveKind.END:
            found.append(Move(step.kind, step.number))
        elif step.ends in arrivals:
            found.append(Move(step.kind, arrivals.index(step.ends)))
        if step.kind in (MoveKind.ARRIVE, MoveKind.BURST):
            arrivals.append(step.id)
    return tuple(found)


def _simpler(steps: tuple[_Step, ...], shapes: Sequence[Shape]) -> Iterator[tuple[_Step, ...]]:
    """Yield the steps with cycles after an arrival that had none, and with smaller shapes."""
    for at, step in enumerate(steps):
        if step.kind is MoveKind.BURST:
            yield (*steps[:at], replace(step, kind=MoveKind.ARRIVE), *steps[at + 1 :])
        if step.kind not in (MoveKind.ARRIVE, MoveKind.BURST):
            continue
        own = shapes[step.number]
        smaller = (
            (shape.simplicity, number)
            for number, shape in enumerate(shapes)
            if shape.cluster_queue == own.cluster_queue and shape.simplicity < own.simplicity
        )
        for _, number in sorted(smaller):
            yield (*steps[:at], replace(step, number=number), *steps[at + 1 :])


def _fewest_objects(
    scope: Scope,
    among: Facts,
    shapes: tuple[Shape, ...],
    still: Callable[[Explorer], bool],
) -> Facts:
    def shows(some: Sequence[Manifest]) -> bool:
        facts = with_objects(scope.facts, some)
        # Without their queue, workloads would wait for another reason.
        if facts is None or not {shape.cluster_queue for shape in shapes} <= facts.cluster_queues.keys():
            return False
        return still(scope.explorer(shapes, facts=facts))

    given = among.given
    kept = shrunk(given, shows, max_tries=_MAX_TRIES // 10 + 2 * len(given))
    return with_objects(scope.facts, kept) or among


def _of(
    facts: Facts, scope: Scope, property_: Property | str, shapes: tuple[Shape, ...], moves: tuple[Move, ...]
) -> Counterexample:
    nodes = tuple(name for name in scope.nodes if name in facts.nodes)
    return Counterexample(property_, facts, shapes, nodes, moves)
