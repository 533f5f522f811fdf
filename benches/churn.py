"""`kueuecore serve` for long: jobs come, run, end and are deleted, queues come and go, quotas change.

    python benches/churn.py --minutes 15 --rate 4 --cluster own
    KUBE_APISERVER=... ETCD=... KUBE_CONTROLLER_MANAGER=... python benches/churn.py --cluster real

Prints a line of JSON every 15 seconds, with the memory, descriptors and threads of the process that leads, and what has
become of the jobs; then a summary, with what was lost or ran twice.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, LateKinds, follow
from scripts.clusters.life import Life
from scripts.clusters.own import OwnCluster
from scripts.clusters.place import KUEUE, create, patient, wait_for
from scripts.clusters.real import RealCluster, missing_binaries
from scripts.clusters.replicas import Replica, Replicas

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, pod]}
"""
NAMESPACE = "churn"
N_QUEUES = 6
# So much is enough for the jobs that come, most of the time.
CPUS = 12
CANCELLED, KEPT_SECONDS = 0.08, 20.0
SAMPLE_SECONDS = 15.0


class Jobs:
    """What has become of the jobs, as watches show it."""

    def __init__(self, api: Api) -> None:
        self._over = LateKinds()
        self.alive: set[str] = set()
        self.done: dict[str, float] = {}
        self.cancelled: set[str] = set()
        self.n_done = 0
        self.twice: list[str] = []
        self.pods: dict[str, int] = {}
        """How many pods of a job should run."""
        self._finished: set[str] = set()
        self._runs: dict[str, set[str]] = {}
        for kind in ("Job", "Pod"):
            threading.Thread(target=self._watch, args=(api, kind), daemon=True).start()

    def end(self) -> None:
        self._over.end()

    def _watch(self, api: Api, kind: str) -> None:
        for news in follow(api, kind, namespace=NAMESPACE, late=self._over):
            if news is None:
                continue
            rows = news.listed if news.listed is not None else [object_at(news.event, "object")]
            for row in rows:
                self._see(kind, row, is_gone=news.event.get("type") == "DELETED")

    def _see(self, kind: str, row: JsonObject, *, is_gone: bool) -> None:
        name = text_at(row, "metadata", "name")
        if kind == "Pod":
            job = text_at(row, "metadata", "labels", "batch.kubernetes.io/job-name")
            if text_at(row, "status", "phase") == "Succeeded":
                pods = self._runs.setdefault(job, set())
                pods.add(text_at(row, "metadata", "uid"))
                # A pod of a job that is gone comes too late to be counted.
                if len(pods) > self.pods.get(job, len(pods)):
                    self.twice.append(f"{job}: {len(pods)} pods")
            return
        conditions = map(object_at, list_at(row, "status", "conditions"))
        is_done = any(it.get("type") == "Complete" and it.get("status") == "True" for it in conditions)
        if is_done and name not in self._finished:
            self._finished.add(name)
            self.n_done += 1
            self.done[name] = time.monotonic()
            if int_at(row, "status", "succeeded") != int_at(row, "spec", "completions"):
                self.twice.append(f"{name}: {row.get('status')}")
        if is_gone:
            self.alive.discard(name)
            self.done.pop(name, None)
            self._runs.pop(name, None)
            self.pods.pop(name, None)
        else:
            self.alive.add(name)


