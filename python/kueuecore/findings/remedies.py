"""Suggests changes to queues, and tries each before suggesting it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore._quantities import number
from kueuecore.errors import ObjectRef
from kueuecore.findings.facts import Facts
from kueuecore.findings.smallest_world import with_objects
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.edits import Edit
from kueuecore.states import WorkloadState
from kueuecore.world import DEFAULT_NAMESPACE, key_of

__all__ = ["Change", "advice", "fewer_policies", "helpful", "more_policies", "ways_to_pass"]


class Change(NamedTuple):
    """A new value for a field of a queue's spec, such as `preemption.withinClusterQueue`."""

    queue: ObjectRef
    field: str
    value: JsonValue

    def __str__(self) -> str:
        return f"{self.field}: {self.value} in {self.queue.kind} {self.queue.key}"


def advice(facts: Facts, changes: Iterable[Change], is_well: Callable[[Facts], bool], *, otherwise: str) -> str:
    """Try changes, and list those that help as an instruction.

    Args:
        facts: The smallest objects that show the problem.
        changes: Changes that could help; each is tried alone.
        is_well: Whether the problem is gone from the changed objects.
        otherwise: The instruction if none helps.
    """
    found = [str(change) for change in helpful(facts, changes, is_well)]
    return f"any of these would stop it: {'; '.join(found)}" if found else otherwise


def helpful(facts: Facts, changes: Iterable[Change], is_well: Callable[[Facts], bool]) -> Iterator[Change]:
    """Try changes, each alone, and yield those that help.

    Args:
        facts: As in `advice`.
        changes: As in `advice`; those that Kueue would refuse help nobody.
        is_well: As in `advice`.
    """
    for change in changes:
        changed = with_objects(facts, [_changed(assignment, change) for assignment in facts.given])
        if changed is not None and is_well(changed):
            yield change


def fewer_policies(facts: Facts) -> Iterator[Change]:
    """Turn off each preemption policy that is on."""
    for queue in facts.cluster_queues.values():
        ref = object_ref(queue.object)
        preemption = object_at(queue.object, "spec", "preemption")
        for field in ("withinClusterQueue", "reclaimWithinCohort"):
            if text_at(preemption, field) not in ("", "Never"):
                yield Change(ref, f"preemption.{field}", "Never")
        if text_at(preemption, "borrowWithinCohort", "policy") not in ("", "Never"):
            yield Change(ref, "preemption.borrowWithinCohort.policy", "Never")


def ways_to_pass(facts: Facts, state: WorkloadState) -> Iterator[Change]:
    """Changes that could get a workload in: its LocalQueue has its turn, others queue behind it, or make room."""
    local_queue = facts.local_queues.get((state.namespace or DEFAULT_NAMESPACE, state.local_queue))
    if local_queue is not None and number(object_at(local_queue.object, "spec", "fairSharing").get("weight")) == 0:
        yield Change(object_ref(local_queue.object), "fairSharing.weight", 1)
    yield from more_policies(facts.cluster_queues[state.cluster_queue or ""].object)


def more_policies(cluster_queue: JsonObject) -> Iterator[Change]:
    """Let the workloads of a ClusterQueue wait in a strict order, or preempt more."""
    wanted = [
        ("queueingStrategy", "StrictFIFO"),
        ("preemption.withinClusterQueue", "LowerPriority"),
        ("preemption.withinClusterQueue", "LowerOrNewerEqualPriority"),
        ("preemption.reclaimWithinCohort", "LowerPriority"),
        ("preemption.reclaimWithinCohort", "Any"),
    ]
    for field, value in wanted:
        if text_at(cluster_queue, "spec", *field.split(".")) != value:
            yield Change(object_ref(cluster_queue), field, value)


def _changed(manifest: Manifest, change: Change) -> Manifest:
    queue = change.queue
    here = (text_at(manifest.object, "kind"), *key_of(manifest.object))
    if here != (queue.kind, queue.namespace or DEFAULT_NAMESPACE, queue.name):
        return manifest
    path = change.field.split(".")
    preemption: JsonObject = {**object_at(manifest.object, "spec", "preemption")}
    if path[0] == "preemption":
        inner = Edit(path=".".join(path[1:]), value=change.value).apply(preemption)
        return replace(manifest, object=Edit(path="spec.preemption", value=inner).apply(manifest.object))
    return replace(manifest, object=Edit(path=f"spec.{change.field}", value=change.value).apply(manifest.object))
