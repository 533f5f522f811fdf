"""Changes to ClusterQueues that are tried before they are advised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.findings.facts import Facts
from kueuecore.findings.smallest_world import with_objects
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.edits import Edit

__all__ = ["Change", "advice", "fewer_policies", "ways_to_pass"]


class Change(NamedTuple):
    """Another value of a field of a ClusterQueue's spec, such as `preemption.withinClusterQueue`."""

    cluster_queue: str
    field: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}: {self.value} in ClusterQueue {self.cluster_queue}"


def advice(facts: Facts, changes: Iterable[Change], is_well: Callable[[Facts], bool], *, otherwise: str) -> str:
    """The changes after which all is well, as an instruction.

    Args:
        facts: The smallest objects in which it is not.
        changes: What could help; each is tried alone.
        is_well: Is it, among the changed objects?
        otherwise: What to say if none helps.
    """
    tried = ((change, with_objects(facts, [_changed(it, change) for it in facts.given])) for change in changes)
    helpful = [str(change) for change, changed in tried if changed is not None and is_well(changed)]
    return f"any of these would end it: {'; '.join(helpful)}" if helpful else otherwise


def fewer_policies(facts: Facts) -> Iterator[Change]:
    """Each policy of preemption that is on, turned off."""
    for name, queue in facts.cluster_queues.items():
        preemption = object_at(queue.object, "spec", "preemption")
        for field in ("withinClusterQueue", "reclaimWithinCohort"):
            if text_at(preemption, field) not in ("", "Never"):
                yield Change(name, f"preemption.{field}", "Never")
        if text_at(preemption, "borrowWithinCohort", "policy") not in ("", "Never"):
            yield Change(name, "preemption.borrowWithinCohort.policy", "Never")


def ways_to_pass(facts: Facts, cluster_queue: str) -> Iterator[Change]:
    """What could let the first workload of a ClusterQueue in: those behind it wait, or others make room."""
    spec = object_at(facts.cluster_queues[cluster_queue].object, "spec")
    wanted = [
        ("queueingStrategy", "StrictFIFO"),
        ("preemption.withinClusterQueue", "LowerPriority"),
        ("preemption.withinClusterQueue", "LowerOrNewerEqualPriority"),
        ("preemption.reclaimWithinCohort", "Any"),
    ]
    for field, value in wanted:
        if text_at(spec, *field.split(".")) != value:
            yield Change(cluster_queue, field, value)


def _changed(manifest: Manifest, change: Change) -> Manifest:
    ref = object_ref(manifest.object)
    if (ref.kind, ref.name) != ("ClusterQueue", change.cluster_queue):
        return manifest
    path = change.field.split(".")
    preemption: JsonObject = {**object_at(manifest.object, "spec", "preemption")}
    if path[0] == "preemption":
        inner = Edit(path=".".join(path[1:]), value=change.value).apply(preemption)
        return replace(manifest, object=Edit(path="spec.preemption", value=inner).apply(manifest.object))
    return replace(manifest, object=Edit(path=f"spec.{change.field}", value=change.value).apply(manifest.object))
