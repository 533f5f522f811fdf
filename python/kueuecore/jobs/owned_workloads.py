"""Finds the Workloads of a job among others."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.jobs.context import Surroundings
from kueuecore.jobs.finalizers import without_finalizer
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.workload_builder import RESOURCE_IN_USE
from kueuecore.jobs.workload_names import is_variant, owner_reference
from kueuecore.writes import Verb, Write

__all__ = ["finalized_workload", "newest_unfinished", "owned_workloads"]


def owned_workloads(job: JsonObject, surroundings: Surroundings) -> list[JsonObject]:
    """Return the Workloads owned by a job or a pod of its group, the oldest first.

    Kueue compares kind and name, not the UID: the job may have been recreated.
    """
    pods = [object_at(it) for it in list_at(job, "items")]
    owners = pods if text_at(job, "kind") == "PodList" else [job]
    keys = ("apiVersion", "kind", "name")
    mine = {tuple(text_at(owner_reference(it, controller=False), key) for key in keys) for it in owners}
    namespace = text_at(job, "metadata", "namespace") or surroundings.configuration.default_namespace

    def is_own(workload: JsonObject) -> bool:
        owners = list_at(workload, "metadata", "ownerReferences")
        # A variant belongs to its parent, a Workload.
        return not is_variant(workload) and any(tuple(text_at(it, key) for key in keys) in mine for it in owners)

    owned = [it for (place, _), it in surroundings.workloads.items() if place == namespace and is_own(it)]
    return sorted(owned, key=lambda it: (text_at(it, "metadata", "creationTimestamp"), text_at(it, "metadata", "uid")))


def newest_unfinished(workloads: Sequence[JsonObject]) -> JsonObject | None:
    """Return the newest unfinished one of a job's Workloads, which are given oldest first."""
    return next((it for it in reversed(workloads) if not has_condition(it, "Finished")), None)


def finalized_workload(workload: JsonObject) -> list[Write]:
    """Return the write that removes Kueue's finalizer from a Workload; none if it has none."""
    after = without_finalizer(workload, RESOURCE_IN_USE)
    return [] if after is workload else [Write(Verb.UPDATE, after)]
