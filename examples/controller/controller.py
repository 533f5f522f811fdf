"""Queue batch/v1 Jobs on a Kubernetes cluster by Kueue's rules: a controller that only translates.

    kubectl proxy &
    python controller.py --server http://127.0.0.1:8001

The cluster needs Kueue's CRDs, and no Kueue. Inside a pod it speaks to its own API server. What it leaves out is in
README.md.
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kueuecore import jobs
from kueuecore.controller import WATCHED, Controller, WorkloadWrite
from kueuecore.times import format_time

JsonObject = dict[str, Any]
Key = tuple[str, str]  # namespace and name
KINDS = {**WATCHED, "Job": ("batch/v1", "jobs")}
QUEUE = "kueue.x-k8s.io/queue-name"
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
        self.headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    @classmethod
    def of_pod(cls) -> Api:
        """The API server of the cluster in which this runs."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        context = ssl.create_default_context(cafile=str(OURS / "ca.crt"))
        return cls(f"https://{host}:{port}", token=(OURS / "token").read_text(), context=context)

    def path(self, kind: str, key: Key | None = None, subresource: str = "") -> str:
        version, plural = KINDS.get(kind) or ("v1", "events")
        parts = ["apis" if "/" in version else "api", version]
        if key is not None:
            parts += ["namespaces", key[0]] * bool(key[0]) + [plural] + [key[1]] * bool(key[1])
            parts += [subresource] * bool(subresource)
        else:
            parts.append(plural)
        return "/" + "/".join(parts)

    def open(self, method: str, path: str, body: JsonObject | None = None, *, seconds: float = 30.0) -> Any:
        data = None if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(self.server + path, data, self.headers, method=method)
        request.add_header("Content-Type", kind)
        try:
            return urllib.request.urlopen(request, timeout=seconds, context=self.context)
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError(error.code, error.read().decode(errors="replace")) from None

    def send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        with self.open(method, path, body) as response:
            answer: JsonObject = json.load(response)
            return answer

    def watch(self, kind: str, version: str) -> Iterator[JsonObject]:
        query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
        with self.open("GET", self.path(kind) + query, seconds=330) as lines:
            yield from map(json.loads, lines)


class News(NamedTuple):
    """What is heard of a kind: all of it in a list, or one event."""

    kind: str
    listed: list[JsonObject] | None = None
    version: str = ""
    event: JsonObject | None = None


def follow(api: Api, kind: str) -> Iterator[News | None]:
    """Everything of a kind, for ever: a list, then what happens; `None` where a watch has ended."""
    version = ""
    while True:
        try:
            if not version:
                answer = api.send("GET", api.path(kind))
                version = answer["metadata"]["resourceVersion"]
                yield News(kind, answer["items"], version)
            for event in api.watch(kind, version):
                if event["type"] == "ERROR":
                    version = ""  # too old: list again
                    break
                version = event["object"]["metadata"]["resourceVersion"]
                yield News(kind, event=event)
        except (RefusedError, OSError, http.client.HTTPException) as error:
            print(f"{kind}: {error}; it is listed again", flush=True)
            version = ""
        yield None


