"""Lists what decisions depend on, once, with as few rights as possible: only reads, of the kinds that exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._kinds import KINDS, Kind, Watched
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.watches import list_all

__all__ = ["EVENT", "Listed", "Listing", "Unlisted", "known_kinds", "kueue_objects", "list_objects", "naming"]

_EVENTS = Kind("Event", "v1", "events", is_namespaced=True)
EVENT: Mapping[str, tuple[str, str]] = {_EVENTS.name: (_EVENTS.api_version, _EVENTS.plural)}
"""Events, which no decision depends on: add this to `Api.kinds` to list them too."""
_N_THREADS = 4
# Versions to read if a cluster does not serve the newest yet, newest first.
_OLDER = ("v1beta2", "v1beta1", "v1alpha1")
_ABSENT = 404
_FORBIDDEN = 403
_NAMESPACE = "kueue-system"
_DEPLOYMENT = "kueue-controller-manager"
_OF_KUEUE = "app.kubernetes.io/name=kueue"
# What an answer leaves out if a kind may not be read.
_WITHOUT: Mapping[str, str] = {
    "Namespace": "the labels that namespaceSelectors ask for",
    "LimitRange": "the defaults and limits of LimitRanges",
    "RuntimeClass": "the overhead of RuntimeClasses",
    "ResourceClaimTemplate": "the devices that pods claim",
    "DeviceClass": "the devices that pods claim",
    "ResourceFlavor": "all flavors, so nothing fits",
    "Topology": "all topologies",
    "Node": "the capacity of nodes",
    "AdmissionCheck": "all admission checks, so queues that name one are inactive",
    "ProvisioningRequestConfig": "the configurations of admission checks",
    "MultiKueueConfig": "the configurations of admission checks",
    "MultiKueueCluster": "the workers of MultiKueue",
    "PreemptionConfig": "PreemptionConfigs",
    "WorkloadPriorityClass": "the values of priority classes",
    "PriorityClass": "the values of priority classes",
    "Cohort": "the quota and limits of Cohorts",
    "ClusterQueue": "all quota",
    "LocalQueue": "which queue leads to which ClusterQueue",
    "Workload": "all workloads: what uses quota, and what waits",
    "Pod": "what other pods use on nodes",
    "Event": "what happened",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """The objects of a kind.

    Args:
        kind: The kind.
        objects: They.
        version: `resourceVersion` of the list; empty: it cannot be watched from there.
    """

    kind: str
    objects: tuple[JsonObject, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A kind that may not be listed in all namespaces.

    Args:
        kind: The kind.
        resource: Its plural and group, as `kubectl auth can-i list` takes them.
        namespace: The namespace of which it is known nevertheless; empty: none.
    """

    kind: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        but = f", except in namespace {self.namespace}" if self.namespace else ""
        verbs = "needs the verbs get, list and watch"
        return f"you may not list {self.resource} ({verbs}), so the answer leaves out {_WITHOUT[self.kind]}{but}"


