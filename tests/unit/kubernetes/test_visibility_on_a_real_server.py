"""The visibility API behind the aggregation layer of a real kube-apiserver, and metrics by its tokens and roles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kueuecore._json import list_at, object_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Address, Api, Process, ServeSettings, UnansweredError, serve
from kueuecore.kubernetes.settings import CertificateSettings
from kueuecore_apiserver.crds import crds
from tests.unit.kubernetes.clusters import job, queues, wait_for
from tests.unit.kubernetes.deployed import manifests_of
from tests.unit.kubernetes.https import HERE, authority, client_pair
from tests.unit.kubernetes.real_servers import needs_real_server, real_server
from tests.unit.kubernetes.test_secured_metrics import scrape

GROUP = "/apis/visibility.kueue.x-k8s.io"
PLACES = {"Service": "/api/v1/namespaces/{0}/services", "ServiceAccount": "/api/v1/namespaces/{0}/serviceaccounts"}
PLACES |= {"Namespace": "/api/v1/namespaces", "Secret": "/api/v1/namespaces/{0}/secrets"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PLACES |= {"ClusterRole": f"{RBAC}/clusterroles", "ClusterRoleBinding": f"{RBAC}/clusterrolebindings"}
PLACES |= {"Role": f"{RBAC}/namespaces/{{0}}/roles", "RoleBinding": f"{RBAC}/namespaces/{{0}}/rolebindings"}
PLACES |= {"APIService": "/apis/apiregistration.k8s.io/v1/apiservices"}
PLACES |= {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}
PLACES |= {"Job": "/apis/batch/v1/namespaces/{0}/jobs"}
for kind in ("ResourceFlavor", "WorkloadPriorityClass", "ClusterQueue", "LocalQueue"):
    within = "namespaces/{0}/" if kind == "LocalQueue" else ""
    plural = f"{kind.lower()}es" if kind.endswith("Class") else f"{kind.lower()}s"
    PLACES[kind] = f"/apis/kueue.x-k8s.io/v1beta2/{within}{plural}"


def made(api: Api, *manifests: dict[str, Any]) -> None:
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace", "")
        try:
            api.send("POST", PLACES[manifest["kind"]].format(namespace), manifest)
        except RefusedError as error:
            if error.reason != "AlreadyExists":
                raise


def answers(ask: Callable[[], Any]) -> Callable[[], bool]:
    """Whether a request is answered."""

    def is_answered() -> bool:
        try:
            return bool(ask())
        except (RefusedError, UnansweredError):
            return False

    return is_answered


def account(api: Api, kubeconfig: Path, name: str, namespace: str) -> Path:
    """A kubeconfig for a ServiceAccount."""
    head = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    made(api, head)
    path = f"{PLACES['ServiceAccount'].format(namespace)}/{name}/token"
    request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.send("POST", path, request)["status"]["token"]  # type: ignore[call-overload,index]
    found = kubeconfig.with_name(f"kubeconfig-{name}")
    found.write_text(kubeconfig.read_text().replace("root-token", str(token)))
    return found


def bound(role: str, name: str, *, kind: str, namespace: str) -> dict[str, Any]:
    """The binding of a ClusterRole to a ServiceAccount of `lab`."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "lab"}],
    }


@contextmanager
def aggregated(folder: Path) -> Iterator[Path]:
    """A server that forwards requests, as one with a front proxy of its own."""
    ca = authority("front proxy")
    pair = client_pair(ca, "front-proxy-client")
    for name, text in (("ca.crt", ca.certificate), ("proxy.crt", pair.certificate), ("proxy.key", pair.key)):
        (folder / name).write_text(text)
    arguments = [
        f"--requestheader-client-ca-file={folder}/ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder}/proxy.crt",
        f"--proxy-client-key-file={folder}/proxy.key",
    ]
    with real_server(folder, *arguments) as kubeconfig:
        yield kubeconfig


@contextmanager
def serving(kubeconfig: Path) -> Iterator[dict[str, int]]:
    """`serve` in a thread; gives its ports."""
    local = Address("127.0.0.1", 0)
    certificates = CertificateSettings(secures_metrics=True)
    settings = replace(
        ServeSettings.of(None), metrics=local, health=None, lease=None, visibility=HERE, certificates=certificates
    )
    started: list[tuple[Process, dict[str, int]]] = []
    ended: list[BaseException] = []

    def run() -> None:
        try:
            serve(
                lambda answered, qps, burst: Api.connect(
                    kubeconfig=kubeconfig, qps=qps, burst=burst, answered=answered
                ),
                settings,
                started=lambda process, ports: started.append((process, ports)),
            )
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(lambda: bool(started or ended), "it starts")
    assert not ended, ended
    process, ports = started[0]
    try:
        yield ports
    finally:
        process.stop()
        thread.join(30)
    assert not ended, ended


