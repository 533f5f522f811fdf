"""Finds for whom a cycle keeps the quota that a workload would get otherwise (rules/05 §6.4)."""

from __future__ import annotations

from kueuecore.answers.borrowing import cohorts_of
from kueuecore.engine import Engine
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import settle

__all__ = ["kept_for"]

_MAX_HEADS = 20
# It got its turn in the last cycle, so it gets one soon.
_MAX_CYCLES = 10


def kept_for(engine: Engine, workload: WorkloadState, *, now: int) -> tuple[tuple[str, WorkloadState], ...]:
    """Return the waiting workloads without any one of which a workload would get quota now.

    They head other ClusterQueues of its tree of cohorts. A cycle looks at them first, and keeps quota for them that
    they do not get yet. Each is taken out of a copy, and cycles run there.

    Args:
        engine: The engine.
        workload: The workload, which no longer fitted in its cycle.
        now: The current time.

    Returns:
        Their ClusterQueues, and they; of the first so many ClusterQueues by name.
    """
    heads = []
    root = cohorts_of(engine, workload.cluster_queue or "")[-1:]
    for queue in engine.cluster_queues():
        is_near = root and queue != workload.cluster_queue and cohorts_of(engine, queue)[-1:] == root
        pending = engine.pending(queue) if is_near else ()
        heads += [(queue, engine.workload(head.name, namespace=head.namespace)) for head in pending[:1]]
    found = []
    for queue, head in heads[:_MAX_HEADS]:
        without = engine.fork()
        without.delete("Workload", head.name, namespace=head.namespace, now=now)
        settle(without, now=now, max_cycles=_MAX_CYCLES, was_at_rest=True, finds_loops=False)
        if without.workload(workload.name, namespace=workload.namespace).stage is not Stage.PENDING:
            found.append((queue, head))
    return tuple(found)
