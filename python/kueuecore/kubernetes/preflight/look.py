"""Reads what a preflight needs to know of a cluster, once, and remembers what may not be read."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import quote

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.cluster_objects import kueue_objects
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.watches import list_all

__all__ = ["ADMISSION", "Look", "items_of"]

ADMISSION = "admissionregistration.k8s.io/v1"
_KINDS = {
    "ValidatingWebhookConfiguration": (ADMISSION, "validatingwebhookconfigurations"),
    "MutatingWebhookConfiguration": (ADMISSION, "mutatingwebhookconfigurations"),
    "MutatingAdmissionPolicy": (ADMISSION, "mutatingadmissionpolicies"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "APIService": ("apiregistration.k8s.io/v1", "apiservices"),
}
_SLICES = ("discovery.k8s.io/v1", "endpointslices")


class Look:
    """One look at a cluster.

    Args:
        api: The API server; the kinds that are listed here are added to its `kinds`.

    Attributes:
        unread: What may not be read, by resource: the refusal.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        api.kinds |= {**_KINDS, "EndpointSlice": _SLICES}
        self.unread: dict[str, str] = {}
        self._listed: dict[str, tuple[JsonObject, ...]] = {}
        self._served: dict[str, frozenset[str]] = {}
        self._ready: dict[tuple[str, str], bool] = {}

    @cached_property
    def version(self) -> str:
        """The version of the API server, such as `v1.36.3`."""
        return text_at(self.api.get("/version"), "gitVersion")

    def serves(self, api_version: str, plural: str) -> bool:
        """Return whether the cluster serves a kind."""
        if api_version not in self._served:
            path = f"/{'apis' if '/' in api_version else 'api'}/{api_version}"
            found = self._get(path)
            names = (text_at(object_at(row), "name") for row in list_at(found, "resources"))
            self._served[api_version] = frozenset(names)
        return plural in self._served[api_version]

    def versions(self, group: str) -> tuple[str, ...]:
        """Return the versions of a group that the cluster serves, the preferred one first."""
        found = self._get(f"/apis/{group}")
        return tuple(text_at(object_at(row), "version") for row in list_at(found, "versions"))

    def all(self, kind: str) -> tuple[JsonObject, ...]:
        """Return all objects of a kind; none if it may not be listed, which is remembered."""
        if kind not in self._listed:
            api_version, plural = self.api.kinds[kind]
            self._listed[kind] = ()
            if self.serves(api_version, plural):
                group = api_version.rpartition("/")[0]
                self._listed[kind] = self._all(kind, f"{plural}.{group}" if group else plural)
        return self._listed[kind]

    def _all(self, kind: str, resource: str) -> tuple[JsonObject, ...]:
        try:
            return tuple(list_all(self.api, kind)[0])
        except RefusedError as error:
            if error.code != 403:
                raise
            self.unread[resource] = str(error)
            return ()

    def is_ready(self, namespace: str, service: str) -> bool | None:
        """Return whether a Service has a pod behind it that answers; `None` if that may not be read."""
        key = namespace, service
        if key not in self._ready:
            try:
                path = self.api.path("EndpointSlice", namespace)
                slices = self.api.get(path, {"labelSelector": f"kubernetes.io/service-name={service}"})
            except RefusedError as error:
                if error.code != 403:
                    raise
                self.unread["endpointslices.discovery.k8s.io"] = str(error)
                return None
            endpoints = [object_at(row) for part in items_of(slices) for row in list_at(part, "endpoints")]
            self._ready[key] = any(object_at(row, "conditions").get("ready") is not False for row in endpoints)
        return self._ready[key]

    @cached_property
    def kueue(self) -> tuple[JsonObject, ...]:
        """Kueue's Deployment, with what shows its release; empty if there is none or it may not be read."""
        return kueue_objects(self.api)

    def lease(self, settings: LeaseSettings) -> JsonObject:
        """Return the Lease of the election; empty if there is none yet or it may not be read."""
        names = (quote(name, safe="") for name in (settings.namespace, settings.name))
        namespace, name = names
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        return self._get(path, unread=f"leases.coordination.k8s.io in {settings.namespace}")

    def _get(self, path: str, *, unread: str = "") -> JsonObject:
        """Return an object; empty if it is missing or, if `unread` names it, may not be read."""
        try:
            return self.api.get(path)
        except RefusedError as error:
            if error.code == 403 and unread:
                self.unread[unread] = str(error)
            elif error.code != 404:
                raise
            return {}


def items_of(listed: JsonObject) -> list[JsonObject]:
    """Return the items of a list."""
    return [object_at(row) for row in list_at(listed, "items")]
