"""What Kueue does about the jobs of one cluster: their Workloads, starts, stops and ends (rules/10 §4)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.api_server import ApiServer
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.fleet.pods import KINDS, is_job
from kueuecore.jobs import (
    Action,
    Integration,
    JobsConfiguration,
    JobsResult,
    StartError,
    StopReason,
    WorkloadStep,
    Write,
    WriteKind,
    integration_of,
    pod_group,
    start_job,
    stop_job,
    sync_workloads,
    workloads_for,
)
from kueuecore.jobs.pod import group_name
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.manifests import Manifest, object_ref

__all__ = ["JobControllers"]

_QUEUE = "kueue.x-k8s.io/queue-name"
_GROUP = POD_GROUP.kind
# What decides which Workload a job gets.
_AROUND = ("Namespace", "AdmissionCheck", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "PriorityClass")


class JobControllers:
    """The controllers of all kinds of jobs, and their webhooks.

    Args:
        api: The API server.
        configuration: Kueue's Configuration.
    """

    def __init__(self, api: ApiServer, configuration: Configuration | None) -> None:
        self._api = api
        self._configuration = JobsConfiguration.of(configuration)
        # Jobs to look at; of pods in a group, the group.
        self._todo: dict[ObjectRef, None] = {}

    def workloads_of(self, job: JsonObject) -> tuple[Manifest, ...]:
        """The Workloads that a job is to have.

        Raises:
            ManifestError: The webhooks refuse it.
        """
        return self._result(job).workloads

    def defaulted(self, job: JsonObject) -> JsonObject:
        """A job as the webhooks leave it (rules/10 §2.2).

        Raises:
            ManifestError: They refuse it.
        """
        if jobs := self._result(job).jobs:
            return jobs[0]
        # One with a Workload from elsewhere gets none here, and is held back all the same.
        integration = KINDS[text_at(job, "kind")]
        job = integration.with_defaults(job)
        is_managed = _QUEUE in texts_at(job, "metadata", "labels")
        return integration.hold_back(integration.suspend(job), self._configuration) if is_managed else job

    def _result(self, job: JsonObject) -> JobsResult:
        result = workloads_for([job, *self._around(*_AROUND)], configuration=self._configuration)
        if not result.jobs:
            result.raise_for_problems()
        return result

    def note(self, manifest: JsonObject) -> None:
        """A job or a Workload is another than before, or has gone."""
        ref = object_ref(manifest)
        if is_job(manifest):
            self._todo[self._ref_of(manifest)] = None
        elif ref.kind == "Workload":
            for owner in list_at(manifest, "metadata", "ownerReferences"):
                job = self._get(ObjectRef(text_at(owner, "kind"), text_at(owner, "name"), ref.namespace))
                self._todo |= {} if job is None else {self._ref_of(job): None}
            for job in self._around(*KINDS):
                if prebuilt_workload(job, self._configuration)[0] == ref.name:
                    self._todo[self._ref_of(job)] = None

    def note_all(self) -> None:
        """Another process begins: it looks at all jobs."""
        self._todo = dict.fromkeys(self._ref_of(job) for job in self._around(*KINDS))

    def run(self, controller: Controller, now: int) -> bool:
        """Do for the jobs that are to be looked at what their Workloads say.

        Args:
            controller: The scheduler, which is told what jobs have done.
            now: The time.

        Returns:
            Was the scheduler told anything?
        """
        todo, self._todo = self._todo, {}
        has_told = False
        for ref in todo:
            job = self._job(ref)
            if job is not None and _QUEUE in texts_at(job, "metadata", "labels"):
                has_told |= self._follow(ref, job, controller, now)
        return has_told

    # One job.

    def _follow(self, ref: ObjectRef, job: JsonObject, controller: Controller, now: int) -> bool:
        integration = _integration(job)
        workload = self._owned(job)
        if workload is None:
            sync = sync_workloads(
                job,
                self._named(ref, job),
                now=now,
                around=self._around(*_AROUND, "ResourceFlavor"),
                configuration=self._configuration,
            )
            self._put(sync.writes)
            told = [self._step(step, controller) for step in sync.steps]
            workload = sync.workload
            if workload is None or told or sync.writes:
                # It is looked at again when that is seen.
                return any(told)
        name, namespace = text_at(workload, "metadata", "name"), ref.namespace
        holds, finished = conditions_that_hold(workload), integration.finished(job)
        if finished is not None:
            told_end = "Finished" not in holds
            if told_end:
                controller.finished(name, namespace=namespace, reason=finished.reason, message=finished.message)
            return told_end
        if controller.may_run(name, namespace=namespace):
            # Pods that run on a worker keep their gates here (rules/06 §4.3): nothing in them says who runs them.
            is_delegated = bool(text_at(workload, "status", "clusterName")) and ref.kind in ("Pod", _GROUP)
            return not is_delegated and integration.is_suspended(job) and self._start(job, workload, controller)
        if not integration.is_suspended(job):
            self._put(stop_job(job, workload, reason=StopReason.NOT_ADMITTED))
            return False
        waits = {"Evicted", "QuotaReserved"} <= holds.keys() and "Finished" not in holds
        return waits and not integration.is_active(job) and controller.stopped(name, namespace=namespace)

    def _named(self, ref: ObjectRef, job: JsonObject) -> list[JsonObject]:
        """The Workload that a job names, or of a group, that has its name: one of its own it would have already."""
        name = prebuilt_workload(job, self._configuration)[0] or ref.name
        found = self._get(ObjectRef("Workload", name, ref.namespace))
        return [] if found is None else [found]

    def _start(self, job: JsonObject, workload: JsonObject, controller: Controller) -> bool:
        flavors = {text_at(it, "metadata", "name"): it for it in self._around("ResourceFlavor")}
        try:
            self._put(start_job(job, workload, flavors=flavors, configuration=self._configuration))
        except StartError as error:
            ref = object_ref(workload)
            return controller.finished(ref.name, namespace=ref.namespace, reason="FailedToStart", message=str(error))
        return False

    def _owned(self, job: JsonObject) -> JsonObject | None:
        """The Workload of a job; None if it has none, or if it has to be asked whether it still fits."""
        if text_at(job, "kind") == _GROUP:
            return None
        uid = text_at(job, "metadata", "uid")
        for workload in self._in_namespace("Workload", text_at(job, "metadata", "namespace")):
            if any(text_at(it, "uid") == uid for it in list_at(workload, "metadata", "ownerReferences")):
                return workload
        return None

    def _step(self, step: WorkloadStep, controller: Controller) -> bool:
        """Carry a step out; was the scheduler told anything?"""
        ref = object_ref(step.workload)
        match step.action:
            case Action.CREATE:
                # Nobody here would take its finalizer off again.
                self._api.create(_without(step.workload, "finalizers"))
            case Action.UPDATE:
                self._api.update(step.workload)
            case Action.UPDATE_STATUS:
                self._api.update(step.workload, subresource="status")
            case Action.DELETE:
                self._api.delete(ref.kind, ref.name, namespace=ref.namespace)
            case Action.FINISH:
                return controller.finished(ref.name, namespace=ref.namespace, reason=step.reason, message=step.message)
        return False

    def _put(self, writes: Iterable[Write]) -> None:
        for write in writes:
            ref = object_ref(write.manifest)
            if write.kind is WriteKind.DELETE:
                self._api.delete(ref.kind, ref.name, namespace=ref.namespace)
                continue
            # Of several writes each builds on the one before.
            subresource = "status" if write.kind is WriteKind.UPDATE_STATUS else ""
            self._api.update(_without(write.manifest, "resourceVersion"), subresource=subresource)

    # What is there.

    def _ref_of(self, job: JsonObject) -> ObjectRef:
        """What is looked at when a job has changed: of a pod in a group, the group."""
        ref = object_ref(job)
        group = group_name(job, self._configuration) if ref.kind == "Pod" else ""
        return ObjectRef(_GROUP, group, ref.namespace) if group else ref

    def _job(self, ref: ObjectRef) -> JsonObject | None:
        if ref.kind != _GROUP:
            return self._get(ref)
        pods = [it for it in self._in_namespace("Pod", ref.namespace) if self._ref_of(it) == ref]
        return pod_group(ref.name, pods) if pods else None

    def _get(self, ref: ObjectRef) -> JsonObject | None:
        return self._api.find(ref.kind, ref.name, namespace=ref.namespace)

    def _in_namespace(self, kind: str, namespace: str) -> list[JsonObject]:
        return [it for it in self._api.list(kind)[0] if text_at(it, "metadata", "namespace") == namespace]

    def _around(self, *kinds: str) -> Iterable[JsonObject]:
        return (it for kind in kinds for it in self._api.list(kind)[0] if kind not in KINDS or is_job(it))


def _integration(job: JsonObject) -> Integration:
    found = integration_of(job)
    assert found is not None, "only jobs are looked at"
    return found


def _without(manifest: JsonObject, key: str) -> JsonObject:
    """An object without one entry of its metadata."""
    return {**manifest, "metadata": {it: value for it, value in object_at(manifest, "metadata").items() if it != key}}
