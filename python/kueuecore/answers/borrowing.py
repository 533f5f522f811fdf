"""Says which workloads a search for victims spares because the preemptor would borrow (rules/04 §4.1, §4.4).

The last attempt of a search is made without borrowing. It takes such workloads, and fails all the same, so its verdict
on them is that they are not enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore.answers.amounts import units_of
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.states import WorkloadState

if TYPE_CHECKING:
    from kueuecore.answers.explanation import Asked, Holder, PodSetTrials, Search

__all__ = ["cohorts_of", "with_borrowing"]

_NEVER = "Never"


def with_borrowing(
    engine: Engine, workload: WorkloadState, pod_sets: Iterable[PodSetTrials], searches: tuple[Search, ...]
) -> tuple[Search, ...]:
    """Return searches with the verdicts that borrowing is behind.

    Args:
        engine: The engine.
        workload: The preemptor.
        pod_sets: Its trials.
        searches: The searches as they were recorded.
    """
    from kueuecore.answers.explanation import Fate

    queue = _object(engine, "ClusterQueue", workload.cluster_queue or "")
    if "fairSharing" in engine.configuration.to_dict():
        return searches
    asked = {
        (trial.flavor, asked.resource): asked
        for pod_set in pod_sets
        for trial in pod_set.trials
        for asked in trial.asked
    }
    found = []
    for search in searches:
        parent = _parent_if_it_borrows(workload, search, asked)
        holders = search.holders
        if parent and not search.is_found:
            holders = tuple(
                replace(holder, fate=Fate(_fate(holder, workload, queue)))
                if holder.fate is Fate.NOT_ENOUGH and parent in cohorts_of(engine, holder.cluster_queue)
                else holder
                for holder in holders
            )
        found.append(replace(search, holders=holders))
    return tuple(found)


def _fate(holder: Holder, workload: WorkloadState, queue: JsonObject) -> str:
    """The verdict on a workload of another ClusterQueue for a preemptor that would borrow."""
    if holder.cluster_queue == workload.cluster_queue:
        return holder.fate
    policy = object_at(queue, "spec", "preemption", "borrowWithinCohort")
    if (text_at(policy, "policy") or _NEVER) == _NEVER:
        return "WouldBorrow"
    is_above = holder.priority > int_at(policy, "maxPriorityThreshold", default=holder.priority)
    return "Threshold" if is_above or holder.priority >= workload.priority else holder.fate


def _parent_if_it_borrows(workload: WorkloadState, search: Search, asked: dict[tuple[str, str], Asked]) -> str:
    """The Cohort of the preemptor's ClusterQueue, if it borrows even without all of its own candidates; else empty."""
    for flavor, resource in search.contested:
        request = asked.get((flavor, resource))
        if request is None or len(request.levels) < 2 or request.levels[0].nominal is None:
            continue
        own, parent = request.levels[:2]
        freed = sum(
            units_of(resource, holder.uses.get((flavor, resource)))
            for holder in search.holders
            if holder.cluster_queue == workload.cluster_queue and holder.fate == "NotEnough"
        )
        if units_of(resource, own.usage) - freed + units_of(resource, request.amount) > units_of(resource, own.nominal):
            return parent.name
    return ""


def cohorts_of(engine: Engine, queue: str) -> tuple[str, ...]:
    """Return the Cohorts above a ClusterQueue, the nearest first."""
    found: dict[str, None] = {}
    place = text_at(_object(engine, "ClusterQueue", queue), "spec", "cohortName")
    while place and place not in found:
        found[place] = None
        place = text_at(_object(engine, "Cohort", place), "spec", "parentName")
    return tuple(found)


def _object(engine: Engine, kind: str, name: str) -> JsonObject:
    """An object; an empty one if there is none, as of a Cohort that only ClusterQueues name."""
    try:
        return engine.object(kind, name)
    except UnknownObjectError:
        return {}
