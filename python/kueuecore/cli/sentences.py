"""Why a workload was preempted, in a sentence."""

from __future__ import annotations

from kueuecore.decisions import Preemption
from kueuecore.states import WorkloadState

__all__ = ["why_preempted"]


def why_preempted(preemption: Preemption, victim: WorkloadState, preemptor: WorkloadState) -> str:
    """Explain which of Kueue's rules let one workload preempt another (rules/04 §1, §4.1, §5).

    Args:
        preemption: The decision.
        victim: The workload that is preempted.
        preemptor: The workload that needs the room.

    Returns:
        A sentence without a full stop.
    """
    # Few states preempt.
    from kueuecore.histories.facts import Facts
    from kueuecore.histories.wording import why_it_gave_way

    facts = Facts(
        by=preemptor.key,
        by_queue=preemptor.cluster_queue or "",
        by_priority=str(preemptor.priority),
        queue=preemption.cluster_queue,
        priority=str(victim.priority),
        why=preemption.reason,
    )
    return why_it_gave_way(facts, victim=victim.key) or preemption.reason
