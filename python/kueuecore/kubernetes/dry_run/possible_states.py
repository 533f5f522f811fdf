"""The states on which Kueue can have made a decision, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, combinations

from kueuecore._conditions import is_true
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.kubernetes.dry_run.cluster_view import ClusterView, Moment
from kueuecore.kubernetes.dry_run.decisions_seen import Kind, Seen
from kueuecore.times import format_time

__all__ = ["PossibleState", "possible_states"]

_MOST_CUTS = 16
_MOST_LATE = 24
_MOST_EXACT = 8
_MOST_OF_KIND = 4
_MOST_OVERTAKEN = 6


@dataclass(frozen=True, slots=True)
class PossibleState:
    """A state on which Kueue can have decided.

    Args:
        engine: A copy of the engine in that state.
        why: How it comes about, in a sentence without its subject; empty for the state as it was seen here.
    """

    engine: Engine
    why: str


def possible_states(view: ClusterView, seen: Seen, *, lookback_ns: int) -> Iterator[PossibleState]:
    """Yield the states that Kueue can have had when it made a decision.

    Its caches are a prefix of the events of each kind; what it writes itself, it knows at once.

    Args:
        view: The states of the last seconds.
        seen: The decision.
        lookback_ns: How long Kueue may have taken from its cycle to the write, in nanoseconds.
    """
    if seen.number not in view.numbers():
        return
    recent = [moment for moment in view.moments(since=0, until=seen.number) if moment.at >= seen.at - lookback_ns]
    exact = _exact_reservations(recent) if seen.kind is Kind.PREEMPTION else []
    for state in _states(view, seen, recent):
        yield state
        if exact:
            engine = state.engine.fork()
            for manifest in exact:
                engine.apply(manifest, trusted=True)
            yield PossibleState(engine, state.why or "Kueue knew the times of reservations more exactly")


def _states(view: ClusterView, seen: Seen, recent: list[Moment]) -> Iterator[PossibleState]:
    yield PossibleState(view.state(seen.number), "")
    later = view.moments(since=seen.number + 1)
    yield from _prefixes(view, seen, recent, later, _is_reservation)
    yield from _late_kinds(view, seen, recent)
    yield from _cuts(view, seen, recent, later, _is_reservation)
    yield from _prefixes(view, seen, recent, later, _is_of_quota)
    yield from _cuts(view, seen, recent, later, _is_of_quota)
    # Of admissions, all have to fit beside each other, whoever came first.
    if seen.kind is Kind.MESSAGE:
        yield from _overtaken(view, seen, recent, later)


def _prefixes(
    view: ClusterView, seen: Seen, recent: list[Moment], later: list[Moment], is_own: Callable[[Moment], bool]
) -> Iterator[PossibleState]:
    """Yield the states in which Kueue has seen what others did up to some change, in the order of the versions.

    Its own writes count at once, whenever they show: for Kueue these are reservations, for a controller of this library
    also releases.
    """
    own = [moment for moment in later if is_own(moment) and moment.key[1:] != seen.key]
    foreign = [moment for moment in recent if not is_own(moment) and moment.key[1:] != seen.key]
    unseen = [moment for moment in later if not is_own(moment) and _came_before(moment, seen)]
    changes = sorted((*foreign, *unseen), key=lambda moment: (moment.version or 0, moment.number))
    for n_late in range(min(len(changes), _MOST_LATE) + 1):
        late = {moment.number for moment in changes[len(changes) - n_late :]}
        known = [moment for moment in unseen if moment.number not in late]
        why = _why(changes[-n_late] if n_late else None, known)
        for reserved in ([], own) if own else ([],):
            then = sorted((*known, *reserved), key=lambda moment: moment.number)
            if n_late or then:
                told = why or "Kueue had decided on others whose writes showed later"
                before = frozenset(number for number in late if number < seen.number)
                yield PossibleState(view.state(seen.number, without=before, then=then), told)


def _overtaken(view: ClusterView, seen: Seen, recent: list[Moment], later: list[Moment]) -> Iterator[PossibleState]:
    """Yield the states before Kueue had reserved what it stored first: it writes side by side, in any order."""
    own = [moment for moment in recent if _is_reservation(moment) and moment.key[1:] != seen.key][-_MOST_OVERTAKEN:]
    then = [moment for moment in later if _is_reservation(moment) and moment.key[1:] != seen.key]
    for size in (1, 2):
        for left_out in combinations(reversed(own), size):
            why = (
                f"Kueue decided before it had reserved quota for {'/'.join(left_out[0].key[1:])}, but wrote that first"
            )
            without = frozenset(moment.number for moment in left_out)
            for known in ([], then) if then else ([],):
                yield PossibleState(view.state(seen.number, without=without, then=known), why)


def _why(late: Moment | None, known: list[Moment]) -> str:
    if late is not None:
        return f"Kueue decided on the state before {_named(late)}"
    return f"Kueue saw {_named(known[0])} before this process did" if known else ""


def _exact_reservations(recent: list[Moment]) -> list[JsonObject]:
    """Return the workloads with recent reservations, with their exact times.

    The API server stores whole seconds, and Kueue knows its own reservation exactly until a watch shows it. The latest
    is preempted first.
    """
    last = {moment.key: moment for moment in recent}
    own = [moment for moment in recent if _is_reservation(moment) and last[moment.key] is moment]
    # Those that showed at one time were stored one after the other.
    times = accumulate((moment.at for moment in own[-_MOST_EXACT:]), lambda before, at: max(at, before + 1))
    return [_reserved_at(moment.after or {}, at) for moment, at in zip(own[-_MOST_EXACT:], times, strict=True)]


def _reserved_at(workload: JsonObject, at: int) -> JsonObject:
    status = object_at(workload, "status")
    conditions = [
        {**object_at(row), "lastTransitionTime": format_time(at)} if text_at(row, "type") == "QuotaReserved" else row
        for row in list_at(status, "conditions")
    ]
    return {**workload, "status": {**status, "conditions": conditions}}


def _cuts(
    view: ClusterView, seen: Seen, recent: list[Moment], later: list[Moment], is_own: Callable[[Moment], bool]
) -> Iterator[PossibleState]:
    """Yield the states at earlier moments, each with what Kueue had written then and what showed later.

    A cycle of Kueue, and the write after it, may take long on a busy machine.
    """
    latest_first = [*reversed(recent)]
    cuts = [*latest_first[:_MOST_CUTS], *latest_first[_MOST_CUTS : 6 * _MOST_CUTS : 4]]
    for cut in cuts:
        own = [
            moment
            for moment in (*recent, *later)
            if moment.number >= cut.number and is_own(moment) and moment.key[1:] != seen.key
        ]
        why = f"Kueue decided on the state before {_named(cut)}"
        # Whoever was reserved first, all reservations have to fit beside each other.
        least = sum(moment.number < seen.number for moment in own) if seen.kind is Kind.ADMISSION else 0
        for n_own in sorted({least, 1, 2, 3, len(own)}):
            if least <= n_own <= len(own):
                yield PossibleState(view.state(cut.number, then=own[:n_own]), why)


def _late_kinds(view: ClusterView, seen: Seen, recent: list[Moment]) -> Iterator[PossibleState]:
    """Yield the states in which Kueue has not seen the last events of one kind; its own reservations it knows."""
    of_kind: dict[str, list[Moment]] = {}
    for moment in recent:
        if moment.key[0] != "Workload":
            of_kind.setdefault(moment.key[0], []).append(moment)
    for moments in of_kind.values():
        sizes = sorted({1, 2, len(moments) // 2, len(moments)} - {0})[:_MOST_OF_KIND]
        for size in sizes:
            late = moments[-size:]
            without = frozenset(moment.number for moment in late)
            yield PossibleState(view.state(seen.number, without=without), f"Kueue had not seen {_named(late[0])}")


def _is_reservation(moment: Moment) -> bool:
    if moment.key[0] != "Workload" or moment.before is None or moment.after is None:
        return False
    return is_true(moment.after, "QuotaReserved") and not is_true(moment.before, "QuotaReserved")


def _is_of_quota(moment: Moment) -> bool:
    """Return whether quota was reserved or released."""
    if moment.key[0] != "Workload" or moment.before is None or moment.after is None:
        return False
    return is_true(moment.after, "QuotaReserved") != is_true(moment.before, "QuotaReserved")


def _came_before(moment: Moment, seen: Seen) -> bool:
    """Return whether an event that showed later had happened before the decision was written."""
    if moment.key[1:] == seen.key and moment.key[0] == "Workload":
        return False
    return moment.version is not None and seen.version is not None and moment.version < seen.version


def _named(moment: Moment) -> str:
    kind, namespace, name = moment.key
    what = "was deleted" if moment.after is None else "was created" if moment.before is None else "changed"
    where = f"{namespace}/{name}" if namespace else name
    return f"{kind} {where} {what} at {format_time(moment.at // 1_000_000 * 1_000_000)}"
