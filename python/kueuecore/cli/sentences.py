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
    theirs, ours = preemption.cluster_queue, preemptor.cluster_queue
    match preemption.reason:
        case "InClusterQueue" if preemptor.priority > victim.priority:
            order = f"its priority is {preemptor.priority}, that of {victim.key} {victim.priority}"
            return f"{preemptor.key} goes first in {theirs}: {order}"
        case "InClusterQueue":
            return f"{preemptor.key} goes first in {theirs}: among equal priorities it has waited longer"
        case "InCohortReclamation":
            return f"{ours} takes back quota of its own that {theirs} has borrowed"
        case "InCohortReclaimWhileBorrowing":
            order = f"the priority of {preemptor.key} is {preemptor.priority}, that of {victim.key} {victim.priority}"
            return f"{ours} may preempt even to borrow (borrowWithinCohort): {order}"
        case "InCohortFairSharing":
            return f"the shares of the cohort let {ours} take from {theirs} (fair sharing)"
        case "FlavorMigration":
            return f"{preemptor.key} takes its place on a preferred flavor"
        case reason:
            return reason
