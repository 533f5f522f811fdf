"""Syncs the Workloads and pods of a new or changed LeaderWorkerSet (rules/10 §5.7)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.jobs.context import Surroundings, labels_of
from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.leader_worker_set import (
    LEADER_WORKER_SET,
    SET_NAME,
    joined_group,
    n_groups,
    name_of_group,
)
from kueuecore.jobs.owners import controller_of
from kueuecore.jobs.pod import is_terminated
from kueuecore.jobs.set_pods import is_of_old_revision, may_leave_by_revision, objects_beside, ungated
from kueuecore.jobs.sync_steps import Action, Sync, WorkloadStep, created, deleted, warnings_of
from kueuecore.jobs.workload_builder import check_priority, new_workload, priority_of
from kueuecore.jobs.workload_following import gates_followed, in_queue_of, priority_followed
from kueuecore.jobs.workload_names import is_variant, uid_of
from kueuecore.writes import Verb, Write

__all__ = ["pods_of_leader_worker_set", "sync_leader_worker_set"]


def sync_leader_worker_set(job: JsonObject, surroundings: Surroundings) -> Sync:
    """Decide what Kueue's controller of LeaderWorkerSets does when one is created or changed.

    Args:
        job: The LeaderWorkerSet, which Kueue manages.
        surroundings: Include its Workloads, pods, StatefulSets and priority classes.
    """
    groups = _Groups(job, surroundings)
    groups.sync()
    return Sync(
        workloads=tuple(groups.workloads),
        steps=tuple(groups.steps),
        writes=tuple(_pod_writes(job, surroundings)),
        events=tuple(groups.events),
        reason=groups.reason,
    )


class _Groups:
    """The groups of a LeaderWorkerSet, each with its Workload."""

    def __init__(self, job: JsonObject, surroundings: Surroundings) -> None:
        self._job = job
        self._surroundings = surroundings
        self._configuration = surroundings.configuration
        self._namespace = text_at(job, "metadata", "namespace")
        self.workloads: list[JsonObject] = []
        self.steps: list[WorkloadStep] = []
        self.events: list[JobEvent] = []
        self.reason = ""

    def sync(self) -> None:
        own = {text_at(manifest, "metadata", "name"): manifest for manifest in self._own()}
        new = []
        with_percentages = self._configuration.has("LwsSurgeMayBePercentage")
        for index in range(n_groups(self._job, with_percentages=with_percentages)):
            name = name_of_group(self._job, index, self._configuration)
            if (workload := own.pop(name, None)) is None:
                new.append((index, name))
            else:
                self._follow(workload)
        self._create(new)
        for _, surplus in sorted(own.items()):
            self.steps += deleted(surplus)

    def _own(self) -> Iterable[JsonObject]:
        """Return the Workloads owned by the set, by its UID: another set may have had its name."""
        mine = uid_of(self._job), text_at(self._job, "metadata", "name")
        for (namespace, _), workload in self._surroundings.workloads.items():
            owners = {(text_at(o, "uid"), text_at(o, "name")) for o in list_at(workload, "metadata", "ownerReferences")}
            if namespace == self._namespace and mine in owners and not is_variant(workload):
                yield workload

    def _follow(self, workload: JsonObject) -> None:
        """Update queue, gates and priority class of a Workload to those of the set."""
        job, event = self._job, None
        after = in_queue_of(job, workload) if self._configuration.has("LwsQueueMayChange") else workload
        if self._configuration.enabled("AdmissionGatedBy"):
            after, event = gates_followed(job, after, about=job)
        if after != workload:
            self.steps.append(WorkloadStep(Action.UPDATE, after, event=event))
        try:
            ((raised, event),) = priority_followed(job, [after], self._surroundings, pod_class=None, about=job)
        except NoWorkload as reason:
            self._wait(reason)
        else:
            if raised != after:
                after = raised
                self.steps.append(WorkloadStep(Action.UPDATE, after, event=event))
        self.workloads.append(after)

    def _create(self, groups: Iterable[tuple[int, str]]) -> None:
        """Create the Workloads of new groups."""
        job, surroundings = self._job, self._surroundings
        missing = list(groups)
        try:
            if not missing:
                return
            if text_at(job, "metadata", "deletionTimestamp"):
                raise NoWorkload("it is being deleted")
            pod_sets = [
                pod_set.to_manifest(self._configuration) for pod_set in LEADER_WORKER_SET.pod_sets(job, surroundings)
            ]
            priority, problem = priority_of(job, pod_sets, surroundings)
            check_priority(problem, self._configuration)
        except NoWorkload as reason:
            self._wait(reason)
            return
        for index, name in missing:
            if (self._namespace, name) in surroundings.workloads:
                self.reason = f"a Workload named {quoted(name)} is still there"
                continue
            made = new_workload(job, LEADER_WORKER_SET, pod_sets, self._configuration, index=index)
            made = {**made, "spec": {**object_at(made, "spec"), **priority}}
            self.steps.append(created(made, job))
            self.workloads.append(made)

    def _wait(self, reason: NoWorkload) -> None:
        self.reason = str(reason)
        self.events += [warning for warning in warnings_of(reason, self._job) if warning not in self.events]


def pods_of_leader_worker_set(job: JsonObject, surroundings: Surroundings) -> Iterable[JsonObject]:
    """Return the pods of all groups of a LeaderWorkerSet."""
    name = text_at(job, "metadata", "name")
    return (
        object_
        for object_ in objects_beside(job, "v1", "Pod", surroundings)
        if labels_of(object_).get(SET_NAME) == name
    )


def _pod_writes(job: JsonObject, surroundings: Surroundings) -> Iterable[Write]:
    """Return the writes that add pods to their groups, and ungate those that no longer have anything to wait for."""
    name = text_at(job, "metadata", "name")
    sets = {
        text_at(object_, "metadata", "name"): object_
        for object_ in objects_beside(job, "apps/v1", "StatefulSet", surroundings)
        if labels_of(object_).get(SET_NAME) == name
    }
    for pod in pods_of_leader_worker_set(job, surroundings):
        after, stateful_set = pod, sets.get(text_at(controller_of(pod), "name"))
        is_old = stateful_set is not None and is_of_old_revision(stateful_set, pod)
        if stateful_set is None or (is_old and may_leave_by_revision(pod, surroundings)):
            after = ungated(pod)
        elif not is_terminated(pod) and not text_at(pod, "metadata", "deletionTimestamp"):
            after = joined_group(pod, job, surroundings.configuration)
        if after != pod:
            yield Write(Verb.UPDATE, after)
