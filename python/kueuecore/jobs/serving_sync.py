"""Syncs the Workloads and pods of Deployments, StatefulSets and LeaderWorkerSets (rules/10 §5.5 to §5.7)."""

from __future__ import annotations

from kueuecore._json import JsonObject
from kueuecore.jobs.context import QUEUE_LABEL, Surroundings
from kueuecore.jobs.integration import Integration, NoWorkload
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.jobs.leader_worker_set_sync import sync_leader_worker_set
from kueuecore.jobs.owners import OwnerError, managed_ancestor, should_wait
from kueuecore.jobs.stateful_set import STATEFUL_SET
from kueuecore.jobs.stateful_set_sync import sync_stateful_set
from kueuecore.jobs.sync_steps import Sync
from kueuecore.manifests import object_ref

__all__ = ["sync_serving"]


def sync_serving(job: JsonObject, integration: Integration, surroundings: Surroundings, *, now: int) -> Sync:
    """Return what Kueue does about a serving set of pods.

    Args:
        job: The set with its defaults.
        integration: The integration of its kind.
        surroundings: Include its Workloads, its pods and priority classes.
        now: The time, in nanoseconds since 1970.
    """
    try:
        _check_managed(job, integration, surroundings)
    except NoWorkload as reason:
        return Sync(reason=str(reason))
    if integration is STATEFUL_SET:
        return sync_stateful_set(job, surroundings, now=now)
    if integration is LEADER_WORKER_SET:
        return sync_leader_worker_set(job, surroundings)
    return Sync(reason=f"the pods of a {integration.kind} have the Workloads, or a controller of its own makes them")


def _check_managed(job: JsonObject, integration: Integration, surroundings: Surroundings) -> None:
    if reason := integration.skipped(job):
        raise NoWorkload(reason)
    try:
        ancestor = managed_ancestor(job, surroundings)
    except OwnerError as error:
        raise NoWorkload(str(error)) from None
    if ancestor is not None:
        raise NoWorkload(f"{object_ref(ancestor)} owns it, and has the Workload")
    if not should_wait(job, surroundings):
        raise NoWorkload(f"it has no label {QUEUE_LABEL}")
