"""Hypothesis strategies for what happens in a world: objects come, change and go, jobs end, cycles run."""

from __future__ import annotations

from hypothesis import strategies as st

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.testing.drawn_worlds import (
    NAMESPACE,
    Limits,
    Stock,
    cluster_queues,
    cohorts,
    contents,
    local_queues,
    manifest,
    one,
    stocks,
    workloads,
)
from kueuecore.testing.scenario import START, Move, MoveKind, Scenario, key_of
from kueuecore.times import format_time

__all__ = ["histories", "moves"]

CYCLE = Move(kind=MoveKind.CYCLE)
# What comes later is more urgent more often than not, or nobody would have to give way.
_LATE_PRIORITIES = (2, 3, 1, 2, 3, 4, 0)
# Twenty parts: cycles and new workloads make up most of a history.
_KINDS = (
    *[MoveKind.APPLY] * 9,
    *[MoveKind.CYCLE] * 4,
    MoveKind.LINGER,
    MoveKind.FINISH,
    MoveKind.FINISH,
    MoveKind.EVICT,
    MoveKind.DELETE,
    MoveKind.FORK,
    MoveKind.WAIT,
)

_A_KIND = st.sampled_from(_KINDS)


@st.composite
def histories(draw: st.DrawFn, limits: Limits | None = None, *, max_moves: int = 14, forks: bool = True) -> Scenario:
    """Whole worlds, and what happens in them.

    Args:
        draw: Given by Hypothesis.
        limits: How large the worlds may become, and what may be in them.
        max_moves: At most so many things happen, beside the first cycles.
        forks: May the engine be forked?

    Example:
        >>> from hypothesis import given, settings
        >>> from kueuecore.testing import Play, check_invariants, histories
        >>> @settings(max_examples=10, database=None)
        ... @given(histories())
        ... def test_usage_is_what_is_reserved(history):
        ...     play = Play.of(history)
        ...     for _ in play.run(history.moves):
        ...         check_invariants(play.engine)
        >>> test_usage_is_what_is_reserved()
    """
    stock = draw(stocks(limits or Limits()))
    objects, _, configuration = draw(contents(stock))
    happened = [CYCLE] * draw(st.integers(1, 3))
    known = [thing for thing in objects if thing["kind"] == "Workload"]
    # First those that want the places of others, then whatever happens.
    n_rivals = min(draw(one(4, 3, 5, 2)), max_moves)
    for number in range(draw(st.integers(min(n_rivals + 2, max_moves), max_moves))):
        if number < n_rivals and known:
            move = Move(kind=MoveKind.APPLY, object=draw(_rival(stock, tuple(known), number)))
        else:
            move = draw(moves(stock, tuple(known), number=number, forks=forks))
        if move.object is not None and move.object["kind"] == "Workload":
            known = [thing for thing in known if key_of(thing) != key_of(move.object)] + [move.object]
        happened.append(move)
        # What is done shows in the cycle after it.
        if move.kind not in (MoveKind.CYCLE, MoveKind.LINGER) and draw(st.booleans()):
            happened.append(CYCLE)
    return Scenario(objects, (*happened, CYCLE, CYCLE), configuration)


@st.composite
def moves(
    draw: st.DrawFn,
    stock: Stock,
    known: tuple[JsonObject, ...],
    *,
    number: int,
    kind: MoveKind | None = None,
    forks: bool = True,
) -> Move:
    """One thing that happens.

    Args:
        draw: Given by Hypothesis.
        stock: What the world is made of.
        known: The workloads that have come so far.
        number: Number of the move: names and times of new workloads follow from it.
        kind: What kind of thing; `None`: any.
        forks: May the engine be forked?
    """
    if kind is None:
        kind = draw(_A_KIND)
    if kind is MoveKind.FORK and not forks:
        kind = MoveKind.CYCLE
    if kind in (MoveKind.CYCLE, MoveKind.LINGER, MoveKind.FORK):
        return Move(kind=kind)
    if kind is MoveKind.WAIT:
        return Move(kind=kind, seconds=draw(one(1, 60, 3600)))
    if kind is MoveKind.APPLY:
        return Move(kind=kind, object=draw(_applied(stock, known, number)))
    if kind is MoveKind.DELETE and draw(one(False, False, False, False, True)):
        return draw(_a_deletion(stock))
    if not known:
        return CYCLE
    key = key_of(draw(st.sampled_from(known)))
    if kind is MoveKind.DELETE:
        return Move(kind=kind, object_kind="Workload", key=key)
    if kind is MoveKind.EVICT:
        return Move(kind=kind, key=key, reason=draw(one("Preempted", "Preempted", "NodeFailures")))
    return Move(kind=kind, key=key)


