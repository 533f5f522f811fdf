"""Writes decisions about a dump as facts that can be compared after renaming."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.dumps.decided import Decided
from kueuecore.dumps.renaming import Walk
from kueuecore.states import WorkloadState

__all__ = ["Facts", "differences", "facts_of"]

Facts: TypeAlias = Mapping[str, JsonValue]
"""Decisions by their subject."""


def facts_of(decided: Decided, walk: Walk) -> Facts:
    """Collect all decisions: states of workloads, queue order, preemptions, quota, events.

    Args:
        decided: The decisions.
        walk: Renames everything, or nothing.
    """
    return dict(_facts(decided, walk))


def differences(before: Facts, after: Facts) -> list[str]:
    """Describe the differences, one line each.

    Example:
        >>> differences({"wl a": "Pending", "wl b": "Pending"}, {"wl a": "Admitted", "wl b": "Pending"})
        ['wl a: Pending before, Admitted after']
    """
    return [
        f"{about}: {before.get(about, 'nothing')} before, {after.get(about, 'nothing')} after"
        for about in {**before, **after}
        if before.get(about) != after.get(about)
    ]


def _facts(decided: Decided, walk: Walk) -> Iterator[tuple[str, JsonValue]]:
    engine, settled = decided.engine, decided.settled
    yield "ending", str(settled.ending)
    yield "cycles", len(settled.decisions)
    for state in sorted(decided.workloads.values(), key=lambda workload: workload.key):
        yield f"Workload {walk.key('workload', state.key)}", _workload(state, walk)
    for number, decision in enumerate(settled.decisions, 1):
        yield (
            f"admissions of cycle {number}",
            [walk.key("workload", admission.key) for admission in decision.admissions],
        )
        yield (
            f"preemptions of cycle {number}",
            [
                [walk.key("workload", preemption.key), walk.key("workload", preemption.preemptor), preemption.reason]
                for preemption in decision.preemptions
            ],
        )
    for placement in engine.placements():
        about = f"pods of {walk.key('workload', placement.key)}, {walk.name('podSet', placement.pod_set)}"
        # If the lowest level is the node, the assignment only has node names.
        levels = (
            placement.levels if len(placement.levels) == len(_longest(placement.domains)) else placement.levels[-1:]
        )
        yield (
            about,
            [
                [*(walk.label_value(*pair) for pair in zip(levels, domain.values, strict=False)), domain.count]
                for domain in placement.domains
            ],
        )
    for name in engine.cluster_queues():
        queue = engine.cluster_queue(name)
        about = f"ClusterQueue {walk.name('clusterQueue', name)}"
        counts: list[JsonValue] = [queue.pending_workloads, queue.reserving_workloads, queue.admitted_workloads]
        yield about, [queue.is_active, queue.reason, *counts]
        yield f"queue of {about}", [walk.key("workload", workload.key) for workload in engine.pending(name)]
    for row in engine.quota():
        category = "clusterQueue" if row.kind == "ClusterQueue" else "cohort"
        what = f"{walk.name('flavor', row.flavor)}/{walk.name('resource', row.resource)}"
        yield f"{what} of {row.kind} {walk.name(category, row.name)}", [row.usage, row.available, row.borrowed]
    yield "events", [[event.reason, walk.key("workload", event.key)] for event in settled.events]


def _longest(domains: tuple[object, ...]) -> tuple[str, ...]:
    return max((getattr(domain, "values", ()) for domain in domains), key=len, default=())


def _workload(state: WorkloadState, walk: Walk) -> JsonValue:
    admission = object_at(dict(state.status), "admission")
    found: JsonObject = {
        "stage": str(state.stage),
        "place": state.place,
        "reason": state.reason,
        "clusterQueue": state.cluster_queue and walk.name("clusterQueue", state.cluster_queue),
        "conditions": [
            [*walk.condition(text_at(condition, "type"), text_at(condition, "reason")), text_at(condition, "status")]
            for condition in state.status.get("conditions", ())
        ],
    }
    assignments = admission.get("podSetAssignments")
    found["podSets"] = (
        [_pod_set(object_at(assignment), walk) for assignment in assignments] if isinstance(assignments, list) else []
    )
    return found


def _pod_set(assignment: JsonObject, walk: Walk) -> JsonValue:
    usage = object_at(assignment, "resourceUsage")
    flavors = {
        walk.name("resource", name): walk.name("flavor", str(flavor))
        for name, flavor in object_at(assignment, "flavors").items()
    }
    return [
        walk.name("podSet", text_at(assignment, "name")),
        assignment.get("count"),
        dict(sorted(flavors.items())),
        {walk.name("resource", name): item for name, item in sorted(usage.items())},
    ]
