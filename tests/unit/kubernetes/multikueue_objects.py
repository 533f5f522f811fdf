"""What makes a cluster a manager of MultiKueue: Secrets with kubeconfigs, workers, a config and a check."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import yaml

from tests.unit.kubernetes.clusters import KUEUE

Json = dict[str, Any]
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def kubeconfig(url: str, *, token: str = "secret", more: Json | None = None) -> str:
    """A kubeconfig for a server that needs a token."""
    plain = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "clusters": [{"name": "worker", "cluster": {"server": url, **(more or {})}}],
        "users": [{"name": "manager", "user": {"token": token}}],
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "manager"}}],
    }
    return yaml.safe_dump(plain)


def secret(name: str, text: str) -> Json:
    """A Secret with a kubeconfig."""
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
    metadata = {"name": name, "namespace": "kueue-system"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def cluster_named(name: str, **source: Any) -> Json:
    """A MultiKueueCluster; by default its kubeconfig is in a Secret."""
    found = source or {"kubeConfig": {"location": f"{name}-secret", "locationType": "Secret"}}
    spec = {"clusterSource": found}
    return {"apiVersion": KUEUE, "kind": "MultiKueueCluster", "metadata": {"name": name}, "spec": spec}


def multikueue_objects(urls: Mapping[str, str]) -> list[Json]:
    """What makes a cluster a manager: workers, their Secrets, and a check of the ClusterQueue `a`."""
    found = [
        entry
        for name, url in urls.items()
        for entry in (secret(f"{name}-secret", kubeconfig(url)), cluster_named(name))
    ]
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"}
    check = {"controllerName": MULTIKUEUE, "parameters": parameters}
    return [
        *found,
        {
            "apiVersion": KUEUE,
            "kind": "MultiKueueConfig",
            "metadata": {"name": "workers"},
            "spec": {"clusters": [*urls]},
        },
        {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "dispatched"}, "spec": check},
    ]


KUEUES_TOKEN = "kueue"
"""The token of the Kueue on a worker."""
CHECKED = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "dispatched"}]}}}
"""A patch of a ClusterQueue that makes it dispatch."""
