"""Says why a workload waits where Kueue leaves its status empty (rules/03 §7.1, rules/08 §11.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kueuecore.decisions import WhatIf
from kueuecore.engine import Engine
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["message_or_cause", "uncovered_in", "waiting_cause"]

_UNCOVERED = re.compile(r"resource (\S+) unavailable in ClusterQueue")


def waiting_cause(engine: Engine, name: str, *, namespace: str, now: TimeLike | None = None) -> str:
    """Return what a cycle would say of a workload if it were the only head now; empty if it would get quota.

    Args:
        engine: The engine; it does not change.
        name: Name of the Workload.
        namespace: Its namespace.
        now: The current time; by default the latest time passed to any call.

    Raises:
        UnknownObjectError: There is no such Workload.
    """
    row, _ = engine._core.explain(namespace, name, engine.now if now is None else nanoseconds(now))
    found = WhatIf.of(row)
    return ": ".join(found.undecided) if found.undecided else found.message


def uncovered_in(message: str) -> tuple[str, ...]:
    """Return the resources that a ClusterQueue does not cover, according to Kueue's message, in order.

    Example:
        >>> uncovered_in("couldn't assign flavors to pod set main: resource gpu unavailable in ClusterQueue")
        ('gpu',)
    """
    return tuple(dict.fromkeys(_UNCOVERED.findall(message)))


def message_or_cause(engine: Engine, state: WorkloadState, *, now: TimeLike | None = None) -> str:
    """Return Kueue's message about a workload; in brackets the cause if it waits and there is no message.

    Kueue sets no condition if the reason is empty, as it is when one pod set has no place even on empty nodes, and the
    message is about another. Before 0.20.0, it is also empty when a resource that no flavor covers comes after one that
    fits.

    Args:
        engine: The engine; it does not change.
        state: The state of the workload in it.
        now: The current time; by default the latest time passed to any call.
    """
    if state.message or state.stage is not Stage.PENDING:
        return state.message
    cause = waiting_cause(engine, state.name, namespace=state.namespace, now=now)
    return f"({'; '.join([cause, *_hints(engine, cause, state.cluster_queue or '')])})" if cause else ""


def _hints(engine: Engine, cause: str, cluster_queue: str) -> Iterator[str]:
    """What may be meant by resources that the ClusterQueue does not cover."""
    uncovered = uncovered_in(cause)
    if not uncovered:
        return
    # Imported only where it is needed, as few workloads have such a cause.
    from kueuecore.coverage import coverage_hint, covered_resources

    covered = covered_resources(engine)
    yield from filter(None, (coverage_hint(name, cluster_queue, covered) for name in uncovered))
