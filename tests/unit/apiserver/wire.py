"""A tiny client of the Kubernetes API, and what tests of the server begin with."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import HttpApiServer

Object = dict[str, Any]
START = 1_767_225_600 * 10**9
"""2026-01-01T00:00:00Z"""

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

JOBS = "/apis/batch/v1/namespaces/lab/jobs"
PODS = "/api/v1/namespaces/lab/pods"
MAPS = "/api/v1/namespaces/lab/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class Reply:
    """What came back."""

    code: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def causes(self) -> list[tuple[str, str]]:
        return [(cause["field"], cause["message"]) for cause in self.body["details"]["causes"]]


class Client:
    """Speaks to a server over one connection."""

    def __init__(self, server: HttpApiServer, *, token: str = "", agent: str = "tiny/1.0") -> None:
        self.server, self.token, self.agent = server, token, agent
        self.host = server.url.removeprefix("http://")
        self.connection = http.client.HTTPConnection(self.host, timeout=5)

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", accept: str = "application/json"
    ) -> Reply:
        headers = {"Content-Type": kind, "Accept": accept, "User-Agent": self.agent}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = body if isinstance(body, str | None) else json.dumps(body)
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return Reply(answer.status, json.loads(text) if is_json else text, dict(answer.headers))

    def get(self, path: str, accept: str = "application/json") -> Reply:
        return self.ask("GET", path, accept=accept)

    def post(self, path: str, body: Any) -> Reply:
        return self.ask("POST", path, body)

    def put(self, path: str, body: Any) -> Reply:
        return self.ask("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE) -> Reply:
        return self.ask("PATCH", path, body, kind)

    def delete(self, path: str, body: Any = None) -> Reply:
        return self.ask("DELETE", path, body)

    def apply(self, path: str, body: Any, manager: str = "me", *, force: bool = False) -> Reply:
        return self.patch(f"{path}?fieldManager={manager}&force={str(force).lower()}", body, APPLY)

    @contextmanager
    def watch(self, path: str, query: str = "") -> Iterator[Watch]:
        """Watch in a thread; what comes is in the order in which it came."""
        watch = Watch(self, f"{path}?watch=true&{query}")
        try:
            yield watch
        finally:
            watch.close()


class Watch:
    """One watch."""

    def __init__(self, client: Client, path: str) -> None:
        self.connection = http.client.HTTPConnection(client.host, timeout=5)
        self.connection.request("GET", path, headers={"Accept": "application/json", "User-Agent": client.agent})
        self.answer = self.connection.getresponse()
        self.code = self.answer.status
        self.lines: Queue[Object | None] = Queue()
        self.is_broken = False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        try:
            # `readline` would not say that the connection has broken.
            rest = b""
            while part := self.answer.read1(1 << 16):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self.lines.put(json.loads(line))
        except (OSError, http.client.HTTPException, ValueError):
            self.is_broken = True
        self.lines.put(None)

    def next(self, seconds: float = 5.0) -> Object | None:
        """The next event; `None` if the watch has ended."""
        return self.lines.get(timeout=seconds)

    def rest(self) -> list[Object]:
        """All events until the watch ends."""
        return list(iter(self.next, None))

    def take(self, count: int) -> list[Object]:
        """So many events, after which nothing comes."""
        taken = [number for number in (self.next() for _ in range(count)) if number is not None]
        assert self.is_silent(0.02)
        return taken

    def is_silent(self, seconds: float = 0.05) -> bool:
        try:
            self.lines.get(timeout=seconds)
        except Empty:
            return True
        return False

    def close(self) -> None:
        if self.connection.sock is not None:
            with suppress(OSError):
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.answer.close()
        self.connection.close()


@contextmanager
def cluster(**settings: Any) -> Iterator[Client]:
    """A server with the namespace `lab`, and a client of it."""
    api = settings.pop("api", None) or ApiServer(now=START)
    server = HttpApiServer(api, seed=1, **settings)
    server.load([namespace("lab")])
    with server:
        client = Client(server)
        try:
            yield client
        finally:
            client.connection.close()


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str = "cm", data: Object | None = None, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


def template(**spec: Any) -> Object:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec}}


def job(name: str = "sum", **spec: Any) -> Object:
    whole = {"suspend": True, "template": template(), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def pod(name: str = "p", metadata: Object | None = None, **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, **template(**spec)}


def events(watch: list[Object]) -> list[tuple[str, str]]:
    return [(object_["type"], object_["object"]["metadata"].get("name", "")) for object_ in watch]
