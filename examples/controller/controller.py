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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kueuecore import jobs
from kueuecore.controller import WATCHED, Controller, WorkloadWrite
from kueuecore.times import format_time

JsonObject = dict[str, Any]
Key = tuple[str, str]  # namespace and name
JOBS = {
    "Job": ("batch/v1", "jobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "RayJob": ("ray.io/v1", "rayjobs"),
    "Pod": ("v1", "pods"),
}
KINDS = {**WATCHED, **JOBS}
QUEUE, GROUP = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-name"
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

    def path(self, kind: str, key: Key = ("", ""), subresource: str = "") -> str:
        version, plural = KINDS.get(kind) or ("v1", "events")
        place = f"/{'apis' if '/' in version else 'api'}/{version}" + (f"/namespaces/{key[0]}" if key[0] else "")
        return "/".join(filter(None, (place, plural, key[1], subresource)))

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
    version = ""
    while True:
        try:
            if not version:
                answer = api.send("GET", api.path(kind))
                version = answer["metadata"]["resourceVersion"]
                yield News(kind, answer["items"], version)
            query = f"?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
            with api.open("GET", api.path(kind) + query, seconds=330) as lines:
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        version = ""  # too old: list again
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    yield News(kind, event=event)
        except (RefusedError, OSError, http.client.HTTPException) as error:
            version = ""
            if isinstance(error, RefusedError) and error.code == 404:
                yield News(kind, [])  # the cluster does not know this kind, yet
            else:
                print(f"{kind}: {error}; it is listed again", flush=True)
        yield None


class JobController:
    """Carries out for jobs what a `Controller` decides."""

    def __init__(self, api: Api, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.api, self.clock = api, clock
        self.loop = Controller(models_readiness=True)
        self.things: dict[str, dict[Key, JsonObject]] = {kind: {} for kind in KINDS}
        self.todo: dict[
            tuple[str, str, str], None
        ] = {}  # jobs by kind, namespace and name; groups of pods are PodLists

    def hear(self, news: News) -> None:
        """Something was listed or watched."""
        kind, things = news.kind, self.things[news.kind]
        if news.listed is not None:
            touched = [{"apiVersion": KINDS[kind][0], "kind": kind, **it} for it in news.listed]
            things.clear()
            things.update({key_of(it): it for it in touched})
            if kind in WATCHED:
                self.loop.resync(kind, touched, resource_version=news.version, now=self.clock())
        else:
            what, thing = news.event["type"], news.event["object"]
            if what == "BOOKMARK" or (kind in WATCHED and not self.loop.observe(news.event, now=self.clock())):
                return
            things.pop(key_of(thing), None)
            if what != "DELETED":
                things[key_of(thing)] = thing
            touched = [thing]
        for thing in touched:
            self.touch(kind, thing)

    def touch(self, kind: str, thing: JsonObject) -> None:
        """Something has happened to a job or its Workload."""
        namespace, name = key_of(thing)
        if kind in JOBS:
            self.todo[("PodList", namespace, group) if (group := group_of(thing)) else (kind, namespace, name)] = None
        elif kind == "Workload":
            # The Workload of a group has its name.
            self.todo["PodList", namespace, name] = None
            owners = thing["metadata"].get("ownerReferences", ())
            self.todo |= {(owner["kind"], namespace, owner["name"]): None for owner in owners}

    def step(self) -> int | None:
        """Look at the jobs, take a turn, write. Returns when to do so again, if nothing is heard before."""
        for key in list(self.todo):
            del self.todo[key]
            if (parts := self.parts(key)) and QUEUE in parts[0]["metadata"].get("labels", {}):
                self.follow_job(parts, jobs.pod_group(key[2], parts) if key[0] == "PodList" else parts[0])
        for write in self.loop.turn(self.clock()).writes:
            self.write(write)
        return self.clock() if self.todo else self.loop.next_wake(self.clock())

    def parts(self, key: tuple[str, str, str]) -> list[JsonObject]:
        """The objects of a job: itself, or the pods of a group."""
        kind, *of = key
        if kind == "PodList":
            return [it for (namespace, _), it in self.things["Pod"].items() if [namespace, group_of(it)] == of]
        found = self.things.get(kind, {}).get((of[0], of[1]))
        return [found] if found is not None and not group_of(found) else []

    def write(self, write: WorkloadWrite) -> None:
        """Send a write, and say how it went."""
        key = write.namespace, write.name
        try:
            answer = self.api.send("PATCH", self.api.path("Workload", key, write.subresource), write.patch)
        except (RefusedError, OSError) as error:
            print(f"{write.key}: {error}", flush=True)
            # It may have been accepted nevertheless, or somebody was quicker.
            newest = self.send("GET", self.api.path("Workload", key))
            self.loop.refuse(write, newest, now=self.clock(), gone=newest is None)
            return
        self.loop.confirm(write, answer, now=self.clock())
        self.touch("Workload", answer)
        for event in write.event_manifests(format_time(self.clock() // 10**9 * 10**9)):
            self.send("POST", self.api.path("Event", (write.namespace, "")), event)

    def follow_job(self, parts: list[JsonObject], job: JsonObject) -> None:
        """Do for a job what its Workload says, and tell the loop what the job has done."""
        kind = jobs.integration_of(job)
        assert kind is not None, "these are the kinds of JOBS"
        (namespace, owned), flavors = key_of(job), self.things["ResourceFlavor"]
        if kind.kind != "PodList":
            owned = jobs.workload_name(owned, kind=kind.kind, group=kind.group, uid=job["metadata"]["uid"])
        workload = self.loop.workload(owned, namespace=namespace)
        finished = kind.finished(job)
        if workload is None:
            if finished is None:
                around = (it for name in WATCHED if name != "Workload" for it in self.things[name].values())
                for manifest in jobs.workloads_for([*parts, *around]).workloads:
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
                try:
                    self.put(jobs.start_job(job, workload, flavors={it[1]: flavor for it, flavor in flavors.items()}))
                except jobs.StartError as error:
                    self.loop.finished(owned, namespace=namespace, reason="FailedToStart", message=str(error))
            if kind.pods_ready(job) != ("PodsReady" in holds):
                self.loop.note_readiness(owned, namespace=namespace, are_ready=kind.pods_ready(job))
        elif not kind.is_suspended(job) or kind.is_active(job):
            self.put(jobs.stop_job(job, workload, reason=jobs.StopReason.NOT_ADMITTED))
        elif {"Evicted", "QuotaReserved"} <= holds and not kind.is_active(job):
            self.loop.stopped(owned, namespace=namespace)

    def put(self, writes: Iterable[jobs.Write]) -> None:
        """Write a job, one write after the other; after a conflict the watch brings a newer one to begin anew with."""
        for write in writes:
            made: JsonObject = dict(write.manifest)
            things, key = self.things[made["kind"]], key_of(made)
            if write.kind is jobs.WriteKind.DELETE:
                self.send("DELETE", self.api.path(made["kind"], key))
                continue
            # The writes before may have been to the same object.
            made["metadata"] = {**made["metadata"], "resourceVersion": things[key]["metadata"]["resourceVersion"]}
            subresource = "status" if write.kind is jobs.WriteKind.UPDATE_STATUS else ""
            if (answer := self.send("PUT", self.api.path(made["kind"], key, subresource), made)) is None:
                return
            things[key] = answer

    def send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject | None:
        """Ask for what may not be there, or write what a watch will tell of: a conflict brings a newer object."""
        try:
            return self.api.send(method, path, body)
        except RefusedError as error:
            if method == "GET" and error.code != 404:
                raise
            print(f"{method} {path}: {error}", flush=True)
            return None


def key_of(thing: JsonObject) -> Key:
    return thing["metadata"].get("namespace", ""), thing["metadata"]["name"]


def group_of(thing: JsonObject) -> str:
    """The group that a pod belongs to; empty for all else."""
    texts = {**thing["metadata"].get("labels", {}), **thing["metadata"].get("annotations", {})}
    return str(texts.get(GROUP, "")) if thing["kind"] == "Pod" else ""


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
