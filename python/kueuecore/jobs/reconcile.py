"""Runs one reconcile of a job, its Workload and its pods (rules/10 §4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kueuecore._arguments import each, flag
from kueuecore._conditions import transition_time
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.errors import UnknownObjectError
from kueuecore.jobs.batch_job import is_stopping, stopped_so_far
from kueuecore.jobs.context import (
    MANAGED_LABEL,
    JobsConfiguration,
    Surroundings,
    configuration_or_default,
    is_elastic,
    labels_of,
)
from kueuecore.jobs.elastic_pods import ungate_elastic_pods
from kueuecore.jobs.enabled_kinds import why_off
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import StartError
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.job_report import JobReport
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.jobs_to_workloads import surroundings_with
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.jobs.leader_worker_set_sync import pods_of_leader_worker_set
from kueuecore.jobs.lifecycle import (
    StopReason,
    check_workload,
    known_integration,
    limited_to_pod_sets,
    start_job,
    stop_job,
)
from kueuecore.jobs.owned_workloads import finalized_workload, newest_unfinished, owned_workloads
from kueuecore.jobs.owners import OwnerError, managed_ancestor
from kueuecore.jobs.pod import POD, group_name
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.pods_scheduled import scheduling_news, waits_for_nodes
from kueuecore.jobs.quota_release import without_reservation
from kueuecore.jobs.role_hash import role_hash
from kueuecore.jobs.set_pods import objects_beside, ungate_pods
from kueuecore.jobs.sync_steps import Action, Sync, key_of
from kueuecore.jobs.workload_sync import sync_in
from kueuecore.manifests import ManifestLike, object_ref
from kueuecore.times import END_NS, TimeLike, nanoseconds
from kueuecore.writes import Verb, Write

__all__ = ["Reconciliation", "reconcile_job"]

_RELEASED = "OwnerNotFound", "The workload's owner no longer exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The result of one reconcile of a job.

    Send the writes in order. Once all are accepted, pass the reports to the loop and create the events. If one is
    refused, skip the rest and reconcile again, as after any change of the job or a Workload.

    Args:
        workload: The job's Workload with all changes made; None if there is none for now.
        writes: Writes of the job or its pods, and of Workloads.
        reports: What the job has done, by namespace and name of the Workload: for `Controller.report`.
        events: The events that Kueue would emit.
        waits_for: Why the job gets no Workload, or cannot start; empty if it only waits for its turn.
        wake: When to reconcile again if nothing happens before, in nanoseconds since 1970; None: never.
    """

    workload: JsonObject | None = None
    writes: tuple[Write, ...] = ()
    reports: Mapping[tuple[str, str], JobReport] = field(default_factory=dict)
    events: tuple[JobEvent, ...] = ()
    waits_for: str = ""
    wake: int | None = None


def reconcile_job(
    job: JsonObject,
    workloads: Iterable[JsonObject],
    *,
    now: TimeLike,
    around: Iterable[ManifestLike] | Surroundings = (),
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
    gone: bool = False,
) -> Reconciliation:
    """Decide what Kueue's controller of this kind of job does in one reconcile.

    It creates, updates and deletes the Workload of the job, starts and stops the job, keeps children of managed jobs
    suspended, releases the quota of finished pods, removes finalizers, and reports end, readiness and stop.

    Args:
        job: The current job; for pods in a group, their `pod_group`.
        workloads: The Workloads of its namespace; at least its own, those of its owners, and the one that it names.
        now: The time, also for new conditions.
        around: The objects around it: queues, flavors, priority classes, AdmissionChecks, Namespaces, its owners, the
            runtime of a TrainJob. For many jobs, make `Surroundings` of them once.
        configuration: How jobs are managed; `Surroundings` have their own.
        integrations: The kinds of jobs.
        gone: Whether the job was deleted: pass it as it was last seen.

    Raises:
        ManifestError: The kind is unknown, or a field of the job or a Workload has the wrong type.
        TypeError, ValueError: Another argument has the wrong type, or is not a time.

    Example:
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "lab",
        ...        "labels": {"kueue.x-k8s.io/queue-name": "jobs"}},
        ...        "spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}}
        >>> found = reconcile_job(job, [], now="2026-01-01T00:00:00Z")
        >>> [(write.verb.value, write.kind) for write in found.writes], found.events[0].reason
        ([('create', 'Workload')], 'CreatedWorkload')
    """
    at = nanoseconds(now)
    integration = known_integration(job, integrations)
    is_gone = flag("gone", gone)
    everything = []
    for workload in each("workloads", workloads):
        check_workload(workload)
        everything.append(workload)
    configuration = configuration_or_default(configuration)
    surroundings = surroundings_with(around, everything, configuration, integrations)
    look = _Look(integration.with_defaults(job), integration, surroundings, at, integrations)
    if is_gone:
        look.release()
    elif not look.is_left_alone():
        look.reconcile()
    return look.result()


