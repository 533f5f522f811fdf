"""Which workers had won a Workload before, and what became of it there: kept in a condition of it (rules/00 H4).

Kueue forgets that. A dispatcher that goes by it would begin anew with every manager that starts; so the manager writes
it down, in the patch that takes the Workload back. Where one of Kueue's own dispatchers decides, nothing is written.

Example:
    >>> tried = Attempt("west", AttemptOutcome.RECALLED, 0)
    >>> status = with_attempt({"status": {}}, tried, 0)
    >>> status["conditions"][0]["message"]
    'west Recalled 1970-01-01T00:00:00Z'
    >>> attempts_of({"status": status}) == (tried,)
    True
"""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._conditions import condition, with_condition
from kueuecore._json import JsonObject, text_at
from kueuecore.multikueue.dispatcher_protocol import Attempt, AttemptOutcome
from kueuecore.times import format_time, nanoseconds

__all__ = ["ATTEMPTS", "MOST_ATTEMPTS", "attempts_of", "with_attempt"]

ATTEMPTS = "multikueue.kueuecore/Attempts"
"""The condition of a Workload in which its attempts stand."""
MOST_ATTEMPTS = 100
"""How many are kept: more would not fit into a condition. Which workers are left out depends on the latest ones."""


def attempts_of(workload: JsonObject | None) -> tuple[Attempt, ...]:
    """The attempts of a Workload, the oldest first; what somebody else has written there is left out."""
    return tuple(_read(text_at(condition(workload, ATTEMPTS), "message")))


def with_attempt(workload: JsonObject, attempt: Attempt, now: int) -> JsonObject:
    """The status of a Workload with one attempt more; of more than a hundred the oldest is forgotten."""
    kept = (*attempts_of(workload), attempt)[-MOST_ATTEMPTS:]
    message = ", ".join(f"{it.cluster} {it.outcome} {format_time(it.at)}" for it in kept)
    return with_condition(workload, ATTEMPTS, is_true=True, reason=attempt.outcome, message=message, now=now)


def _read(message: str) -> Iterator[Attempt]:
    for entry in message.split(", "):
        try:
            cluster, outcome, at = entry.split(" ")
            yield Attempt(cluster, AttemptOutcome(outcome), nanoseconds(at))
        except ValueError:
            continue
