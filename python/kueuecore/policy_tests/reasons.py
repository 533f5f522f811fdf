"""Says why an expectation is not met: what held a workload, and what spared it from preemption."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._spans import span
from kueuecore.answers.explanation import explain
from kueuecore.answers.obstacles import why_so
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.states import Stage, WorkloadState

__all__ = ["what_held", "what_spared"]

# Explaining takes as long as a decision, so a failed test asks only so many workloads whether they need the room.
_MAX_PREEMPTORS = 50


def what_held(cluster: PolicyCluster, key: str) -> str:
    """Say what kept a workload waiting that has been admitted since: what the last cycle without quota for it said.

    Args:
        cluster: The cluster.
        key: `namespace/name` of the Workload.
    """
    was_parked = False
    for cycle in reversed(cluster.cycles()):
        was_parked |= key in cycle.parked
        for head in cycle.decision.pending:
            if head.key == key and head.message:
                return f"at {span(cycle.time - cluster.start)}: {head.message}"
    if was_parked:
        return "it was not considered until then: an equivalent workload ahead of it did not get quota"
    return ""


def what_spared(cluster: PolicyCluster, key: str, preemptors: Iterable[str]) -> str:
    """Say why a workload was not preempted; empty if nobody needs what it holds.

    Args:
        cluster: The cluster.
        key: `namespace/name` of the Workload.
        preemptors: The Workloads that were to preempt it; empty for any that waits.
    """
    victim = cluster.state(key)
    if victim is None or victim.stage in (Stage.PENDING, Stage.FINISHED):
        return ""
    named = tuple(preemptors)
    if not named:
        waiting = [state.key for state in cluster.all_states() if state.stage is Stage.PENDING][:_MAX_PREEMPTORS]
        found = (_spared_by(cluster, key, other) for other in waiting)
        return next(filter(None, found), "no workload that waits needs what it holds")
    return "; ".join(_spared_by(cluster, key, preemptor) or _without_search(cluster, preemptor) for preemptor in named)


def _spared_by(cluster: PolicyCluster, victim: str, preemptor: str) -> str:
    """The verdict on the victim in the searches of a workload that waits; empty if it was in none."""
    state = cluster.state(preemptor)
    if state is None or state.stage is not Stage.PENDING:
        return ""
    found = explain(cluster.engine, state.name, namespace=state.namespace)
    for search in reversed(found.searches):
        for holder in search.holders:
            if f"{holder.namespace}/{holder.name}" == victim:
                rule, text = why_so(holder, found, search)
                return f"{cluster.name_of(preemptor)} waits, but {text} (rules/{rule})"
    return ""


def _without_search(cluster: PolicyCluster, preemptor: str) -> str:
    state, name = cluster.state(preemptor), cluster.name_of(preemptor)
    if state is None:
        return f"{name} is not submitted yet"
    if state.stage is Stage.PENDING:
        return f"{name} waits, and does not need what it holds: {cluster.message(state)}"
    return f"{name} {_got_quota(cluster, state)}"


def _got_quota(cluster: PolicyCluster, state: WorkloadState) -> str:
    victims = dict.fromkeys(preemption.key for preemption in cluster.preemptions() if preemption.preemptor == state.key)
    if victims:
        return f"preempted {', '.join(map(cluster.name_of, victims))} instead"
    return "got quota without preemptions"
