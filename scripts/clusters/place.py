"""What both clusters have in common: how to reach them, and how to disturb them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import yaml

from kueuecore._json import text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, UnansweredError

__all__ = ["KINDS", "KUEUE", "ROOT", "Cluster", "create", "deployed_roles", "patient", "wait_for"]

Object: TypeAlias = dict[str, Any]

ROOT = Path(__file__).parents[2]
KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS = {
    "ClusterQueue": (KUEUE, "clusterqueues"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Cohort": (KUEUE, "cohorts"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Event": ("v1", "events"),
    "Job": ("batch/v1", "jobs"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "LocalQueue": (KUEUE, "localqueues"),
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
    "ResourceFlavor": (KUEUE, "resourceflavors"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Topology": (KUEUE, "topologies"),
    "Workload": (KUEUE, "workloads"),
    "WorkloadPriorityClass": (KUEUE, "workloadpriorityclasses"),
}


class Cluster(Protocol):
    """A cluster with Kueue's kinds and the roles of deploy/kueuecore.yaml."""

    name: str
    """`real` or `own`."""
    has_controllers: bool
    """Whether it has the controllers of Jobs and of garbage; otherwise `scripts.clusters.life` plays the first."""
    serve_kubeconfig: Path
    """How `kueuecore serve` reaches it: as the ServiceAccount of deploy/kueuecore.yaml."""
    admin_kubeconfig: Path
    """How everybody else reaches it."""

    restarts: list[float]
    """When the API server was started again, by `time.time`."""

    def api(self) -> Api:
        """Return a client that may do anything."""

    def history(self, kind: str) -> Iterator[tuple[int, Object, bool]] | None:
        """Return objects of a kind and all their changes, where watches, which may miss some, are not needed."""

    def restart(self, *, seconds: float) -> None:
        """Kill the API server, and start it again after a while, with the same objects and address."""

    def stall(self, *, seconds: float) -> None:
        """Let the storage behind the API server answer nothing for a while."""


def deployed_roles() -> list[Object]:
    """Return the ServiceAccount of deploy/kueuecore.yaml, its roles and their bindings, as they are."""
    manifests: list[Object] = list(yaml.safe_load_all((ROOT / "deploy/kueuecore.yaml").read_text("utf-8")))
    wanted = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    return [manifest for manifest in manifests if manifest["kind"] in wanted]


def create(api: Api, manifest: Object, *, is_new: bool = False) -> Object:
    """Create an object, and write its status; one of that name may exist, unless `is_new`.

    Raises:
        RefusedError: It is refused.
    """
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    namespace = text_at(manifest, "metadata", "namespace")
    try:
        made = patient(lambda: api.send("POST", api.path(kind, namespace), manifest))
    except RefusedError as error:
        if error.code != 409 or is_new:
            raise
        made = api.get(api.path(kind, namespace, name))
    if "status" in manifest:
        patch = {"status": manifest["status"]}
        path = api.path(kind, namespace, name, "status")
        made = patient(lambda: api.send("PATCH", path, patch, content_type="application/merge-patch+json"))
    return made


def patient(request: Callable[[], Object], *, seconds: float = 60.0) -> Object:
    """Make a request until the server answers it, as one that is away for a while does not.

    Raises:
        RefusedError: It is refused for good.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return request()
        except (RefusedError, UnansweredError) as error:
            is_final = isinstance(error, RefusedError) and error.code not in (429, 500, 503, 504)
            if is_final or time.monotonic() > until:
                raise
            time.sleep(0.3)


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = 60.0, pause: float = 0.2) -> None:
    """Wait until something holds.

    Raises:
        AssertionError: It does not hold in time.
    """
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {seconds:g} s"
        time.sleep(pause)
