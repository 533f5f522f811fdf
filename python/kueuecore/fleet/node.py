"""One cluster of a fleet: an API server, Kueue's scheduler, and what it and Kubernetes do about Jobs (rules/10 §4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.checks import ObjectWrite, ObjectWriteKind, WorkloadKey
from kueuecore.controller import Controller, WorkloadWrite
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ManifestError
from kueuecore.fleet.kubernetes import Kubernetes
from kueuecore.fleet.settings import NodeSettings
from kueuecore.jobs import (
    NoWorkload,
    StartError,
    StopReason,
    WriteKind,
    fits_workload,
    start_job,
    stop_job,
    workloads_for,
)
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.model import JobsConfiguration
from kueuecore.jobs.names import owner_reference
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.multikueue.affected import key_of
from kueuecore.provisioning import ProvisioningController
from kueuecore.testing.cluster import Cluster, RefusedError

__all__ = ["Node"]

_QUEUE = "kueue.x-k8s.io/queue-name"
# What decides which Workload a job gets.
_AROUND = ("Namespace", "AdmissionCheck", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "PriorityClass")
_MOST_ROUNDS = 500


class Node:
    """A cluster with Kueue. Inside it everything is seen and done at once.

    Args:
        name: Its name; empty for the manager.
        settings: What makes it another than others.
        now: The time.
    """

    def __init__(self, name: str, *, settings: NodeSettings, now: int) -> None:
        self.name = name
        self.api = Cluster(now=now)
        self.is_down = False
        """Is Kueue on it down? The API server answers, and Jobs that run go on running."""
        self.kubernetes = Kubernetes(self.api, settings)
        """What goes on beside Kueue."""
        self._settings = settings
        self.controller = self._begun()
        """Kueue's scheduler of the process that runs now."""
        self._seen = 0
        self._wake: int | None = now
        # Jobs to look at.
        self._todo: dict[tuple[str, str], None] = {}

    # What anybody may ask of the API server.

    def apply(self, manifest: JsonObject) -> JsonObject:
        """Create an object, or bring it up to date; Kueue's webhook changes Jobs first."""
        kind, metadata = text_at(manifest, "kind"), object_at(manifest, "metadata")
        name, namespace = text_at(metadata, "name"), text_at(metadata, "namespace")
        try:
            self.api.get(kind, name, namespace=namespace)
        except RefusedError:
            return self.create(manifest)
        changed: JsonObject = {key: manifest[key] for key in ("spec", "status") if key in manifest}
        for subresource in ("", "status"):
            self.api.patch(kind, name, changed, namespace=namespace, subresource=subresource)
        return self.api.get(kind, name, namespace=namespace)

    def create(self, manifest: JsonObject) -> JsonObject:
        """Create an object; Kueue's webhook changes Jobs first (rules/10 §2.2).

        Raises:
            RefusedError: There is one of that name (409).
        """
        return self.api.create(self._defaulted(manifest) if text_at(manifest, "kind") == "Job" else manifest)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        return self.api.list(kind)[0]

    def get(self, kind: str, name: str, *, namespace: str = "") -> dict[str, Any] | None:
        """An object; None if there is none."""
        try:
            return self.api.get(kind, name, namespace=namespace)
        except RefusedError:
            return None

    def running(self) -> frozenset[tuple[str, str]]:
        """Namespace and name of the Jobs that have pods here."""
        return self.kubernetes.running()

    # What happens.

    def restart(self) -> None:
        """Another process takes over Kueue: it knows nothing but what it lists."""
        self.is_down = False
        self.controller = self._begun()
        for kind in self.controller.kinds:
            objects, version = self.api.list(kind)
            self.controller.resync(kind, objects, resource_version=version, now=self.api.now)
        self._todo = dict.fromkeys(key_of(job) for job in self.objects("Job"))
        self._seen, self._wake = self.api.version, self.api.now

    def _begun(self) -> Controller:
        asking = [] if self._settings.capacity is None else [ProvisioningController()]
        return Controller(self._settings.configuration, checks=[*asking, *self._settings.checks()])

    def next_wake(self) -> int | None:
        """When something happens by itself: the scheduler has to look, or something goes on beside Kueue."""
        wake = self.kubernetes.next_wake()
        times = [] if wake is None else [wake]
        if self._wake is not None and not self.is_down:
            times.append(self._wake)
        if self.api.version > self._seen and not self.is_down:
            times.append(self.api.now)
        return min(times, default=None)

    def run(self, now: int) -> None:
        """Let everything happen that happens by itself at a time."""
        self.api.now = now
        for _ in range(_MOST_ROUNDS):
            version = self.api.version
            self.kubernetes.run(now)
            if not self.is_down:
                self._observe(now)
                self._follow_jobs(now)
                if self._wake is not None and self._wake <= now:
                    self._turn(now)
            if self.api.version == version and (self.is_down or self._wake is None or self._wake > now):
                return
        raise AssertionError(f"cluster {self.name or 'of the manager'} does not come to rest")

    def _observe(self, now: int) -> None:
        if self._seen == self.api.version:
            return
        has_news = False
        for event in self.api.since(self._seen):
            manifest = event["object"]
            match text_at(manifest, "kind"):
                case "Job":
                    self._todo[key_of(manifest)] = None
                case "Workload":
                    namespace, name = key_of(manifest)
                    owners = list_at(manifest, "metadata", "ownerReferences")
                    self._todo |= {(namespace, text_at(it, "name")): None for it in owners}
                    self._todo |= {key_of(job): None for job in self.objects("Job") if self._prebuilt(job) == name}
            has_news |= self.controller.observe(event, now=now)
        self._seen = self.api.version
        if has_news:
            self._wake = now

    def _turn(self, now: int) -> None:
        turn = self.controller.turn(now)
        for write in turn.writes:
            self._write(write, now)
        self._write_objects(turn.objects, now)
        self._write_queues()
        self._observe(now)
        self._wake = self.controller.next_wake(now)

    def _write_queues(self) -> None:
        """What Kueue tells in the statuses of ClusterQueues: how much of their quota is reserved, and who waits.

        The manager watches those of its workers; its own are read by nobody.
        """
        for queue in self.objects("ClusterQueue") if self.name else ():
            _, name = key_of(queue)
            told = self.controller.engine.cluster_queue(name).status
            status: JsonObject = {key: it for key, it in told.items() if key != "conditions"}
            self.api.patch("ClusterQueue", name, {"status": status}, subresource="status")

    def _write(self, write: WorkloadWrite, now: int) -> None:
        try:
            answer = self.api.patch(
                "Workload", write.name, write.patch, namespace=write.namespace, subresource=write.subresource
            )
        except RefusedError as refused:
            newest = self.get("Workload", write.name, namespace=write.namespace)
            self.controller.refuse(write, newest, gone=refused.code == 404, now=now)
        else:
            self.controller.confirm(write, answer, now=now)

    def _write_objects(self, writes: Iterable[ObjectWrite], now: int) -> None:
        """What those want who decide on AdmissionChecks; after a refusal the rest for that Workload is left out."""
        refused: set[WorkloadKey] = set()
        for write in writes:
            if write.workload in refused:
                continue
            try:
                self._write_object(write)
            except RefusedError as error:
                if write.kind is not ObjectWriteKind.PATCH_STATUS:
                    refused.add(write.workload)
                self.controller.refuse_object(write, str(error), now=now, is_there=error.code == 409)

    def _write_object(self, write: ObjectWrite) -> None:
        ref = write.object
        match write.kind:
            case ObjectWriteKind.CREATE:
                self.api.create(write.manifest)
            case ObjectWriteKind.PATCH_STATUS:
                self.api.update(write.manifest, subresource="status")
            case ObjectWriteKind.DELETE if self.get(ref.kind, ref.name, namespace=ref.namespace) is not None:
                self.api.delete(ref.kind, ref.name, namespace=ref.namespace)

    # What Kueue does about Jobs.

    def _defaulted(self, job: JsonObject) -> JsonObject:
        result = workloads_for([job, *self._around()])
        if result.jobs:
            return result.jobs[0]
        result.raise_for_problems()
        # One with a Workload from elsewhere gets none here, and is held back all the same.
        job = BATCH_JOB.with_defaults(job)
        return BATCH_JOB.suspend(job) if _QUEUE in texts_at(job, "metadata", "labels") else job

    def _around(self) -> Iterable[JsonObject]:
        return (it for kind in _AROUND for it in self.objects(kind))

    def _prebuilt(self, job: JsonObject) -> str:
        return prebuilt_workload(job, JobsConfiguration())[0]

    def _follow_jobs(self, now: int) -> None:
        todo, self._todo = self._todo, {}
        for namespace, name in todo:
            job = self.get("Job", name, namespace=namespace)
            if job is not None and _QUEUE in texts_at(job, "metadata", "labels"):
                self._follow(job, now)

    def _follow(self, job: JsonObject, now: int) -> None:
        """Do for a Job what its Workload says, and tell the scheduler what the Job has done."""
        namespace, _ = key_of(job)
        workload = self._workload_of(job)
        if workload is None:
            return
        name = key_of(workload)[1]
        if self.controller.workload(name, namespace=namespace) is None:
            # It has just been made.
            self._todo[key_of(job)] = None
            self._observe(now)
        holds, finished = conditions_that_hold(workload), BATCH_JOB.finished(job)
        if finished is not None:
            if "Finished" not in holds:
                self._tell(self.controller.finished, name, namespace, now, finished.reason, finished.message)
        elif "Finished" in holds:
            self._put(stop_job(job, workload, reason=StopReason.NOT_ADMITTED))
        elif self.controller.may_run(name, namespace=namespace):
            self._start(job, workload, now)
        elif not BATCH_JOB.is_suspended(job):
            self._put(stop_job(job, workload, reason=StopReason.NOT_ADMITTED))
        elif {"Evicted", "QuotaReserved"} <= holds.keys() and not BATCH_JOB.is_active(job):
            self.controller.stopped(name, namespace=namespace)
            self._wake = now

    def _tell(self, tell: Any, name: str, namespace: str, now: int, reason: str, message: str) -> None:
        tell(name, namespace=namespace, reason=reason, message=message)
        self._wake = now

    def _workload_of(self, job: JsonObject) -> JsonObject | None:
        """The Workload of a Job: the one that it names, or its own, which is made if it is not there."""
        namespace, _ = key_of(job)
        prebuilt = self._prebuilt(job)
        if prebuilt:
            workload = self.get("Workload", prebuilt, namespace=namespace)
            return None if workload is None else self._adopted(job, workload)
        for workload in self.objects("Workload"):
            uids = [text_at(it, "uid") for it in list_at(workload, "metadata", "ownerReferences")]
            if key_of(workload)[0] == namespace and text_at(job, "metadata", "uid") in uids:
                return workload
        if BATCH_JOB.finished(job) is None:
            for manifest in workloads_for([job, *self._around()]).workloads:
                made = dict(manifest.object)
                # Nobody here would take its finalizer off again.
                made["metadata"] = {key: it for key, it in object_at(made, "metadata").items() if key != "finalizers"}
                return self.api.create(made)
        return None

    def _adopted(self, job: JsonObject, workload: JsonObject) -> JsonObject | None:
        """A Workload that was there before, which the Job owns from now on; None if the two do not fit."""
        namespace, name = key_of(workload)
        if not list_at(workload, "metadata", "ownerReferences"):
            owner = owner_reference(job, controller=True)
            patch: JsonObject = {"metadata": {"ownerReferences": [owner]}}
            workload = self.api.patch("Workload", name, patch, namespace=namespace)
        if "Finished" in conditions_that_hold(workload):
            return workload
        flavors = {key_of(it)[1]: it for it in self.objects("ResourceFlavor")}
        try:
            fits = fits_workload(job, workload, flavors=flavors)
        except (ManifestError, NoWorkload):
            fits = False
        if not fits:
            message = "The prebuilt workload is out of sync with its user job"
            self._tell(self.controller.finished, name, namespace, self.api.now, "OutOfSync", message)
            return None
        return workload

    def _start(self, job: JsonObject, workload: JsonObject, now: int) -> None:
        if not BATCH_JOB.is_suspended(job):
            return
        flavors = {key_of(it)[1]: it for it in self.objects("ResourceFlavor")}
        try:
            self._put(start_job(job, workload, flavors=flavors))
        except StartError as error:
            namespace, name = key_of(workload)
            self._tell(self.controller.finished, name, namespace, now, "FailedToStart", str(error))

    def _put(self, writes: Iterable[Any]) -> None:
        for write in writes:
            subresource = "status" if write.kind is WriteKind.UPDATE_STATUS else ""
            metadata = {key: it for key, it in write.manifest["metadata"].items() if key != "resourceVersion"}
            self.api.update({**write.manifest, "metadata": metadata}, subresource=subresource)