class JobController:
    """Carries out for Jobs what a `Controller` decides."""

    def __init__(self, api: Api, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.api, self.clock = api, clock
        self.loop = Controller(models_readiness=True)
        self.things: dict[str, dict[Key, JsonObject]] = {kind: {} for kind in KINDS}
        self.todo: dict[Key, None] = {}  # jobs to look at

    def hear(self, news: News) -> None:
        """Something was listed or watched."""
        kind, things = news.kind, self.things[news.kind]
        if news.listed is not None:
            listed = [{"apiVersion": KINDS[kind][0], "kind": kind, **it} for it in news.listed]
            things.clear()
            things.update({key_of(it): it for it in listed})
            touched = listed
            if kind in WATCHED:
                self.loop.resync(kind, listed, resource_version=news.version, now=self.clock())
        else:
            assert news.event is not None
            thing = news.event["object"]
            if news.event["type"] == "BOOKMARK" or (
                kind in WATCHED and not self.loop.observe(news.event, now=self.clock())
            ):
                return
            if news.event["type"] == "DELETED":
                things.pop(key_of(thing), None)
            else:
                things[key_of(thing)] = thing
            touched = [thing]
        for thing in touched:
            self.touch(kind, thing)

    def touch(self, kind: str, thing: JsonObject) -> None:
        """Something has happened to a job or its Workload."""
        if kind == "Job":
            self.todo[key_of(thing)] = None
        elif kind == "Workload":
            namespace = thing["metadata"]["namespace"]
            owners = thing["metadata"].get("ownerReferences", ())
            self.todo |= {(namespace, owner["name"]): None for owner in owners if owner["kind"] == "Job"}

    def step(self) -> int | None:
        """Look at the jobs, take a turn, write. Returns when to do so again, if nothing is heard before."""
        for key in list(self.todo):
            del self.todo[key]
            if (job := self.things["Job"].get(key)) is not None:
                self.follow_job(job)
        now = self.clock()
        turn = self.loop.turn(now)
        for write in turn.writes:
            self.write(write)
        return now if self.todo else self.loop.next_wake(self.clock())

    def write(self, write: WorkloadWrite) -> None:
        """Send a write, and say how it went."""
        key = write.namespace, write.name
        path, answer, newest = self.api.path("Workload", key, write.subresource), None, None
        try:
            answer = self.api.send("PATCH", path, write.patch)
        except (RefusedError, OSError) as error:
            print(f"{write.key}: {error}", flush=True)
            # It may have been accepted nevertheless, or somebody was quicker.
            newest = self.get("Workload", key)
        if answer is None:
            self.loop.refuse(write, newest, now=self.clock(), gone=newest is None)
            return
        self.loop.confirm(write, answer, now=self.clock())
        self.touch("Workload", answer)
        for event in write.event_manifests(format_time(self.clock() // 10**9 * 10**9)):
            self.send("POST", self.api.path("Event", (write.namespace, "")), event)

    def follow_job(self, job: JsonObject) -> None:
        """Do for a job what its Workload says, and tell the loop what the job has done."""
        kind = jobs.integration_of(job)
        if kind is None or QUEUE not in job["metadata"].get("labels", {}):
            return
        namespace, name = key_of(job)
        owned = jobs.workload_name(name, kind="Job", group="batch", uid=job["metadata"]["uid"])
        workload = self.loop.workload(owned, namespace=namespace)
        finished = kind.finished(job)
        if workload is None:
            if finished is None:
                around = (it for name in WATCHED if name != "Workload" for it in self.things[name].values())
                for manifest in jobs.workloads_for([job, *around]).workloads:
                    # Nobody here would take its finalizer off again.
                    made: JsonObject = dict(manifest.object)
                    made["metadata"] = {k: v for k, v in made["metadata"].items() if k != "finalizers"}
                    self.send("POST", self.api.path("Workload", (namespace, "")), made)
            return
        holds = {it["type"] for it in workload.get("status", {}).get("conditions", ()) if it["status"] == "True"}
        if finished is not None:
            if "Finished" not in holds:
                self.loop.finished(owned, namespace=namespace, reason=finished.reason, message=finished.message)
        elif self.loop.may_run(owned, namespace=namespace):
            if kind.is_suspended(job):
                flavors = {name: flavor for (_, name), flavor in self.things["ResourceFlavor"].items()}
                try:
                    self.put(jobs.start_job(job, workload, flavors=flavors))
                except jobs.StartError as error:
                    self.loop.finished(owned, namespace=namespace, reason="FailedToStart", message=str(error))
            elif kind.pods_ready(job) != ("PodsReady" in holds):
                self.loop.note_readiness(owned, namespace=namespace, are_ready=kind.pods_ready(job))
        elif not kind.is_suspended(job):
            self.put(jobs.stop_job(job, workload, reason=jobs.StopReason.NOT_ADMITTED))
        elif {"Evicted", "QuotaReserved"} <= holds and not kind.is_active(job):
            self.loop.stopped(owned, namespace=namespace)

    def put(self, writes: Iterable[jobs.Write]) -> None:
        """Update a job, one write after the other; after a conflict the watch brings a newer one to begin anew with."""
        version = ""
        for write in writes:
            made: JsonObject = dict(write.manifest)
            made["metadata"] = {**made["metadata"]} | ({"resourceVersion": version} if version else {})
            subresource = "status" if write.kind is jobs.WriteKind.UPDATE_STATUS else ""
            answer = self.send("PUT", self.api.path("Job", key_of(made), subresource), made)
            if answer is None:
                return
            version = answer["metadata"]["resourceVersion"]
            self.things["Job"][key_of(made)] = answer

    def get(self, kind: str, key: Key) -> JsonObject | None:
        """An object as it is; `None` if there is none."""
        try:
            return self.api.send("GET", self.api.path(kind, key))
        except RefusedError as error:
            if error.code != 404:
                raise
            return None

    def send(self, method: str, path: str, body: JsonObject) -> JsonObject | None:
        """Write something of which a watch will tell how it went: a conflict brings a newer object."""
        try:
            return self.api.send(method, path, body)
        except RefusedError as error:
            print(f"{method} {path}: {error}", flush=True)
            return None


def key_of(thing: JsonObject) -> Key:
    return thing["metadata"].get("namespace", ""), thing["metadata"]["name"]


def run(api: Api) -> None:
    """Hear, decide and write, for ever."""
    inbox: queue.Queue[News] = queue.Queue()

    def pump(kind: str) -> None:
        for news in follow(api, kind):
            if news is None:
                time.sleep(1)
            else:
                inbox.put(news)

    for kind in KINDS:
        threading.Thread(target=pump, args=(kind,), daemon=True).start()
    controller, missing = JobController(api), set(KINDS)
    wake: int | None = None
    while True:
        try:
            seconds = None if wake is None else max(0.01, (wake - time.time_ns()) / 10**9)
            news: News | None = inbox.get(timeout=seconds)
        except queue.Empty:
            news = None
        while news is not None:
            controller.hear(news)
            missing.discard(news.kind)
            news = None if inbox.empty() else inbox.get()
        if not missing:
            wake = controller.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="URL of the API server; by default that of the pod in which this runs")
    server = parser.parse_args().server
    run(Api(server) if server else Api.of_pod())
