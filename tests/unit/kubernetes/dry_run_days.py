"""A day of a Kueue and a dry run beside it, both of which see each change late, in simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from kueuecore import Configuration
from kueuecore._json import text_at
from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller
from kueuecore.kubernetes.dry_run.judge import Judge, Judged
from kueuecore.times import SECOND_NS, format_time
from kueuecore.writes import Write

KUEUE = "kueue.x-k8s.io/v1beta2"
START = 1_767_225_600 * SECOND_NS
STEP = SECOND_NS // 50
Object = dict[str, Any]


class Watcher:
    """Sees the events of each kind in order, each kind with delays of its own."""

    def __init__(self, random: Random, *, most_ns: int, sees: Callable[[Object, int], None]) -> None:
        self._random, self._most_ns, self._sees = random, most_ns, sees
        self._n_seen = 0
        self._due: list[tuple[int, int, Object]] = []
        self._last: dict[str, int] = {}
        self._numbers = count()

    def pass_on(self, api: ApiServer, now: int) -> bool:
        """Take up what has happened, and show what is due."""
        for _, event in api.history[self._n_seen :]:
            kind = text_at(event, "object", "kind")
            due = max(self._last.get(kind, 0), now + self._random.randint(0, self._most_ns))
            self._last[kind] = due
            heapq.heappush(self._due, (due, next(self._numbers), event))
        self._n_seen = len(api.history)
        has_shown = False
        while self._due and self._due[0][0] <= now:
            self._sees(heapq.heappop(self._due)[2], now)
            has_shown = True
        return has_shown


class Day:
    """A Kueue that decides on a cluster, and a judge of what it decides.

    Args:
        seed: The source of all choices.
        configuration: The Configuration of both.
        kueue_late_ns: How late Kueue sees a change, at most.
        judge_late_ns: And the judge.
        alters: Changes what this Kueue sees of a Workload: then it is no Kueue.
    """

    def __init__(
        self,
        seed: int,
        *,
        configuration: Configuration | None = None,
        kueue_late_ns: int = SECOND_NS // 5,
        judge_late_ns: int = SECOND_NS,
        alters: Callable[[Object], Object] = lambda it: it,
    ) -> None:
        self.random = Random(seed)
        self.api = ApiServer(now=START)
        self.judged: list[Judged] = []
        settings = configuration or Configuration()
        self.kueue = Controller(settings, status_delay_seconds=None)
        self.judge = Judge(settings)
        self._alters = alters
        self._writes: list[tuple[int, int, Write]] = []
        self._numbers = count()
        self._ends: dict[str, int] = {}
        for made in queues():
            self.api.create(made)
        for kind in self.kueue.kinds:
            self.kueue.resync(kind, self.api.list(kind)[0], now=START, resource_version=str(self.api.version))
        for kind in self.judge.view.kinds:
            self.judge.take_list(kind, self.api.list(kind)[0], version=str(self.api.version), now=START)
        self._to_kueue = Watcher(self.random, most_ns=kueue_late_ns, sees=self._kueue_sees)
        self._to_judge = Watcher(self.random, most_ns=judge_late_ns, sees=self._judge_sees)

    def run(self, *, seconds: int, n_jobs: int, until: int | None = None) -> None:
        """Play it, or the first seconds of it: jobs arrive in its first half, run and end, and quotas change."""
        n_steps = seconds * SECOND_NS // STEP
        arrivals = sorted(self.random.randrange(n_steps // 2) for _ in range(n_jobs))
        for step in range(n_steps if until is None else until * SECOND_NS // STEP):
            now = self.api.now = START + step * STEP
            while arrivals and arrivals[0] <= step:
                arrivals.pop(0)
                self.api.create(self._workload(n_jobs - len(arrivals)))
            if step and step % (20 * SECOND_NS // STEP) == 0:
                self._change_quota()
            self._carry_on(now)

    def _carry_on(self, now: int) -> None:
        self._to_kueue.pass_on(self.api, now)
        while self._writes and self._writes[0][0] <= now:
            write = heapq.heappop(self._writes)[2]
            answer = self.api.carry_out(write)
            if answer.object is not None:
                answer = replace(answer, object=self._alters(dict(answer.object)))
            self.kueue.done(write, answer, now=now)
        wake = self.kueue.next_wake(now)
        if wake is not None and wake <= now:
            for write in self.kueue.turn(now).writes:
                due = now + self.random.randint(1, 4) * STEP
                heapq.heappush(self._writes, (due, next(self._numbers), write))
        self._to_judge.pass_on(self.api, now)
        self.judge.tick(now)
        self.judged += self.judge.take()
        self._end_jobs(now)

    def _kueue_sees(self, event: Object, now: int) -> None:
        self.kueue.observe({**event, "object": self._alters(event["object"])}, now=now)

    def _judge_sees(self, event: Object, now: int) -> None:
        self.judge.observe(event, now=now)

    def _end_jobs(self, now: int) -> None:
        """Jobs of admitted workloads end some time later, and evicted ones stop."""
        for stored in self.api.list("Workload")[0]:
            name = stored["metadata"]["name"]
            holds = {row["type"] for row in stored.get("status", {}).get("conditions", ()) if row["status"] == "True"}
            what = "stops" if "Evicted" in holds else "ends"
            if "QuotaReserved" not in holds or "Finished" in holds:
                self._ends = {key: at for key, at in self._ends.items() if not key.endswith(f" {name}")}
                continue
            seconds = 0.3 if what == "stops" else self.random.uniform(3, 15)
            due = self._ends.setdefault(f"{what} {name}", now + round(seconds * SECOND_NS))
            if due <= now:
                self._ends[f"{what} {name}"] = now + SECOND_NS
                report = self.kueue.stopped if what == "stops" else self.kueue.finished
                report(name, namespace="lab")

    def _change_quota(self) -> None:
        queue = self.api.get("ClusterQueue", self.random.choice("abc"))
        spec = queue["spec"]
        flavor = spec["resourceGroups"][0]["flavors"][0]
        amount = {**flavor["resources"][0], "nominalQuota": str(self.random.randint(4, 8))}
        changed = {
            **spec,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor | {"resources": [amount]}]}],
        }
        self.api.patch("ClusterQueue", queue["metadata"]["name"], {"spec": changed})

    def _workload(self, number: int) -> Object:
        return workload(
            f"w{number}",
            self.random.choice("aabc"),
            cpu=self.random.randint(1, 4),
            priority=self.random.choice((0, 0, 50, 100)),
            at=self.api.now,
        )


def workload(name: str, queue: str, *, cpu: int = 1, priority: int = 0, at: int = START) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    created = format_time(at // SECOND_NS * SECOND_NS)
    metadata = {"name": name, "namespace": "lab", "creationTimestamp": created}
    spec = {"queueName": queue, "priority": priority, "active": True, "podSets": [pod_set]}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}


def queues() -> list[Object]:
    """ClusterQueues `a` and `b` of one cohort, and `c` of its own, each with six CPUs."""
    found: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
    ]
    for name, cohort in (("a", "all"), ("b", "all"), ("c", "")):
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "6"}]}
        spec = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        } | ({"cohortName": cohort} if cohort else {})
        found.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"name": name, "namespace": "lab"}
        found.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})
    return found


def reversed_priority(manifest: Object) -> Object:
    """What a Kueue sees that puts the least important first."""
    if manifest["kind"] != "Workload":
        return manifest
    return {**manifest, "spec": {**manifest["spec"], "priority": -manifest["spec"]["priority"]}}
