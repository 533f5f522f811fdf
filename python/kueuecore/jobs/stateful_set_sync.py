"""Syncs the Workload and pods of a new or changed StatefulSet (rules/10 §5.6)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.jobs.context import PREFIX, QUEUE_LABEL, Surroundings, annotations_of, labels_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.owners import controller_of
from kueuecore.jobs.pod import SUSPENDED_BY_PARENT, group_name, is_gated, is_terminated
from kueuecore.jobs.quota_release import without_reservation
from kueuecore.jobs.set_pods import in_queue, is_of_old_revision, may_leave_by_revision, objects_beside, ungated
from kueuecore.jobs.stateful_set import (
    STATEFUL_SET,
    is_on_hold,
    joined_set,
    n_replicas,
    workload_of_stateful_set,
)
from kueuecore.jobs.sync_steps import Action, Sync, WorkloadStep, created, warnings_of
from kueuecore.jobs.workload_builder import check_priority, complete_workload
from kueuecore.jobs.workload_following import gates_followed, in_queue_of
from kueuecore.jobs.workload_names import owner_reference
from kueuecore.writes import Verb, Write

__all__ = ["sync_stateful_set"]


def sync_stateful_set(job: JsonObject, surroundings: Surroundings, *, now: int) -> Sync:
    """Decide what Kueue's controllers of StatefulSets and their pods do when one is created or changed.

    Args:
        job: The StatefulSet, which Kueue manages.
        surroundings: Include its Workload, its pods and priority classes.
        now: The time, in nanoseconds since 1970.
    """
    name, workload = workload_of_stateful_set(job, surroundings)
    pods = [(pod, _changed_pod(pod, job, name, surroundings)) for pod in objects_beside(job, "v1", "Pod", surroundings)]
    writes = tuple(Write(Verb.UPDATE, after) for pod, after in pods if after != pod)
    if workload is not None:
        steps = _kept(job, workload, surroundings, now)
        kept = steps[-1].workload if steps else workload
        return Sync(workloads=(kept,), steps=tuple(steps), writes=writes)
    try:
        made = _made(job, surroundings)
    except NoWorkload as reason:
        return Sync(writes=writes, events=warnings_of(reason, job), reason=str(reason))
    return Sync(workloads=(made,), steps=(created(made, job),), writes=writes)


def _changed_pod(pod: JsonObject, job: JsonObject, workload: str, surroundings: Surroundings) -> JsonObject:
    """Return a pod as a member of the set's group, in its queue; one of an old revision without its gates."""
    configuration, queue = surroundings.configuration, labels_of(job).get(QUEUE_LABEL, "")
    owner = controller_of(pod)
    is_own = (
        (text_at(owner, "apiVersion"), text_at(owner, "kind")) == (STATEFUL_SET.api_version, STATEFUL_SET.kind)
        and text_at(owner, "name") == text_at(job, "metadata", "name")
        and annotations_of(pod).get(SUSPENDED_BY_PARENT) == STATEFUL_SET.framework
        and not is_terminated(pod)
        and not text_at(pod, "metadata", "deletionTimestamp")
    )
    if is_own and group_name(pod, configuration) != workload:
        pod = joined_set(pod, job, workload, configuration)
    if group_name(pod, configuration) != workload:
        return pod
    may_move = is_gated(pod) or not configuration.has("QueueChangesReachGatedPods")
    if queue and (is_own or n_replicas(job)) and may_move:
        pod = in_queue(pod, queue)
    leaves = is_of_old_revision(job, pod) and may_leave_by_revision(pod, surroundings)
    return ungated(pod) if leaves else pod


def _made(job: JsonObject, surroundings: Surroundings) -> JsonObject:
    if text_at(job, "metadata", "deletionTimestamp"):
        raise NoWorkload("it is being deleted")
    made, problem = complete_workload(job, STATEFUL_SET, surroundings)
    check_priority(problem, surroundings.configuration)
    return made


def _kept(job: JsonObject, workload: JsonObject, surroundings: Surroundings, now: int) -> list[WorkloadStep]:
    """Return the changes of an existing Workload."""
    configuration, steps = surroundings.configuration, []
    after, event = workload, None
    if n_replicas(job):
        after = in_queue_of(job, _owned(job, workload))
        if is_on_hold(workload) and configuration.has("StatefulSetCountFollowsScaleUp"):
            after = _with_count(after, n_replicas(job))
    if configuration.enabled("AdmissionGatedBy"):
        after, event = gates_followed(job, after, about=job)
    if after != workload:
        steps.append(WorkloadStep(Action.UPDATE, after, event=event))
    if not n_replicas(job):
        is_active = object_at(workload, "spec").get("active") is not False
        is_released = has_condition(workload, "Evicted") and not is_on_hold(workload)
        is_due = is_released and configuration.has("GroupsWithoutPodsEndEvictions")
        holds = (
            (has_condition(workload, "QuotaReserved") or is_due)
            and not has_condition(workload, "Finished")
            and is_active
        )
        reason, message = "OnHold", "StatefulSet scaled to zero; workload on hold"
    else:
        holds = is_on_hold(workload)
        reason = "PendingEvaluation" if configuration.enabled("UnadmittedWorkloadsObservability") else "Pending"
        message = "Workload no longer on hold; waiting for quota reservation"
    # If only one of the two was written, the next reconcile finds it here.
    if holds:
        after = without_reservation(after, reason=reason, message=message, now=now, configuration=configuration)
        steps.append(WorkloadStep(Action.UPDATE_STATUS, after))
    return steps


def _with_count(workload: JsonObject, count: int) -> JsonObject:
    """Return a Workload, which holds no quota, for another number of pods."""
    pod_sets: list[JsonValue] = [
        {**object_at(pod_set), "count": count} for pod_set in list_at(workload, "spec", "podSets")
    ]
    return with_value(workload, ("spec", "podSets"), pod_sets)


def _owned(job: JsonObject, workload: JsonObject) -> JsonObject:
    """Return a Workload that names its owner."""
    owners = list_at(workload, "metadata", "ownerReferences")
    mine = owner_reference(job, controller=False)
    group = text_at(mine, "apiVersion").partition("/")[0]
    for owner in owners:
        its = text_at(owner, "apiVersion").partition("/")[0], text_at(owner, "kind"), text_at(owner, "name")
        if its == (group, mine["kind"], mine["name"]):
            return workload
    added: list[JsonValue] = [*owners, mine]
    workload = with_value(workload, ("metadata", "ownerReferences"), added)
    gvk = f"{STATEFUL_SET.api_version}, Kind={STATEFUL_SET.kind}"
    workload = with_value(workload, ("metadata", "annotations", f"{PREFIX}job-owner-gvk"), gvk)
    return with_value(workload, ("metadata", "annotations", f"{PREFIX}job-owner-name"), mine["name"])
