"""The example controller through a day of Jobs: over HTTP, in virtual time, killed now and then."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from examples.controller.controller import KINDS, Api, JobController, News, follow
from kueuecore.testing import Cluster, check_invariants
from kueuecore.times import format_time, nanoseconds
from tests.api_server import ApiServer

SECOND = 10**9
START = 1_767_225_600 * SECOND
MINUTE = 60 * SECOND
KUEUE = "kueue.x-k8s.io/v1beta2"


class KilledError(BaseException):
    """The process ends here."""


class MortalApi(Api):
    """Ends the process before or after some writes to Workloads."""

    def __init__(self, server: str, *, dies_at: dict[int, str]) -> None:
        super().__init__(server)
        self.dies_at, self.n_writes = dies_at, 0

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.n_writes += method == "PATCH"
        dies = self.dies_at.pop(self.n_writes, "") if method == "PATCH" else ""
        if dies == "before":
            raise KilledError
        answer = super().send(method, path, body)
        if dies == "after":
            raise KilledError
        return answer


class Day:
    """A cluster with queues, Jobs that come and run in virtual time, and who watches over them."""

    def __init__(self, url: str, server: ApiServer, dies_at: dict[int, str]) -> None:
        self.cluster, self.server = server.cluster, server
        self.api = MortalApi(url, dies_at=dies_at)
        self.coming: list[tuple[int, dict[str, Any]]] = []
        self.n_starts = 0
        self.most_cpus = 0
        for made in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
            {
                "apiVersion": KUEUE,
                "kind": "ResourceFlavor",
                "metadata": {"name": "spot"},
                "spec": {"nodeLabels": {"pool": "spot"}},
            },
        ):
            self.cluster.create(made)
        for name, priority in (("urgent", 100), ("normal", 0)):
            metadata = {"name": name}
            self.cluster.create(
                {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": metadata, "value": priority}
            )
        flavor = {"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
        spec: dict[str, Any] = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        }
        self.cluster.create({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "lab"}, "spec": spec})
        queue = {"metadata": {"name": "jobs", "namespace": "lab"}, "spec": {"clusterQueue": "lab"}}
        self.cluster.create({"apiVersion": KUEUE, "kind": "LocalQueue", **queue})

    def add(self, minute: int, name: str, *, pods: int, minutes: int, priority: str = "normal") -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        labels = {"kueue.x-k8s.io/queue-name": "jobs", "kueue.x-k8s.io/priority-class": priority}
        metadata = {"name": name, "namespace": "lab", "labels": labels, "annotations": {"minutes": str(minutes)}}
        spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        self.coming.append((START + minute * MINUTE, job))

    def jobs(self) -> list[dict[str, Any]]:
        return self.cluster.list("Job")[0]

    def restart(self) -> None:
        """A process begins: it knows nothing."""
        self.controller = JobController(self.api, clock=lambda: self.cluster.now)
        self.feeds = {kind: follow(self.api, kind) for kind in KINDS}
        self.unread = set(KINDS)
        self.heard = 0

    def work(self) -> None:
        """What Kubernetes does: Jobs come, start, stop, and end when their time is over."""
        while self.coming and self.coming[0][0] <= self.cluster.now:
            self.cluster.create(self.coming.pop(0)[1])
        cpus = 0
        for job in self.jobs():
            status, pods = job.get("status", {}), job["spec"]["parallelism"]
            if any(it["status"] == "True" for it in status.get("conditions", ())):
                continue
            new: dict[str, Any] = {"active": 0, "ready": 0, "startTime": None}
            if not job["spec"]["suspend"]:
                began = status.get("startTime")
                self.n_starts += began is None
                new = {"active": pods, "ready": pods, "startTime": began or format_time(self.cluster.now)}
                cpus += pods
                if began is not None and self.end_of(job) <= self.cluster.now:
                    complete = {"type": "Complete", "status": "True", "message": "done"}
                    new |= {"active": 0, "ready": 0, "succeeded": pods, "conditions": [complete]}
            self.cluster.patch("Job", job["metadata"]["name"], {"status": new}, namespace="lab", subresource="status")
        self.most_cpus = max(self.most_cpus, cpus)

    def end_of(self, job: dict[str, Any]) -> int:
        began: str = job["status"]["startTime"]
        return nanoseconds(began) + int(job["metadata"]["annotations"]["minutes"]) * MINUTE

    def next_end(self) -> int | None:
        """When something happens by itself."""
        running = [job for job in self.jobs() if {"active", "startTime"} <= {k for k, v in job["status"].items() if v}]
        times = [self.end_of(job) for job in running] + [at for at, _ in self.coming[:1]]
        return min(times, default=None)

    def live(self) -> None:
        """Until nothing happens any more."""
        self.coming.sort(key=lambda it: it[0])
        self.restart()
        quiet = 0
        for _ in range(500):
            self.work()
            before = self.cluster.version
            try:
                self.hear()
                wake = self.controller.step()
            except KilledError:
                self.cluster.now += 5 * SECOND
                self.restart()
                continue
            check_invariants(self.controller.loop.engine)
            quiet = quiet + 1 if self.cluster.version == before else 0
            times = [time for time in (wake, self.next_end()) if time is not None]
            if quiet > 1 and not times:
                return
            # What was written is heard of a second later.
            soon = self.cluster.now + SECOND
            self.cluster.now = soon if quiet < 2 else max(soon, min(times))
        raise AssertionError("it does not come to an end")

    def hear(self) -> None:
        """What watches say; those of kinds of which nothing has changed are silent."""
        history = self.cluster.history
        changed = {event["object"]["kind"] for version, event in history if version > self.heard}
        if not history or history[0][0] > self.heard + 1:
            self.unread = set(KINDS)  # compacted: nobody knows
        self.heard = self.cluster.version
        for kind, feed in self.feeds.items():
            if kind in changed or kind in self.unread:
                self.unread.discard(kind)
                for news in feed:
                    if news is None:
                        # After a 410 the list comes with the next look.
                        self.unread |= {kind} if self.server.requests[-1][2] == 410 else set()
                        break
                    self.controller.hear(news)


def test_a_day_of_jobs_runs_to_its_end_though_the_controller_is_killed() -> None:
    conflicts = [5, 11]
    n_patches = 0

    def before(method: str, kind: str, name: str) -> None:
        nonlocal n_patches
        n_patches += method == "PATCH"
        if method == "PATCH" and n_patches in conflicts:
            conflicts.remove(n_patches)
            server.cluster.patch(kind, name, {"metadata": {"labels": {"touched": "yes"}}}, namespace="lab")
        if n_patches % 9 == 8:
            server.cluster.compact()

    server = ApiServer(Cluster(now=START), before)
    with server.serve() as url:
        day = Day(url, server, {2: "before", 7: "after", 12: "before", 16: "after"})
        for hour in range(0, 24, 8):
            day.add(hour * 60, f"night-{hour}", pods=3, minutes=150)
            day.add(hour * 60 + 7, f"small-{hour}", pods=1, minutes=20)
            day.add(hour * 60 + 30, f"urgent-{hour}", pods=4, minutes=30, priority="urgent")
        day.live()
    assert {job["metadata"]["name"]: job["status"].get("succeeded") for job in day.jobs()} == {
        f"{kind}-{hour}": pods for kind, pods in (("night", 3), ("small", 1), ("urgent", 4)) for hour in range(0, 24, 8)
    }
    assert all(job["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "spot"} for job in day.jobs())
    # The three that run when something urgent comes are stopped, and begin again.
    assert (day.n_starts, day.most_cpus) == (12, 4)
    workloads = server.cluster.list("Workload")[0]
    holding = [it for it in workloads if {"QuotaReserved"} <= true(it) and "Finished" not in true(it)]
    assert (len(workloads), holding) == (9, [])
    assert all("Finished" in true(it) for it in workloads)
    assert {code for _, _, code in server.requests} == {200, 201, 409, 410}
    assert not day.api.dies_at


def true(manifest: dict[str, Any]) -> set[str]:
    return {it["type"] for it in manifest["status"]["conditions"] if it["status"] == "True"}


def test_another_job_system_prints_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "without-kubernetes"
    runpy.run_path(str(folder / "demo.py"), run_name="__main__")
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out}```" in page


def test_a_watch_that_is_too_old_lists_again() -> None:
    server = ApiServer(Cluster(now=START))
    server.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    with server.serve() as url:
        feed = follow(Api(url), "Namespace")
        first = [next(feed), next(feed)]
        server.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}})
        server.cluster.compact()
        second = [next(feed), next(feed)]
    assert [len(it.listed or ()) if isinstance(it, News) else None for it in (*first, *second)] == [1, None, None, 2]
