"""The parts of a cluster beside Kueue: pods run, capacity is provisioned, and objects without owners are deleted."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import ApiServer
from kueuecore.errors import ObjectRef
from kueuecore.fleet.lost_pods import LostPods
from kueuecore.fleet.node_settings import NodeSettings
from kueuecore.fleet.pods import KINDS, Pods, ends_failed, is_job, run_ns, runs_here, status_with
from kueuecore.jobs.batch_job import is_stopping
from kueuecore.manifests import object_ref
from kueuecore.provisioning import Autoscaler
from kueuecore.times import SECOND_NS

__all__ = ["Kubernetes"]

_TEMPLATE = "PodTemplate"
_OWNED = ("Workload", "ProvisioningRequest", _TEMPLATE)


class Kubernetes:
    """The controllers of one cluster other than Kueue. They keep running while Kueue is down.

    Args:
        api: The API server.
        settings: What the cluster has.
    """

    def __init__(self, api: ApiServer, settings: NodeSettings) -> None:
        self.autoscaler = None if settings.capacity is None else Autoscaler(settings.capacity)
        """The autoscaler that handles ProvisioningRequests, if there is one."""
        self._api = api
        self._starts_pods = settings.starts_pods
        self._seen = api.version
        # The UIDs of the jobs that have pods, with the time when these end.
        self._pods: dict[ObjectRef, str] = {}
        self._ends: dict[ObjectRef, int] = {}
        self._lost_pods = LostPods()

    def running(self) -> frozenset[ObjectRef]:
        """The jobs that have pods here."""
        return frozenset(self._pods)

    def next_wake(self) -> int | None:
        """Return when something next happens by itself."""
        times = [*self._ends.values(), None if self.autoscaler is None else self.autoscaler.next_wake()]
        times.append(self._api.now if self._api.version > self._seen else None)
        return min((time for time in times if time is not None), default=None)

    def run(self, now: int) -> None:
        """Do what is due at a time; consequences follow in the next run."""
        events, self._seen = self._api.since(self._seen), self._api.version
        changed: dict[ObjectRef, None] = {}
        concerned: set[str] = set()
        for event in events:
            self._observe(event["type"], event["object"], now)
            concerned |= self._lost_pods.observe(event["type"], event["object"])
            if is_job(event["object"]):
                changed[object_ref(event["object"])] = None
        changed |= {ref: None for ref, uid in self._pods.items() if uid in concerned}
        changed |= {ref: None for ref, end in self._ends.items() if end <= now}
        for ref in changed:
            self._run_job(ref, now)
        for request in () if self.autoscaler is None else self.autoscaler.due(now):
            self._put(self._get(object_ref(request)), object_at(request, "status"))
        for write in () if self.autoscaler is None else self.autoscaler.take_writes():
            # Others may have created or deleted the node of provisioned capacity meanwhile.
            self._api.carry_out(write)

    # Jobs.

    def _run_job(self, ref: ObjectRef, now: int) -> None:
        job = self._get(ref)
        integration = KINDS[ref.kind]
        if job is None or not runs_here(job) or integration.finished(job) is not None:
            self._stop(ref)
        elif integration.is_suspended(job) or is_stopping(job):
            self._stop(ref)
            self._put(job, status_with(job, Pods.NONE, now))
        else:
            self._put(job, status_with(job, self._pods_of(ref, job, now), now))

    def _pods_of(self, ref: ObjectRef, job: JsonObject, now: int) -> Pods:
        """Return the state of the pods of a job that may run."""
        uid = text_at(job, "metadata", "uid")
        if self._pods.get(ref) != uid:
            self._stop(ref)
            self._pods[ref] = uid
            lasts = run_ns(job) if self._starts_pods else None
            if lasts is not None:
                # Times in Kubernetes are whole seconds.
                self._ends[ref] = now // SECOND_NS * SECOND_NS + lasts
        if self._ends.get(ref, now + 1) <= now:
            del self._ends[ref]
            return Pods.FAILED if ends_failed(job) else Pods.ENDED
        return Pods.READY if self._starts_pods and not self._lost_pods.misses(uid) else Pods.STARTING

    def _stop(self, ref: ObjectRef) -> None:
        self._pods.pop(ref, None)
        self._ends.pop(ref, None)

    # Reactions to changes: provisioning and garbage collection.

    def _observe(self, happened: str, manifest: JsonObject, now: int) -> None:
        if happened == "DELETED":
            self._collect(text_at(manifest, "metadata", "uid"))
        if self.autoscaler is None:
            return
        ref = object_ref(manifest)
        match ref.kind, happened:
            case "Workload", "DELETED":
                self.autoscaler.forget_workload((ref.namespace, ref.name), now=now)
            case "Workload", _:
                self.autoscaler.note_workload(manifest)
            case "ProvisioningRequest", "DELETED":
                self.autoscaler.delete(ref, now=now)
            case "ProvisioningRequest", "ADDED":
                self._order(self.autoscaler, ref, now)

    def _order(self, autoscaler: Autoscaler, ref: ObjectRef, now: int) -> None:
        """Handle a new request, unless its templates are missing: Kueue creates them first and deletes them last."""
        request, templates = self._get(ref), dict[str, JsonObject]()
        for pods in list_at(request, "spec", "podSets"):
            name = text_at(pods, "podTemplateRef", "name")
            template = self._get(ObjectRef(_TEMPLATE, name, ref.namespace))
            if template is None:
                return
            templates[name] = template
        if request is not None:
            self._put(request, object_at(autoscaler.create(request, templates, now=now), "status"))

    def _collect(self, uid: str) -> None:
        """Delete what a deleted object owned, unless it has another owner, too."""
        for kind in _OWNED:
            for manifest in self._objects(kind):
                owners = [object_at(reference) for reference in list_at(manifest, "metadata", "ownerReferences")]
                ref, was_owner = object_ref(manifest), any(text_at(owner, "uid") == uid for owner in owners)
                if was_owner and not any(self._is_there(owner, ref.namespace) for owner in owners):
                    self._api.delete(kind, ref.name, namespace=ref.namespace)

    def _is_there(self, owner: JsonObject, namespace: str) -> bool:
        found = self._get(ObjectRef(text_at(owner, "kind"), text_at(owner, "name"), namespace))
        return text_at(found, "metadata", "uid") == text_at(owner, "uid")

    def _objects(self, kind: str) -> list[JsonObject]:
        return self._api.list(kind)[0]

    def _get(self, ref: ObjectRef) -> JsonObject | None:
        return self._api.find(ref.kind, ref.name, namespace=ref.namespace)

    def _put(self, manifest: JsonObject | None, status: JsonObject) -> None:
        """Replace the whole status, as an update of the subresource does."""
        if manifest is not None and status != object_at(manifest, "status"):
            self._api.update({**manifest, "status": status}, subresource="status")
