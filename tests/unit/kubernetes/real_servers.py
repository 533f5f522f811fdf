"""A real kube-apiserver with its etcd, where KUBE_APISERVER and ETCD name their binaries."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kubernetes.config import ConfigException

from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, UnansweredError
from scripts.clusters.processes import end, free_port, start

__all__ = ["needs_real_server", "real_server"]

_APISERVER, _ETCD = os.environ.get("KUBE_APISERVER", ""), os.environ.get("ETCD", "")
needs_real_server = pytest.mark.skipif(not (_APISERVER and _ETCD), reason="needs KUBE_APISERVER and ETCD")
_SECONDS = 60
_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}", certificate-authority: apiserver.crt}}}}]
users: [{{name: root, user: {{token: root-token}}}}]
contexts: [{{name: here, context: {{cluster: here, user: root}}}}]
"""


@contextmanager
def real_server(folder: Path, *arguments: str) -> Iterator[Path]:
    """Start both on loopback, with more arguments; gives the kubeconfig of a user who may do anything."""
    etcd, peers, port = (free_port() for _ in range(3))
    (folder / "tokens.csv").write_text('root-token,root,1,"system:masters"\n')
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    store = f"http://127.0.0.1:{etcd}"
    commands = [
        [_ETCD, f"--data-dir={folder}/etcd", f"--listen-client-urls={store}", f"--advertise-client-urls={store}",
         f"--listen-peer-urls=http://127.0.0.1:{peers}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
         f"--initial-cluster=default=http://127.0.0.1:{peers}"],
        [_APISERVER, f"--etcd-servers={store}", f"--secure-port={port}", "--bind-address=127.0.0.1",
         f"--cert-dir={folder}", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
         f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
         "--service-account-issuer=https://here", "--service-cluster-ip-range=10.0.0.0/24", *arguments],
    ]  # fmt: skip
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(_KUBECONFIG.format(url=f"https://127.0.0.1:{port}"))
    with ExitStack() as stack:
        # etcd first, or kube-apiserver would wait before it tries again.
        for command in commands:
            stack.callback(end, start(command, log=folder / f"{Path(command[0]).name}.log"))
        _wait(kubeconfig)
        yield kubeconfig


def _wait(kubeconfig: Path) -> None:
    """Wait for the roles, which are made after the start; the certificate, too, is made by then."""
    until = time.monotonic() + _SECONDS
    while True:
        try:
            api = Api.connect(kubeconfig=kubeconfig)
            api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")
        except (ConfigException, RefusedError, UnansweredError):
            assert time.monotonic() < until, "kube-apiserver does not answer"
            time.sleep(0.2)
        else:
            api.close()
            return
