"""Tries to make others give way: by another preemption policy, or by deleting them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.answers.amounts import requests_of
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, change_of, failure_of, least_changes
from kueuecore.answers.quota_changes import QuotaTree
from kueuecore.answers.state_changes import Deletion
from kueuecore.answers.trials import Step, Trials
from kueuecore.scenarios.edits import Edit
from kueuecore.states import Stage, WorkloadState

__all__ = ["MAX_EXACT", "policy_changes", "victim_changes"]

MAX_EXACT = 12
"""Up to this many candidates, all sets are searched for the fewest victims."""

# Enough for a search that drops what is not needed from as many candidates.
_KEPT_TRIES = 5 * MAX_EXACT

# From the weakest to the strongest (rules/04 §1).
_POLICIES = {
    "withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
    "borrowWithinCohort": ("Never", "LowerPriority"),
}


def policy_changes(trials: Trials, queue: str) -> Iterator[Change | Failure]:
    """The weakest preemption policy of the ClusterQueue, per field, with which the workload gets quota."""
    preemption = object_at(trials.engine.object("ClusterQueue", queue), "spec", "preemption")
    dials = []
    for field, policies in _POLICIES.items():
        of = object_at(preemption, field).get("policy") if field == "borrowWithinCohort" else preemption.get(field)
        now = policies.index(of) if isinstance(of, str) and of in policies else 0
        stronger = policies[now:]
        if len(stronger) > 1:
            dials.append(_policy_dial(queue, field, stronger))
    yield from least_changes(trials, dials)


def victim_changes(trials: Trials, workload: JsonObject, tree: QuotaTree) -> Iterator[Change | Failure]:
    """The fewest workloads to delete; beyond 12 candidates, a set of which each one is needed."""
    candidates = _candidates(trials, workload, tree)
    if not candidates:
        return
    if not trials.admits(_deleting(candidates)):
        yield failure_of(trials, [_victims_dial(candidates)])
        return
    chosen = _fewest(trials, candidates) if len(candidates) <= MAX_EXACT else None
    is_exact = chosen is not None
    chosen = chosen or _none_spared(trials, candidates)
    rest = [_deleting([state for state in chosen if state is not one]) for one in chosen if len(chosen) > 1]
    change = change_of(
        trials,
        ChangeKind.VICTIMS,
        f"delete {len(chosen)} {'workload' if len(chosen) == 1 else 'workloads'}",
        before="-",
        after=", ".join(state.key for state in chosen),
        step=_deleting(chosen),
        less=rest,
        size=Fraction(len(chosen)),
        is_least=is_exact,
    )
    if change is not None:
        yield change


def _policy_dial(queue: str, field: str, policies: Sequence[str]) -> Dial:
    def edits(turn: int) -> tuple[Edit, ...]:
        value: JsonValue = policies[turn]
        if field == "borrowWithinCohort":
            value = {"policy": value}
        return (Edit(kind="ClusterQueue", name=queue, path=f"spec.preemption.{field}", value=value),)

    return Dial(
        kind=ChangeKind.PREEMPTION,
        what=f"{field} of ClusterQueue {queue}",
        most=len(policies) - 1,
        edits=edits,
        shown=lambda turn: policies[turn],
        weight=1,
    )


def _candidates(trials: Trials, workload: JsonObject, tree: QuotaTree) -> list[WorkloadState]:
    """The workloads that hold what is needed, the least important first.

    Quota is shared within the cohort tree; nodes are shared by all workloads in a flavor of these nodes, in any tree.
    """
    engine = trials.engine
    asked = set(requests_of(workload))
    flavors = {flavor for (kind, name, flavor, resource) in tree.rows if resource in asked}
    on_nodes = {
        text_at(object_, "metadata", "name")
        for object_ in engine.objects("ResourceFlavor")
        if text_at(object_, "spec", "topologyName")
    }
    found = []
    for state in engine.workloads():
        holds = state.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)
        if not holds or (state.namespace, state.name) == (trials.namespace, trials.name):
            continue
        used = {flavor for of in state.flavors.values() for flavor in of.values()}
        of_tree = state.status.get("admission", {}).get("clusterQueue") in tree.queues
        if used & (flavors if of_tree else flavors & on_nodes):
            found.append(state)
    return sorted(found, key=lambda error: (error.priority, error.key))


def _fewest(trials: Trials, candidates: Sequence[WorkloadState]) -> Sequence[WorkloadState] | None:
    """Try all sets by size; among sets of one size the first wins. `None` if that takes too many tries."""
    for size in range(1, len(candidates)):
        for chosen in combinations(candidates, size):
            if trials.n_left <= _KEPT_TRIES:
                return None
            if trials.admits(_deleting(chosen)):
                return chosen
    return candidates


def _none_spared(trials: Trials, candidates: Sequence[WorkloadState]) -> Sequence[WorkloadState]:
    """Take the least important candidates until they are enough, then drop those that are not needed."""
    low, high = 0, len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        if trials.admits(_deleting(candidates[:middle])):
            high = middle
        else:
            low = middle
    chosen = list(candidates[:high])
    is_fewer = True
    while is_fewer:
        is_fewer = False
        # Drop the most important first.
        for one in reversed(tuple(chosen)):
            others = [candidate for candidate in chosen if candidate is not one]
            if others and trials.admits(_deleting(others)):
                chosen, is_fewer = others, True
    return chosen


def _victims_dial(candidates: Sequence[WorkloadState]) -> Dial:
    """A dial that deletes the least important candidate, the two least important, and so on."""
    return Dial(
        kind=ChangeKind.VICTIMS,
        what="workloads that hold what it needs",
        most=len(candidates),
        edits=lambda turn: (),
        deletions=lambda turn: _deleting(candidates[:turn]).deletions,
        shown=lambda turn: f"{turn} deleted" if turn else "-",
        weight=1,
    )


def _deleting(states: Sequence[WorkloadState]) -> Step:
    return Step((), tuple(Deletion("Workload", state.name, state.namespace) for state in states))
