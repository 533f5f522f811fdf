"""Clusters before `kueuecore serve` takes over, with what Kueue leaves there."""

from __future__ import annotations

from typing import Any

from kueuecore_apiserver.crds import crds

Json = dict[str, Any]
ADMISSION = "admissionregistration.k8s.io/v1"
WEBHOOKS = "kueue-webhook-service"


def configuration(kind: str, name: str, service: str = WEBHOOKS, /, **webhook: Any) -> Json:
    rules = [{"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["*"], "resources": ["workloads"], "operations": ["*"]}]
    client = {"service": {"namespace": "kueue-system", "name": service, "path": "/do"}}
    plain = {"name": "vworkload.kb.io", "rules": rules, "clientConfig": client, "sideEffects": "None"}
    plain |= {"admissionReviewVersions": ["v1"], **webhook}
    return {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "webhooks": [plain]}


def jobs_webhook(service: str = WEBHOOKS) -> Json:
    rules = [{"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}]
    return configuration("MutatingWebhookConfiguration", "jobs", service, name="mjob.kb.io", rules=rules)


def endpoints(service: str, *, ready: bool | None = True) -> Json:
    metadata = {"name": f"{service}-1", "namespace": "kueue-system", "labels": {"kubernetes.io/service-name": service}}
    conditions = {} if ready is None else {"ready": ready}
    rows = [{"addresses": ["10.0.0.1"], "conditions": conditions}]
    head = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata}
    return {**head, "addressType": "IPv4", "endpoints": rows, "ports": []}


def visibility(version: str = "v1beta2", service: str = "kueue-visibility-server") -> Json:
    spec = {
        "group": "visibility.kueue.x-k8s.io",
        "version": version,
        "service": {"namespace": "kueue-system", "name": service},
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    metadata = {"name": f"{version}.visibility.kueue.x-k8s.io"}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}


def converted_crds(*, stored: tuple[str, ...] = ()) -> list[Json]:
    """Kueue's definitions as of a release that converts v1beta1 by a webhook."""
    found = crds(release="0.19.2")
    for crd in found:
        service = {"namespace": "kueue-system", "name": WEBHOOKS, "path": "/convert"}
        webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        if stored and crd["metadata"]["name"].startswith("clusterqueues."):
            crd["status"] = {"storedVersions": [*stored]}
    return found


def deployment(tag: str, *, ready: int = 0) -> Json:
    labels = {"app": "kueue"}
    container = {"name": "manager", "image": f"registry.k8s.io/kueue/kueue:{tag}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "restartPolicy": "Always"}}
    spec = {"replicas": ready, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "kueue-controller-manager", "namespace": "kueue-system"}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return {**head, "spec": spec, "status": {"replicas": ready, "readyReplicas": ready}}


def lease(holder: str) -> Json:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    metadata = {"name": "c1f6bfd2.kueue.x-k8s.io", "namespace": "kueue-system"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