class _Look:
    """One job, and the changes that its reconcile collects."""

    def __init__(
        self,
        job: JsonObject,
        integration: Integration,
        surroundings: Surroundings,
        now: int,
        integrations: Mapping[tuple[str, str], Integration],
    ) -> None:
        self._job = job
        self._integration = integration
        self._surroundings = surroundings
        self._configuration = surroundings.configuration
        self._now = now
        self._integrations = integrations
        self._workload: JsonObject | None = None
        self._writes: list[Write] = []
        self._reports: dict[tuple[str, str], JobReport] = {}
        self._events: list[JobEvent] = []
        self._waits_for = ""
        self._wake: int | None = None

    def result(self) -> Reconciliation:
        return Reconciliation(
            workload=self._workload,
            writes=tuple(self._writes),
            reports=self._reports,
            events=tuple(self._events),
            waits_for=self._waits_for,
            wake=self._wake,
        )

    # Whether the job is reconciled at all.

    def is_left_alone(self) -> bool:
        """Return whether Kueue ignores the job."""
        job, surroundings = self._job, self._surroundings
        self._waits_for = why_off(job, self._integration, surroundings) or self._integration.skipped(job)
        if self._integration in (POD, POD_GROUP) and labels_of(job).get(MANAGED_LABEL) != "true":
            self._waits_for = self._waits_for or f"it has no label {MANAGED_LABEL}: true"
        namespace = text_at(job, "metadata", "namespace")
        # For serving kinds the namespace excludes only the pods.
        if not self._waits_for and not self._integration.is_serving and not surroundings.is_selected(namespace):
            self._waits_for = f'managedJobsNamespaceSelector excludes the namespace "{namespace}"'
        return bool(self._waits_for)

    def reconcile(self) -> None:
        job, surroundings = self._job, self._surroundings
        if self._integration.is_serving:
            sync = self._synced()
            self._take(sync)
            if not sync.steps and self._configuration.has("GroupsWithoutPodsEndEvictions"):
                for workload in sync.workloads:
                    self._end_eviction_without_pods(workload)
            return
        if self._integration is not POD_GROUP and text_at(job, "metadata", "deletionTimestamp"):
            self.release()
            self._writes += self._integration.finalize(job)
            return
        # Kueue's controller of pods never looks at their owners.
        is_top_level = self._integration in (POD, POD_GROUP) or self._integration.is_top_level(job)
        try:
            ancestor = None if is_top_level else managed_ancestor(job, surroundings)
        except OwnerError as error:
            self._waits_for = str(error)
            if error.warning:
                self._tell("Warning", error.warning, error.note)
            return
        if ancestor is not None:
            self._hold_child(ancestor)
        elif surroundings.is_meant_for_kueue(job):
            self._reconcile_workload()
        else:
            self._waits_for = "it names no queue"

    def _hold_child(self, ancestor: JsonObject) -> None:
        """Hold back a child: it has no Workload, and runs while that of its ancestor is admitted."""
        job, integration = self._job, self._integration
        self._waits_for = f"{object_ref(ancestor)} owns it, and has the Workload"
        if integration.how_ended(job, self._configuration) is not None or integration.is_suspended(job):
            return
        workload = newest_unfinished(owned_workloads(ancestor, self._surroundings))
        if workload is None:
            is_held = True
        elif is_elastic(job, self._configuration) or is_elastic(ancestor, self._configuration):
            # While a larger slice replaces one, none may be admitted.
            is_held = has_condition(workload, "Evicted")
        else:
            is_held = not has_condition(workload, "Admitted")
        if is_held:
            self._writes.append(Write(Verb.UPDATE, integration.suspend(job)))
            self._tell("Normal", "Suspended", "Kueue managed child job suspended")

    # The job and its Workload.

    def _reconcile_workload(self) -> None:
        job, integration = self._job, self._integration
        sync = self._synced()
        if sync.steps or sync.writes:
            # The next reconcile does the rest.
            self._take(sync)
            return
        workload = sync.workload
        finished = integration.how_ended(job, self._configuration)
        if workload is None:
            self._events += sync.events
            if finished is not None:
                self._writes += integration.finalize(job)
        elif has_condition(workload, "Finished"):
            self._writes += [*integration.finalize(job), *self._without_finalizer(workload)]
        elif text_at(workload, "metadata", "deletionTimestamp"):
            is_stopped = self._stop(workload, StopReason.WORKLOAD_DELETED, "Workload is deleted")
            if integration is POD_GROUP:
                self._writes += integration.finalize(job)
            if is_stopped:
                self._writes += finalized_workload(workload)
        elif finished is not None:
            self._report(workload, JobReport(finished=(finished.reason, finished.message)))
            self._tell("Normal", "FinishedWorkload", f"Workload '{key_of(workload)}' is declared finished")
            self._writes += integration.finalize(job)
        elif integration.is_on_hold(job) and self._configuration.has("RayValidationFailedOnHold"):
            if has_condition(workload, "QuotaReserved"):
                self._hold(workload)
        else:
            self._note_readiness(workload)
            self._run_or_stop(workload)
            if is_elastic(job, self._configuration):
                pods = objects_beside(job, "v1", "Pod", self._surroundings)
                slices = owned_workloads(job, self._surroundings)
                self._writes += ungate_elastic_pods(slices, pods, self._configuration)
            # Last, so that its refusal does not prevent a stop.
            if not (self._writes or self._reports):
                self._reclaim(workload)

    def _synced(self) -> Sync:
        """Return the steps that bring the Workloads of the job in line with it."""
        sync = sync_in(self._job, self._integration, self._surroundings, now=self._now, integrations=self._integrations)
        self._workload, self._waits_for = sync.workload, sync.reason
        return sync

    def _take(self, sync: Sync) -> None:
        """Bring the Workloads of the job in line with it."""
        self._events += sync.events
        self._writes += sync.writes
        for step in sync.steps:
            if step.action is Action.FINISH:
                self._report(step.workload, JobReport(finished=(step.reason, step.message)))
            else:
                self._writes.append(step.write)
            if step.event is not None:
                self._events.append(step.event)

    def _hold(self, workload: JsonObject) -> None:
        """Give back the quota of a job that cannot run for now."""
        held = without_reservation(
            workload, reason="OnHold", message="Job is on hold", now=self._now, configuration=self._configuration
        )
        self._writes.append(Write(Verb.UPDATE, held, "status"))

    def _without_finalizer(self, workload: JsonObject) -> list[Write]:
        writes = finalized_workload(workload)
        if writes:
            self._tell("Normal", "FinishedWorkload", f"Workload '{key_of(workload)}' is declared finished")
        return writes

    def _reclaim(self, workload: JsonObject) -> None:
        """Give up the quota of pods that are done, or take it back."""
        if not (self._integration.tells_reclaimable_pods and self._configuration.enabled("ReclaimablePods")):
            return
        pods = limited_to_pod_sets(self._integration.reclaimable_pods(self._job, self._configuration), workload)
        reported = list_at(workload, "status", "reclaimablePods")
        if {text_at(pod, "name"): int_at(pod, "count") for pod in reported} == pods:
            return
        reclaimable: list[JsonValue] = [{"name": name, "count": count} for name, count in pods.items()]
        changed = with_value(workload, ("status", "reclaimablePods"), reclaimable)
        self._writes.append(Write(Verb.UPDATE, changed, "status"))

    def _note_readiness(self, workload: JsonObject) -> None:
        """Report whether the pods are ready, if the Workload does not say so yet (rules/10 §4.4)."""
        if not self._configuration.waits_for_pods_ready:
            return
        is_admitted, is_unscheduled = has_condition(workload, "Admitted"), False
        runs_here = not self._is_multikueue(workload)
        if self._configuration.follows_scheduling and self._integration in (POD, POD_GROUP) and runs_here:
            news = scheduling_news(workload, self._objects(), self._pod_set_of)
            if news is not None:
                # What it says of readiness follows from it.
                self._report(workload, JobReport(are_scheduled=news))
                return
            is_unscheduled = waits_for_nodes(workload)
        are_ready = self._integration.are_pods_ready(self._job, self._configuration)
        reported = _condition(workload, "PodsReady")
        is_told = text_at(reported, "status") == ("True" if are_ready and is_admitted else "False")
        reason, starts = text_at(reported, "reason"), ("WaitForStart", "WaitForScheduling")
        if not are_ready and reason in starts:
            is_told &= reason == starts[is_unscheduled]
        if not is_told or (not is_admitted and reason != "WaitForStart"):
            self._report(workload, JobReport(are_ready=are_ready))

    def _pod_set_of(self, pod: JsonObject) -> str:
        return role_hash(pod) if self._integration is POD_GROUP else "main"

    def _run_or_stop(self, workload: JsonObject) -> None:
        job, integration = self._job, self._integration
        is_suspended, is_admitted = integration.is_suspended(job), has_condition(workload, "Admitted")
        if has_condition(workload, "Evicted"):
            evicted = _condition(workload, "Evicted")
            # Always: a group that counts as suspended may still have running pods.
            self._stop(workload, StopReason.WORKLOAD_EVICTED, text_at(evicted, "message"))
            if has_condition(workload, "QuotaReserved") and not integration.is_active(job):
                self._report(workload, JobReport(stopped=True))
            self._delete_deactivated(workload, evicted)
        elif is_suspended and is_admitted:
            self._start(workload)
        elif is_suspended:
            self._tell_of_checks(workload)
        elif is_stopping(job) or (not is_admitted and not is_elastic(job, self._configuration)):
            self._stop(workload, StopReason.NOT_ADMITTED, "Not admitted by cluster queue")

    def _start(self, workload: JsonObject) -> None:
        # Other kinds name their manager in a field, so their own controllers ignore them here.
        if self._integration in (POD, POD_GROUP) and self._is_multikueue(workload):
            self._waits_for = "its pods run on a MultiKueue worker"
            return
        try:
            writes = start_job(
                self._job,
                workload,
                flavors=self._surroundings.flavors,
                configuration=self._configuration,
                integrations=self._integrations,
            )
        except StartError as error:
            self._report(workload, JobReport(finished=("FailedToStart", str(error))))
            return
        except UnknownObjectError as error:
            self._waits_for = str(error)
            return
        self._writes += writes
        queue = text_at(workload, "status", "admission", "clusterQueue")
        self._tell_of_writes(writes, "Started", f"Admitted by clusterQueue {queue}")

    def _stop(self, workload: JsonObject | None, reason: StopReason, message: str) -> bool:
        """Stop the job; return False if its template is restored later, from the Workload."""
        stop = stop_job(self._job, workload, reason=reason, message=message, integrations=self._integrations)
        writes = stopped_so_far(self._job, stop)
        self._writes += writes
        if not is_stopping(self._job):
            self._tell_of_writes(writes, "Stopped", message)
        return not is_stopping(writes[-1].manifest if writes else self._job)

    def _is_multikueue(self, workload: JsonObject) -> bool:
        checks = {text_at(check, "name") for check in list_at(workload, "status", "admissionChecks")}
        return self._surroundings.enabled("MultiKueue") and bool(checks & self._surroundings.multikueue_checks)

    def _tell_of_checks(self, workload: JsonObject) -> None:
        """Add an event with the messages of the checks that a reservation waits for."""
        waiting = [
            f"{text_at(check, 'name')}: {text_at(check, 'message')}"
            for check in list_at(workload, "status", "admissionChecks")
            if text_at(check, "state") == "Pending" and text_at(check, "message")
        ]
        if waiting and has_condition(workload, "QuotaReserved"):
            self._tell("Normal", "UpdatedAdmissionCheck", "; ".join(waiting))

    # The end of a job.

    def release(self) -> None:
        """Release the Workloads of a deleted job."""
        for workload in owned_workloads(self._job, self._surroundings):
            if self._integration is POD_GROUP and self._has_other_owner(workload):
                self._end_eviction_without_pods(workload)
                continue
            is_controlled = any(
                object_at(reference).get("controller") is True
                for reference in list_at(workload, "metadata", "ownerReferences")
            )
            if (
                self._surroundings.enabled("FinishOrphanedWorkloads")
                and is_controlled
                and not text_at(workload, "metadata", "deletionTimestamp")
            ):
                if not has_condition(workload, "Finished"):
                    self._report(workload, JobReport(finished=_RELEASED))
            else:
                self._writes += finalized_workload(workload)
        if self._integration is LEADER_WORKER_SET:
            self._writes += ungate_pods(pods_of_leader_worker_set(self._job, self._surroundings))

    def _has_other_owner(self, workload: JsonObject) -> bool:
        """Return whether a set of pods owns the Workload of a group, and will have pods again."""
        if not self._configuration.has("GroupsWithoutPodsEndEvictions"):
            return False
        namespace = text_at(workload, "metadata", "namespace") or self._configuration.default_namespace
        for owner in list_at(workload, "metadata", "ownerReferences"):
            api_version, kind, name, uid = (text_at(owner, key) for key in ("apiVersion", "kind", "name", "uid"))
            found = self._surroundings.by_key.get((api_version, kind, namespace, name))
            if kind != "Pod" and found is not None and text_at(found, "metadata", "uid") == uid:
                return True
        return False

    def _end_eviction_without_pods(self, workload: JsonObject) -> None:
        """Report that nothing of an evicted group runs any more, if it has no pods."""
        name = text_at(workload, "metadata", "name")
        pods = objects_beside(workload, "v1", "Pod", self._surroundings)
        if any(group_name(pod, self._configuration) == name for pod in pods if self._integration.is_serving):
            return
        if has_condition(workload, "Evicted") and has_condition(workload, "QuotaReserved"):
            self._report(workload, JobReport(stopped=True))

    def _delete_deactivated(self, workload: JsonObject, evicted: JsonObject) -> None:
        """Delete the job of a Workload that Kueue deactivated, after its retention (rules/07 §9)."""
        retention = self._configuration.deactivated_retention_ns
        is_active = object_at(workload, "spec").get("active") is not False
        if retention is None or is_active or not text_at(evicted, "reason").startswith("DeactivatedDueTo"):
            return
        end = transition_time(evicted) + retention
        if end > self._now:
            self._wake = end if end < END_NS else None
            return
        self._writes += [
            *(Write(Verb.DELETE, object_) for object_ in self._objects()),
            *self._integration.finalize(self._job),
        ]
        self._tell("Normal", "Deleted", "Deleted job: deactivation retention period expired")

    # Events and reports.

    def _objects(self) -> list[JsonObject]:
        """Return the job; for a group, its pods."""
        return (
            [object_at(item) for item in list_at(self._job, "items")] if self._integration is POD_GROUP else [self._job]
        )

    def _report(self, workload: JsonObject, report: JobReport) -> None:
        key = text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")
        self._reports[key] = self._reports[key].then(report) if key in self._reports else report

    def _tell(self, kind: str, reason: str, message: str) -> None:
        # A group is represented by its first pod.
        self._events.append(JobEvent(self._objects()[0], kind, reason, message))

    def _tell_of_writes(self, writes: Iterable[Write], reason: str, message: str) -> None:
        """Add an event about each object that is started or stopped."""
        reported = {object_ref(write.manifest): write.manifest for write in writes}
        self._events += [JobEvent(value, "Normal", reason, message) for value in reported.values()]


def _condition(workload: JsonObject, kind: str) -> JsonObject:
    conditions = list_at(workload, "status", "conditions")
    return next((object_at(condition) for condition in conditions if text_at(condition, "type") == kind), {})
