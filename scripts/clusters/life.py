"""What happens to pods and jobs in a cluster without nodes: pods run and end, and where nobody else does it, Jobs run.

It works over HTTP, so it plays on a real API server, where it is the kubelets, and on ours, where it is also the
controller of Jobs.
"""

from __future__ import annotations

import heapq
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, LateKinds, News, UnansweredError, follow
from kueuecore.times import SECOND_NS, format_time

__all__ = ["Life"]

_LOGGER = logging.getLogger("scripts.clusters")
_MERGE = "application/merge-patch+json"
_SECONDS = "example.com/seconds"
_OWNER = "batch.kubernetes.io/job-name"
_Key: TypeAlias = tuple[str, str]


class Life:
    """Plays kubelets, and with `runs_jobs` the controller of Jobs, in two threads until `stop`.

    A pod runs for as many seconds as its annotation `example.com/seconds` says, by default one, once it has no gates.

    Args:
        api: The cluster.
        runs_jobs: Whether to create the pods of Jobs and to write their statuses.
        seconds: How long pods without that annotation run.
    """

    def __init__(self, api: Api, *, runs_jobs: bool, seconds: float = 1.0) -> None:
        self._api, self._runs_jobs, self._seconds = api, runs_jobs, seconds
        self._over = LateKinds()
        self._news: queue.Queue[News | None] = queue.Queue()
        self._pods: dict[_Key, JsonObject] = {}
        self._jobs: dict[_Key, JsonObject] = {}
        self._pods_of: dict[_Key, set[_Key]] = defaultdict(set)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._seen: set[str] = set()
        self._n_due = self._n_pods = 0
        kinds = ("Pod", "Job") if runs_jobs else ("Pod",)
        self._threads = [threading.Thread(target=self._watch, args=(kind,), daemon=True) for kind in kinds]
        self._threads.append(threading.Thread(target=self._work, daemon=True))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End."""
        self._over.end()
        self._news.put(None)
        self._threads[-1].join(30)

    def _watch(self, kind: str) -> None:
        for news in follow(self._api, kind, late=self._over):
            if news is not None:
                self._news.put(news)

    def _work(self) -> None:
        dirty: set[_Key] = set()
        while not self._over.is_over:
            wait = self._due[0][0] - time.monotonic() if self._due else 1.0
            with suppress(queue.Empty):
                news = self._news.get(timeout=max(0.0, min(wait, 1.0)))
                while news is not None:
                    self._hear(news, dirty)
                    news = self._news.get_nowait()
            while self._due and self._due[0][0] <= time.monotonic():
                heapq.heappop(self._due)[2]()
            for key in sorted(dirty):
                self._run_job(key)
            dirty.clear()

    def _hear(self, news: News, dirty: set[_Key]) -> None:
        if news.listed is not None:
            there = {_key(object_) for object_ in news.listed}
            known = self._jobs if news.kind == "Job" else self._pods
            # What went while nobody watched is in no event. What came after the list is not in it, and still there.
            gone = [
                object_ for key, object_ in known.items() if key not in there and _version(object_) <= int(news.version)
            ]
            for object_ in gone:
                self._see(news.kind, object_, True, dirty)
            for object_ in news.listed:
                self._see(news.kind, object_, False, dirty)
        elif news.event.get("type") != "BOOKMARK":
            self._see(news.kind, object_at(news.event, "object"), news.event.get("type") == "DELETED", dirty)

    def _see(self, kind: str, object_: JsonObject, is_gone: bool, dirty: set[_Key]) -> None:
        key = _key(object_)
        if kind == "Job":
            if is_gone:
                self._jobs.pop(key, None)
            else:
                self._jobs[key] = object_
                dirty.add(key)
            return
        job = key[0], text_at(object_, "metadata", "labels", _OWNER)
        if is_gone:
            self._pods.pop(key, None)
            self._pods_of[job].discard(key)
        else:
            self._pods[key] = object_
            self._pods_of[job].add(key)
            self._run_pod(key, object_)
        if self._runs_jobs and job in self._jobs:
            dirty.add(job)

    # Pods.

    def _run_pod(self, key: _Key, pod: JsonObject) -> None:
        """Start a pod that may run, and end one that is deleted."""
        metadata, phase, uid = (
            object_at(pod, "metadata"),
            text_at(pod, "status", "phase"),
            text_at(pod, "metadata", "uid"),
        )
        if phase in ("Succeeded", "Failed"):
            return
        if metadata.get("deletionTimestamp"):
            self._once(f"{uid} ends", 0.05, lambda: self._end_pod(key, uid, "Failed"))
        elif phase in ("", "Pending") and not list_at(pod, "spec", "schedulingGates"):
            self._once(f"{uid} starts", 0.05, lambda: self._start_pod(key, uid))
        elif phase == "Running":
            seconds = float(text_at(metadata, "annotations", _SECONDS) or self._seconds)
            self._once(f"{uid} runs", seconds, lambda: self._end_pod(key, uid, "Succeeded"))

    def _once(self, what: str, seconds: float, action: Callable[[], None]) -> None:
        if what not in self._seen:
            self._seen.add(what)
            self._after(seconds, action)

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._n_due += 1
        heapq.heappush(self._due, (time.monotonic() + seconds, self._n_due, action))

    def _start_pod(self, key: _Key, uid: str) -> None:
        ready: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": _now()}
        self._write_pod(key, uid, {"phase": "Running", "startTime": _now(), "conditions": [ready]})

    def _end_pod(self, key: _Key, uid: str, phase: str) -> None:
        ready: JsonObject = {"type": "Ready", "status": "False", "lastTransitionTime": _now()}
        self._write_pod(key, uid, {"phase": phase, "conditions": [ready]})

    def _write_pod(self, key: _Key, uid: str, status: JsonObject) -> None:
        pod = self._pods.get(key)
        if pod is None or text_at(pod, "metadata", "uid") != uid:
            return
        is_ending = "deletionTimestamp" in object_at(pod, "metadata") and status["phase"] != "Failed"
        if is_ending or text_at(pod, "status", "phase") in ("Succeeded", "Failed"):
            return
        patch: JsonObject = {"metadata": {"uid": uid}, "status": status}
        if not self._send("PATCH", self._api.path("Pod", *key, "status"), patch):
            self._after(0.5, lambda: self._write_pod(key, uid, status))

    # Jobs.

    def _run_job(self, key: _Key) -> None:
        """Do what the controller of Jobs would do for one."""
        job = self._jobs.get(key)
        if job is None or "deletionTimestamp" in object_at(job, "metadata") or _is_complete(job):
            return
        pods = [self._pods[each] for each in sorted(self._pods_of[key]) if _is_of(self._pods[each], job)]
        phases = [text_at(pod, "status", "phase") for pod in pods]
        n_done = phases.count("Succeeded")
        active = [pod for pod, phase in zip(pods, phases, strict=True) if phase not in ("Succeeded", "Failed")]
        spec, status = object_at(job, "spec"), object_at(job, "status")
        # Pods may end while their Job is being suspended: it is complete all the same, and keeps its start.
        is_done = n_done >= int_at(spec, "completions")
        is_suspended = spec.get("suspend") is True and not is_done
        wanted = 0 if is_suspended else min(int_at(spec, "parallelism"), int_at(spec, "completions") - n_done)
        is_clean = True
        for pod in active[wanted:]:
            is_clean &= self._delete_pod(pod)
        for _ in range(wanted - len(active)):
            is_clean &= self._create_pod(key, job)
        if not is_clean:
            self._after(0.5, lambda: self._run_job(key))
            return
        n_ready = sum(text_at(pod, "status", "phase") == "Running" for pod in active[:wanted])
        new = _status_of(status, is_suspended=is_suspended, n_active=wanted, n_ready=n_ready, n_done=n_done)
        if is_done:
            new |= _completion(list_at(new, "conditions"))
        if any(status.get(name) != value for name, value in new.items()):
            if self._send("PATCH", self._api.path("Job", *key, "status"), {"status": new}):
                self._jobs[key] = {**job, "status": {**status, **new}}
            else:
                self._after(0.5, lambda: self._run_job(key))

    def _create_pod(self, key: _Key, job: JsonObject) -> bool:
        template = object_at(job, "spec", "template")
        self._n_pods += 1
        owner: JsonObject = {"apiVersion": "batch/v1", "kind": "Job", "name": key[1], "controller": True,
                             "uid": text_at(job, "metadata", "uid"), "blockOwnerDeletion": True}  # fmt: skip
        metadata: JsonObject = {**object_at(template, "metadata"), "namespace": key[0], "ownerReferences": [owner]}
        metadata["name"] = f"{key[1]}-{self._n_pods:05}"
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        try:
            made = self._api.send("POST", self._api.path("Pod", key[0]), pod)
        except (RefusedError, UnansweredError) as error:
            _LOGGER.info("a pod is not created: %s", error)
            return False
        # Known at once, or the next look would create another.
        itself = key[0], str(metadata["name"])
        self._pods.setdefault(itself, made)
        self._pods_of[key].add(itself)
        return True

    def _delete_pod(self, pod: JsonObject) -> bool:
        key = _key(pod)
        if "deletionTimestamp" in object_at(pod, "metadata"):
            return True
        return self._send("DELETE", self._api.path("Pod", *key), None)

    def _send(self, method: str, path: str, body: JsonObject | None) -> bool:
        """Make a request; return whether it is settled: carried out, or pointless."""
        try:
            self._api.send(method, path, body, content_type=_MERGE)
        except (RefusedError, UnansweredError) as error:
            _LOGGER.info("%s %s: %s", method, path, error)
            return isinstance(error, RefusedError) and error.code in (404, 409)
        return True


def _status_of(status: JsonObject, *, is_suspended: bool, n_active: int, n_ready: int, n_done: int) -> JsonObject:
    new: JsonObject = {"active": n_active, "ready": n_ready, "succeeded": n_done}
    before = next((row for row in map(object_at, list_at(status, "conditions")) if row.get("type") == "Suspended"), {})
    if is_suspended != (before.get("status") == "True") and (is_suspended or before):
        reason, message = ("JobSuspended", "Job suspended") if is_suspended else ("JobResumed", "Job resumed")
        new["conditions"] = [{"type": "Suspended", "status": str(is_suspended), "reason": reason, "message": message,
                              "lastProbeTime": _now(), "lastTransitionTime": _now()}]  # fmt: skip
    else:
        new["conditions"] = list_at(status, "conditions")
    if is_suspended:
        new["startTime"] = None
    elif not status.get("startTime"):
        new["startTime"] = _now()
    return new


def _completion(conditions: list[JsonValue]) -> JsonObject:
    more: list[JsonValue] = [
        {"type": type_, "status": "True", "reason": "CompletionsReached", "lastProbeTime": _now(),
         "message": "Reached expected number of succeeded pods", "lastTransitionTime": _now()}
        for type_ in ("SuccessCriteriaMet", "Complete")
    ]  # fmt: skip
    return {"conditions": [*conditions, *more], "completionTime": _now()}


def _is_complete(job: JsonObject) -> bool:
    conditions = map(object_at, list_at(job, "status", "conditions"))
    return any(row.get("type") in ("Complete", "Failed") and row.get("status") == "True" for row in conditions)


def _key(object_: JsonObject) -> _Key:
    return text_at(object_, "metadata", "namespace"), text_at(object_, "metadata", "name")


def _version(object_: JsonObject) -> int:
    return int(text_at(object_, "metadata", "resourceVersion"))


def _is_of(pod: JsonObject, job: JsonObject) -> bool:
    owners = map(object_at, list_at(pod, "metadata", "ownerReferences"))
    return any(owner.get("uid") == object_at(job, "metadata").get("uid") for owner in owners)


def _now() -> str:
    return format_time(time.time_ns() // SECOND_NS * SECOND_NS)