def leads_to(port: int) -> list[dict[str, Any]]:
    """What deploy/visibility.yaml has, with a Service that leads to this machine."""
    found = manifests_of("visibility.yaml")
    for manifest in found:
        if manifest["kind"] == "Service":
            manifest["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        elif manifest["kind"] == "APIService":
            manifest["spec"]["service"]["port"] = port
    return found


@needs_real_server
def test_it_answers_behind_a_real_aggregation_layer(tmp_path: Path) -> None:
    with aggregated(tmp_path) as kubeconfig:
        root = Api.connect(kubeconfig=kubeconfig)
        made(root, *crds())
        wait_for(answers(lambda: root.get(PLACES["ClusterQueue"])), "the kinds are served")
        made(root, *(it for it in queues(1) if it["kind"] == "Namespace"))
        stored = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        made(root, *(it for it in manifests_of("kueuecore.yaml") if it["kind"] in stored))
        us = account(root, kubeconfig, "kueuecore", "kueue-system")
        made(root, *(it for it in queues(1) if it["kind"] != "Namespace"))
        with serving(us) as ports:
            made(root, *leads_to(ports["visibility"]))
            made(root, *(job(f"j{n}") for n in range(6)))
            path = f"{GROUP}/v1beta2/clusterqueues/a/pendingworkloads"
            wait_for(answers(lambda: len(list_at(root.get(path), "items")) == 4), "four wait", seconds=60)
            items = [object_at(item) for item in list_at(root.get(path), "items")]
            assert [item["positionInClusterQueue"] for item in items] == [0, 1, 2, 3]
            both = list_at(root.get(path, {"limit": "2", "offset": "1"}), "items")
            assert both == items[1:3]
            check_users(root, kubeconfig, path)
            check_metrics(root, kubeconfig, ports["metrics"])
            check_documents(root)
        root.close()


def check_users(root: Api, kubeconfig: Path, path: str) -> None:
    ann = Api.connect(kubeconfig=account(root, kubeconfig, "ann", "lab"))
    with pytest.raises(RefusedError, match='cannot get resource "clusterqueues/pendingworkloads"'):
        ann.get(path)
    local = f"{GROUP}/v1beta1/namespaces/lab/localqueues/a/pendingworkloads"
    with pytest.raises(RefusedError, match="in the namespace"):
        ann.get(local)
    people = manifests_of("roles-for-people.yaml")
    role = "kueue-pending-workloads-lq-viewer-role"
    made(root, *(it for it in people if it["metadata"]["name"] == role))
    made(root, bound(role, "ann", kind="RoleBinding", namespace="lab"))
    wait_for(answers(lambda: len(list_at(ann.get(local), "items")) == 4), "the role allows it", seconds=60)
    ann.close()


def check_metrics(root: Api, kubeconfig: Path, port: int) -> None:
    token = account(root, kubeconfig, "prometheus", "lab").read_text().partition("token: ")[2].partition("}")[0]
    assert scrape(port, token).status == 403
    assert scrape(port, "nobody's").status == 401
    role = "kueuecore-metrics-reader"
    made(root, *(it for it in manifests_of("roles-for-people.yaml") if it["metadata"]["name"] == role))
    made(root, bound(role, "prometheus", kind="ClusterRoleBinding", namespace=""))
    # A refusal is remembered for half a minute.
    wait_for(lambda: scrape(port, token).status == 200, "the role allows it", seconds=60)


def check_documents(root: Api) -> None:
    groups = [object_at(group)["name"] for group in list_at(root.get("/apis"), "groups")]
    assert GROUP.removeprefix("/apis/") in groups
    listed = [object_at(row)["name"] for row in list_at(root.get(f"{GROUP}/v1beta2"), "resources")]
    assert "localqueues/pendingworkloads" in listed
    for version in ("v1beta1", "v1beta2"):
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.visibility.kueue.x-k8s.io"
        conditions = list_at(root.get(path), "status", "conditions")
        assert [object_at(row)["status"] for row in conditions if object_at(row)["type"] == "Available"] == ["True"]
    place = f"{GROUP[1:]}/v1beta2"
    wait_for(lambda: place in object_at(root.get("/openapi/v3"), "paths"), "OpenAPI has it", seconds=60)
