"""Queue Jobs, JobSets, RayJobs and pods of a Kubernetes cluster by Kueue's rules: a controller that only translates.

    kubectl proxy &
    python controller.py --server http://127.0.0.1:8001

The cluster needs Kueue's CRDs, and no Kueue. In a pod it speaks to its own API server. README.md says what is left out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kueuecore.checks import ObjectWrite, ObjectWriteKind
from kueuecore.controller import Controller, JobController, JobWork, WorkloadWrite, is_heartbeat
from kueuecore.jobs import JobsConfiguration, Verb
from kueuecore.times import format_time

JsonObject = dict[str, Any]
JOBS = JobsConfiguration(frameworks=("batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob", "pod"))
WRITES = {ObjectWriteKind.PATCH_STATUS: "PUT", ObjectWriteKind.PATCH: "PATCH", ObjectWriteKind.DELETE: "DELETE"}
METHODS = {Verb.CREATE: "POST", Verb.PATCH: "PATCH", Verb.DELETE: "DELETE"}
OURS = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class RefusedError(Exception):
    """The API server says no."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(f"{code}: {message}")


class Api:
    """The few requests that are made of an API server."""

    def __init__(self, server: str, *, token: str = "", context: ssl.SSLContext | None = None) -> None:
        self.server, self.context = server.rstrip("/"), context
        self.kinds: Mapping[str, tuple[str, str]] = {}
        self.headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    @classmethod
    def of_pod(cls) -> Api:
        """The API server of the cluster in which this runs."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        context = ssl.create_default_context(cafile=str(OURS / "ca.crt"))
        return cls(f"https://{host}:{port}", token=(OURS / "token").read_text(), context=context)

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        version, plural = self.kinds.get(kind) or ("v1", "events")
        place = f"/{'apis' if '/' in version else 'api'}/{version}" + (f"/namespaces/{namespace}" if namespace else "")
        return "/".join(filter(None, (place, plural, name, subresource)))

    def open(self, method: str, path: str, body: JsonObject | None = None, *, seconds: float = 30.0) -> Any:
        data = None if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(self.server + path, data, self.headers | {"Content-Type": kind}, method=method)
        try:
            return urllib.request.urlopen(request, timeout=seconds, context=self.context)
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError(error.code, error.read().decode(errors="replace")) from None

    def send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        with self.open(method, path, body) as response:
            return dict(json.load(response))


class News(NamedTuple):
    """What is heard of a kind: all of it in a list, or one event."""

    kind: str
    listed: list[JsonObject] | None = None
    version: str = ""
    event: JsonObject = {}  # noqa: RUF012  # nobody changes it


def follow(api: Api, kind: str) -> Iterator[News | None]:
    """Everything of a kind, for ever: a list, then what happens; `None` where a watch has ended."""
    version, is_known = "", False
    nodes: dict[str, JsonObject] = {}
    while True:
        try:
            if not version:
                answer = api.send("GET", api.path(kind))
                version, is_known = answer["metadata"]["resourceVersion"], True
                yield News(kind, answer["items"], version)
                nodes = {it["metadata"]["name"]: it for it in answer["items"]} if kind == "Node" else {}
            query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
            with api.open("GET", api.path(kind) + query, seconds=330) as lines:
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        version = ""  # too old: list again
                        break
                    thing = event["object"]
                    version = thing["metadata"]["resourceVersion"]
                    if kind == "Node" and event["type"] != "BOOKMARK":
                        before, nodes[thing["metadata"]["name"]] = nodes.get(thing["metadata"]["name"]), thing
                        if event["type"] == "MODIFIED" and before is not None and is_heartbeat(before, thing):
                            continue  # most events of nodes are
                    yield News(kind, event=event)
        except (RefusedError, OSError, http.client.HTTPException) as error:
            version = ""
            if isinstance(error, RefusedError) and error.code == 404 and not is_known:
                yield News(kind, [])  # the cluster does not know this kind, yet
            else:
                # Also after a 404: an API server that starts does not know its own kinds for a moment.
                print(f"{kind}: {error}; it is listed again", flush=True)
        yield None


class Process:
    """Carries out what the loop and the job controllers decide."""

    def __init__(self, api: Api, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.api, self.clock = api, clock
        self.loop = Controller(models_readiness=True, watches_nodes=True)
        self.jobs = JobController(self.loop, configuration=JOBS)
        api.kinds = self.jobs.kinds

    def hear(self, news: News) -> None:
        """Something was listed or watched."""
        if news.listed is not None:
            self.jobs.resync(news.kind, news.listed, resource_version=news.version, now=self.clock())
        else:
            self.jobs.observe(news.event, now=self.clock())

    def step(self) -> int | None:
        """Look at the jobs, take a turn, write. Returns when to do so again, if nothing is heard before."""
        for write in self.loop.open_writes:
            self.ask(write)
        for work in self.jobs.take_due(self.clock()):
            self.carry_out(work)
        turn = self.loop.turn(self.clock())
        for write in turn.writes:
            self.write(write)
        for item in turn.objects:
            self.store(item)
        now = self.clock()
        unknown = [now + 10**9] if self.loop.open_writes else []
        times = [*unknown, self.loop.next_wake(now), self.jobs.next_wake(now)]
        return min((time for time in times if time is not None), default=None)

    def carry_out(self, work: JobWork) -> None:
        """Send what one reconcile of a job decided; after a refusal the job is reconciled again."""
        if work.waits_for:
            print(f"{work.job} waits: {work.waits_for}", flush=True)
        for request in work.requests:
            ref = request.object
            name = "" if request.verb is Verb.CREATE else ref.name
            path = self.api.path(ref.kind, ref.namespace, name, request.subresource)
            try:
                answer = self.api.send(METHODS[request.verb], path, request.body)
            except (RefusedError, OSError) as error:
                if not (request.verb is Verb.DELETE and isinstance(error, RefusedError) and error.code == 404):
                    print(f"{request.verb} {ref}: {error}", flush=True)
                    self.jobs.failed(work.job, now=self.clock())
                    return
            else:
                if request.verb is not Verb.DELETE:
                    self.jobs.observe({"type": "MODIFIED", "object": answer}, now=self.clock())
        self.jobs.done(work.job)
        self.emit(event.manifest(self.time) for event in work.events)

    def write(self, write: WorkloadWrite) -> None:
        """Send a write of the loop, and say how it went."""
        path = self.api.path("Workload", write.namespace, write.name, write.subresource)
        try:
            answer = self.api.send("PATCH", path, write.patch)
        except (RefusedError, OSError) as error:
            print(f"{write.key}: {error}", flush=True)
            self.ask(write)
            return
        self.loop.confirm(write, answer, now=self.clock())
        self.jobs.observe({"type": "MODIFIED", "object": answer}, now=self.clock())
        self.emit(write.event_manifests(self.time))

    def store(self, write: ObjectWrite) -> None:
        """Write the status of a queue, let a pod go to its node, or delete a Workload that was kept long enough."""
        ref, kind = write.object, write.kind
        path = self.api.path(
            ref.kind, ref.namespace, ref.name, "status" if kind is ObjectWriteKind.PATCH_STATUS else ""
        )
        thing: JsonObject = write.manifest
        body = {"preconditions": {"uid": thing["metadata"]["uid"]}} if kind is ObjectWriteKind.DELETE else thing
        try:
            answer = self.api.send(WRITES[kind], path, body)
        except RefusedError as error:
            self.loop.refuse_object(write, str(error), is_there=error.code == 409, now=self.clock())
        except OSError as error:
            # Nobody knows. What a watch shows then counts, and without that it is sent again.
            print(f"{ref}: {error}", flush=True)
        else:
            if kind is not ObjectWriteKind.DELETE:
                self.jobs.observe({"type": "MODIFIED", "object": answer}, now=self.clock())

    def ask(self, write: WorkloadWrite) -> None:
        """Find out whether a write was accepted, or somebody else wrote first."""
        try:
            newest = self.api.send("GET", self.api.path("Workload", write.namespace, write.name))
        except (RefusedError, OSError) as error:
            if isinstance(error, RefusedError) and error.code == 404:
                self.loop.refuse(write, gone=True, now=self.clock())
            return
        self.loop.refuse(write, newest, now=self.clock())
        self.jobs.observe({"type": "MODIFIED", "object": newest}, now=self.clock())

    def emit(self, events: Iterable[JsonObject]) -> None:
        for event in events:
            try:
                self.api.send("POST", self.api.path("Event", event["metadata"]["namespace"]), event)
            except (RefusedError, OSError) as error:
                print(f"event {event['reason']}: {error}", flush=True)

    @property
    def time(self) -> str:
        return format_time(self.clock() // 10**9 * 10**9)


def run(api: Api) -> None:
    """Hear, decide and write, for ever."""
    inbox: queue.Queue[News | BaseException] = queue.Queue()
    process = Process(api)

    def pump(kind: str) -> None:
        try:
            for news in follow(api, kind):
                if news is None:
                    time.sleep(1)
                else:
                    inbox.put(news)
        except BaseException as error:
            error.add_note(f"in the watch of {kind}")
            inbox.put(error)

    for kind in process.jobs.kinds:
        threading.Thread(target=pump, args=(kind,), daemon=True).start()
    missing = set(process.jobs.kinds)
    wake: int | None = None
    while True:
        try:
            seconds = None if wake is None else max(0.01, (wake - time.time_ns()) / 10**9)
            news: News | BaseException | None = inbox.get(timeout=seconds)
        except queue.Empty:
            news = None
        while news is not None:
            if isinstance(news, BaseException):
                raise news  # without its watch it would decide on stale objects
            process.hear(news)
            missing.discard(news.kind)
            news = None if inbox.empty() else inbox.get()
        if not missing:
            wake = process.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="URL of the API server; by default that of the pod in which this runs")
    server = parser.parse_args().server
    run(Api(server) if server else Api.of_pod())