@st.composite
def _a_deletion(draw: st.DrawFn, stock: Stock) -> Move:
    """The deletion of something that is no workload."""
    kinds = ["LocalQueue", "ClusterQueue", *(["Cohort"] if stock.cohorts else [])]
    kind = draw(st.sampled_from(kinds))
    name = draw(st.sampled_from(stock.cohorts if kind == "Cohort" else stock.queues))
    return Move(kind=MoveKind.DELETE, object_kind=kind, key=f"{NAMESPACE}/{name}" if kind == "LocalQueue" else name)


@st.composite
def _applied(draw: st.DrawFn, stock: Stock, known: tuple[JsonObject, ...], number: int) -> JsonObject:
    """A new workload, or another version of something that is there."""
    what = draw(one(*range(12)))
    if what == 9:
        return draw(cluster_queues(stock, draw(one(*stock.queues))))
    if what == 8 and stock.cohorts and (found := draw(cohorts(stock))):
        return draw(st.sampled_from(found))
    if what == 7 and draw(st.booleans()):
        return draw(local_queues(stock, draw(one(*stock.queues))))
    if what in (6, 7) and known:
        return draw(_changed(stock, draw(st.sampled_from(known))))
    is_rival: bool = draw(st.booleans())
    if known and is_rival:
        return draw(_rival(stock, known, number))
    # Some are older than others that wait: created is not when it came.
    created = draw(one(number, number, 0, 1))
    return draw(workloads(stock, f"n{number}", uid=f"uid-n{number:02}", created=created, priorities=_LATE_PRIORITIES))


@st.composite
def _rival(draw: st.DrawFn, stock: Stock, known: tuple[JsonObject, ...], number: int) -> JsonObject:
    """A new workload that asks for as much as another: it wants its place, if that has one."""
    asked = object_at(draw(st.sampled_from(known)), "spec")
    spec: JsonObject = {
        "queueName": draw(one(*[text_at(asked, "queueName")] * 2, *stock.queues[::-1])),
        "priority": draw(one(*_LATE_PRIORITIES)),
        "podSets": asked["podSets"],
    }
    created = format_time(START + draw(one(number, 0)) * 1_000_000_000)
    return manifest(
        "Workload", f"n{number}", spec, namespace=NAMESPACE, uid=f"uid-n{number:02}", creationTimestamp=created
    )


@st.composite
def _changed(draw: st.DrawFn, stock: Stock, workload: JsonObject) -> JsonObject:
    """Another version of a workload; its status is left to the engine, but for pods that are done."""
    spec = object_at(workload, "spec")
    changed: JsonObject = {name: value for name, value in workload.items() if name != "status"}
    what: str = draw(one("priority", "reclaimable", "queue", *["active"] * stock.limits.deactivation))
    match what:
        case "priority":
            changed["spec"] = {**spec, "priority": draw(one(2, 0, -1, 3))}
        case "active":
            changed["spec"] = {**spec, "active": not spec.get("active", True)}
        case "queue":
            # Refused while the workload holds quota.
            changed["spec"] = {**spec, "queueName": draw(one("q1", "q2"))}
        case _:
            pod_set = draw(st.sampled_from(spec["podSets"] if isinstance(spec["podSets"], list) else []))
            count = object_at(pod_set)["count"]
            done = draw(st.integers(0, count if isinstance(count, int) else 0))
            changed["status"] = {"reclaimablePods": [{"name": text_at(pod_set, "name"), "count": done}]}
    return changed
