"""Cuts a dump down to the cohort tree that a decision is about, which removes most of a large dump at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, text_at
from kueuecore.dumps.decided import Decided
from kueuecore.states import Stage
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["kin"]


def kin(objects: Sequence[JsonObject], decided: Decided, keys: Sequence[str]) -> Iterator[tuple[JsonObject, ...]]:
    """Yield the objects without other cohort trees and their workloads, then also without other pending workloads.

    Args:
        objects: All objects.
        decided: The decisions about them.
        keys: The workloads that the decision is about.
    """
    queues = _tree(decided, {state.cluster_queue for key in keys if (state := decided.workloads.get(key)) is not None})
    outside = {key for key, state in decided.workloads.items() if key not in keys and state.cluster_queue not in queues}
    waiting = {key for key, state in decided.workloads.items() if key not in keys and state.stage is Stage.PENDING}
    near = tuple(object_ for object_ in objects if _is_near(object_, queues))
    yield _without(near, decided, outside)
    yield _without(near, decided, outside | waiting)


def _tree(decided: Decided, names: set[str | None]) -> set[str]:
    """All ClusterQueues in the trees of some of them."""
    parents = {(row.kind, row.name): row.parent for row in decided.engine.quota()}
    for manifest in decided.world.manifests:
        kind, name = text_at(manifest.object, "kind"), text_at(manifest.object, "metadata", "name")
        if kind == "ClusterQueue":
            cohort = text_at(manifest.object, "spec", "cohortName") or text_at(manifest.object, "spec", "cohort")
            parents[kind, name] = cohort or None
        elif kind == "Cohort":
            parents[kind, name] = text_at(manifest.object, "spec", "parentName") or None

    def root(queue: str) -> str:
        name, kind, seen = queue, "ClusterQueue", set[str]()
        # Cohorts may form a cycle.
        while (parent := parents.get((kind, name))) and parent not in seen:
            name, kind = parent, "Cohort"
            seen.add(parent)
        return f"{kind}/{name}"

    roots = {root(name) for name in names if name}
    return {name for kind, name in parents if kind == "ClusterQueue" and root(name) in roots}


def _is_near(plain: JsonObject, queues: set[str]) -> bool:
    match text_at(plain, "kind"):
        case "ClusterQueue":
            return text_at(plain, "metadata", "name") in queues
        case "LocalQueue":
            return text_at(plain, "spec", "clusterQueue") in queues
        case _:
            return True


def _without(objects: Sequence[JsonObject], decided: Decided, keys: set[str]) -> tuple[JsonObject, ...]:
    """The objects without these Workloads, and without jobs that have no other Workloads."""
    jobs: dict[tuple[str, str, str], bool] = {}
    for place, job in decided.world.jobs.items():
        ref = _ref(job.object)
        jobs[ref] = jobs.get(ref, True) and "/".join(place) in keys
    gone = {ref for ref, are_all_gone in jobs.items() if are_all_gone}
    for key in keys:
        namespace, _, name = key.partition("/")
        gone.add(("Workload", namespace, name))
    return tuple(object_ for object_ in objects if _ref(object_) not in gone)


def _ref(plain: JsonObject) -> tuple[str, str, str]:
    metadata = plain.get("metadata")
    return text_at(plain, "kind"), text_at(metadata, "namespace") or DEFAULT_NAMESPACE, text_at(metadata, "name")
