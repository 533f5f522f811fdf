"""What the parts of the server share: the objects, the kinds, the clock, and the form of objects on the wire."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Protocol, TypeAlias

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import ApiServer, Webhooks
from kueuecore.times import format_time
from kueuecore_apiserver.access import AccessRules
from kueuecore_apiserver.refusals import not_found
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import CRD_GROUP, Registry, Resource

__all__ = ["Schema", "Schemas", "Store", "as_version", "encoded"]

# Without letters that could form words, as in Kubernetes.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
# The kinds that the webhooks of jobs read.
_AROUND_JOBS = (
    "Namespace",
    "LocalQueue",
    "ClusterQueue",
    "AdmissionCheck",
    "WorkloadPriorityClass",
    "TrainingRuntime",
    "ClusterTrainingRuntime",
)
_CRD = "CustomResourceDefinition"


class Schema(Protocol):
    """The schema of a kind in one version."""

    def stored(self, new: JsonObject, old: JsonObject | None = None, *, subresource: str = "") -> JsonObject:
        """Return an object pruned, with defaults, and checked.

        Args:
            new: The object.
            old: The previous object, for an update.
            subresource: `status` for an update of the status.

        Raises:
            RefusedError: It does not match the schema (422).
        """


Schemas: TypeAlias = Callable[[JsonObject, str], Schema]
"""Returns the schema of a CustomResourceDefinition in a version."""


def encoded(value: object) -> bytes:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


class Store:
    """The objects of the server, its kinds, and what both need.

    Args:
        api: The objects.
        clock: Returns the time in nanoseconds since 1970, which the in-memory server then follows. By default, the
            clock of that server is used.
        seed: The seed of UIDs and of the ends of generated names.
        schemas: The schemas of CustomResourceDefinitions; without them, objects are stored unchecked.
        webhooks: Called for each object before it is stored.
    """

    def __init__(
        self,
        api: ApiServer,
        *,
        clock: Callable[[], int] | None,
        seed: int,
        schemas: Schemas | None,
        webhooks: Webhooks | None,
    ) -> None:
        self.api, self.registry, self.random, self._seed = api, Registry(), Random(seed), seed
        self._clock, self._schemas, self.webhooks = clock, schemas, webhooks
        self.access: AccessRules | None = None
        self._n_named: dict[tuple[str, str, str], int] = {}
        self._schema_of: dict[tuple[str, str], Schema] = {}
        self._encoded: dict[str, dict[tuple[str, str], tuple[Object, bytes]]] = {}
        api.new_uid = self._new_uid
        api.listeners.append(self._heard)
        for crd in api.list(_CRD)[0]:
            self.registry.add(crd)

    def tick(self) -> None:
        """Take the time from the clock."""
        if self._clock is not None:
            self.api.now = max(self.api.now, self._clock())

    @property
    def time(self) -> str:
        """Return the time in whole seconds, as in objects."""
        return format_time(self.api.now // 10**9 * 10**9)

    def next_uid(self, kind: str, namespace: str, name: str) -> str:
        """Return the UID of the next object of a name, which follows from the name and from how many had it before."""
        key = kind, namespace, name
        return str(uuid.UUID(int=Random(f"{self._seed} {key} {self._n_named.get(key, 0)}").getrandbits(128), version=4))

    def _new_uid(self, kind: str, namespace: str, name: str) -> str:
        uid, key = self.next_uid(kind, namespace, name), (kind, namespace, name)
        self._n_named[key] = self._n_named.get(key, 0) + 1
        return uid

    def new_suffix(self) -> str:
        """Draw the end of a generated name."""
        return "".join(self.random.choice(_SUFFIX_LETTERS) for _ in range(5))

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return a stored object, if it exists."""
        return self.api.find(resource.stored_as, name, namespace=namespace if resource.namespaced else "")

    def get(self, resource: Resource, request: Request) -> Object:
        """Return the stored object that a request is about.

        Raises:
            RefusedError: It does not exist (404).
        """
        found = self.find(resource, request.namespace, request.name)
        if found is None:
            raise not_found(resource.group, resource.plural, request.name)
        return found

    def objects(self, resource: Resource, namespace: str) -> list[Object]:
        """Return the objects of a kind, in one namespace or in all, ordered by namespace and name."""
        found, _ = self.api.list(resource.stored_as)
        if namespace and resource.namespaced:
            return [error for error in found if error["metadata"].get("namespace") == namespace]
        return found

    def schema(self, resource: Resource) -> Schema | None:
        """Return the schema of a kind in its storage version, if the server checks schemas."""
        if self._schemas is None or resource.crd is None:
            return None
        key = resource.crd["metadata"]["uid"] + resource.crd["metadata"]["resourceVersion"], resource.storage_version
        found = self._schema_of.get(key)
        if found is None:
            found = self._schema_of[key] = self._schemas(resource.crd, resource.storage_version)
        return found

    def around(self, manifest: Object) -> Iterator[Object]:
        """Yield the objects that webhooks read in addition to a job."""
        kinds: Iterable[str] = _AROUND_JOBS
        if manifest["kind"] == "StatefulSet":
            kinds = (*kinds, "Workload")
        for kind in kinds:
            yield from self.api.list(kind)[0]
        namespace = text_at(manifest, "metadata", "namespace")
        seen = set()
        waiting = [manifest]
        while waiting:
            for ref in map(object_at, list_at(waiting.pop(), "metadata", "ownerReferences")):
                owner = self._owner(ref, namespace)
                if owner is not None and owner["metadata"]["uid"] not in seen:
                    seen.add(owner["metadata"]["uid"])
                    waiting.append(owner)
                    yield owner

    def _owner(self, ref: Mapping[str, object], namespace: str) -> Object | None:
        resource = self.registry.of_kind(str(ref.get("apiVersion")), str(ref.get("kind")))
        return self.find(resource, namespace, str(ref.get("name"))) if resource is not None else None

    def encoded(self, resource: Resource, manifest: Object) -> bytes:
        """Return an object as it is sent, encoded once while it does not change."""
        metadata = manifest["metadata"]
        if resource.version != resource.storage_version:
            return encoded({**manifest, "apiVersion": resource.api_version})
        of_kind = self._encoded.setdefault(resource.stored_as, {})
        key = metadata.get("namespace", ""), metadata["name"]
        cached = of_kind.get(key)
        if cached is not None and cached[0] is manifest:
            return cached[1]
        text = encoded(manifest)
        of_kind[key] = manifest, text
        return text

    def _heard(self, kind: str, event: Object, before: Object | None) -> None:
        manifest = event["object"]
        if event["type"] == "DELETED":
            metadata = manifest["metadata"]
            self._encoded.get(kind, {}).pop((metadata.get("namespace", ""), metadata["name"]), None)
        if kind == _CRD and text_at(manifest, "apiVersion").startswith(CRD_GROUP):
            if event["type"] == "DELETED":
                self.registry.remove(manifest)
            elif before is None or before.get("spec") != manifest.get("spec"):
                self.registry.add(manifest)


def as_version(manifest: Object, resource: Resource) -> Object:
    """Return a stored object in the version of a request.

    Versions of a kind differ only in name: real conversion needs a webhook, which this server does not have.
    """
    if manifest.get("apiVersion") == resource.api_version:
        return manifest
    return {**manifest, "apiVersion": resource.api_version}
