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
    pods = [object_at(item) for item in list_at(job, "items")]
    owners = pods if text_at(job, "kind") == "PodList" else [job]
    keys = ("apiVersion", "kind", "name")
    mine = {tuple(text_at(owner_reference(owner, controller=False), key) for key in keys) for owner in owners}
    namespace = text_at(job, "metadata", "namespace") or surroundings.configuration.default_namespace

    def is_own(workload: JsonObject) -> bool:
        owners = list_at(workload, "metadata", "ownerReferences")
        # A variant belongs to its parent, a Workload.
        return not is_variant(workload) and any(tuple(text_at(owner, key) for key in keys) in mine for owner in owners)

    owned = [
        workload for (place, _), workload in surroundings.workloads.items() if place == namespace and is_own(workload)
    ]
    return sorted(
        owned, key=lambda item: (text_at(item, "metadata", "creationTimestamp"), text_at(item, "metadata", "uid"))
    )


def newest_unfinished(workloads: Sequence[JsonObject]) -> JsonObject | None:
    """Return the newest unfinished one of a job's Workloads, which are given oldest first."""
    return next((workload for workload in reversed(workloads) if not has_condition(workload, "Finished")), None)


def finalized_workload(workload: JsonObject) -> list[Write]:
    """Return the write that removes Kueue's finalizer from a Workload; none if it has none."""
    after = without_finalizer(workload, RESOURCE_IN_USE)
    return [] if after is workload else [Write(Verb.UPDATE, after)]
