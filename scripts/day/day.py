"""The day itself: what happens at each step, and when everything has settled after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, LateKinds, follow, list_all
from scripts.day.place import Place
from scripts.day.replicas import Replicas, log_folder
from scripts.day.timeline import Timeline, comparable
from scripts.day.timetable import (
    BACK_AT,
    LOST_AT,
    LOST_NODE,
    MINUTES,
    NAMESPACE,
    Kill,
    PlannedJob,
    jobs,
    kills,
    objects,
)

__all__ = ["Day"]

_Object = dict[str, Any]
# More steps than any job needs.
_MAX_STEPS = 120


class Day:
    """Plays the day once.

    Args:
        place: Where to play it.
        say: Prints a line.
    """

    def __init__(self, place: Place, *, say: Callable[[str], None]) -> None:
        self._place, self._print = place, say
        self._api = place.connect()
        self._step = 0
        self._began = time.monotonic()
        self._timeline = Timeline(self._say)
        self._jobs = list(jobs())
        # The step at which each job started.
        self._running: dict[str, int] = {}
        self._over = LateKinds()

    def play(self) -> _Object:
        """Play it; return the outcome without what differs from run to run."""
        logs = log_folder()
        self._print(f"logs of the replicas: {logs}")
        for manifest in (*self._place.nodes(), *objects()):
            self._create(manifest)
        replicas = Replicas(self._place.connect(), self._place.arguments, logs)
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            replicas.wait_for_leader()
            while not self._is_done():
                self._play_step(replicas)
                self._step += 1
                assert self._step < _MAX_STEPS, "the day does not end"
            # Queue statuses lag a second behind.
            time.sleep(2)
            self._settle(replicas)
            replicas.stop()
        finally:
            self._over.end()
            replicas.kill()
        return self._outcome()

    # A step.

    def _play_step(self, replicas: Replicas) -> None:
        # Everything created at one step has the same time, earlier than that of the next step.
        time.sleep(1 - time.time() % 1 + 0.02)
        self._place.begin_step()
        for planned in self._jobs:
            began = self._running.get(planned.name)
            if began is not None and self._step - began >= planned.n_steps and self._place.end(planned.name):
                del self._running[planned.name]
                # One thing at a time: the outcome of two at once depends on which event arrives first.
                self._settle(replicas)
        if self._step == LOST_AT and self._place.lose(LOST_NODE):
            self._say(f"node {LOST_NODE} is lost")
            self._settle(replicas)
        if self._step == BACK_AT and self._place.restore(LOST_NODE):
            self._say(f"node {LOST_NODE} is back")
            self._settle(replicas)
        coming = [job for job in self._jobs if job.step == self._step]
        kill = next((kill for kill in kills() if kill.step == self._step), None)
        if kill is not None:
            self._kill(kill, coming.pop(0), replicas)
        for planned in coming:
            self._create(planned.manifest)
            self._settle(replicas)
        self._note_running()

    def _kill(self, kill: Kill, planned: PlannedJob, replicas: Replicas) -> None:
        """Kill the leader at a moment triggered by a new job, and wait for another leader."""
        leader = replicas.leader()
        assert leader is not None, "there is a leader"
        killed = self._place.kill(kill, leader.pid)
        self._create(planned.manifest)
        assert killed.wait(10), f"{kill.title}: that moment did not come"
        leader.wait()
        self._say(kill.title)
        replicas.replace_dead()
        replicas.wait_for_leader()
        self._settle(replicas)

    def _settle(self, replicas: Replicas) -> None:
        """Wait until nothing more happens."""
        n_quiet = 0
        while n_quiet < 5:
            before = self._place.mark()
            self._place.advance()
            time.sleep(self._place.pause_seconds)
            replicas.catch_up()
            n_quiet = n_quiet + 1 if self._place.mark() == before else 0

    def _note_running(self) -> None:
        active = {
            text_at(job, "metadata", "name")
            for job in list_all(self._api, "Job")[0]
            if object_at(job, "status").get("active")
        }
        for name in active - self._running.keys():
            self._running[name] = self._step
        for name in self._running.keys() - active:
            del self._running[name]

    def _is_done(self) -> bool:
        if self._step <= self._jobs[-1].step:
            return False
        found = {text_at(row, "metadata", "name"): row for row in list_all(self._api, "Job")[0]}
        return all(_is_complete(found[job.name]) for job in self._jobs)

    def _create(self, manifest: _Object) -> None:
        kind, namespace = manifest["kind"], text_at(manifest, "metadata", "namespace")
        try:
            self._api.send("POST", self._api.path(kind, namespace), manifest)
        except RefusedError as error:
            if error.code != 409:
                raise
        if "status" in manifest:
            patch = {"status": manifest["status"]}
            path = self._api.path(kind, namespace, manifest["metadata"]["name"], "status")
            self._api.send("PATCH", path, patch, content_type="application/merge-patch+json")

    # What is observed.

    def _watch(self) -> None:
        api: Api = self._place.connect()
        for news in follow(api, "Workload", late=self._over):
            if news is None:
                continue
            for workload in news.listed or [object_at(news.event, "object")]:
                if text_at(workload, "metadata", "namespace") == NAMESPACE and news.event.get("type") != "DELETED":
                    self._timeline.see(workload)

    def _say(self, text: str) -> None:
        minutes = 7 * 60 + self._step * MINUTES
        self._print(f"{minutes // 60 % 24:02}:{minutes % 60:02}  {time.monotonic() - self._began:6.2f} s  {text}")

    def _outcome(self) -> _Object:
        statuses = {
            f"{kind} {text_at(row, 'metadata', 'name')}": comparable(object_at(row, "status"))
            for kind in ("Job", "Workload", "ClusterQueue", "LocalQueue")
            for row in list_all(self._api, kind)[0]
            if text_at(row, "metadata", "namespace") in ("", NAMESPACE)
        }
        return {"jobs": self._timeline.stories, "statuses": statuses}


def _is_complete(job: _Object) -> bool:
    conditions = list_at(job, "status", "conditions")
    return any(
        text_at(condition, "type") == "Complete" and text_at(condition, "status") == "True" for condition in conditions
    )
