"""Says what sets a workload back, beyond quota: checks, evictions, quota kept for others, places, and who is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at

__all__ = ["say_others", "say_setback"]

_DEACTIVATED = "Deactivated"
# How reasons begin for which somebody on a node stays there.
_STAYS = ("no candidate", "a pod outside")

# Names the first few of some.
Naming = Callable[[Iterable[str]], str]


def say_setback(document: JsonObject, named: Naming) -> str:
    """What keeps a workload from starting that is no obstacle of quota; empty if nothing does.

    Args:
        document: The answer of `explain`.
        named: Names the first few of some.
    """
    workload = object_at(document, "workload")
    until = text_at(workload, "requeueAt")
    if text_at(workload, "status") == "QuotaReserved":
        waits = [
            _of_check(check) for check in list_at(workload, "admissionChecks") if text_at(check, "state") != "Ready"
        ]
        holds = f"; it holds its quota until {until}" if until and waits else ""
        return "; ".join(waits) + holds
    evicted = object_at(workload, "evicted")
    reason = text_at(evicted, "reason")
    if evicted and (until or reason.startswith(_DEACTIVATED)):
        again = f"; it is not tried again before {until}" if until else ""
        return f"it was evicted at {text_at(evicted, 'at')} ({reason}): {text_at(evicted, 'message')}{again}"
    kept = [str(key) for key in list_at(workload, "keptFor")]
    if kept:
        then = "without it this workload would get quota (rule 05 §6.4)"
        return f"quota is kept for {named(kept)}, which gets none yet: {then}"
    places = [text_at(placed, "why") for placed in list_at(document, "notPlaced")]
    return "; ".join([*places[:1], *map(str, list_at(document, "leftOut"))])


def say_others(document: JsonObject, named: Naming) -> str:
    """Who preempted it, is on the nodes that it needs, or is ahead if nothing else is in its way; empty if nobody.

    Args:
        document: The answer of `explain`.
        named: Names the first few of some.
    """
    workload = object_at(document, "workload")
    by = text_at(workload, "preemptedBy")
    if by:
        return f"it was preempted by {by}"
    on_nodes = [object_at(holder) for holder in list_at(document, "onNodes")]
    if on_nodes:
        # Who gives way to nobody is why it waits.
        first = min(on_nodes, key=lambda holder: not text_at(holder, "why").startswith(_STAYS))
        who = named(text_at(holder, "heldBy") for holder in on_nodes)
        return f"on the nodes are {who}; of {text_at(first, 'heldBy')}: {text_at(first, 'why')}"
    ahead = [object_at(row) for row in list_at(workload, "whyAhead")]
    if not ahead or list_at(document, "obstacles"):
        return ""
    who = named(text_at(row, "workload") for row in ahead)
    return f"ahead of it in the queue: {who}; of the first: {text_at(ahead[0], 'why')}"


def _of_check(check: JsonValue) -> str:
    name, state, message = (text_at(check, field) for field in ("name", "state", "message"))
    said = f": {message}" if message else ""
    return f"it waits for admission check {name}, in state {state or 'Pending'}{said}"
