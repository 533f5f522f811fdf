"""A real kube-apiserver with its etcd, and the controllers of Jobs and garbage, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3
import yaml

from kueuecore._json import JsonObject
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, UnansweredError
from kueuecore_apiserver.crds import crds
from scripts.clusters.certificates import Authority, write_key_pair
from scripts.clusters.etcd_history import history_of
from scripts.clusters.place import KINDS, KUEUE, create, deployed_roles, wait_for
from scripts.clusters.processes import end, free_port, start

__all__ = ["RealCluster", "missing_binaries"]

_START_SECONDS = 120.0
_TOKEN_SECONDS = 24 * 3600
_CONTROLLERS = "job-controller,garbage-collector-controller,namespace-controller"


def missing_binaries() -> str:
    """Return what must be set to run a real cluster; empty if nothing is missing."""
    for name in ("KUBE_APISERVER", "ETCD"):
        path = os.environ.get(name, "")
        if not path:
            return (
                "set KUBE_APISERVER=/path/to/kube-apiserver and ETCD=/path/to/etcd, and if you have it "
                "KUBE_CONTROLLER_MANAGER=/path/to/kube-controller-manager"
            )
        if not os.access(path, os.X_OK):
            return f"{name}={path} is no program"
    return ""


class RealCluster:
    """Starts etcd and kube-apiserver from `ETCD` and `KUBE_APISERVER`, and the controllers if they are to be had.

    Roles are enforced, also for finalizers of owners, and tokens are those of ServiceAccounts. All of it ends with the
    context; its files are deleted, unless it fails.

    Args:
        runs_controllers: Whether to start `KUBE_CONTROLLER_MANAGER`, if it is given.
    """

    name = "real"

    def __init__(self, *, runs_controllers: bool = True) -> None:
        self.restarts: list[float] = []
        self._binaries = {name: os.environ.get(name, "") for name in ("ETCD", "KUBE_APISERVER")}
        self._controller_manager = os.environ.get("KUBE_CONTROLLER_MANAGER", "") if runs_controllers else ""
        self.has_controllers = bool(self._controller_manager)
        self.folder = Path(tempfile.mkdtemp(prefix="kueuecore-cluster-"))
        self.admin_kubeconfig, self.serve_kubeconfig = self.folder / "admin.yaml", self.folder / "serve.yaml"
        self._ports = {name: free_port() for name in ("etcd", "peers", "api")}
        self._stack = ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self._ports['api']}"

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by name."""
        return {name: process.pid for name, process in self._processes.items()}

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.callback(self._end_all)
            self._begin()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        if error is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def api(self) -> Api:
        """Return a client that may do anything."""
        return Api.connect(kubeconfig=self.admin_kubeconfig, kinds=KINDS)

    def history(self, kind: str) -> Iterator[tuple[int, JsonObject, bool]] | None:
        """Return the objects of one of Kueue's kinds and all their changes, from etcd."""
        api_version, plural = KINDS[kind]
        if api_version != KUEUE:  # others are stored as protobuf
            return None
        return history_of(f"http://127.0.0.1:{self._ports['etcd']}", f"/registry/{KUEUE.partition('/')[0]}/{plural}/")

    def restart(self, *, seconds: float) -> None:
        """Kill the API server, and start it again after a while."""
        server = self._processes["kube-apiserver"]
        server.kill()
        server.wait()
        time.sleep(seconds)
        self._start_api_server()
        self._wait_until_ready()
        self.restarts.append(time.time())

    def stall(self, *, seconds: float) -> None:
        """Stop etcd for a while."""
        etcd = self._processes["etcd"]
        etcd.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            etcd.send_signal(signal.SIGCONT)

    def _begin(self) -> None:
        authority = Authority(self.folder)
        self._server_files = authority.issue("kube-apiserver")
        self._token_files = write_key_pair(self.folder)
        admin = authority.issue("admin", organization="system:masters")
        files = {"client-certificate": str(admin[0]), "client-key": str(admin[1])}
        self._write_kubeconfig(self.admin_kubeconfig, authority, files)
        self._authority = authority
        self._start_etcd()
        self._start_api_server()
        self._wait_until_ready()
        api = self.api()
        for manifest in ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, *crds()):
            create(api, manifest)
        for manifest in deployed_roles():
            create(api, manifest)
        wait_for(lambda: _serves_kueue(api), "Kueue's kinds are served")
        self._write_kubeconfig(self.serve_kubeconfig, authority, {"token": self._token(api)})
        if self.has_controllers:
            self._start_controllers()

    def _start_etcd(self) -> None:
        clients, peers = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peers"))
        command = [self._binaries["ETCD"], "--name=one", f"--data-dir={self.folder / 'etcd'}",
                   f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}",
                   f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
                   f"--initial-cluster=one={peers}", "--quota-backend-bytes=4294967296"]  # fmt: skip
        self._start("etcd", command)

    def _start_api_server(self) -> None:
        certificate, key = self._server_files
        public, private = self._token_files
        command = [
            self._binaries["KUBE_APISERVER"],
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports['api']}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self._authority.file}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            "--authorization-mode=RBAC",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            # Nothing here makes the ServiceAccount that pods are given by default.
            "--disable-admission-plugins=ServiceAccount",
        ]
        self._start("kube-apiserver", command)

    def _start_controllers(self) -> None:
        command = [
            self._controller_manager,
            f"--kubeconfig={self.admin_kubeconfig}",
            f"--controllers={_CONTROLLERS}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.folder / 'controllers'}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]
        self._start("kube-controller-manager", command)

    def _start(self, name: str, command: list[str]) -> None:
        self._processes[name] = start(command, log=self.folder / f"{name}.log")

    def _wait_until_ready(self) -> None:
        pool = urllib3.PoolManager(ca_certs=str(self._authority.file))

        def is_ready() -> bool:
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} has ended: see {self.folder / f'{name}.log'}"
            try:
                return pool.request("GET", f"{self.url}/readyz", retries=False, timeout=5).status == 200
            except urllib3.exceptions.HTTPError:
                return False

        try:
            wait_for(is_ready, f"{self.url} is ready", seconds=_START_SECONDS)
        finally:
            pool.clear()

    def _token(self, api: Api) -> str:
        body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_SECONDS}}  # fmt: skip
        answer = api.send("POST", api.path("ServiceAccount", "kueue-system", "kueuecore", "token"), body)
        token = answer["status"]
        assert isinstance(token, dict)
        return str(token["token"])

    def _write_kubeconfig(self, path: Path, authority: Authority, user: dict[str, str]) -> None:
        cluster = {"server": self.url, "certificate-authority": str(authority.file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "user"}}],
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    def _end_all(self) -> None:
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self._processes:
                end(self._processes[name])


def _serves_kueue(api: Api) -> bool:
    try:
        api.get(api.path("Workload"))
        api.get(api.path("ClusterQueue"))
    except (RefusedError, UnansweredError):
        return False
    return True