@dataclass(frozen=True, slots=True)
class Listing:
    """What was read from a cluster.

    Args:
        kinds: The objects of each kind, in an order in which they can be applied.
        kueue: Kueue's Deployment and ConfigMap, or what stands for them.
        unlisted: The kinds that may not be listed, or only in one namespace.
    """

    kinds: Mapping[str, Listed]
    kueue: tuple[JsonObject, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()

    @property
    def objects(self) -> Iterator[JsonObject]:
        """All objects."""
        yield from self.kueue
        for listed in self.kinds.values():
            yield from listed.objects


def known_kinds(api: Api) -> dict[str, tuple[str, str]]:
    """Return the kinds of `KINDS` whose group and version a cluster serves: their apiVersion and plural.

    Raises:
        RefusedError: The server refuses to say.
        UnansweredError: The server does not answer.
    """
    served = {
        text_at(version, "groupVersion")
        for group in list_at(api.get("/apis"), "groups")
        for version in list_at(group, "versions")
    } | {"v1"}
    found: dict[str, tuple[str, str]] = {}
    for kind in KINDS:
        group, _, newest = kind.api_version.rpartition("/")
        versions = [kind.api_version, *(f"{group}/{older}" for older in _OLDER if group and older != newest)]
        version = next((version for version in versions if version in served), "")
        if version:
            found[kind.name] = version, kind.plural
    return found


def list_objects(api: Api, kinds: Iterable[str], namespace: str = "") -> Listing:
    """List kinds, several at a time; if that is forbidden, only in one namespace.

    Nodes and Pods are listed only if a flavor names a topology: nothing else asks for them.

    Args:
        api: The server; `api.kinds` has the kinds.
        kinds: The kinds.
        namespace: Where to list if all namespaces are forbidden; empty: nowhere.

    Raises:
        UnansweredError: The server does not answer.
        RefusedError: It refuses everything, such as for want of valid credentials.
    """
    asked = {*kinds}
    wanted = [kind for kind in (*KINDS, _EVENTS) if kind.name in asked and kind.name in api.kinds]
    of_nodes = [kind for kind in wanted if kind.watched is Watched.WITH_NODES and kind.name != "Topology"]
    first = [kind for kind in wanted if kind not in of_nodes]
    with ThreadPoolExecutor(_N_THREADS) as pool:
        # The largest first.
        kueue = pool.submit(kueue_objects, api)
        order = sorted(first, key=lambda kind: kind.name != "Workload")
        tried = list(pool.map(lambda kind: _list(api, kind, namespace), order))
        if any(_names_topology(listed) for listed, _ in tried):
            tried += pool.map(lambda kind: _list(api, kind, namespace), of_nodes)
        found = {listed.kind: listed for listed, _ in tried if listed is not None}
        ordered = {kind.name: found[kind.name] for kind in wanted if kind.name in found}
        return Listing(ordered, kueue.result(), tuple(unlisted for _, unlisted in tried if unlisted is not None))


def naming(error: RefusedError, what: str) -> RefusedError:
    """Return a refusal whose message names what was asked for, as that of an overloaded server does not."""
    if what in str(error):
        return error
    return RefusedError(error.code, f"{what}: {error}", reason=error.reason, details=error.details)


def kueue_objects(api: Api) -> tuple[JsonObject, ...]:
    """Return Kueue's Deployment, the ConfigMaps that it mounts, and OpenShift's Kueue; those that may be read."""
    found: list[JsonObject] = []
    deployment = _read(api, f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments/{_DEPLOYMENT}", "apps/v1", "Deployment")
    if deployment is None:
        others = _read(api, "/apis/apps/v1/deployments", query={"labelSelector": _OF_KUEUE})
        managers = [object_at(item) for item in list_at(others, "items")]
        deployment = next((item for item in managers if "manager" in text_at(item, "metadata", "name")), None)
    if deployment:
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment}
        found.append(deployment)
        namespace = text_at(deployment, "metadata", "namespace")
        for volume in list_at(deployment, "spec", "template", "spec", "volumes"):
            if name := text_at(volume, "configMap", "name"):
                path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
                found += filter(None, [_read(api, path, "v1", "ConfigMap")])
    openshift = _read(api, "/apis/kueue.openshift.io/v1/kueues/cluster", "kueue.openshift.io/v1", "Kueue")
    return (*found, *filter(None, [openshift]))


def _read(
    api: Api, path: str, api_version: str = "", kind: str = "", *, query: Mapping[str, str] | None = None
) -> JsonObject | None:
    """Return an object, with its type if given; None if it is missing or may not be read."""
    try:
        found = api.get(path, query)
    except RefusedError as error:
        # Anything else would give an answer for another release or Configuration.
        if error.code not in (_ABSENT, _FORBIDDEN):
            raise naming(error, path) from None
        return None
    return {"apiVersion": api_version, "kind": kind, **found} if kind else found


def _list(api: Api, kind: Kind, namespace: str) -> tuple[Listed | None, Unlisted | None]:
    """List a kind; neither, if the cluster does not have it."""
    group = api.kinds[kind.name][0].rpartition("/")[0]
    resource = f"{kind.plural}.{group}" if group else kind.plural
    try:
        return _listed(api, kind.name), None
    except RefusedError as error:
        if error.code == _ABSENT:
            return None, None
        if error.code != _FORBIDDEN:
            raise naming(error, resource) from None
    listed = None
    if namespace and (kind.is_namespaced or kind.name == "Namespace"):
        with suppress(RefusedError):
            listed = _of_namespace(api, kind, namespace)
    return listed, Unlisted(kind.name, resource, namespace if listed else "")


def _of_namespace(api: Api, kind: Kind, namespace: str) -> Listed:
    if kind.is_namespaced:
        return _listed(api, kind.name, namespace)
    found = api.get(api.path(kind.name, name=namespace))
    return Listed(kind.name, ({"apiVersion": "v1", "kind": kind.name, **found},), "")


def _listed(api: Api, kind: str, namespace: str = "") -> Listed:
    api_version = api.kinds[kind][0]
    objects, version = list_all(api, kind, namespace=namespace)
    # Lists of built-in kinds omit both.
    whole = tuple(entry if "kind" in entry else {"apiVersion": api_version, "kind": kind, **entry} for entry in objects)
    return Listed(kind, whole, version)


def _names_topology(listed: Listed | None) -> bool:
    if listed is None or listed.kind != "ResourceFlavor":
        return False
    return any(object_at(flavor, "spec").get("topologyName") for flavor in listed.objects)
