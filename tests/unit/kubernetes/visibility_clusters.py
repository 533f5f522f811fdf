"""Clusters whose pending workloads can be seen: queues, users, and the settings of the aggregation layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.settings import CertificateSettings
from kueuecore.kubernetes.visibility.server import VisibilityServer
from kueuecore_apiserver import AccessRules, HttpApiServer
from tests.unit.kubernetes.clusters import KUEUE, served, wait_for
from tests.unit.kubernetes.https import HERE, Answered, ask, authority
from tests.unit.kubernetes.test_process import running
from tests.unit.kubernetes.test_secured_metrics import KUBECONFIG, UNTRUSTING, role

GROUP = "/apis/visibility.kueue.x-k8s.io"
CLUSTER_QUEUE = f"{GROUP}/v1beta2/clusterqueues/a/pendingworkloads"
LOCAL_QUEUE = f"{GROUP}/v1beta2/namespaces/lab/localqueues/a/pendingworkloads"
PROXY_CA, OTHER_CA = authority("front proxy"), authority("other")
USERS = {"us": "us", "admin": "admin", "ann": "ann"}


def of(resource: str) -> dict[str, Any]:
    return {"apiGroups": ["visibility.kueue.x-k8s.io"], "resources": [f"{resource}/pendingworkloads"], "verbs": ["get"]}


def roles() -> list[dict[str, Any]]:
    own: dict[str, Any] = {"kind": "RoleBinding", "metadata": {"name": "ann", "namespace": "lab"}}
    own |= {"roleRef": {"kind": "ClusterRole", "name": "users"}, "subjects": [{"kind": "User", "name": "ann"}]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    return [
        *role("us", "us", everything),
        *role("admin", "admin", of("clusterqueues"), of("localqueues"), {"nonResourceURLs": ["*"], "verbs": ["get"]}),
        {"kind": "ClusterRole", "metadata": {"name": "users"}, "rules": [of("localqueues")]},
        own,
    ]


def proxy_settings(**changes: str) -> dict[str, Any]:
    data = {
        "requestheader-client-ca-file": PROXY_CA.certificate,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data | changes}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def others() -> list[dict[str, Any]]:
    """A namespace, the settings of the API server, and a second LocalQueue of `a`."""
    metadata = {"name": "a2", "namespace": "lab"}
    return [
        namespace("kube-system"),
        proxy_settings(),
        {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "a"}},
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {**metadata, "name": "lost"},
            "spec": {"clusterQueue": "x"},
        },
    ]


class Cluster(NamedTuple):
    """A cluster whose pending workloads can be seen."""

    server: HttpApiServer
    visibility: VisibilityServer
    process: Process
    kubeconfig: Path

    def ask(self, path: str, token: str = "admin", **options: Any) -> Answered:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return ask(self.visibility.port, path, UNTRUSTING, headers=headers, **options)

    def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.ask(path).json["items"]]


@contextmanager
def cluster(folder: Path, *, leads: bool = True) -> Iterator[Cluster]:
    with ExitStack() as stack:
        server = stack.enter_context(served(access=AccessRules(users=USERS, manifests=roles())))
        server.load(others())
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=server.url))
        process = Process(Api.connect(kubeconfig=kubeconfig), leads=leads)
        visibility = VisibilityServer(
            HERE,
            CertificateSettings(),
            lambda: Api.connect(kubeconfig=kubeconfig),
            process.pending,
            healthy=dict,
            ready=lambda: process.unlisted,
        )
        visibility.start()
        stack.callback(visibility.stop)
        stack.enter_context(running(process))
        wait_for(lambda: is_open(visibility.port), "it has a certificate")
        yield Cluster(server, visibility, process, kubeconfig)


def is_open(port: int) -> bool:
    try:
        return ask(port, "/readyz", UNTRUSTING).status == 200
    except OSError:
        return False
