"""What goes on in a cluster beside Kueue: pods run, capacity is made, and what nobody owns any more goes."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ObjectRef
from kueuecore.fleet.runner import ends_at, is_running, next_status
from kueuecore.fleet.settings import NodeSettings
from kueuecore.manifests import object_ref
from kueuecore.multikueue.affected import key_of
from kueuecore.provisioning import Autoscaler
from kueuecore.testing.cluster import Cluster, RefusedError

__all__ = ["Kubernetes"]

_REQUEST, _TEMPLATE = "ProvisioningRequest", "PodTemplate"
_OWNED = ("Workload", _REQUEST, _TEMPLATE)


class Kubernetes:
    """The controllers of one cluster that are not Kueue's. They go on while Kueue is down.

    Args:
        api: The API server.
        settings: What the cluster has.
    """

    def __init__(self, api: Cluster, settings: NodeSettings) -> None:
        self.autoscaler = None if settings.capacity is None else Autoscaler(settings.capacity)
        """Who looks after ProvisioningRequests, if anybody does."""
        self._api = api
        self._starts_pods = settings.starts_pods
        self._seen = api.version
        # For a version of the API server, what `_pods` found.
        self._pods_of: tuple[int, frozenset[tuple[str, str]], int | None] = (-1, frozenset(), None)

    def running(self) -> frozenset[tuple[str, str]]:
        """Namespace and name of the Jobs that have pods here."""
        return self._pods()[0]

    def next_wake(self) -> int | None:
        """When something happens by itself."""
        times = [self._pods()[1], None if self.autoscaler is None else self.autoscaler.next_wake()]
        times.append(self._api.now if self._api.version > self._seen else None)
        return min((time for time in times if time is not None), default=None)

    def run(self, now: int) -> None:
        """Let happen what happens at a time; what follows from that, the next time."""
        events, self._seen = self._api.since(self._seen), self._api.version
        for event in events:
            self._observe(event["type"], event["object"], now)
        for job in self._objects("Job"):
            self._put(job, next_status(job, now, starts_pods=self._starts_pods))
        for request in () if self.autoscaler is None else self.autoscaler.due(now):
            self._put(self._get(object_ref(request)), object_at(request, "status"))

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
        """A request has come. Kueue makes its templates first, and deletes them last."""
        request = self._get(ref)
        if request is not None:
            templates = {name: it for it in self._objects(_TEMPLATE) if (name := key_of(it)[1]) and _is_in(it, ref)}
            self._put(request, object_at(autoscaler.create(request, templates, now=now), "status"))

    def _collect(self, uid: str) -> None:
        """Delete what an object owned that has gone, unless somebody else owns it, too."""
        for kind in _OWNED:
            for manifest in self._objects(kind):
                owners = [object_at(it) for it in list_at(manifest, "metadata", "ownerReferences")]
                namespace, name = key_of(manifest)
                if any(text_at(it, "uid") == uid for it in owners) and not any(
                    self._is_there(it, namespace) for it in owners
                ):
                    self._api.delete(kind, name, namespace=namespace)

    def _is_there(self, owner: JsonObject, namespace: str) -> bool:
        found = self._get(ObjectRef(text_at(owner, "kind"), text_at(owner, "name"), namespace))
        return text_at(found, "metadata", "uid") == text_at(owner, "uid")

    def _pods(self) -> tuple[frozenset[tuple[str, str]], int | None]:
        """Which Jobs have pods here, and when the first of them end."""
        version, running, end = self._pods_of
        if version != self._api.version:
            jobs = [job for job in self._objects("Job") if is_running(job)]
            running = frozenset(key_of(job) for job in jobs)
            end = min((it for job in jobs if (it := ends_at(job)) is not None), default=None)
            self._pods_of = self._api.version, running, end
        return running, end

    def _objects(self, kind: str) -> list[JsonObject]:
        return self._api.list(kind)[0]

    def _get(self, ref: ObjectRef) -> JsonObject | None:
        try:
            return self._api.get(ref.kind, ref.name, namespace=ref.namespace)
        except RefusedError:
            return None

    def _put(self, manifest: JsonObject | None, status: JsonObject) -> None:
        """Write the status as a whole, as an update of the subresource writes it."""
        if manifest is not None and status != object_at(manifest, "status"):
            self._api.update({**manifest, "status": status}, subresource="status")


def _is_in(manifest: JsonObject, ref: ObjectRef) -> bool:
    return text_at(manifest, "metadata", "namespace") == ref.namespace
