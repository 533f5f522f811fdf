"""A small Kubernetes API server over HTTP on loopback: lists, watches, merge patches, conflicts, 410 Gone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.controller import Controller

KINDS = {plural: (kind, version) for kind, (version, plural) in Controller(watches_nodes=True).kinds.items()}
KINDS |= {"events": ("Event", "v1"), "jobs": ("Job", "batch/v1"), "pods": ("Pod", "v1")}
KINDS |= {"priorityclasses": ("PriorityClass", "scheduling.k8s.io/v1")}
KINDS |= {"jobsets": ("JobSet", "jobset.x-k8s.io/v1alpha2"), "rayjobs": ("RayJob", "ray.io/v1")}


class HttpApiServer:
    """Serves a cluster. A watch ends as soon as all is told, as a server may end it at any time.

    Args:
        cluster: What it serves; take `lock` to touch it while the server runs.
        before: Is called with method, kind and name before a request changes anything; may change the cluster itself.
    """

    def __init__(self, cluster: ApiServer, before: Callable[[str, str, str], None] = lambda *_: None) -> None:
        self.cluster, self.before, self.lock = cluster, before, threading.Lock()
        self.requests: list[tuple[str, str, int]] = []

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve; gives the URL."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            wbufsize = 1 << 16  # head and body go out together

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                path = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(path.query).items()}
                code, lines = api.handle(self.command, path.path, query, body, self.headers["Content-Type"])
                data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815  # the names that http.server calls

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()

    def handle(
        self, method: str, path: str, query: dict[str, str], body: Any, content_type: str
    ) -> tuple[int, list[dict[str, Any]]]:
        """Answer one request: a code, and objects, one a line."""
        with self.lock:
            try:
                code, lines = self._handle(method, path, query, body, content_type)
            except RefusedError as error:
                status = {"kind": "Status", "apiVersion": "v1", "code": error.code, "message": str(error)}
                # A watch that is too old begins well, and then has an error in it.
                is_late = "watch" in query
                code, lines = (200, [{"type": "ERROR", "object": status}]) if is_late else (error.code, [status])
                self.requests.append((method, path, error.code))
            else:
                self.requests.append((method, path, code))
        return code, lines

    def _handle(
        self, method: str, path: str, query: dict[str, str], body: Any, content_type: str
    ) -> tuple[int, list[dict[str, Any]]]:
        parts = path.strip("/").split("/")
        version, rest = ("/".join(parts[1:3]), parts[3:]) if parts[0] == "apis" else (parts[1], parts[2:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        if rest[0] not in KINDS:
            raise RefusedError(404, "the server could not find the requested resource")
        kind, wanted = KINDS[rest[0]]
        assert version == wanted, path
        name, subresource = [*rest[1:], "", ""][:2]
        if method == "GET" and "watch" in query:
            return 200, list(self.cluster.events(kind, since=int(query["resourceVersion"])))
        if method == "GET" and name:
            return 200, [self.cluster.get(kind, name, namespace=namespace)]
        if method == "GET":
            found, newest = self.cluster.list(kind)
            # In a list objects do not say what they are.
            items = [{key: value for key, value in it.items() if key not in ("kind", "apiVersion")} for it in found]
            return 200, [{"kind": f"{kind}List", "metadata": {"resourceVersion": newest}, "items": items}]
        self.before(method, kind, name)
        if method == "POST":
            assert body["kind"] == kind
            return 201, [self.cluster.create(body)]
        if method == "DELETE":
            preconditions = (body or {}).get("preconditions")
            return 200, [self.cluster.delete(kind, name, namespace=namespace, preconditions=preconditions)]
        if method == "PUT":
            return 200, [self.cluster.update(body, subresource=subresource)]
        assert content_type == "application/merge-patch+json"
        return 200, [self.cluster.patch(kind, name, body, namespace=namespace, subresource=subresource)]
