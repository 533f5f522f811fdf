"""Records which workers had won a Workload before, and how each attempt ended, in one of its conditions.

Kueue forgets that, so a dispatcher that relies on it would start over whenever the manager restarts. The manager
therefore records it in the patch that takes the Workload back. With Kueue's own dispatchers nothing is recorded.

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

__all__ = ["ATTEMPTS", "MAX_ATTEMPTS", "attempts_of", "with_attempt"]

ATTEMPTS = "multikueue.kueuecore/Attempts"
"""The Workload condition that holds its attempts."""
MAX_ATTEMPTS = 100
"""How many attempts are kept: a condition has no room for more, and only the latest matter for avoiding a worker."""


def attempts_of(workload: JsonObject | None) -> tuple[Attempt, ...]:
    """Return the attempts of a Workload, oldest first; ignores entries that others have written there."""
    return tuple(_read(text_at(condition(workload, ATTEMPTS), "message")))


def with_attempt(workload: JsonObject, attempt: Attempt, now: int) -> JsonObject:
    """Return the status of a Workload with one more attempt; beyond a hundred, the oldest is dropped."""
    kept = (*attempts_of(workload), attempt)[-MAX_ATTEMPTS:]
    message = ", ".join(f"{attempt.cluster} {attempt.outcome} {format_time(attempt.at)}" for attempt in kept)
    return with_condition(workload, ATTEMPTS, is_true=True, reason=attempt.outcome, message=message, now=now)


def _read(message: str) -> Iterator[Attempt]:
    for entry in message.split(", "):
        try:
            cluster, outcome, at = entry.split(" ")
            yield Attempt(cluster, AttemptOutcome(outcome), nanoseconds(at))
        except ValueError:
            continue
