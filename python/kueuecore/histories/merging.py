"""Joins what several sources say of the same step, and puts the steps in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from kueuecore.histories.facts import Found
from kueuecore.histories.timeline import What
from kueuecore.times import SECOND_NS

__all__ = ["in_order", "merged"]

# An Event follows the write that it is about, and both times are whole seconds.
_CLOSE_NS = 2 * SECOND_NS
_TOLD = (What.CHECK, What.OTHER, What.WAITING)
# Whose time counts: that of the object itself, of an Event, of a log.
_RANKS = {"event": 1, "cycle": 1, "reconcile": 1, "log": 2}
_W = What
# What may come next at the same second, by where the workload is: the first that is there comes first.
_QUEUED = (_W.CREATED, _W.WAITING, _W.PREEMPTS, _W.QUOTA_RESERVED)
_RESERVED = (_W.CHECK, _W.PREEMPTS, _W.WAITING, _W.ADMITTED)
_ADMITTED = (_W.STARTED, _W.NOT_READY, _W.SCHEDULED, _W.READY, _W.REPLACED)
_END = (_W.PREEMPTED, _W.EVICTED, _W.DEACTIVATED, _W.FINISHED, _W.DELETED)
_LOST = (_W.CHECK, _W.STOPPED, _W.RELEASED)
_BACK = (_W.HELD_BACK, _W.REQUEUED)
_ORDERS = {
    "pending": (*_QUEUED, *_RESERVED, *_ADMITTED, *_END, *_LOST, *_BACK),
    "reserved": (*_RESERVED, *_ADMITTED, *_END, *_LOST, *_BACK, *_QUEUED),
    "admitted": (*_ADMITTED, *_END, *_LOST, *_BACK, *_QUEUED),
    "lost": (*_LOST, *_BACK, *_QUEUED, *_RESERVED, *_ADMITTED, *_END),
}
_LEADS_TO = {
    _W.CREATED: "pending",
    _W.QUOTA_RESERVED: "reserved",
    _W.ADMITTED: "admitted",
    _W.PREEMPTED: "lost",
    _W.EVICTED: "lost",
    _W.DEACTIVATED: "lost",
    _W.WAITING: "pending",
    _W.REQUEUED: "pending",
    _W.FINISHED: "lost",
}


def merged(found: Iterable[Found]) -> list[Found]:
    """Join what sources say of the same step, and return the steps in order.

    Two sources speak of the same step if both name the same kind of step within two seconds, and at least the kind of
    record differs. The time of the object itself counts.
    """
    joined = _Joined()
    by_rank = sorted(found, key=lambda step: (_rank(step), step.at is None, step.time))
    for _, group in groupby(by_rank, key=_rank):
        # Of two evictions a second apart, each first looks for those of its own second.
        far = [step for step in group if not joined.took(step, within=0)]
        for step in far:
            if not joined.took(step, within=_CLOSE_NS):
                joined.add(step)
    return in_order(_without_known(joined.steps))[0]


class _Joined:
    """The steps so far, and where to look for one that is the same."""

    def __init__(self) -> None:
        self.steps: list[Found] = []
        self._by_time: dict[tuple[What, int], list[int]] = {}
        # Why it waits, by the words of conditions.
        self._said: dict[str, list[int]] = {}

    def add(self, step: Found) -> None:
        """Add a step that is none of those before."""
        place = len(self.steps)
        self.steps.append(step)
        self._by_time.setdefault((step.what, step.time // _CLOSE_NS), []).append(place)
        if step.what is What.WAITING and _rank(step) == 0:
            self._said.setdefault(step.message, []).append(place)

    def took(self, step: Found, *, within: int) -> bool:
        """Add a step to the nearest that is the same, if there is one; return whether there is."""
        bucket = step.time // _CLOSE_NS
        places = [
            place for near in (bucket - 1, bucket, bucket + 1) for place in self._by_time.get((step.what, near), ())
        ]
        if step.what is What.WAITING:
            places += self._said.get(step.message, ())
        same = [place for place in places if _may_be_same(self.steps[place], step, within)]
        if not same:
            return False
        place = min(same, key=lambda place: (abs(self.steps[place].time - step.time), place))
        # A condition has the newest words and the oldest time, so an Event knows better when they were said.
        is_newer = step.what is What.WAITING
        other = self.steps[place]
        self.steps[place] = step.joined(other) if is_newer else other.joined(step)
        return True


def _rank(step: Found) -> int:
    return _RANKS.get(step.sources[0].partition(" ")[0], 0) if step.sources else 0


def _may_be_same(one: Found, other: Found, within: int) -> bool:
    if set(one.sources) & set(other.sources):
        return False
    if one.at is None or other.at is None:
        return one.at == other.at and one.before == other.before
    is_close = abs(one.time - other.time) <= within
    if one.what in _TOLD:
        # These follow each other quickly: only the same words are the same step.
        is_same = one.message == other.message and one.facts.check in ("", other.facts.check)
        is_said_again = one.what is What.WAITING and _rank(one) == 0
        return is_same and (is_close or is_said_again)
    if one.what is What.PREEMPTS:
        return is_close and one.facts.by == other.facts.by
    names = {name for name in (one.facts.by_uid, other.facts.by_uid) if name}
    return len(names) < 2 and is_close


def _without_known(joined: Sequence[Found]) -> list[Found]:
    """Leave out evictions of which only the message is left, if an Event has them with their time."""
    known = {step.message for step in joined if step.at is not None and step.message and step.what in _END}
    return [step for step in joined if step.at is not None or not _is_known(step, known)]


def _is_known(step: Found, known: Iterable[str]) -> bool:
    # The Event `Preempted` goes on with the priorities.
    return any(message.startswith(step.message) for message in known)


def in_order(steps: Iterable[Found], place: str = "pending") -> tuple[list[Found], str]:
    """Sort by time, and at the same time by what may follow what.

    Args:
        steps: The steps; what is equal stays in this order.
        place: Where the workload was before: `pending`, `reserved`, `admitted` or `lost`.

    Returns:
        The steps, and where the workload is after them.
    """
    ordered: list[Found] = []
    by_time = sorted(steps, key=lambda step: (step.time, step.at is not None))
    for _, group in groupby(by_time, key=lambda step: (step.time, step.at is not None)):
        at_once = list(group)
        happened = {step.what for step in at_once}
        # It loses quota that no record says it got: it had it before.
        had_quota = What.RELEASED in happened and not happened & {What.CREATED, What.QUOTA_RESERVED}
        if had_quota and happened & {What.PREEMPTED, What.EVICTED, What.DEACTIVATED}:
            place = "admitted"
        for step in _following(at_once, place):
            ordered.append(step)
            place = _LEADS_TO.get(step.what, place)
    return _told_once(ordered), place


def _following(left: list[Found], place: str) -> Iterator[Found]:
    """Yield the steps of one time in the order in which they can follow each other."""
    numbers: dict[str, list[int]] = {}
    for step in left:
        for source, number in step.orders:
            numbers.setdefault(source, []).append(number)
    for known in numbers.values():
        known.sort(reverse=True)
    while left:
        order = _ORDERS[place]
        first = {source: known[-1] for source, known in numbers.items() if known}
        # Unless sources contradict each other, one follows none of the others.
        free = [step for step in left if all(number <= first[source] for source, number in step.orders)] or left
        step = min(free, key=lambda step: order.index(step.what) if step.what in order else len(order))
        left.remove(step)
        for source, number in step.orders:
            numbers[source].remove(number)
        yield step
        place = _LEADS_TO.get(step.what, place)


def _told_once(steps: Iterable[Found]) -> list[Found]:
    """Join why it waits, if that was said several times in a row."""
    told: list[Found] = []
    for step in steps:
        last = told[-1] if told else None
        if last is None or step.what is not What.WAITING or (last.what, last.message) != (step.what, step.message):
            told.append(step)
            continue
        count, until = last.count + step.count, step.until if step.until is not None else step.at
        told[-1] = replace(last.joined(step), count=count, until=until if until != last.at else None)
    return told
