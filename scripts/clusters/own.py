"""Our own API server in Kueue's cluster's place: in this process, over HTTP, with the same roles."""

from __future__ import annotations

import queue
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from kueuecore.api_server import ApiServer
from kueuecore.kubernetes import Api
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer, Request
from kueuecore_apiserver.__main__ import kubeconfig
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from scripts.clusters.place import KINDS, Object, deployed_roles

__all__ = ["OwnCluster"]

_USER = "system:serviceaccount:kueue-system:kueuecore"


class OwnCluster:
    """Serves Kueue's kinds with the roles of deploy/kueuecore.yaml, which it enforces."""

    name = "own"
    has_controllers = False

    def __init__(self) -> None:
        self.restarts: list[float] = []
        self.folder = Path(tempfile.mkdtemp(prefix="kueuecore-cluster-"))
        self.admin_kubeconfig, self.serve_kubeconfig = self.folder / "admin.yaml", self.folder / "serve.yaml"
        roles = [manifest for manifest in deployed_roles() if "Role" in manifest["kind"]]
        access = AccessRules(users={"admin": "admin", "serve": _USER}, manifests=roles, admins=["admin"])
        self.server = HttpApiServer(
            clock=time.time_ns, schemas=CrdSchema.of, access=access, collects_garbage=True, faults=self._fault
        )
        names = ("default", "kueue-system")
        namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
        self.server.load([*crds(), *namespaces])
        self._stalled_until = 0.0

    def __enter__(self) -> Self:
        self.server.start()
        self.admin_kubeconfig.write_text(kubeconfig(self.server.url, "admin"), encoding="utf-8")
        self.serve_kubeconfig.write_text(kubeconfig(self.server.url, "serve"), encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.server.stop()
        finally:
            if error is None:
                shutil.rmtree(self.folder, ignore_errors=True)

    def api(self) -> Api:
        """Return a client that may do anything."""
        return Api.connect(kubeconfig=self.admin_kubeconfig, kinds=KINDS)

    def history(self, kind: str) -> Iterator[tuple[int, Object, bool]]:
        """Yield the objects of a kind, then all their changes, as they are stored."""
        changes: queue.SimpleQueue[tuple[int, Object, bool]] = queue.SimpleQueue()

        def put(object_: Object, *, is_gone: bool = False) -> None:
            changes.put((int(object_["metadata"]["resourceVersion"]), object_, is_gone))

        def listen(stored: str, event: Object, before: Object | None) -> None:
            if stored == kind:
                put(event["object"], is_gone=event["type"] == "DELETED")

        def begin(api: ApiServer) -> None:
            for object_ in api.list(kind)[0]:
                put(object_)
            api.listeners.append(listen)

        self.server.call(begin)
        while True:
            yield changes.get()

    def restart(self, *, seconds: float) -> None:
        """Stop the server, and start it again after a while."""
        self.server.stop()
        time.sleep(seconds)
        self.server.start()
        self.restarts.append(time.time())

    def stall(self, *, seconds: float) -> None:
        """Answer nothing for a while."""
        self._stalled_until = time.monotonic() + seconds
        time.sleep(seconds)

    def _fault(self, request: Request) -> Fault | None:
        left = self._stalled_until - time.monotonic()
        return Fault(delay_seconds=left) if left > 0 else None
