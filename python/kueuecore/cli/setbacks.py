"""What sets a workload back, for `explain`: evictions, backoffs, checks, and quota that is kept for others."""

from __future__ import annotations

from typing import TypeAlias

from kueuecore._json import text_at
from kueuecore.answers import Explanation
from kueuecore.cli.outcome import Row
from kueuecore.cli.state_file import SettledState
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import nanoseconds

__all__ = ["Kept", "backoff_lines", "check_lines", "evicted", "eviction_lines", "quota_kept", "why_kept"]

Kept: TypeAlias = tuple[tuple[str, WorkloadState], ...]
"""For whom quota is kept that a workload would get otherwise: the ClusterQueue, and its head."""

_NO_LONGER_FITS = "Workload no longer fits after processing another workload"


def quota_kept(state: SettledState, found: Explanation) -> Kept:
    """For whom quota is kept, if another workload's turn left none for this one."""
    if found.workload.stage is not Stage.PENDING or not found.workload.message.startswith(_NO_LONGER_FITS):
        return ()
    from kueuecore.answers.kept_quota import kept_for  # most answers need none of it

    return kept_for(state.engine, found.workload, now=state.now)


def why_kept(queue: str, head: WorkloadState) -> str:
    """Say for whom quota is kept."""
    kept = f"quota is kept for {head.key}, the head of ClusterQueue {queue}, which does not get it yet"
    keeps_none = "a queue with reclaimWithinCohort: Any keeps none (05 §6.4)"
    return f"{kept}: without it this workload would get quota now; {keeps_none}"


def check_lines(row: Row) -> list[str]:
    """What its admission checks say that are not ready, and since when."""
    lines = []
    for check in row.checks:
        name, state, since, message = (
            text_at(check, text) for text in ("name", "state", "lastTransitionTime", "message")
        )
        if state == "Ready" or (state == "Pending" and row.state.stage is not Stage.QUOTA_RESERVED):
            continue
        when = f" since {since}" if since else ""
        lines.append(f"admission check {name} is {state or 'Pending'}{when}: {message or 'it has given no message'}")
    return lines


def backoff_lines(row: Row, at: int) -> list[str]:
    """Until when it is not retried, if an eviction requeued it with a delay, or is going to (rules/07 §3)."""
    until = text_at(dict(row.state.status), "requeueState", "requeueAt")
    if not until or nanoseconds(until) <= at:
        return []
    if row.state.stage is Stage.PENDING:
        return [f"it is not retried before {until}"]
    has_failed = any(text_at(check, "state") == "Retry" for check in row.checks)
    return [f"it holds its quota until {until}, and is evicted and tried again then"] if has_failed else []


def eviction_lines(found: Explanation, by: str) -> list[str]:
    """Who preempted it; or when and why it was evicted otherwise, if it still is."""
    if by:
        return [f"it was preempted by {by}"]
    last = evicted(found)
    return [f"it was evicted at {last['at']} ({last['reason']}): {last['message']}"] if last else []


def evicted(found: Explanation) -> dict[str, str]:
    """Its last eviction, if it has not had quota since; empty if there is none."""
    conditions = (dict(condition) for condition in found.workload.status.get("conditions", ()))
    last = next((condition for condition in conditions if condition.get("type") == "Evicted"), {})
    if text_at(last, "status") != "True":
        return {}
    named = {"at": "lastTransitionTime", "reason": "reason", "message": "message"}
    return {name: text_at(last, field) for name, field in named.items()}