class Churn:
    """Creates and deletes jobs and queues.

    Args:
        api: The cluster.
        rate: Jobs a second.
        seed: Of what is chosen.
    """

    def __init__(self, api: Api, *, rate: float, seed: int) -> None:
        self._api, self._rate, self._random = api, rate, random.Random(seed)
        self.jobs = Jobs(api)
        self.n_created = self.n_queues = self.n_quotas = 0
        self._extra: deque[str] = deque()
        self._quota = dict.fromkeys((f"q{number}" for number in range(N_QUEUES)), CPUS)

    def prepare(self) -> None:
        """Create what jobs need."""
        create(self._api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        create(self._api, {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}})
        for name in self._quota:
            self._queue(name)

    def play(self, seconds: float) -> None:
        """Let jobs and queues come and go for a while."""
        began = time.monotonic()
        turn = 0
        while (now := time.monotonic()) < began + seconds:
            turn += 1
            self._job()
            if turn % round(self._rate * 5) == 0:
                self._change_quota()
            if turn % round(self._rate * 10) == 0:
                self._replace_queue()
            for name, at in list(self.jobs.done.items()):
                if at < now - KEPT_SECONDS:
                    self._delete("Job", name)
                    self.jobs.done.pop(name, None)
            if self._random.random() < CANCELLED:
                self._cancel()
            time.sleep(max(0.0, began + turn / self._rate - time.monotonic()))

    def settle(self, *, seconds: float) -> list[str]:
        """Give all queues their quota, wait until all jobs are done, and return those that are not."""
        for name in self._quota:
            self._give(name, CPUS)

        def left() -> set[str]:
            return self.jobs.alive - self.jobs.done.keys() - self.jobs.cancelled

        until = time.monotonic() + seconds
        while left() and time.monotonic() < until:
            time.sleep(1)
        return sorted(left())

    def _job(self) -> None:
        pods = self._random.choice((1, 1, 2))
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        labels = {"kueue.x-k8s.io/queue-name": self._random.choice(list(self._quota))}
        template = {
            "metadata": {"annotations": {"example.com/seconds": str(self._random.choice((0.3, 1.0, 3.0)))}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
        spec = {"suspend": True, "parallelism": pods, "completions": pods, "template": template}
        metadata = {"name": f"j{self.n_created:06}", "namespace": NAMESPACE, "labels": labels}
        self.jobs.pods[f"j{self.n_created:06}"] = pods
        create(self._api, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
        self.n_created += 1

    def _cancel(self) -> None:
        waiting = sorted(self.jobs.alive - self.jobs.done.keys() - self.jobs.cancelled)
        if waiting:
            name = self._random.choice(waiting)
            self.jobs.cancelled.add(name)
            self._delete("Job", name)

    def _change_quota(self) -> None:
        name = self._random.choice(list(self._quota))
        self.n_quotas += 1
        self._give(name, self._random.choice((0, CPUS // 2, CPUS, 2 * CPUS)))

    def _replace_queue(self) -> None:
        """Create a queue under a new name, and delete an earlier one; what was kept for that must go as well."""
        self.n_queues += 1
        name = f"extra-{self.n_queues:05}"
        self._queue(name)
        self._extra.append(name)
        if len(self._extra) > 3:
            gone = self._extra.popleft()
            self._delete("LocalQueue", gone)
            self._delete("ClusterQueue", gone)

    def _queue(self, name: str) -> None:
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(CPUS)}]}
        spec = {
            "namespaceSelector": {},
            "cohortName": f"cohort-{len(name) + int(name[-1]) % 2}",
            "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        create(self._api, {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"name": name, "namespace": NAMESPACE}
        create(
            self._api, {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
        )

    def _give(self, name: str, cpus: int) -> None:
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]}
        patch: dict[str, Any] = {"spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}}
        path = self._api.path("ClusterQueue", name=name)
        patient(lambda: self._api.send("PATCH", path, patch, content_type="application/merge-patch+json"))

    def _delete(self, kind: str, name: str) -> None:
        path = self._api.path(kind, "" if kind == "ClusterQueue" else NAMESPACE, name)
        try:
            patient(lambda: self._api.send("DELETE", path, query={"propagationPolicy": "Background"}))
        except RefusedError as error:
            if error.code != 404:
                raise


def sample(replica: Replica) -> dict[str, Any]:
    """Memory in MiB, descriptors, threads and CPU seconds of a process."""
    place = Path(f"/proc/{replica.process.pid}")
    status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line)
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    return {
        "rss_mib": round(int(status["VmRSS"].split()[0]) / 1024, 1),
        "descriptors": len(list((place / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "cpu_s": round((int(fields[11]) + int(fields[12])) / 100, 1),
    }


def run(cluster: OwnCluster | RealCluster, *, minutes: float, rate: float, seed: int) -> dict[str, Any]:
    """Play, print samples, and return the summary."""
    folder = Path(tempfile.mkdtemp(prefix="kueuecore-churn-"))
    life = Life(cluster.api(), runs_jobs=not cluster.has_controllers)
    life.start()
    churn = Churn(cluster.api(), rate=rate, seed=seed)
    churn.prepare()
    replicas = Replicas(cluster, folder, n=1, configuration=CONFIGURATION)
    samples: list[dict[str, Any]] = []
    over = threading.Event()
    began = time.monotonic()
    try:
        leader = replicas.wait_for_leader()
        wait_for(lambda: not leader.unready(), "it is ready")

        def watch() -> None:
            while not over.wait(SAMPLE_SECONDS):
                # As a Deployment does: a leader that could not renew its Lease leaves.
                replicas.tend()
                done = {"created": churn.n_created, "done": churn.jobs.n_done, "alive": len(churn.jobs.alive)}
                with suppress(KeyError, OSError):  # it has just ended
                    row = {"s": round(time.monotonic() - began), **sample(replicas.all[-1]), **done}
                    samples.append(row)
                    print(json.dumps(row), flush=True)

        sampler = threading.Thread(target=watch, daemon=True)
        sampler.start()
        churn.play(minutes * 60)
        lost = churn.settle(seconds=180)
        over.set()
        sampler.join()
        ended = [it.process.returncode for it in replicas.all if not it.is_alive]
        rows = (row for it in replicas.all for row in it.logged())
        errors = [row for row in rows if row["level"] in ("error", "critical") and "Lease" not in str(row)]
    finally:
        over.set()
        churn.jobs.end()
        replicas.kill()
        life.stop()
    third = max(1, len(samples) // 3)
    memory = [row["rss_mib"] for row in samples]
    return {
        "cluster": cluster.name,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "jobs": churn.n_created,
        "done": churn.jobs.n_done,
        "cancelled": len(churn.jobs.cancelled),
        "queues": churn.n_queues,
        "quotas": churn.n_quotas,
        "lost": lost,
        "twice": churn.jobs.twice,
        "ended": ended,
        "errors": len(errors),
        "rss_mib_by_thirds": [statistics.median(memory[at : at + third] or [0]) for at in (0, third, 2 * third)],
        "descriptors": [min(row["descriptors"] for row in samples), max(row["descriptors"] for row in samples)],
        "threads": [min(row["threads"] for row in samples), max(row["threads"] for row in samples)],
        "cpu_s": samples[-1]["cpu_s"],
        "logs": str(folder),
    }


def main() -> None:
    """Play, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", choices=["own", "real"], default="own")
    parser.add_argument("--minutes", type=float, default=15.0, help="how long jobs come")
    parser.add_argument("--rate", type=float, default=4.0, help="jobs a second")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.cluster == "real" and (missing := missing_binaries()):
        parser.error(missing)
    with ExitStack() as stack:
        made: OwnCluster | RealCluster = OwnCluster() if options.cluster == "own" else RealCluster()
        stack.enter_context(made)
        print(json.dumps(run(made, minutes=options.minutes, rate=options.rate, seed=options.seed)), flush=True)


if __name__ == "__main__":
    main()
